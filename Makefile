# Three commands for people: `make run` and `make test`, which install what they need first, and say what; `make check`, which needs
# nothing but Rust and a C compiler.

NARROWS = target/release/narrows
# A line for each thing that the tests left out.
SKIPPED = target/skipped

.PHONY: run check test fresh build install install-test fmt lint bench pictures

# What cannot be installed has been named; the systems that need it take no part.
run: build
	$(NARROWS) systems --install || true
	$(NARROWS) run --quick

build: install
	cargo build --release --locked -p narrows

# While one works: no root, no server of others, nothing to install.
check:
	cargo fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo test --workspace --locked --lib --bins --test check

# Everything. Of the tests that run side by side many wait for something, so four at a time, whatever the number of cores. What
# cannot be tested here is said at the end; with NARROWS_TEST_ALL=1 it fails.
test: install-test
	@mkdir -p target && : > $(SKIPPED)
	cargo fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo test --workspace --locked --no-run
	target/debug/narrows systems --install || true
	NARROWS_SKIPPED="$(CURDIR)/$(SKIPPED)" cargo test --workspace --locked --no-fail-fast -- --test-threads=4
	cargo test --workspace --locked --lib simulation -- --ignored
	@if [ -s $(SKIPPED) ]; then sort -u $(SKIPPED) | sed 's/^/Skipped: /'; else echo 'Nothing was skipped.'; fi

# Both commands in new root folders where nothing is installed: as root, with sudo and without; FRESH=short takes ten minutes.
fresh:
	scripts/fresh $(FRESH)

install:
	scripts/install

install-test:
	scripts/install --test

fmt:
	cargo fmt

lint:
	cargo clippy --workspace --all-targets --locked -- -D warnings

# The pictures in the README, of a new run on this machine. Some minutes.
pictures: build install-test
	$(NARROWS) run upload-buffers frames --rounds 9 --store target/pictures.db
	NARROWS_PICTURES=$(CURDIR)/target/pictures.db:$(CURDIR)/docs/pictures \
		cargo test --workspace --locked --test e2e -- --ignored --exact report_html::pictures

# Narrows against its peers, pair by pair; writes bench/RESULTS.md and bench/results.csv. Half an hour on a quiet machine.
bench: install
	scripts/install-peers
	cargo build --release --locked -p narrows -p bench
	target/release/bench compare
