# Compiles the driver into the build folder: build.sh OUT
set -eu
erlc -Werror -o "$1" ../shared/narrows_client.erl
erlc -Werror -pa "$1" -o "$1" httpc_client.erl
