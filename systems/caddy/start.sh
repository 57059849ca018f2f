# Starts Caddy in front of nginx: start.sh PORT TLS CERT KEY UPSTREAM
# Caddy gets no certificates of its own, listens on no other port, and keeps its files in a folder that is removed at the end. It keeps
# all connections to nginx; by default it keeps 32.
set -eu
port=$1 tls=$2 cert=$3 key=$4 upstream=$5
. ../shared/upstream.sh

[ "$upstream" != unix ] || backend=unix/$backend
scheme=https secured="tls $cert $key"
[ "$tls" != off ] || scheme=http secured=
cat > "$dir/Caddyfile" <<CADDY
{
	admin off
	auto_https off
	storage file_system $dir/storage
	grace_period 100ms
	log {
		level ERROR
	}
	servers {
		protocols h1
	}
}

$scheme://:$port {
	bind 127.0.0.1
	$secured
	reverse_proxy $backend {
		transport http {
			keepalive 1h
			keepalive_idle_conns_per_host 16384
		}
	}
}
CADDY
export HOME="$dir" XDG_CONFIG_HOME="$dir" XDG_DATA_HOME="$dir"
front caddy run --config "$dir/Caddyfile" --adapter caddyfile
