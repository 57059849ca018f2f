# Compiles the client and its driver into the build folder: build.sh OUT
set -eu
cc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -I../shared/c -o "$1/client" client.c ../shared/c/narrows_client.c -lcurl
