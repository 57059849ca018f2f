# Starts nginx in the foreground, with what all its uses share: nginx.sh OUT NAME WORKERS HTTP SERVER
#   OUT      the folder in which nginx writes
#   NAME     of its files there; another nginx that runs at the same time has another
#   HTTP     directives for its http block
#   SERVER   directives for its server, with `listen`; GET / answers ok
# The configuration file is deleted as soon as nginx has opened it. There is no access log.
set -eu
out=$1 name=$2 workers=$3 http=$4 server=$5
# As root its workers would run as nobody, who may not read files below a home that only root may read.
user=
[ "$(id -u)" != 0 ] || user="user $(id -un) $(id -gn);"
cat > "$out/$name.conf" <<CONF
daemon off;
$user
worker_processes $workers;
error_log stderr;
pid $out/$name.pid;
events {
    worker_connections 16384;
}
http {
    access_log off;
    client_body_temp_path $out/body;
    proxy_temp_path $out/proxy;
    fastcgi_temp_path $out/fastcgi;
    uwsgi_temp_path $out/uwsgi;
    scgi_temp_path $out/scgi;
    $http
    server {
        $server
        location = / {
            return 200 "ok";
        }
    }
}
CONF
exec 3< "$out/$name.conf"
rm "$out/$name.conf"
PATH=$PATH:/usr/sbin:/sbin
exec nginx -e stderr -p "$out" -c /dev/fd/3
