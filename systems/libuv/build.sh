# Compiles the server into the build folder: build.sh OUT
set -eu
cc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -o "$1/server" server.c -luv
