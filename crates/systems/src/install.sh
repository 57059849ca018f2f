# Installs Debian packages as root or with sudo. If neither is possible, it prints the command to run.
#
# usage: sh install.sh PACKAGE...
#
# The exit code is 0 if every package was installed. No service is started.
set -u
[ $# -gt 0 ] || { echo "usage: sh install.sh PACKAGE..." >&2; exit 2; }

if ! command -v apt-get >/dev/null 2>&1; then
    echo "Nothing was installed, because there is no apt-get here. The Debian packages are: $*"
    exit 1
elif [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
elif command -v sudo >/dev/null 2>&1 && [ -t 0 ]; then
    as_root=sudo
else
    echo "Nothing was installed, because that needs root or sudo. As root, run:"
    echo "  apt-get install --no-install-recommends $*"
    exit 1
fi

apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null
}

# A server's package starts the server (nginx on port 80). This file keeps Debian from starting services.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ] && printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null; then
    trap '$as_root rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    $as_root chmod 755 "$policy"
fi

apt update || echo "apt-get update failed; continuing with the old package lists."
apt install --no-install-recommends "$@" && exit 0

echo "The packages could not be installed together; installing them one by one."
# A dpkg that was interrupted installs nothing before it has ended what it began.
$as_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a </dev/null || echo "dpkg --configure -a failed."
failed=
for package; do
    apt install --no-install-recommends "$package" || failed="$failed $package"
done
[ -z "$failed" ] || { echo "apt-get could not install:$failed"; exit 1; }
