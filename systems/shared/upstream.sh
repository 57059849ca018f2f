# For a program that stands in front of nginx (front.sh says how).
#
# A start script sets `address`, `port` and `upstream` and reads this file, which starts nginx at $backend (the path of a Unix socket, or
# 127.0.0.3:PORT) and waits until it listens. nginx speaks HTTP/1.1, or nothing but HTTP/2 if `inner_http` is 2.
. ../shared/front.sh

case $upstream in
    unix) backend=$dir/nginx.sock listen=unix:$dir/nginx.sock ;;
    loopback) backend=$inner:$port listen="$inner:$port backlog=4096" ;;
esac
[ "${inner_http:-1.1}" = 1.1 ] || listen="$listen http2"
sh ../shared/nginx.sh "$dir" nginx 1 "keepalive_requests 1000000; keepalive_timeout 1h;" "listen $listen;" &
pids=$!

# A program may ask its backend at once. nginx writes its pid when it listens.
tries=0
until [ -s "$dir/nginx.pid" ]; do
    kill -0 "$pids" 2>/dev/null && [ "$tries" -lt 500 ] || exit 1
    tries=$((tries + 1))
    sleep 0.01
done
