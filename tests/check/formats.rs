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

#[test]
fn what_a_system_says_cannot_hide_other_text_in_any_format() {
    let said = |text: &str| format!("\"{text}\\u001b[31m\\u202eb\\u2028c\\u200f\"");
    let (reason, output, version) = (said("it ended"), said("at a line\\n"), said("1.0"));
    let fail = format!("fail = {{ stage = \"start\", reason = {reason}, output = {output} }}");
    let errors = "errors = { status = 20 }";
    let lab = beside_alpha(&format!(
        "[[rule]]\nsystem = \"beta\"\n{fail}\n[[rule]]\nsystem = \"alpha\"\nversions = {version}\n{errors}\n"
    ));
    for format in [
        "text",
        "details",
        "markdown",
        "html",
        "json",
        "csv",
        "hlog",
        "hlog-merged",
        "github",
        "junit",
        "verdict",
        "bencher",
    ] {
        // Some formats refuse this run. Their errors are shown, too.
        let shown = match format {
            "details" => lab.narrows(&["report", "last", "--details"]),
            format => lab.narrows(&["report", "last", "--format", format]),
        };
        // The lines of CSV end as RFC 4180 says.
        let text = (shown.stdout + &shown.stderr).replace("\r\n", "\n");
        let hidden = |c: char| printable::is_hidden(c) && c != '\n';
        let at = text.find(hidden).map(|at| text[..at].chars().rev().take(80).collect::<Vec<_>>());
        let before = at.map(|before| before.into_iter().rev().collect::<String>());
        assert_eq!(before, None, "{format}");
        if ["text", "markdown", "html", "json", "github", "junit"].contains(&format) {
            assert!(text.contains("it ended [31m "), "{format}: {text}");
        }
    }
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
