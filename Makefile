# The main targets are `make run` and `make test`, which first install what they need and say so, and `make check`, which needs only
# Rust and a C compiler.

NARROWS = target/release/narrows

.PHONY: run check test test-long simulate machines faults fuzz sanitize fresh build install install-test install-count fmt lint bench count dist pictures deny msrv release-check

# Installs packages and compiles at the same time, because neither needs the other. Then it shows what could not be installed, with the
# command for it.
define install_beside
@mkdir -p target
@echo 'Packages are installed meanwhile: target/install.log'
scripts/install $(1) >target/install.log 2>&1 & $(2); built=$$?; wait; \
	grep -E -A1 '^(Nothing was installed|Continuing without|apt-get could not)' target/install.log; exit $$built
endef

run: install
	$(call install_beside,--systems,cargo build --release --locked -p narrows)
	$(NARROWS) systems --install || true
	$(NARROWS) run --quick

build: install
	cargo build --release --locked -p narrows

# For use during development: needs no root, no other servers, and installs nothing.
check:
	cargo fmt --check
	scripts/test --lib --bins --test check

# All tests but the long ones. With NARROWS_TEST_ALL=1 a test fails if Debian has what it lacks.
test: install
	$(call install_beside,--test,cargo test --workspace --locked --no-run)
	target/debug/narrows systems --install || true
	scripts/test

# The tests that take a quarter of a minute or more, after `make test`.
test-long:
	scripts/test --long

# The proofs of the statistics: simulations of many thousand runs. Takes a quarter of an hour; SAMPLE=1 makes a fifth of the runs.
# `narrows`, which has no library, is named so that the crates that we did not write have the features of `make test`, and are not built
# again.
simulate:
	NARROWS_SAMPLE=$(SAMPLE) CARGO_INCREMENTAL=0 cargo test --config 'profile.dev.package.lab.opt-level=1' --locked \
		-p lab -p stats -p narrows --lib -- --ignored

# Generators on other machines: four machines as network namespaces, with links, sshd, clocks and Slurm of their own. As root. It
# prints what it saw, of the program as it is given away.
machines: install-test
	cargo test --release --locked -p narrows --test machines --no-run
	$(NARROWS) systems --install || true
	scripts/machines run --slurm cargo test -q --release --locked --offline -p narrows --test machines -- \
		--ignored --nocapture --test-threads=1 --skip o_far
	scripts/machines run --rate 1gbit --delay 5ms cargo test -q --release --locked --offline -p narrows --test machines -- \
		--ignored --nocapture --test-threads=1 o_far

# Lets each call of the operating system fail in turn, until none is left. Takes an hour or more; FAULTS=open:131,read lets
# only calls of `open`, from the 131st on, and of `read` fail.
faults: install-test
	NARROWS_FAULTS=$(or $(FAULTS),all) cargo test --locked -p narrows --test e2e faults -- --include-ignored --nocapture

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

# What is given away, for Linux on x86-64 and aarch64: static binaries, packages for Debian, pip and npm, and archives, in target/dist.
dist:
	scripts/dist

fmt:
	cargo fmt

lint:
	cargo fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

# Runs what the documents show on this machine, and writes its output and the pictures into them. Takes a quarter of an hour.
# PAGE=README.md runs what one page shows.
pictures: build install-test
	NARROWS_RUN_DOCS=$(CURDIR)/target/release NARROWS_RUN_PAGE=$(PAGE) \
		cargo test --workspace --locked --test check -- --ignored --exact --nocapture documents::real_runs
	$(if $(PAGE),,NARROWS_PICTURES=$(CURDIR)/target/pictures.db:$(CURDIR)/docs/pictures \
		cargo test --workspace --locked --test e2e -- --ignored --exact report_html::pictures)

# Fuzzes what is read from outside, each target for a minute; FUZZ='600 request' fuzzes one for ten.
fuzz:
	scripts/fuzz $(FUZZ)

# Tests under Miri and AddressSanitizer; SANITIZE=address runs one of them.
sanitize:
	scripts/sanitize $(SANITIZE)

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

# What crates we use: their licences, sources and known faults. The list of faults comes from the internet; without it, use
# DENY='licenses bans sources'.
DENY =
deny:
	cargo deny --version >/dev/null 2>&1 || cargo install cargo-deny --locked
	cargo deny --locked check $(DENY)

# What a release needs besides: all simulations, all faults, and new machines.
release-check: lint test test-long simulate faults
	scripts/fresh

# Whether the oldest Rust that Cargo.toml names still builds Narrows.
MSRV = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
msrv:
	rustup toolchain install $(MSRV) --profile minimal
	cargo +$(MSRV) check --workspace --locked --target-dir target/msrv
