# Starts hitch in front of nginx: start.sh PORT CERT KEY UPSTREAM WORKERS
# hitch opens a connection to nginx for each connection of a client.
set -eu
port=$1 cert=$2 key=$3 upstream=$4 workers=$5
. ../shared/upstream.sh

# As root hitch demands another user for its workers.
user=
[ "$(id -u)" != 0 ] || user='user = "nobody"
group = "nogroup"'
[ "$upstream" = unix ] || backend="[${backend%:*}]:$port"
cat > "$dir/hitch.conf" <<CONF
frontend = "[127.0.0.1]:$port"
backend = "$backend"
workers = $workers
backlog = 4096
tls-protos = TLSv1.2 TLSv1.3
ocsp-dir = ""
log-level = 1
daemon = off
$user
pem-file = {
    cert = "$cert"
    private-key = "$key"
}
CONF
front hitch --config="$dir/hitch.conf"
