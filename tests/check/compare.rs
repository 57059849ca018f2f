//! The output and exit codes of `compare`, for made-up runs (`support/fake.rs`).

use insta::assert_snapshot;

use crate::support::fake::{EXPERIMENT, Lab, TRUTH, shown};
use crate::support::{Ended, squeezed};

/// Two runs with the same truth but different noise, and one with alpha 20 % slower on another kernel.
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

/// Compares by the rounds of the two runs alone.
fn alone(lab: &Lab, words: &[&str]) -> Ended {
    lab.narrows(&[&["compare", "--within-run"], words].concat())
}

#[test]
fn runs_are_compared() {
    let lab = three_runs();
    assert_snapshot!("same", shown(&alone(&lab, &["1", "2"])));
    let other = alone(&lab, &["previous", "last", "--fail-if", "throughput<0.97"]);
    assert_snapshot!("slower", shown(&other.code(3)));
    assert_snapshot!("markdown", shown(&alone(&lab, &["2", "3", "--format", "markdown"])));
    assert_snapshot!("json", shown(&alone(&lab, &["2:e/beta", "3", "--format", "json"])));
    // A report in a file gives the same comparison.
    lab.narrows(&["report", "2", "--format", "json", "-o", "run two.json"]).code(0);
    let [file, run] = ["run two.json", "2"].map(|first| {
        let ended = alone(&lab, &[first, "3", "--format", "markdown"]).code(0);
        ended.stdout.replace(&format!("than {first},"), "").replace(&format!("against {first}"), "")
    });
    assert_eq!(file, run);
    // Conditions that are certainly not met are no failure.
    alone(&lab, &["1", "2", "--fail-if", "throughput<0.9,time>1.1"]).code(0);
    alone(&lab, &["2", "3", "--fail-if", "time>1.1"]).code(3);
}

fn prints(ended: &Ended, words: &str) {
    assert!(ended.status.success() && squeezed(&ended.stdout).contains(words), "{words:?}: {ended:#?}");
}

/// Runs the experiment with noise of its own, and alpha as many times as good.
fn occasion(lab: &Lab, seed: u32, better: f64) {
    let truth = TRUTH.replace("seed = 3", &format!("seed = {seed}"));
    lab.home.write("truth.toml", &format!("{truth}[[rule]]\nsystem = \"alpha\"\nbetter = {better}\n"));
    lab.run(&["--rounds", "6"]).code(0);
}

#[test]
fn two_runs_alone_do_not_say_how_much_runs_differ() {
    let lab = Lab::new();
    occasion(&lab, 1, 1.0);
    occasion(&lab, 2, 0.5);
    assert_snapshot!("few_runs", shown(&lab.narrows(&["compare", "1", "2"]).code(0)));
    assert_snapshot!("few_runs_json", shown(&lab.narrows(&["compare", "1:e/beta", "2", "--format", "json"])));
    let gate = |words: &[&str]| {
        lab.narrows(&[&["compare", "1:e/beta", "2", "--fail-if", "throughput<0.97"], words].concat())
    };
    assert_snapshot!("few_runs_gate", shown(&gate(&[]).code(4)));
    assert_snapshot!("few_runs_junit", shown(&gate(&["--format", "junit"]).code(4)));
    gate(&["--inconclusive", "pass"]).code(0);
    gate(&["--inconclusive", "fail"]).code(3);
    alone(&lab, &["1:e/beta", "2", "--fail-if", "throughput<0.9"]).code(0);
    alone(&lab, &["1", "2", "--fail-if", "throughput<0.97"]).code(3);
    // Without a condition, nothing fails.
    let github = lab.narrows(&["compare", "1", "2", "--format", "github"]).code(0).stdout;
    assert!(github.lines().all(|line| line.starts_with("::notice")), "{github}");
}

#[test]
fn earlier_runs_say_how_much_runs_differ() {
    let lab = Lab::new();
    for (seed, better) in [(1, 1.0), (2, 0.97), (3, 1.04), (4, 1.01), (5, 0.98), (6, 1.06), (7, 0.7)] {
        occasion(&lab, seed, better);
    }
    // Six percent are no more than what runs differ by; beta differs by its rounds alone.
    assert_snapshot!("usual", shown(&lab.narrows(&["compare", "5", "6"]).code(0)));
    assert_snapshot!("unusual", shown(&lab.narrows(&["compare", "6", "7"]).code(0)));
    let gate = |a: &str, b: &str| lab.narrows(&["compare", a, b, "--fail-if", "throughput<0.97"]);
    gate("6", "7").code(3).says(&["failed: e alpha buffer=1460"]);
    // Which side is the later one does not matter.
    let turned = lab.narrows(&["compare", "7", "6"]);
    prints(&turned, "6 earlier runs");
    prints(&turned, " faster ");
    // Runs that began later are no earlier ones.
    prints(&lab.narrows(&["compare", "4", "5"]), "only 4 earlier runs of this question");
    // A file has one run, which counts once; the store has the others.
    lab.narrows(&["report", "6", "--format", "json", "-o", "six.json"]).code(0);
    let [file, run] = ["six.json", "6"].map(|first| {
        let ended = lab.narrows(&["compare", first, "7"]).code(0);
        squeezed(&ended.stdout)
            .replace(&format!("than {first},"), "")
            .replace(&format!("against {first}"), "")
    });
    assert_eq!(file, run);
    lab.narrows(&["report", "7", "--format", "json", "-o", "seven.json"]).code(0);
    let files = ["compare", "six.json", "seven.json"];
    prints(&lab.narrows(&[&files[..], &["--store", "none.db"]].concat()), "only 1 earlier run of this");
    prints(&lab.narrows(&files), "6 earlier runs");
    // Another machine asks another question.
    lab.home.write("truth.toml", &TRUTH.replace("Fake 1", "Fake 2"));
    lab.run(&["--rounds", "6"]).code(0);
    prints(&lab.narrows(&["compare", "7", "8", "--force"]), "only 1 earlier run of this question");
}

#[test]
fn what_is_inconclusive_does_not_pass_in_silence() {
    let lab = Lab::new();
    lab.run(&["--rounds", "6"]).code(0);
    lab.home.write("truth.toml", &TRUTH.replace("seed = 3", "seed = 4"));
    lab.run(&["--rounds", "6"]).code(0);
    let gate = |words: &[&str]| alone(&lab, &[&["1", "2", "--fail-if", "throughput<1"], words].concat());
    assert_snapshot!("inconclusive", shown(&gate(&[]).code(4)));
    assert_snapshot!("inconclusive_junit", shown(&gate(&["--format", "junit"]).code(4)));
    assert_snapshot!("inconclusive_github", shown(&gate(&["--format", "github"]).code(4)));
    gate(&["--inconclusive", "pass"]).code(0).says(&["inconclusive: throughput<1"]);
    let failed = gate(&["--inconclusive", "fail", "--format", "junit"]).code(3).says(&["failed: e beta"]);
    assert!(failed.stdout.contains("<failure message=\"e beta: "), "{failed:#?}");
    lab.narrows(&["compare", "1", "2", "--inconclusive", "pass"]).code(2).says(&["--fail-if"]);
}

#[test]
fn a_scenario_that_cannot_be_judged_does_not_pass() {
    let lab = Lab::new();
    lab.run(&["--rounds", "6"]).code(0);
    let dead = "[[rule]]\nsystem = \"beta\"\nfail = { stage = \"start\", reason = \"it ended with 1\", output = \"\" }\n";
    let wrong = "[[rule]]\nsystem = \"alpha\"\npoint = { mode = \"fancy\" }\nerrors = { status = 90000 }\n";
    lab.truth(&format!("{dead}{wrong}"));
    lab.run(&["--rounds", "6"]).code(0);
    let judged = ["--fail-if", "throughput<0.97"];
    let compare = |sides: [&str; 2]| alone(&lab, &[&sides[..], &judged].concat());
    assert_snapshot!("dead", shown(&compare(["1", "2"]).code(3)));
    // The order of the sides does not matter. A scenario given by name is judged alone.
    compare(["2", "1"]).code(3).says(&["cannot be judged: e beta: in the first: every trial failed"]);
    compare(["1:e/alpha mode=plain", "2"]).code(0);
    // Without a condition the exit code only says that the comparison was possible.
    lab.narrows(&["compare", "1", "2"]).code(0);
    lab.home.write("truth.toml", TRUTH);
    lab.run(&["--rounds", "2"]).code(0);
    compare(["1", "3"]).code(3).says(&["cannot be judged: e beta: fewer than 3 rounds"]);
    lab.run(&["--rounds", "6", "--systems", "alpha"]).code(0);
    compare(["1", "4"]).code(3).says(&["cannot be judged: 1: e beta: without a counterpart"]);
    // An interval that contains the bound is judged and does not fail.
    compare(["1", "1:e/alpha buffer=1460"]).code(0);
}

#[test]
fn scenarios_of_only_one_run_are_named() {
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
    assert_snapshot!("scenarios", shown(&lab.narrows(&inside)));
    let systems = ["compare", "1:e/alpha buffer=1460 mode=plain", "1:e/beta"];
    assert_snapshot!("systems", shown(&lab.narrows(&systems)));
}

#[test]
fn incomparable_runs_are_refused() {
    let lab = three_runs();
    let other = TRUTH.replace("Fake 1", "Fake 2").replace("cores = [0, 1]", "cores = [0, 1, 2, 3]");
    lab.home.write("truth.toml", &other);
    lab.run(&["--rounds", "3"]).code(0);
    let refused = lab.narrows(&["compare", "1", "4"]).code(1);
    assert_snapshot!("refused", shown(&refused));
    assert_snapshot!("forced", shown(&lab.narrows(&["compare", "1", "4", "--force"]).code(0)));
    lab.home.write("experiments/e.toml", &EXPERIMENT.replace("measure_s = 1.0", "measure_s = 3.0"));
    lab.run(&["--rounds", "3"]).code(0);
    assert_snapshot!("other_window", shown(&lab.narrows(&["compare", "4", "5"]).code(1)));
}

#[test]
fn invalid_arguments_are_usage_errors() {
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
