# Starts HAProxy in front of nginx: start.sh ADDRESS PORT TLS CERT UPSTREAM THREADS TICKETS HTTP. HAProxy finds the key at CERT.key.
set -eu
address=$1 port=$2 tls=$3 cert=$4 upstream=$5 threads=$6 tickets=$7 http=$8
. ../shared/upstream.sh
. ../shared/haproxy.sh

secured=
[ "$tls" = off ] || secured="ssl crt $cert ssl-min-ver TLSv1.2"
[ "$tickets" = true ] || secured="$secured${secured:+ no-tls-tickets}"
run_haproxy "$secured" ""
