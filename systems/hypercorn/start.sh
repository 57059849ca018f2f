# Starts Hypercorn with the Starlette application: start.sh OUT ADDRESS PORT WORKER_CLASS
set -eu
out=$1 address=$2 port=$3 class=$4
. ../shared/host.sh
PYTHONPATH=$out exec "$out/venv/bin/python" -m hypercorn streams:app --bind "$host:$port" --backlog 4096 --workers 1 \
    --worker-class "$class" --keep-alive 3600 --log-level warning
