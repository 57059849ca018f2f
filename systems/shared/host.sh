# Sets $host to the address in $address as URLs and configuration files have it in front of a port: one of IPv6 is in brackets.
host=$address
case $address in *:*) host="[$address]" ;; esac
