# Starts Caddy in front of `narrows serve`: start.sh NARROWS ADDRESS PORT
# It reads a request to its end before it passes it on. Otherwise Go may close the request's body when the answer begins, while Caddy still
# looks for its end, and 1 to 8 % of chats ended before [DONE].
# Caddy keeps its files in a folder that is removed at the end. It keeps all connections behind it; by default it keeps 32.
set -eu
narrows=$1 address=$2 port=$3
. ../shared/scripted.sh

case $(caddy version) in
    v2.6.* | 2.6.*) buffered=buffer_requests ;;
    *) buffered="request_buffers 64KiB" ;;
esac
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

http://:$port {
	bind $host
	reverse_proxy $backend {
		$buffered
		transport http {
			keepalive 1h
			keepalive_idle_conns_per_host 16384
		}
	}
}
CADDY
export HOME="$dir" XDG_CONFIG_HOME="$dir" XDG_DATA_HOME="$dir"
front caddy run --config "$dir/Caddyfile" --adapter caddyfile
