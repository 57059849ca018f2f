# Installs Debian packages: as root, or with sudo. Without either it names the command.
#
# usage: sh install.sh PACKAGE...
#
# The exit code is 0 if every package was installed. No service is started.
set -u
[ $# -gt 0 ] || { echo "usage: sh install.sh PACKAGE..." >&2; exit 2; }

if ! command -v apt-get >/dev/null 2>&1; then
    echo "There is no apt-get here, so nothing is installed. The packages are Debian's: $*"
    exit 1
elif [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
elif command -v sudo >/dev/null 2>&1 && [ -t 0 ]; then
    as_root=sudo
else
    echo "Nothing is installed, for this needs root or sudo. As root, run:"
    echo "  apt-get install --no-install-recommends $*"
    exit 1
fi

apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null
}

# A server's package starts the server (nginx, on port 80). With this file Debian starts nothing.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ] && printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null; then
    trap '$as_root rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    $as_root chmod 755 "$policy"
fi

apt update || echo "apt-get update failed; going on with the lists that are here."
apt install --no-install-recommends "$@" && exit 0

echo "They could not be installed together, so each is installed by itself."
failed=
for package; do
    apt install --no-install-recommends "$package" || failed="$failed $package"
done
[ -z "$failed" ] || { echo "apt-get could not install:$failed"; exit 1; }
