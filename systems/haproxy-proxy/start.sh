# Starts HAProxy in front of `narrows serve`: start.sh NARROWS ADDRESS PORT THREADS HTTP_NO_DELAY
# Connections to it are kept and shared. Timeouts are long, so that a trial is not interrupted.
set -eu
narrows=$1 address=$2 port=$3 threads=$4 no_delay=$5
. ../shared/scripted.sh

case $no_delay in true) no_delay="option http-no-delay" ;; *) no_delay= ;; esac
cat > "$dir/haproxy.cfg" <<CFG
global
    nbthread $threads
defaults
    mode http
    timeout client 1h
    timeout server 1h
    timeout connect 10s
    timeout http-keep-alive 1h
    http-reuse always
    $no_delay
frontend front
    bind $host:$port backlog 4096
    default_backend scripted
backend scripted
    server scripted $backend
CFG
front haproxy -db -f "$dir/haproxy.cfg"
