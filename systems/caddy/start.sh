# Starts Caddy in front of nginx: start.sh ADDRESS PORT TLS CERT KEY UPSTREAM HTTP
set -eu
address=$1 port=$2 tls=$3 cert=$4 key=$5 upstream=$6 http=$7
. ../shared/upstream.sh
. ../shared/caddy.sh

[ "$upstream" != unix ] || backend=unix/$backend
scheme=https secured="tls $cert $key"
[ "$tls" != off ] || scheme=http secured=
run_caddy "$scheme" "$secured" ""
