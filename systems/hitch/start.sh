# Starts hitch in front of nginx: start.sh ADDRESS PORT CERT KEY UPSTREAM WORKERS HTTP
# hitch opens a connection to nginx for each connection of a client. It agrees on the version of HTTP that nginx speaks.
set -eu
address=$1 port=$2 cert=$3 key=$4 upstream=$5 workers=$6 inner_http=$7
. ../shared/upstream.sh

agrees=
[ "$inner_http" = 1.1 ] || agrees='alpn-protos = "h2"'
# As root hitch demands another user for its workers.
user=
[ "$(id -u)" != 0 ] || user='user = "nobody"
group = "nogroup"'
[ "$upstream" = unix ] || backend="[${backend%:*}]:$port"
cat > "$dir/hitch.conf" <<CONF
frontend = "[$address]:$port"
backend = "$backend"
workers = $workers
backlog = 4096
tls-protos = TLSv1.2 TLSv1.3
ocsp-dir = ""
log-level = 1
daemon = off
$agrees
$user
pem-file = {
    cert = "$cert"
    private-key = "$key"
}
CONF
front hitch --config="$dir/hitch.conf"
