# For a program that stands in front of nginx: starts both, and ends both when the program ends or at a signal.
#
# A start script sets `address`, `port` and `upstream` and reads this file, which makes the folder $dir, starts nginx at $backend (the
# path of a Unix socket, or 127.0.0.3:PORT) and waits until it listens. The script writes its configuration into $dir and calls
#   front COMMAND...
# $host is the address as a URL has it. 127.0.0.3 is this machine as well, so that nginx can have the same port there.
. ../shared/host.sh
PATH=$PATH:/usr/sbin:/sbin
# A program that gives up root's rights must find the socket. A folder that TMPDIR names may be below one that only root may read.
base=${TMPDIR:-/tmp}
[ "$(id -u)" != 0 ] || base=/tmp
dir=$(mktemp -d "$base/narrows-upstream.XXXXXX")
chmod 755 "$dir"
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

case $upstream in
    unix) backend=$dir/nginx.sock listen=unix:$dir/nginx.sock ;;
    loopback)
        inner=127.0.0.3
        [ "$address" != "$inner" ] || inner=127.0.0.4
        backend=$inner:$port listen="$inner:$port backlog=4096" ;;
esac
sh ../shared/nginx.sh "$dir" nginx 1 "keepalive_requests 1000000; keepalive_timeout 1h;" "listen $listen;" &
pids=$!

# A program may ask its backend at once. nginx writes its pid when it listens.
tries=0
until [ -s "$dir/nginx.pid" ]; do
    kill -0 "$pids" 2>/dev/null && [ "$tries" -lt 500 ] || exit 1
    tries=$((tries + 1))
    sleep 0.01
done

front() {
    "$@" &
    pids="$pids $!"
    wait $!
}
