# The main targets are `make run` and `make test`, which first install what they need and say so, and `make check`, which needs only
# Rust and a C compiler.

NARROWS = target/release/narrows
# One line for each thing that the tests left out.
SKIPPED = target/skipped

.PHONY: run check test test-long simulate machines faults fuzz sanitize soak fresh build install install-test install-count fmt lint bench count dist pictures deny msrv

# The systems whose needs could not be installed are left out; the install has named them.
run: build
	$(NARROWS) systems --install || true
	$(NARROWS) run --quick

build: install
	cargo build --release --locked -p narrows

# For use during development: needs no root, no other servers, and installs nothing.
check: lint
	cargo test --workspace --locked --lib --bins --test check

# All tests but the long ones. Many of the parallel tests wait for something, so four run at a time, whatever the number of cores. At
# the end it lists what could not be tested on this machine. With NARROWS_TEST_ALL=1 such a test fails if Debian has what it lacks.
RUN_TESTS = NARROWS_SKIPPED="$(CURDIR)/$(SKIPPED)" cargo test --workspace --locked --no-fail-fast
LIST_SKIPPED = @if [ -s $(SKIPPED) ]; then sort -u $(SKIPPED) | sed 's/^/Skipped: /'; else echo 'Nothing was skipped.'; fi

test: install-test lint
	@mkdir -p target && : > $(SKIPPED)
	cargo test --workspace --locked --no-run
	target/debug/narrows systems --install || true
	scripts/conformance
	$(RUN_TESTS) -- --test-threads=4
	$(LIST_SKIPPED)

# The tests that take a quarter of a minute or more, after `make test`: a fifth of those with real systems, and three quarters of their
# time.
test-long:
	@: > $(SKIPPED)
	$(RUN_TESTS) --test e2e --test serial -- --ignored --skip by_hand --test-threads=4
	$(LIST_SKIPPED)

# The proofs of the statistics: simulations of many thousand runs. Takes a quarter of an hour; SAMPLE=1 makes a fifth of the runs.
simulate:
	NARROWS_SAMPLE=$(SAMPLE) cargo test --workspace --locked --lib simulation -- --ignored

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

# Load, churn and runs for half an hour each, and whether anything grows; SOAK='--minutes 2 churn' is shorter.
soak: build
	scripts/soak $(SOAK)

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

# Whether the oldest Rust that Cargo.toml names still builds Narrows.
MSRV = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
msrv:
	rustup toolchain install $(MSRV) --profile minimal
	cargo +$(MSRV) check --workspace --locked --target-dir target/msrv
