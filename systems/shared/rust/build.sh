# Builds one of the Rust systems into its build folder, as OUT/program, and writes OUT/VERSION: build.sh OUT PACKAGE LIBRARY...
# Run in the system's folder. The dependencies are compiled once, in a folder next to OUT that all Rust systems share.
set -eu
out=$1 package=$2
shift 2
target=$(realpath "$out/..")/rust
cargo build --release --locked -p "$package" --target-dir "$target" || {
    echo "cargo could not build it: the crates of systems/shared/rust/Cargo.lock must be available (cargo fetch --locked)" >&2
    exit 1
}
cp "$target/release/$package" "$out/program"
tree=$(cargo tree --locked -p "$package" --depth 1 --prefix none)
for library; do
    echo "$tree" | sed -n "s/^\($library\) v/\1 /p"
done | paste -s -d , | sed 's/,/, /g' > "$out/VERSION"
