# Puts Cowboy, what it needs and the handler into the build folder: build.sh OUT
set -eu
out=$1
cache=$out/../rabbitmq-plugins
sh ../shared/rabbitmq-plugins.sh "$cache"
for library in cowboy cowlib ranch; do
    cp "$cache/$library"-*/ebin/* "$out"
done
erlc -Werror -pa "$out" -o "$out" ../shared/cowboy_server.erl
basename "$cache"/cowboy-* | tr '-' ' ' > "$out/VERSION"
