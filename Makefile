# The main targets are `make run` and `make test`, which first install what they need and say so, and `make check`, which needs only
# Rust and a C compiler.

NARROWS = target/release/narrows
# One line for each thing that the tests left out.
SKIPPED = target/skipped

.PHONY: run check test fresh build install install-test install-count fmt lint bench count dist pictures

# The systems whose needs could not be installed are left out; the install has named them.
run: build
	$(NARROWS) systems --install || true
	$(NARROWS) run --quick

build: install
	cargo build --release --locked -p narrows

# For use during development: needs no root, no other servers, and installs nothing.
check: lint
	cargo test --workspace --locked --lib --bins --test check

# All tests. Many of the parallel tests wait for something, so four run at a time, whatever the number of cores. At the end it lists
# what could not be tested on this machine; with NARROWS_TEST_ALL=1 such a test fails.
test: install-test lint
	@mkdir -p target && : > $(SKIPPED)
	cargo test --workspace --locked --no-run
	target/debug/narrows systems --install || true
	NARROWS_SKIPPED="$(CURDIR)/$(SKIPPED)" cargo test --workspace --locked --no-fail-fast -- --test-threads=4
	cargo test --workspace --locked --lib simulation -- --ignored
	@if [ -s $(SKIPPED) ]; then sort -u $(SKIPPED) | sed 's/^/Skipped: /'; else echo 'Nothing was skipped.'; fi

# Runs `make run` and `make test` in new root folders where nothing is installed: as root, with sudo, and without. FRESH=short takes
# ten minutes.
fresh:
	scripts/fresh $(FRESH)

install:
	scripts/install

install-test:
	scripts/install --test

install-count:
	scripts/install --count

# What is given away: a static binary for Linux on x86-64, a Debian package and an archive, in target/dist.
dist:
	scripts/dist

fmt:
	cargo fmt

lint:
	cargo fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

# Makes the pictures in the README, from a new run on this machine. Takes some minutes.
pictures: build install-test
	$(NARROWS) run upload-buffers frames --rounds 9 --store target/pictures.db
	NARROWS_PICTURES=$(CURDIR)/target/pictures.db:$(CURDIR)/docs/pictures \
		cargo test --workspace --locked --test e2e -- --ignored --exact report_html::pictures

# Compares Narrows with its peers, in pairs, and writes bench/RESULTS.md and bench/results.csv. Takes forty minutes on a quiet
# machine.
bench: install
	scripts/install-peers
	cargo build --release --locked -p narrows -p bench
	target/release/bench compare

# Counts the instructions that Narrows needs in user space, path by path, under callgrind, and writes bench/COUNTS.md. Takes some
# minutes. BEFORE=FILE counts an earlier narrows beside it.
count: install-count
	cargo build --release --locked -p narrows -p bench
	target/release/bench count $(if $(BEFORE),--before $(BEFORE))
