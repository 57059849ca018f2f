# Creates a virtual environment with the packages of requirements.txt in the build folder, and copies the system's files and the
# client driver there: build.sh OUT PACKAGE. Run in the system's folder. Run the programs in OUT with OUT/venv/bin/python: the
# scripts next to it contain an absolute path, and the folder may be moved.
set -eu
out=$1 package=$2
python3 -m venv "$out/venv"
"$out/venv/bin/python" -m pip install --quiet --retries 1 --disable-pip-version-check --require-hashes --no-deps --only-binary :all: -r requirements.txt || {
    echo "pip could not install requirements.txt: the Python package index must be reachable and have wheels for this machine" >&2
    exit 1
}
cp ./*.py "$out"
cp ../shared/python/narrows_client.py "$out"
"$out/venv/bin/python" -c "from importlib.metadata import version; from platform import python_version
print('$package', version('$package') + ', python', python_version())" > "$out/VERSION"
