# Two commands for people: `make run` and `make test`. Each installs what it needs first, and says what.

NARROWS = target/release/narrows

.PHONY: run test build install install-test fmt lint

run: build
	$(NARROWS) run --quick

build: install
	cargo build --release --locked -p narrows

test: install-test
	cargo fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo build --release --locked -p narrows
	NARROWS_TEST_ALL=1 cargo test --workspace --locked

install:
	scripts/install

install-test:
	scripts/install --test

fmt:
	cargo fmt

lint:
	cargo clippy --workspace --all-targets --locked -- -D warnings
