# Starts Caddy in front of nginx: start.sh ADDRESS PORT TLS CERT KEY UPSTREAM
# Caddy gets no certificates of its own, listens on no other port, and keeps its files in a folder that is removed at the end. It keeps
# all connections to nginx; by default it keeps 32.
set -eu
address=$1 port=$2 tls=$3 cert=$4 key=$5 upstream=$6
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
	bind $host
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
