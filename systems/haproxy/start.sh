# Starts HAProxy in front of nginx: start.sh ADDRESS PORT TLS CERT UPSTREAM THREADS TICKETS. HAProxy finds the key at CERT.key.
# Connections to nginx are kept and shared. Their number is limited by that of open files only. Timeouts are long, so that a trial is not interrupted.
set -eu
address=$1 port=$2 tls=$3 cert=$4 upstream=$5 threads=$6 tickets=$7
. ../shared/upstream.sh

secured=
[ "$tls" = off ] || secured="ssl crt $cert ssl-min-ver TLSv1.2 alpn http/1.1"
[ "$tickets" = true ] || secured="$secured${secured:+ no-tls-tickets}"
cat > "$dir/haproxy.cfg" <<CFG
global
    nbthread $threads
    ssl-load-extra-files key
defaults
    mode http
    timeout client 1h
    timeout server 1h
    timeout connect 10s
    timeout http-keep-alive 1h
    http-reuse always
frontend front
    bind $host:$port backlog 4096 $secured
    default_backend nginx
backend nginx
    server nginx $backend
CFG
front haproxy -db -f "$dir/haproxy.cfg"
