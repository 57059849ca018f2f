# Starts HAProxy in front of `narrows serve`: start.sh NARROWS ADDRESS PORT THREADS HTTP_NO_DELAY HTTP
set -eu
narrows=$1 address=$2 port=$3 threads=$4 no_delay=$5 http=$6
. ../shared/scripted.sh
. ../shared/haproxy.sh

case $no_delay in true) no_delay="option http-no-delay" ;; *) no_delay= ;; esac
run_haproxy "" "$no_delay"
