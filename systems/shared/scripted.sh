# For a program that stands in front of `narrows serve`, whose streams have known times (front.sh says how).
#
# A start script sets `address`, `port` and `narrows` (the program) and reads this file, which starts `narrows serve` at $backend
# (127.0.0.3:PORT). Narrows waits until it answers through the program in front.
. ../shared/front.sh
backend=$inner:$port
"$narrows" serve --host "$inner" --port "$port" --max-connections 100000 > "$dir/serve.log" &
pids=$!
