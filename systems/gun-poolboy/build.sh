# Puts Gun, Cowlib and the driver into the build folder: build.sh OUT
set -eu
out=$1
cache=$out/../rabbitmq-plugins
sh ../shared/rabbitmq-plugins.sh "$cache"
for library in cowlib gun; do
    cp "$cache/$library"-*/ebin/* "$out"
done
erlc -Werror -o "$out" ../shared/narrows_client.erl
erlc -Werror -pa "$out" -o "$out" gun_poolboy_client.erl
basename "$cache"/gun-* | tr - " " > "$out/VERSION"
