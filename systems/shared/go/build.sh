# Builds one of the Go systems into its build folder, as OUT/program: build.sh OUT
# Run in the system's folder. Uses the installed Go, and downloads no toolchain.
set -eu
GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS= go build -trimpath -ldflags=-s -o "$1/program" .
go env GOVERSION > "$1/VERSION"
