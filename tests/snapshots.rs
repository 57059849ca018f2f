//! What `run`, `report` and `compare` print, over an executor that takes figures, noise and failures from a file, so that
//! nothing depends on the machine or the clock.
//!
//! Shown are the tables of all four workloads, an open loop, the reason, the published figures beside, every kind of doubt
//! about a trial, and each verdict on knobs, steps and systems. Not shown are messages about systems and files that
//! cannot be used (`run_input.rs`, `run_systems.rs`), the page (`report_html.rs`), `.hlog` files (`report_hlog.rs`), and what a
//! terminal is sent while a run goes on (`terminal.rs`); rarer sentences and warnings are tested where they are made,
//! in `lab::findings`.

mod support;

use std::fs;

use insta::assert_snapshot;

use support::Ended;
use support::home::Home;

/// Two servers with knobs, and what the executor makes of them.
struct Lab {
    home: Home,
}

/// A server with a knob `buffer` and a knob `mode`.
const KNOBS: &str = r#"
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

const EXPERIMENT: &str = r#"
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
const TRUTH: &str = r#"
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
    fn new() -> Self {
        let home = Home::new();
        let command = r#"["true", "{port}", "{buffer}", "{mode}"]"#;
        home.server("alpha", command, KNOBS);
        home.server("beta", r#"["true", "{port}"]"#, "");
        home.write("experiments/e.toml", EXPERIMENT);
        home.write("truth.toml", TRUTH);
        Self { home }
    }

    /// With these rules beside the truth.
    fn with(rules: &str) -> Self {
        let lab = Self::new();
        lab.truth(rules);
        lab
    }

    fn truth(&self, rules: &str) {
        self.home.write("truth.toml", &format!("{TRUTH}{rules}"));
    }

    fn run(&self, words: &[&str]) -> Ended {
        self.home.run([&["run", "e", "--fake", "truth.toml", "--seed", "1"], words].concat())
    }

    fn narrows(&self, words: &[&str]) -> Ended {
        self.home.run(words)
    }

    fn report(&self, format: &str) -> String {
        self.narrows(&["report", "last", "--format", format]).code(0).stdout
    }
}

/// Exit code, standard output and standard error as one text.
fn shown(ended: &Ended) -> String {
    let code = ended.status.code().unwrap_or(-1);
    rounded(&format!("exit code {code}\n--- output\n{}--- errors\n{}", ended.stdout, ended.stderr))
}

/// Raw numbers with six digits: the last ones are the mathematical library's.
fn rounded(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        let exponent = |at: usize, c: char| {
            "eE".contains(c) && number[at + 1..].starts_with(|c: char| c == '-' || c.is_ascii_digit())
                || c == '-' && number[..at].ends_with(['e', 'E'])
        };
        let end =
            number.char_indices().find(|(at, c)| !(c.is_ascii_digit() || *c == '.' || exponent(*at, *c)));
        let (digits, after) = number.split_at(end.map_or(number.len(), |(at, _)| at));
        out.push_str(before);
        match digits.parse::<f64>() {
            Ok(x) if digits.len() > 9 && digits.contains('.') => out.push_str(&format!("{x:.5e}")),
            _ => out.push_str(digits),
        }
        rest = after;
    }
    out + rest
}

#[test]
fn a_run_until_all_is_decided() {
    let lab = Lab::new();
    assert_snapshot!(shown(&lab.run(&[])));
    assert_snapshot!("report_markdown", lab.report("markdown"));
    assert_snapshot!("report_csv", rounded(&lab.report("csv")));
    assert_snapshot!("report_json", rounded(&lab.report("json")));
    // Decided is decided: nothing is left to do.
    assert_snapshot!("resumed", shown(&lab.narrows(&["run", "--resume", "last", "--fake", "truth.toml"])));
}

#[test]
fn a_run_of_too_few_rounds_decides_nothing() {
    assert_snapshot!(shown(&Lab::new().run(&["--rounds", "2"])));
}

#[test]
fn a_budget_ends_a_run() {
    let noisy = "[[rule]]\nsystem = \"alpha\"\nrounds = [1, 3, 5]\nbetter = 0.7\n";
    assert_snapshot!(shown(&Lab::with(noisy).run(&["--budget", "60s"])));
}

#[test]
fn what_fails_is_said() {
    let rules = "
[[rule]]
system = \"beta\"
rounds = [0, 1, 2]
fail = { stage = \"start\", reason = \"it ended with 1\", output = \"no licence\" }

[[rule]]
system = \"alpha\"
point = { mode = \"fancy\" }
errors = { reset = 500, status = 3 }
";
    assert_snapshot!(shown(&Lab::with(rules).run(&["--rounds", "3"])));
}

#[test]
fn doubts_and_outliers_are_said() {
    let rules = "
[[rule]]
system = \"alpha\"
point = { buffer = 8192, mode = \"plain\" }
measured = { generator = { busiest_core = 0.99 } }

[[rule]]
system = \"beta\"
rounds = [2]
better = 0.5
measured = { stolen_s = 0.5 }

[[rule]]
system = \"alpha\"
point = { buffer = 1460, mode = \"plain\" }
rounds = [4]
better = 0.8
";
    assert_snapshot!(shown(&Lab::with(rules).run(&["--rounds", "6"])));
}

#[test]
fn a_knob_that_depends_on_another_is_named() {
    let rules = "[[rule]]\nsystem = \"alpha\"\npoint = { buffer = 8192, mode = \"fancy\" }\nbetter = 0.5\n";
    assert_snapshot!(shown(&Lab::with(rules).run(&["--systems", "alpha"])));
}

#[test]
fn clients_are_ranked_with_ties() {
    let lab = Lab::new();
    for name in ["quick-client", "slow-client"] {
        lab.home.client(name, r#"["true"]"#, "");
    }
    let experiment = EXPERIMENT
        .replace("\"requests\"", "\"clients\"")
        .replace("\"alpha\", \"beta\"", "\"quick-client\", \"slow-client\"")
        .replace(
            "connections = 100\nbuffer = [1460, 8192]\nmode = [\"plain\", \"fancy\"]",
            "pool_size = [32, 64]",
        )
        .replace("connections = 100", "pool_size = 32");
    lab.home.write("experiments/e.toml", &experiment);
    lab.truth("[[rule]]\nsystem = \"slow-client\"\nbetter = 0.6\n");
    assert_snapshot!(shown(&lab.run(&["--rounds", "6"])));
}

/// A lab of its own: this experiment's figure, grid and truth, for a system that `home` has.
fn measured(home: Home, workload: &str, systems: &str, grid: &str, truth: &str) -> Lab {
    home.timed_experiment(workload, systems, 6, 1.0, grid);
    home.write("truth.toml", &format!("noise = {{ spread = 0.01, tails = 3 }}\n{truth}"));
    Lab { home }
}

/// Twice the size takes twice as long, up to 2M; then more than that, three times more, and half.
#[test]
fn uploads_are_measured_against_their_work_and_explained() {
    let home = Home::new();
    home.server_of("alpha", r#"["upload"]"#, r#"["true", "{port}", "{buffer}", "{mode}"]"#, KNOBS);
    let grid = "
[[grid]]
size = [\"1M\", \"2M\", \"4M\", \"8M\", \"16M\"]

[[grid]]
size = \"1M\"
buffer = [1460, 8192]
";
    let truth = "
figure = 10.0
rule = [
    { point = { size = 2097152 }, better = 0.5 },
    { point = { size = 4194304 }, better = 0.25 },
    { point = { size = 8388608 }, better = 0.125 },
    { point = { size = 16777216 }, better = 0.0625 },
    { system = \"alpha\", better = 0.5 },
    { system = \"alpha\", point = { size = 4194304 }, better = 0.675 },
    { system = \"alpha\", point = { size = 8388608 }, better = 0.225 },
    { system = \"alpha\", point = { size = 16777216 }, better = 0.45 },
    { system = \"alpha\", point = { buffer = 8192 }, better = 1.5 },
    { system = \"alpha\", measured = {
        retransmits = 2,
        system = { context_switches = 9000 },
        counted = { operations = 10, bytes = 10485760, system_calls = 15000, reads = 7330 },
    } },
    { system = \"alpha\", point = { buffer = 8192 }, measured = {
        system = { context_switches = 3000 },
        counted = { operations = 10, bytes = 10485760, system_calls = 2700, reads = 1310 },
    } },
]
";
    let lab = measured(home, "upload", "[\"alpha\"]", grid, truth);
    assert_snapshot!(shown(&lab.run(&[]).code(0)));
}

/// What the published figures become beside these has a snapshot of its own.
#[test]
fn frames_have_a_cliff_and_the_published_figures_beside() {
    let home = Home::new();
    let framing = r#"
[knobs.framing]
type = "choice"
default = "4"
values = ["0", "4"]
about = "who cuts the stream"
"#;
    home.server_of("erlang-packet", r#"["frames"]"#, r#"["true", "{port}", "{framing}"]"#, framing);
    let grid = "[[grid]]\nframe_size = [1400, 1500, 2000]\nframing = [\"0\", \"4\"]\n";
    let truth = "
figure = 100000.0
rule = [
    { point = { frame_size = 1500 }, better = 0.93 },
    { point = { frame_size = 2000 }, better = 0.7 },
    { system = \"erlang-packet\", better = 0.5 },
    { point = { framing = \"4\", frame_size = 1500 }, better = 0.2 },
    { point = { framing = \"4\", frame_size = 2000 }, better = 0.2 },
]
";
    let lab = measured(home, "frames", "[\"erlang-packet\"]", grid, truth);
    let experiment = fs::read_to_string(lab.home.path("experiments/e.toml")).expect("an experiment");
    lab.home.write("experiments/e.toml", &format!("published = \"erlang-packet\"\n{experiment}"));
    let ended = shown(&lab.run(&["--rounds", "6"]).code(0));
    let (own, rest) = ended.split_once("Beside the published").expect("the published figures");
    let (beside, end) = rest.split_once("run 1 is saved").expect("the end");
    assert_snapshot!("frames", format!("{own}[beside the published]\nrun 1 is saved{end}"));
    assert_snapshot!("frames_beside", format!("Beside the published{beside}"));
}

#[test]
fn an_open_loop_says_what_was_late() {
    let lab = Lab::new();
    let grid = "[[grid]]\nconnections = 100\nrate = [5000, 20000]\n";
    let truth = "
figure = 5000.0
rule = [
    { point = { rate = 20000 }, better = 4.0 },
    { system = \"beta\", measured = { late = 12 } },
    { system = \"beta\", point = { rate = 20000 }, better = 0.8, measured = { late = 500, dropped = 3000 } },
]
";
    let lab = measured(lab.home, "requests", "[\"alpha\", \"beta\"]", grid, truth);
    assert_snapshot!(shown(&lab.run(&[]).code(0)));
}

/// A client whose every way is doubtful, but for the first.
#[test]
fn every_doubt_has_its_words() {
    let ways: [(&str, &str); 14] = [
        ("generator-bound", "measured = { generator = { busiest_core = 0.95 } }"),
        ("behind-schedule", "measured = { late = 900 }"),
        ("queues", "measured = { concurrency = 4 }"),
        ("fails-fast", "errors = { busy = 3000 }, measured = { mean_error_us = 20.0 }"),
        (
            "errs-on-schedule",
            "errors = { reset = 30 }, measured = { error_ordinals = { 100 = 20, 200 = 10 } }",
        ),
        ("short", "better = 0.001"),
        ("unsteady", "measured = { tenths = [1200, 1200, 1200, 1200, 1200, 800, 800, 800, 800, 800] }"),
        ("warms-up", "measured = { tenths = [600, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000] }"),
        ("two-peaks", "measured = { service_us = { buckets = [[50, 9000], [5000, 1000]] } }"),
        ("shares-cores", "measured = { system = { cores = [0, 1] } }"),
        ("exceeds-its-pool", "measured = { server = { peak_connections = 40 } }"),
        ("near-the-limit", "measured = { connections = 900, files = 1024 }"),
        ("robbed", "measured = { stolen_s = 0.2 }"),
        ("throttled", "measured = { throttles = 3 }"),
    ];
    let names = ways.map(|(name, _)| format!("{name:?}")).join(", ");
    let knob = format!(
        "[knobs.way]\ntype = \"choice\"\ndefault = \"sound\"\nvalues = [\"sound\", {names}]\nabout = \"what it does\"\n"
    );
    let home = Home::new();
    home.client("doubtful", r#"["true", "{way}"]"#, &knob);
    let rule = |(name, does): (&str, &str)| format!("    {{ point = {{ way = \"{name}\" }}, {does} }},\n");
    let truth = format!("figure = 10000.0\nrule = [\n{}]\n", ways.map(rule).concat());
    let lab = measured(home, "clients", "[\"doubtful\"]", "[[grid]]\nway = \"all\"\n", &truth);
    let ended = lab.run(&["--rounds", "4"]).code(0);
    assert_snapshot!(shown(&ended));
    let json: serde_json::Value = serde_json::from_str(&lab.report("json")).expect("JSON");
    let warnings = json["experiments"][0]["warnings"].as_array().expect("warnings");
    for (name, _) in ways {
        let scenario = format!("doubtful way={name}");
        let concerns = |w: &&serde_json::Value| {
            w["scenarios"].as_array().is_some_and(|all| all.iter().any(|s| *s == scenario.as_str()))
        };
        assert!(warnings.iter().any(|w| concerns(&w)), "{name}");
    }
}

#[test]
fn what_a_measurement_cannot_have_is_an_error_with_its_place() {
    let lab = Lab::with("[[rule]]\nmeasured = { lates = 1 }\n");
    lab.run(&[]).code(1).says(&["truth.toml", "a measurement has no `lates`"]);
}

/// The same truth twice, with other noise; then with alpha 20 % slower on another kernel.
fn three_runs() -> Lab {
    let lab = Lab::new();
    lab.run(&["--rounds", "6"]).code(0);
    lab.home.write("truth.toml", &TRUTH.replace("seed = 3", "seed = 4"));
    lab.run(&["--rounds", "6"]).code(0);
    let slower = "[[rule]]\nsystem = \"alpha\"\nbetter = 0.8\nversions = \"1.1\"\n";
    let truth = TRUTH.replace("seed = 3", "seed = 5").replace("6.1", "6.2").replace("10000.0", "9000.0");
    lab.home.write("truth.toml", &format!("{truth}{slower}"));
    lab.run(&["--rounds", "6"]).code(0);
    lab
}

#[test]
fn runs_are_compared() {
    let lab = three_runs();
    assert_snapshot!("compare_same", shown(&lab.narrows(&["compare", "1", "2"])));
    let other = lab.narrows(&["compare", "previous", "last", "--fail-if", "throughput<0.97"]);
    assert_snapshot!("compare_slower", shown(&other.code(3)));
    assert_snapshot!("compare_markdown", shown(&lab.narrows(&["compare", "2", "3", "--format", "markdown"])));
    assert_snapshot!("compare_json", shown(&lab.narrows(&["compare", "2:e/beta", "3", "--format", "json"])));
    // Through a file it is the same.
    lab.narrows(&["report", "2", "--format", "json", "-o", "run two.json"]).code(0);
    let [file, run] = ["run two.json", "2"].map(|first| {
        let ended = lab.narrows(&["compare", first, "3", "--format", "markdown"]).code(0);
        ended.stdout.replace(&format!("than {first},"), "").replace(&format!("against {first}"), "")
    });
    assert_eq!(file, run);
    // What holds is no failure.
    lab.narrows(&["compare", "1", "2", "--fail-if", "throughput<0.97,time>1.03"]).code(0);
    lab.narrows(&["compare", "2", "3", "--fail-if", "time>1.1"]).code(3);
}

#[test]
fn what_cannot_be_judged_does_not_pass() {
    let lab = Lab::new();
    lab.run(&["--rounds", "6"]).code(0);
    let dead = "[[rule]]\nsystem = \"beta\"\nfail = { stage = \"start\", reason = \"it ended with 1\", output = \"\" }\n";
    let wrong = "[[rule]]\nsystem = \"alpha\"\npoint = { mode = \"fancy\" }\nerrors = { status = 90000 }\n";
    lab.truth(&format!("{dead}{wrong}"));
    lab.run(&["--rounds", "6"]).code(0);
    let judged = ["--fail-if", "throughput<0.97"];
    let compare = |sides: [&str; 2]| lab.narrows(&[&["compare"], &sides[..], &judged].concat());
    assert_snapshot!("compare_dead", shown(&compare(["1", "2"]).code(3)));
    // Which side it is does not matter; what is asked for by name is judged alone.
    compare(["2", "1"]).code(3).says(&["cannot be judged: e beta: errors or no figure in the first"]);
    compare(["1:e/alpha mode=plain", "2"]).code(0);
    // Without a condition the exit code says only that it could be done.
    lab.narrows(&["compare", "1", "2"]).code(0);
    lab.home.write("truth.toml", TRUTH);
    lab.run(&["--rounds", "2"]).code(0);
    compare(["1", "3"]).code(3).says(&["cannot be judged: e beta: fewer than 3 rounds"]);
    lab.run(&["--rounds", "6", "--systems", "alpha"]).code(0);
    compare(["1", "4"]).code(3).says(&["cannot be judged: 1: e beta: without a counterpart"]);
    // An interval that holds the bound is judged, and does not fail.
    compare(["1", "1:e/alpha buffer=1460"]).code(0);
}

#[test]
fn a_run_that_measured_no_system_is_a_failure() {
    let fail = "fail = { stage = \"start\", reason = \"it ended with 1\", output = \"\" }\n";
    let [alpha, beta] = ["alpha", "beta"].map(|system| format!("[[rule]]\nsystem = \"{system}\"\n{fail}"));
    let lab = Lab::with(&format!("{alpha}{beta}"));
    lab.run(&["--rounds", "3"])
        .code(1)
        .says(&["e (3 of 3 rounds): nothing was measured", "every trial of every system failed"]);
    lab.truth(&alpha);
    lab.run(&["--rounds", "3"]).code(0);
    // Who asks for the reference alone gets it.
    lab.truth(&format!("{alpha}{beta}"));
    lab.run(&["--rounds", "3", "--systems", "reference"]).code(0);
}

#[test]
fn a_run_of_one_system_and_one_round_says_that_there_is_nothing_to_compare() {
    let lab = Lab::new();
    assert_snapshot!(shown(&lab.run(&["--rounds", "1", "--systems", "beta"])));
    assert!(lab.report("html").contains("there is nothing to compare: one system at one point</p>"));
    lab.run(&["--rounds", "2"]).code(0);
    let page = lab.report("html");
    assert!(
        page.contains("too few rounds: a comparison takes three</p>")
            && !page.contains("Nothing was measured")
    );
}

#[test]
fn a_budget_that_the_first_rounds_do_not_fit_into_takes_some_away() {
    let lab = Lab::new();
    let said = "the budget leaves 7 of 21 trials; a comparison takes three rounds";
    let ended = lab.run(&["--budget", "0s"]).code(0).says(&[said, "e (1 of 1 rounds): too few rounds"]);
    assert!(ended.stdout.contains("Medians over 1 round of"), "{ended:#?}");
}

#[test]
fn what_is_not_in_both_runs_is_named() {
    let lab = Lab::new();
    lab.run(&["--rounds", "3"]).code(0);
    lab.run(&["--rounds", "3", "--set", "connections=7"]).code(0);
    lab.run(&["--rounds", "3", "--systems", "beta", "--set", "connections=7,8,9,10,11"]).code(0);
    let mut said = String::new();
    for sides in [["1", "2"], ["2", "1:e/beta"], ["1", "3"], ["2:e/alpha", "3"]] {
        let ended = lab.narrows(&["compare", sides[0], sides[1]]).code(1);
        said += &format!("{}: {}", sides.join(" | "), ended.stderr);
    }
    assert_snapshot!(said);
}

#[test]
fn scenarios_are_compared() {
    let lab = three_runs();
    let inside = ["compare", "1:e/alpha buffer=1460", "1:e/alpha buffer=8K"];
    assert_snapshot!("compare_scenarios", shown(&lab.narrows(&inside)));
    let systems = ["compare", "1:e/alpha buffer=1460 mode=plain", "1:e/beta"];
    assert_snapshot!("compare_systems", shown(&lab.narrows(&systems)));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let lab = three_runs();
    let other = TRUTH.replace("Fake 1", "Fake 2").replace("cores = [0, 1]", "cores = [0, 1, 2, 3]");
    lab.home.write("truth.toml", &other);
    lab.run(&["--rounds", "3"]).code(0);
    let refused = lab.narrows(&["compare", "1", "4"]).code(1);
    assert_snapshot!("compare_refused", shown(&refused));
    assert_snapshot!("compare_forced", shown(&lab.narrows(&["compare", "1", "4", "--force"]).code(0)));
    lab.home.write("experiments/e.toml", &EXPERIMENT.replace("measure_s = 1.0", "measure_s = 3.0"));
    lab.run(&["--rounds", "3"]).code(0);
    assert_snapshot!("compare_other_window", shown(&lab.narrows(&["compare", "4", "5"]).code(1)));
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let lab = Lab::new();
    lab.run(&["--rounds", "3"]).code(0);
    lab.home.write("bad.json", "{\"schema\": 1}");
    lab.home.write("worse.json", "no JSON");
    let mut said = String::new();
    for (code, words) in [
        (2, &["last", "last"][..]),
        (2, &["last:", "last"]),
        (2, &["last buffer", "last"]),
        (2, &["last", "1", "--fail-if", "speed<1"]),
        (2, &["last", "1", "--fail-if", "throughput=1"]),
        (1, &["last", "previous"]),
        (1, &["last", "7"]),
        (1, &["last", "bad.json"]),
        (1, &["last", "worse.json"]),
        (1, &["last", "none.json"]),
        (1, &["last:e/alpha", "last:x/alpha"]),
        (1, &["last:e/alhpa", "last:e/beta"]),
        (1, &["last:e/nosuch", "last:e/beta"]),
        (1, &["last:e/alpha bufer=8K", "last:e/beta"]),
        (1, &["last:e/alpha buffer=8", "last:e/beta"]),
        (1, &["narrows.db", "last"]),
    ] {
        let ended = lab.narrows(&[&["compare"], words].concat()).code(code);
        said += &format!("{}: {}", words.join(" | "), ended.stderr);
    }
    assert_snapshot!(said);
}
