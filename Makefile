# Two commands for people: `make run` and `make test`. Each installs what it needs first, and says what.

NARROWS = target/release/narrows

.PHONY: run test fresh build install install-test fmt lint bench pictures

# What cannot be installed has been named; the systems that need it take no part.
run: build
	$(NARROWS) systems --install || true
	$(NARROWS) run --quick

build: install
	cargo build --release --locked -p narrows

test: install-test
	cargo fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	NARROWS_TEST_ALL=1 cargo test --workspace --locked

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
		cargo test --locked -p narrows --test report_html -- --ignored --exact pictures

# Narrows against its peers, pair by pair; writes bench/RESULTS.md and bench/results.csv. Half an hour on a quiet machine.
bench: install
	scripts/install-peers
	cargo build --release --locked -p narrows -p bench
	target/release/bench compare
