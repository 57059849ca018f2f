# Compiles both servers into the build folder: build.sh OUT
set -eu
for program in server published; do
    cc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -o "$1/$program" "$program.c" -luv
done
