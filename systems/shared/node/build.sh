# Puts a Node program, the client driver and its packages into the build folder: build.sh OUT PACKAGE
# Run in the system's folder. Installs the versions in package-lock.json.
set -eu
out=$1 package=$2
cp package.json package-lock.json ./*.js ../shared/node/narrows_client.js "$out"
cd "$out"
npm ci --omit=dev --ignore-scripts --no-audit --no-fund --fetch-retries=1 --fetch-retry-mintimeout=1000 || {
    echo "npm could not install the packages of package-lock.json: the npm registry must be reachable" >&2
    exit 1
}
node -p "'$package ' + require('$package/package.json').version + ', node ' + process.versions.node" > VERSION
