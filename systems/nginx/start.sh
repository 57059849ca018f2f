# Starts nginx in the foreground: start.sh OUT ADDRESS PORT KNOB=VALUE...
# With tls=off it is plain. With http=2 it speaks HTTP/2: in plain text nothing else. With answer_size above 0, GET /bytes answers the text that setup.sh made.
set -eu
out=$1 address=$2 port=$3
shift 3
. ../shared/host.sh
for word; do
    case $word in
        keepalive_requests=* | workers=* | tls=* | cert=* | key=* | tickets=* | record_size=* | answer_size=* | gzip=* | sendfile=* | http=*)
            export "$word" ;;
        *) echo "unknown: $word" >&2; exit 2 ;;
    esac
done

# switch BOOLEAN: how nginx writes it
switch() { [ "$1" = true ] && echo on || echo off; }

ssl= secured=
[ "$tls" = off ] || ssl=ssl secured="
        ssl_certificate "$cert";
        ssl_certificate_key "$key";
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_tickets $(switch "$tickets");
        ssl_buffer_size $record_size;"

# Newer ones have a directive for it, and still take this.
version=
[ "$http" = 1.1 ] || version=http2

compressed="gzip off;"
case $gzip in
    on) compressed="gzip on;" ;;
    static) compressed="gzip_static on;" ;;
esac
bytes=
[ "$answer_size" = 0 ] || bytes="
        location = /bytes {
            alias $out/bytes/$answer_size;
            default_type text/plain;
            gzip_types text/plain;
            $compressed
            sendfile $(switch "$sendfile");
        }"

exec sh ../shared/nginx.sh "$out" "$port" "$workers" "keepalive_requests $keepalive_requests;" \
    "listen $host:$port $ssl $version backlog=4096;$secured$bytes"
