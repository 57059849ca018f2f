//! The formats for continuous integration, for made-up runs (`support/fake.rs`).

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::fake::{EXPERIMENT, Lab, rounded, shown};

/// A run in which beta and a fancy alpha are slower than alpha, the base. `rules` are added to its truth.
fn beside_alpha(rules: &str) -> Lab {
    let fancy = "[[rule]]\nsystem = \"alpha\"\npoint = { mode = \"fancy\" }\nbetter = 0.9\n";
    let lab = Lab::with(&format!("{fancy}{rules}"));
    lab.home.write("experiments/e.toml", &EXPERIMENT.replace("figure =", "base = \"alpha\"\nfigure ="));
    lab.run(&["--rounds", "6"]).code(0);
    lab
}

#[test]
fn what_is_slower_than_the_base_fails() {
    let lab = beside_alpha("");
    assert_snapshot!("github", lab.report("github"));
    assert_snapshot!("junit", lab.report("junit"));
    assert_snapshot!("bencher", rounded(&lab.report("bencher")));
}

#[test]
fn nothing_is_wrong_with_a_system_that_is_slower_than_another() {
    let lab = Lab::new();
    lab.run(&["--rounds", "6"]).code(0);
    let (github, junit) = (lab.report("github"), lab.report("junit"));
    assert!(!github.contains("::error") && github.contains("slower"), "{github}");
    assert!(junit.contains("errors=\"0\" failures=\"0\"") && junit.contains("slower"), "{junit}");
}

#[test]
fn a_system_that_does_not_start_is_an_error_in_a_line() {
    let fail = "fail = { stage = \"start\", reason = \"it ended with 1\", output = \"a\\n::error::b 100%\\u001b[2J\\u0000<&\" }";
    let lab = beside_alpha(&format!("[[rule]]\nsystem = \"beta\"\n{fail}\n"));
    let github = lab.report("github");
    assert!(github.contains("::error title=e requests_per_s%3A beta beside alpha"), "{github}");
    assert!(github.contains("failed at start: it ended with 1%0Aa%0A::error::b 100%25"), "{github}");
    assert!(github.lines().all(|line| line.starts_with("::")), "{github}");
    assert!(!github.lines().any(|line| line.starts_with("::error::")), "{github}");
    let junit = lab.report("junit");
    assert!(junit.contains("<error message=\"requests_per_s: no ratio"), "{junit}");
    assert!(!junit.contains(|c: char| c.is_control() && c != '\n'), "{junit}");
    let bencher: Value = serde_json::from_str(&lab.report("bencher")).expect("JSON");
    assert!(bencher["e/alpha buffer=1460 mode=plain"]["throughput"]["lower_value"].is_f64(), "{bencher}");
    assert!(
        bencher.as_object().expect("an object").keys().all(|name| name.starts_with("e/alpha")),
        "{bencher}"
    );
}

/// Without a condition the verdicts decide, and with one the condition does.
#[test]
fn two_runs_are_judged() {
    let lab = Lab::new();
    lab.run(&["--rounds", "6"]).code(0);
    lab.truth("[[rule]]\nsystem = \"alpha\"\npoint = { mode = \"plain\" }\nbetter = 0.8\n");
    lab.run(&["--rounds", "6"]).code(0);
    let compare = |words: &[&str]| lab.narrows(&[&["compare", "1", "2", "--within-run"], words].concat());
    assert_snapshot!("compared_github", shown(&compare(&["--format", "github"]).code(0)));
    assert_snapshot!("compared_junit", shown(&compare(&["--format", "junit"]).code(0)));
    let gate = ["--fail-if", "throughput<0.7", "--format"];
    assert_snapshot!("passed_github", shown(&compare(&[&gate[..], &["github"]].concat()).code(0)));
    let gate = ["--fail-if", "throughput<0.9", "--format"];
    assert_snapshot!("failed_junit", shown(&compare(&[&gate[..], &["junit"]].concat()).code(3)));
}
