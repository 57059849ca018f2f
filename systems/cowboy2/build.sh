# Puts Cowboy, its dependencies and the handler into the build folder: build.sh OUT
# COWBOY_LIBS: a folder with the compiled libraries to use instead of Debian's
set -eu
out=$1
cache=${COWBOY_LIBS:-$out/../rabbitmq-plugins}
[ -n "${COWBOY_LIBS:-}" ] || sh ../shared/rabbitmq-plugins.sh "$cache"
for library in cowboy cowlib ranch; do
    cp "$cache/$library"-*/ebin/* "$out"
done
erlc -Werror -pa "$out" -o "$out" ../shared/cowboy_server.erl
basename "$cache"/cowboy-* | tr '-' ' ' > "$out/VERSION"
