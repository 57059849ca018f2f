# Starts Caddy in front of `narrows serve`: start.sh NARROWS ADDRESS PORT HTTP
# It reads a request to its end before it passes it on. Otherwise Go may close the request's body when the answer begins, while Caddy still
# looks for its end, and 1 to 8 % of chats ended before [DONE].
set -eu
narrows=$1 address=$2 port=$3 http=$4
. ../shared/scripted.sh
. ../shared/caddy.sh

case $(caddy version) in
    v2.6.* | 2.6.*) buffered=buffer_requests ;;
    *) buffered="request_buffers 64KiB" ;;
esac
run_caddy http "" "$buffered"
