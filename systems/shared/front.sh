# For a program that stands in front of another one: starts both, and ends both when the program ends or at a signal.
#
# A start script sets `address` and `port` and reads this file, which makes the folder $dir. The script starts what is behind, adds its
# pid to $pids, writes its configuration into $dir and calls
#   front COMMAND...
# $host is the address as a URL has it. $inner is this machine as well, so that what is behind can have the same port there.
. ../shared/host.sh
PATH=$PATH:/usr/sbin:/sbin
# A program that gives up root's rights must find the socket. A folder that TMPDIR names may be below one that only root may read.
base=${TMPDIR:-/tmp}
[ "$(id -u)" != 0 ] || base=/tmp
dir=$(mktemp -d "$base/narrows-upstream.XXXXXX")
chmod 755 "$dir"
inner=127.0.0.3
[ "$address" != "$inner" ] || inner=127.0.0.4
pids=
# shellcheck disable=SC2086 # a list
end() {
    trap '' TERM INT HUP
    [ -z "$pids" ] || kill $pids 2>/dev/null || true
    wait
    rm -rf "$dir"
}
trap end EXIT
trap 'exit 0' TERM INT HUP

front() {
    "$@" &
    pids="$pids $!"
    wait $!
}
