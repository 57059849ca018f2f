# Builds one of the Netty systems into its build folder: build-netty.sh OUT
# Run in the system's folder. Only one Maven may run at a time, because its repository does not support two.
set -eu
out=$1
flock "$out/../maven.lock" mvn --batch-mode --quiet -f ../shared/java/pom.xml dependency:copy-dependencies "-DoutputDirectory=$out/lib" || {
    echo # ends the last line of Maven's output
    echo "Maven could not download the libraries of systems/shared/java/pom.xml: Maven Central must be reachable" >&2
    exit 1
}
javac -Xlint:all -Werror -cp "$out/lib/*" -d "$out" ../shared/java/Listener.java ./*.java
version=$(basename "$out"/lib/netty-transport-4*.jar .jar)
echo "netty ${version#netty-transport-}, java $(javac -version 2>&1 | cut -d ' ' -f 2)" > "$out/VERSION"
