# For HAProxy in front of another program.
#
# A start script sets `address`, `port`, `threads` and `http` (the version of HTTP for its clients: 1.1 or 2), reads the file that starts
# what is behind at $backend, reads this one, and calls
#   run_haproxy BIND DEFAULTS
#   BIND       options of the line `bind` for TLS; empty for plain text
#   DEFAULTS   a further line for its block defaults; may be empty
# Connections to what is behind are kept and shared, and speak HTTP/1.1. Their number is limited by that of open files only. Timeouts are
# long, so that a trial is not interrupted.
run_haproxy() {
    case $http,$1 in
        1.1,) protocol= ;;
        1.1,*) protocol="alpn http/1.1" ;;
        2,) protocol="proto h2" ;;
        2,*) protocol="alpn h2" ;;
    esac
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
    $2
frontend front
    bind $host:$port backlog 4096 $1 $protocol
    default_backend behind
backend behind
    server behind $backend
CFG
    front haproxy -db -f "$dir/haproxy.cfg"
}
