# Creates a virtual environment with the packages of requirements.txt in the build folder, and copies the system's files and the
# common files there: build.sh OUT PACKAGE. Run in the system's folder. Run the programs in OUT with OUT/venv/bin/python: the
# scripts next to it contain an absolute path, and the folder may be moved.
set -eu
out=$1 package=$2
python3 -m venv "$out/venv"
"$out/venv/bin/python" -m pip install --quiet --retries 1 --disable-pip-version-check --require-hashes --no-deps --only-binary :all: -r requirements.txt || {
    echo "pip could not install requirements.txt: the Python package index must be reachable and have wheels for this machine" >&2
    exit 1
}
for file in ./*.py; do
    [ ! -e "$file" ] || cp "$file" "$out"
done
cp ../shared/python/narrows_client.py ../shared/python/streams.py "$out"
"$out/venv/bin/python" -c "from importlib.metadata import version; from platform import python_version
print('$package', version('$package') + ', python', python_version())" > "$out/VERSION"
