# For Caddy in front of another program.
#
# A start script sets `address`, `port` and `http` (the version of HTTP for its clients: 1.1, or 2, with which Caddy speaks 1.1 as well),
# reads the file that starts what is behind at $backend, reads this one, and calls
#   run_caddy SCHEME SITE PROXY
#   SCHEME   http or https
#   SITE     a further line for its site; may be empty
#   PROXY    a further line for its block reverse_proxy; may be empty
# Caddy gets no certificates of its own, listens on no other port, and keeps its files in a folder that is removed at the end. It speaks
# HTTP/1.1 to what is behind, and keeps all connections to it; by default it keeps 32.
run_caddy() {
    case $http in 2) protocols="h1 h2 h2c" ;; *) protocols=h1 ;; esac
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
		protocols $protocols
	}
}

$1://:$port {
	bind $host
	$2
	reverse_proxy $backend {
		$3
		transport http {
			keepalive 1h
			keepalive_idle_conns_per_host 16384
		}
	}
}
CADDY
    export HOME="$dir" XDG_CONFIG_HOME="$dir" XDG_DATA_HOME="$dir"
    front caddy run --config "$dir/Caddyfile" --adapter caddyfile
}
