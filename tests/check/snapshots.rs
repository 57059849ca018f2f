//! The output of `run` and `report`, with an executor that takes figures, noise and failures from a file, so that
//! nothing depends on the machine or the clock.
//!
//! The snapshots cover the tables of all four workloads, an open loop, the reason, the published figures beside a run,
//! every kind of doubt about a trial, and each verdict on knobs, steps and systems. Other tests cover messages about
//! systems and files that cannot be used (`run_input.rs`, `e2e/run_systems.rs`), the page (`e2e/report_html.rs`),
//! `.hlog` files (`report_hlog.rs`), and the output to a terminal during a run (`e2e/terminal.rs`). Rarer sentences and
//! warnings are tested in `lab::findings`.

use std::fs;

use insta::assert_snapshot;

use crate::support::fake::{EXPERIMENT, KNOBS, Lab, rounded, shown};
use crate::support::home::Home;
use crate::support::squeezed;

/// What a run prints, and then everything that was found.
fn whole(lab: &Lab, words: &[&str]) -> String {
    let run = shown(&lab.run(words).code(0));
    format!("{run}\n=== narrows report last --details\n{}", lab.report("details"))
}

#[test]
fn a_run_until_all_is_decided() {
    let lab = Lab::new();
    assert_snapshot!(whole(&lab, &[]));
    assert_snapshot!("report_brief", shown(&lab.narrows(&["report", "last"])));
    assert_snapshot!("report_markdown", lab.report("markdown"));
    assert_snapshot!("report_csv", rounded(&lab.report("csv")));
    assert_snapshot!("report_json", rounded(&lab.report("json")));
    lab.narrows(&["report", "last", "--details", "--format", "json"])
        .code(2)
        .says(&["--details is for the text format"]);
    // When all is decided, there is nothing left to resume.
    assert_snapshot!("resumed", shown(&lab.narrows(&["run", "--resume", "last", "--fake", "truth.toml"])));
}

#[test]
fn a_run_of_too_few_rounds_decides_nothing() {
    assert_snapshot!(whole(&Lab::new(), &["--rounds", "2"]));
}

/// What many connections take of a system's memory stands on the screen and in the report.
#[test]
fn the_memory_for_each_connection_is_said() {
    let rules = "
[[rule]]
system = \"alpha\"
measured = { connections = 10000, system = { rest_pss_bytes = 8000000 } }
";
    let lab = Lab::with(rules);
    let said = "memory for each of 10000 connections, at most: alpha 3.0 kB [3.0 kB, 3.0 kB] (the peak less the memory at rest)";
    let [run, brief, details] = [
        lab.run(&[]).code(0).stdout,
        lab.narrows(&["report", "last"]).code(0).stdout,
        lab.narrows(&["report", "last", "--details"]).code(0).stdout,
    ];
    for shown in [run, brief, details] {
        assert!(squeezed(&shown).contains(said), "{shown}");
    }
}

#[test]
fn a_budget_ends_a_run() {
    let noisy = "[[rule]]\nsystem = \"alpha\"\nrounds = [1, 3, 5]\nbetter = 0.7\n";
    assert_snapshot!(whole(&Lab::with(noisy), &["--budget", "60s"]));
}

#[test]
fn failures_are_reported() {
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
    assert_snapshot!(whole(&Lab::with(rules), &["--rounds", "3"]));
}

#[test]
fn doubts_and_outliers_are_reported() {
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
    assert_snapshot!(whole(&Lab::with(rules), &["--rounds", "6"]));
}

#[test]
fn a_knob_that_depends_on_another_is_named() {
    let rules = "[[rule]]\nsystem = \"alpha\"\npoint = { buffer = 8192, mode = \"fancy\" }\nbetter = 0.5\n";
    assert_snapshot!(whole(&Lab::with(rules), &["--systems", "alpha"]));
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
    assert_snapshot!(whole(&lab, &["--rounds", "6"]));
}

/// Clients that lose requests when the server closes: at most one for each close is explained.
#[test]
fn errors_of_announced_closes_are_explained_beside_the_rank() {
    let home = Home::new();
    for name in ["heeds", "loses-one", "loses-two"] {
        home.client(name, r#"["true"]"#, "");
    }
    let lost = |name: &str, window: u32, life: u32| {
        format!(
            "[[rule]]\nsystem = \"{name}\"\nerrors = {{ closed_early = {window} }}\n\
             measured = {{ server = {{ closes = 220, client_errors = {{ closed_early = {life} }} }} }}\n"
        )
    };
    let truth = format!("figure = 10000.0\n{}{}", lost("loses-one", 180, 215), lost("loses-two", 360, 430));
    let grid = "[[grid]]\npool_size = 32\nmax_keepalive = 100\n";
    let lab = measured(home, "clients", r#"["heeds", "loses-one", "loses-two"]"#, grid, &truth);
    assert_snapshot!(whole(&lab, &["--rounds", "4"]));
}

/// A lab with this experiment, grid and truth, for systems of `home`.
fn measured(home: Home, workload: &str, systems: &str, grid: &str, truth: &str) -> Lab {
    home.timed_experiment(workload, systems, 6, 1.0, grid);
    home.write("truth.toml", &format!("noise = {{ spread = 0.01, tails = 3 }}\n{truth}"));
    Lab { home }
}

/// Up to 2M, twice the size takes twice as long; at the larger sizes it takes more, three times more, and half.
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
    assert_snapshot!(whole(&lab, &[]));
}

/// The published figures beside the run have a separate snapshot.
#[test]
fn frames_have_a_cliff_and_are_compared_with_published_figures() {
    let home = Home::new();
    let framing = r#"
[knobs.framing]
type = "choice"
default = "4"
values = ["0", "4"]
about = "who cuts the stream"

[knobs.active]
type = "choice"
default = "once"
values = ["once", "true"]
about = "how messages come"
"#;
    home.server_of(
        "erlang-packet",
        r#"["frames"]"#,
        r#"["true", "{port}", "{framing}", "{active}"]"#,
        framing,
    );
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
    let ended = whole(&lab, &["--rounds", "6"]);
    let (begin, beside) = ended.split_once("Beside the published").expect("the published figures");
    assert_snapshot!("frames", format!("{begin}[beside the published]"));
    assert_snapshot!("frames_beside", format!("Beside the published{beside}"));
}

#[test]
fn an_open_loop_shows_late_arrivals() {
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
    assert_snapshot!(whole(&lab, &[]));
}

/// The generator waits a second for what one of the servers never sends.
#[test]
fn uploads_that_wait_in_vain_have_no_figure() {
    let home = Home::new();
    for name in ["polite", "silent"] {
        home.server_of(name, r#"["upload"]"#, r#"["true", "{port}"]"#, "");
    }
    let truth = "
figure = 1.0
rule = [
    { system = \"polite\", better = 0.5 },
    { system = \"silent\", better = 0.6 },
    { system = \"silent\", point = { expect = true }, better = 0.001, measured = { attempts = 14, no_continue = 12 } },
]
";
    let grid = "[[grid]]\nsize = \"1M\"\nexpect = [false, true]\n";
    let lab = measured(home, "upload", "[\"polite\", \"silent\"]", grid, truth);
    assert_snapshot!(whole(&lab, &["--rounds", "3"]));
    assert_snapshot!("uploads_that_wait_in_vain_brief", shown(&lab.narrows(&["report", "last"])));
}

/// A client with one doubtful behaviour per value of its knob, except for the default. That of uploads has a separate test.
#[test]
fn every_doubt_has_a_sentence_and_a_remedy() {
    let ways: [(&str, &str); 15] = [
        ("generator-bound", "measured = { generator = { busiest_core = 0.95 } }"),
        ("behind-schedule", "measured = { late = 900 }"),
        ("starves", "measured = { in_flight_us = [[100, 32], [900000, 224]] }"),
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
    assert_snapshot!(whole(&lab, &["--rounds", "4"]));
    let json: serde_json::Value = serde_json::from_str(&lab.report("json")).expect("JSON");
    let warnings = json["experiments"][0]["figures"][0]["warnings"].as_array().expect("warnings");
    for (name, _) in ways {
        let scenario = format!("doubtful way={name}");
        let concerns = |w: &&serde_json::Value| {
            w["scenarios"].as_array().is_some_and(|all| all.iter().any(|s| *s == scenario.as_str()))
        };
        assert!(warnings.iter().any(|w| concerns(&w)), "{name}");
    }
}

#[test]
fn an_unknown_figure_is_an_error_with_its_position() {
    let lab = Lab::with("[[rule]]\nmeasured = { lates = 1 }\n");
    lab.run(&[]).code(1).says(&["truth.toml", "a measurement has no `lates`"]);
}

#[test]
fn a_run_without_a_measured_system_fails() {
    let fail = "fail = { stage = \"start\", reason = \"it ended with 1\", output = \"\" }\n";
    let [alpha, beta] = ["alpha", "beta"].map(|system| format!("[[rule]]\nsystem = \"{system}\"\n{fail}"));
    let lab = Lab::with(&format!("{alpha}{beta}"));
    lab.run(&["--rounds", "3"])
        .code(1)
        .says(&["e (3 of 3 rounds): nothing was measured", "every trial of every system failed"]);
    lab.truth(&alpha);
    lab.run(&["--rounds", "3"]).code(0);
    // A run of the reference alone succeeds.
    lab.truth(&format!("{alpha}{beta}"));
    lab.run(&["--rounds", "3", "--systems", "reference"]).code(0);
}

#[test]
fn a_run_of_one_system_and_one_round_says_that_there_is_nothing_to_compare() {
    let lab = Lab::new();
    assert_snapshot!(whole(&lab, &["--rounds", "1", "--systems", "beta"]));
    assert!(lab.report("html").contains("there is nothing to compare: one system at one point</p>"));
    lab.run(&["--rounds", "2"]).code(0);
    let page = lab.report("html");
    assert!(
        page.contains("too few rounds: a comparison takes three</p>")
            && !page.contains("Nothing was measured")
    );
}

#[test]
fn a_budget_that_is_too_small_for_the_first_rounds_reduces_their_number() {
    let lab = Lab::new();
    let said = "the budget leaves 6 of 18 trials; a comparison needs three rounds";
    let ended = lab.run(&["--budget", "0s"]).code(0).says(&[said]);
    assert!(ended.stdout.contains("too few rounds: a comparison takes three"), "{ended:#?}");
    assert!(lab.report("details").contains("Means over 1 round of"));
}
