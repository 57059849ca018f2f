# Makes the text that GET /bytes answers, and the same compressed: setup.sh OUT SIZE. Does nothing if it exists, or if SIZE is 0.
set -eu
out=$1 size=$2
[ "$size" != 0 ] && [ ! -e "$out/bytes/$size.gz" ] || exit 0
mkdir -p "$out/bytes"
work=$(mktemp "$out/bytes/.XXXXXX")
trap 'rm -f "$work" "$work.text"' EXIT
awk -v size="$size" -f ../shared/text.awk > "$work"
chmod 644 "$work"
cp "$work" "$work.text"
mv "$work.text" "$out/bytes/$size"
gzip -1 -n -c "$out/bytes/$size" > "$work"
mv "$work" "$out/bytes/$size.gz"
