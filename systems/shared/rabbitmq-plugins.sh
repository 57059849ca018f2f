#!/bin/sh
# Unpacks the Erlang libraries in Debian's rabbitmq-server package (Cowboy, Gun and their dependencies) into the
# folder CACHE. Installs nothing, starts no daemon, prints nothing. A second call does nothing, unless the package has
# another version by then. If two calls run at once, both do the work, and the rename makes one of them win.
#
# usage: rabbitmq-plugins.sh CACHE
set -eu
cache=$1
version=$(apt-cache show --no-all-versions rabbitmq-server | sed -n 's/^Version: //p')
[ "$(cat "$cache/VERSION" 2>/dev/null)" != "$version" ] || exit 0

work=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/deb" "$work/root" "$work/plugins"
(cd "$work/deb" && apt-get -q download rabbitmq-server) >&2 || {
    echo "apt-get download rabbitmq-server failed; apt-get update may help" >&2
    exit 1
}
dpkg-deb -x "$work"/deb/*.deb "$work/root"
for library in cowboy cowlib ranch gun; do
    mv "$work"/root/usr/lib/rabbitmq/lib/*/plugins/"$library"-* "$work/plugins"
done
echo "$version" > "$work/plugins/VERSION"
chmod 755 "$work/plugins"
[ ! -d "$cache" ] || mv -T "$cache" "$work/old" 2>/dev/null || true
mv -T "$work/plugins" "$cache" 2>/dev/null || [ -d "$cache" ]
