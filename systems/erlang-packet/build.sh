# Compiles the server into the build folder: build.sh OUT
set -eu
erlc -Werror -o "$1" ../shared/narrows_frames.erl
erlc -Werror -pa "$1" -o "$1" packet_server.erl
