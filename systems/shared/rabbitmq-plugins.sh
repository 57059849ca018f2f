#!/bin/sh
# Puts the Erlang libraries of Debian's rabbitmq-server package (Cowboy, Gun and their dependencies) into the folder
# CACHE. Installs nothing, starts no daemon, prints nothing. A second call does nothing, unless the package has another
# version by then. If two calls run at once, both do the work, and the rename makes one of them win.
#
# usage: rabbitmq-plugins.sh CACHE          of this machine's own release, which is downloaded
#        rabbitmq-plugins.sh CACHE PACKAGE  of the package that is unpacked in the folder PACKAGE
set -eu
cache=$1
if [ $# -gt 1 ]; then
    version=$2
else
    version=$(apt-cache show --no-all-versions rabbitmq-server | sed -n 's/^Version: //p')
fi
[ "$(cat "$cache/VERSION" 2>/dev/null)" != "$version" ] || exit 0

work=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/deb" "$work/root" "$work/plugins"
if [ $# -gt 1 ]; then
    root=$2
else
    root=$work/root
    (cd "$work/deb" && apt-get -q download rabbitmq-server) >&2 || {
        echo "apt-get download rabbitmq-server failed; apt-get update may help" >&2
        exit 1
    }
    dpkg-deb -x "$work"/deb/*.deb "$root"
fi
for library in cowboy cowlib ranch gun; do
    found=$(echo "$root"/usr/lib/rabbitmq/lib/*/plugins/"$library"-*)
    case $found in
        # Older releases have each library in an archive.
        *.ez) erl -noshell -eval "{ok, _} = zip:extract(\"$found\", [{cwd, \"$work/plugins\"}]), halt()." ;;
        *) cp -R "$found" "$work/plugins" ;;
    esac
done
echo "$version" > "$work/plugins/VERSION"
chmod 755 "$work/plugins"
[ ! -d "$cache" ] || mv -T "$cache" "$work/old" 2>/dev/null || true
mv -T "$work/plugins" "$cache" 2>/dev/null || [ -d "$cache" ]
