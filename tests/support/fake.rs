//! Runs with an executor that takes figures, noise and failures from a file. Nothing depends on the machine or the
//! clock.

use lab::store::Store;

use super::Ended;
use super::home::Home;

/// A home with two servers, an experiment and a file for the executor.
pub struct Lab {
    pub home: Home,
}

/// A server with a knob `buffer` and a knob `mode`.
pub const KNOBS: &str = r#"
[knobs.buffer]
type = "size"
default = 1460
values = [1460, 8192]
about = "a buffer"

[knobs.mode]
type = "choice"
default = "plain"
values = ["plain", "fancy"]
about = "a way"
"#;

pub const EXPERIMENT: &str = r#"
name = "e"
title = "Of a test"
about = "What matters?"
workload = "requests"
systems = ["alpha", "beta"]
figure = "requests_per_s"

[quick]
rounds = 3
warmup_s = 0.1
measure_s = 1.0

[[quick.grid]]
connections = 100
buffer = [1460, 8192]
mode = ["plain", "fancy"]

[full]
rounds = 3
warmup_s = 0.1
measure_s = 2.0

[[full.grid]]
connections = 100
"#;

/// `buffer` matters, `mode` does not, beta is slower than alpha.
pub const TRUTH: &str = r#"
seed = 3
figure = 10000.0
noise = { spread = 0.01, tails = 3 }

[environment]
cpu = "Fake 1"
kernel = "6.1"
cores = [0, 1]
sysctls = { "net.core.somaxconn" = "4096" }

[[rule]]
system = "alpha"
better = 0.5
versions = "1.0"

[[rule]]
system = "beta"
better = 0.4
versions = "2.0"

[[rule]]
system = "alpha"
point = { buffer = 8192 }
better = 1.5
"#;

impl Lab {
    pub fn new() -> Self {
        let home = Home::new();
        let command = r#"["true", "{port}", "{buffer}", "{mode}"]"#;
        home.server("alpha", command, KNOBS);
        home.server("beta", r#"["true", "{port}"]"#, "");
        home.write("experiments/e.toml", EXPERIMENT);
        home.write("truth.toml", TRUTH);
        Self { home }
    }

    /// A lab with these rules in addition to [`TRUTH`].
    pub fn with(rules: &str) -> Self {
        let lab = Self::new();
        lab.truth(rules);
        lab
    }

    pub fn truth(&self, rules: &str) {
        self.home.write("truth.toml", &format!("{TRUTH}{rules}"));
    }

    pub fn run(&self, words: &[&str]) -> Ended {
        self.home.run([&["run", "e", "--fake", "truth.toml", "--seed", "1"], words].concat())
    }

    pub fn narrows(&self, words: &[&str]) -> Ended {
        self.home.run(words)
    }

    /// The last run's report in a format, or with all details.
    pub fn report(&self, format: &str) -> String {
        if format == "details" {
            return self.narrows(&["report", "last", "--details"]).code(0).stdout;
        }
        self.narrows(&["report", "last", "--format", format]).code(0).stdout
    }
}

/// `narrows try` in a home of its own, with made-up figures.
pub struct Try {
    pub home: Home,
}

impl Try {
    /// Every command reaches 10,000 requests per second and answers `ok`, but for these rules.
    pub fn new(rules: &str) -> Self {
        let home = Home::new();
        let truth = "seed = 3\nfigure = 10000.0\nnoise = { spread = 0.01, tails = 3 }\n";
        home.write("truth.toml", &format!("{truth}{rules}"));
        Self { home }
    }

    /// A command line. Without a number of rounds, it has three.
    pub fn words<'a>(&self, words: &[&'a str]) -> Vec<&'a str> {
        let rounds = if words.contains(&"--rounds") { &[][..] } else { &["--rounds", "3"] };
        [&["try"], words, &["--fake", "truth.toml", "--seed", "1"], rounds].concat()
    }

    pub fn tries(&self, words: &[&str]) -> Ended {
        self.home.run(self.words(words))
    }

    pub fn resume(&self, run: &str) -> Ended {
        self.home.run(["run", "--resume", run, "--fake", "truth.toml"])
    }
}

/// Begins another run like the last one, of which so many trials are still missing.
pub fn all_but(home: &Home, missing: usize) {
    let store = Store::open(&home.store_path()).expect("the store");
    let last = store.resolve("last").expect("a run");
    let (header, seen) = (store.header(last).expect("its plan"), store.observations(last).expect("all"));
    let run = store.begin(&header).expect("another run");
    store.append(run, &seen[..seen.len() - missing]).expect("saved");
}

/// Exit code, standard output and standard error as one text.
pub fn shown(ended: &Ended) -> String {
    let code = ended.status.code().unwrap_or(-1);
    rounded(&format!("exit code {code}\n--- output\n{}--- errors\n{}", ended.stdout, ended.stderr))
}

/// Rounds long numbers to six digits, because the last digits depend on the mathematical library.
pub fn rounded(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(start);
        let exponent = |i: usize, c: char| {
            "eE".contains(c) && number[i + 1..].starts_with(|c: char| c == '-' || c.is_ascii_digit())
                || c == '-' && number[..i].ends_with(['e', 'E'])
        };
        let end = number.char_indices().find(|(i, c)| !(c.is_ascii_digit() || *c == '.' || exponent(*i, *c)));
        let (digits, after) = number.split_at(end.map_or(number.len(), |(i, _)| i));
        out.push_str(before);
        match digits.parse::<f64>() {
            Ok(x) if digits.len() > 9 && digits.contains('.') => out.push_str(&format!("{x:.5e}")),
            _ => out.push_str(digits),
        }
        rest = after;
    }
    out + rest
}
