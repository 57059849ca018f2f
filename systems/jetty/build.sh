# Builds Jetty's server into its build folder: build.sh OUT
# Run in the system's folder. Only one Maven may run at a time, because its repository does not support two.
set -eu
out=$1
flock "$out/../maven.lock" mvn --batch-mode --quiet dependency:copy-dependencies "-DoutputDirectory=$out/lib" || {
    echo # ends the last line of Maven's output
    echo "Maven could not download the libraries of systems/jetty/pom.xml: Maven Central must be reachable" >&2
    exit 1
}
javac -Xlint:all,-processing -Werror -cp "$out/lib/*" -d "$out" ./*.java
version=$(basename "$out"/lib/jetty-server-*.jar .jar)
echo "jetty ${version#jetty-server-}, java $(javac -version 2>&1 | cut -d ' ' -f 2)" > "$out/VERSION"
