# Puts Cowboy, its dependencies and the handler into the build folder: build.sh OUT
# A variant compiles Debian's libraries again, because they were compiled for the runtime of their release.
# COWBOY_LIBS: a folder with the compiled libraries to use instead of Debian's
# RABBITMQ: a folder with the unpacked package rabbitmq-server to use instead of the one of this machine's release
set -eu
out=$1
cache=${COWBOY_LIBS:-$out/../rabbitmq-plugins}
if [ -n "${RABBITMQ:-}" ]; then
    cache=$out/plugins
    sh ../shared/rabbitmq-plugins.sh "$cache" "$RABBITMQ"
elif [ -z "${COWBOY_LIBS:-}" ]; then
    sh ../shared/rabbitmq-plugins.sh "$cache"
fi
for library in cowboy cowlib ranch; do
    cp "$cache/$library"-*/ebin/* "$out"
done
case ${out##*/} in
    *@*) [ -n "${COWBOY_LIBS:-}" ] || escript ../shared/recompile.escript "$out" ;;
esac
erlc -Werror -pa "$out" -o "$out" ../shared/cowboy_server.erl
basename "$cache"/cowboy-* | tr '-' ' ' > "$out/VERSION"
