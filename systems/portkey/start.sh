# Starts Portkey's gateway in front of `narrows serve`: start.sh NARROWS OUT ADDRESS PORT
# It trusts no host behind it that is not named.
set -eu
narrows=$1 out=$2 address=$3 port=$4
. ../shared/scripted.sh

export ADDRESS="$address" BACKEND="$backend" TRUSTED_CUSTOM_HOSTS="$inner"
front node --require "$out/told.js" "$out/node_modules/@portkey-ai/gateway/build/start-server.js" --port="$port" --headless
