# Writes the configuration and starts nginx in the foreground: start.sh OUT PORT KEEPALIVE_REQUESTS
# nginx writes into the build folder. The configuration file is deleted as soon as nginx has opened it.
set -eu
out=$1 port=$2 keepalive_requests=$3
cat > "$out/$port.conf" <<CONF
daemon off;
worker_processes 1;
error_log stderr;
pid $out/$port.pid;
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
    keepalive_requests $keepalive_requests;
    server {
        listen 127.0.0.1:$port backlog=4096;
        location = / {
            return 200 "ok";
        }
    }
}
CONF
exec 3< "$out/$port.conf"
rm "$out/$port.conf"
PATH=$PATH:/usr/sbin:/sbin
exec nginx -e stderr -p "$out" -c /dev/fd/3
