# Starts nginx in front of `narrows serve`: start.sh NARROWS ADDRESS PORT PROXY_BUFFERING HTTP
# It keeps all connections to it. With HTTP 2 it speaks HTTP/2 to its clients, and nothing else.
set -eu
narrows=$1 address=$2 port=$3 buffering=$4 http=$5
. ../shared/scripted.sh

case $buffering in true) buffering=on ;; *) buffering=off ;; esac
version=
[ "$http" = 1.1 ] || version=http2
front sh ../shared/nginx.sh "$dir" front 1 "
    keepalive_requests 1000000;
    keepalive_timeout 1h;
    upstream scripted {
        server $backend;
        keepalive 16384;
        keepalive_requests 1000000;
        keepalive_timeout 1h;
    }" "
        listen $host:$port $version backlog=4096;
        location / {
            proxy_pass http://scripted;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_buffering $buffering;
            proxy_read_timeout 1h;
        }"
