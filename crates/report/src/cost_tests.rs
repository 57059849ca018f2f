//! What reports of large runs cost: twice the scenarios or experiments take about twice as long.

use cost::near_linear;
use lab::findings::{ExperimentFindings, Findings};
use lab::observation::{Failure, Stage};
use lab::session::Rule;

use crate::made_up::{found, found_in_pairs};
use crate::{
    Judgement, Run, answers, bencher, brief, csv, github, html, json, junit, markdown, text, verdicts,
};

/// So many scenarios or experiments, and then twice as many.
const SOME: usize = 120;

/// The name of a report, and what makes it.
type Report = (&'static str, fn(&Findings) -> String);

const REPORTS: [Report; 11] = [
    ("text", |found| text(found, 100, false)),
    ("brief", |found| brief(found, 100, false)),
    ("answers", |found| answers(found, 100, false)),
    ("verdicts", |found| verdicts(found, 100, false)),
    ("Markdown", markdown),
    ("CSV", csv),
    ("JSON", |found| json(found, &serde_json::Value::Null)),
    ("HTML", page),
    ("GitHub", |found| github(&Judgement::of_run(found))),
    ("JUnit", |found| junit(&Judgement::of_run(found))),
    ("Bencher", bencher),
];

fn page(found: &Findings) -> String {
    let environment = serde_json::Value::Null;
    let (command, seed) = ("run e", 1);
    html(found, &Run { id: 1, started_unix_s: 0.0, command, seed, environment: &environment, profiles: &[] })
}

/// Asserts that each report of findings of twice the size takes about twice the CPU time.
fn are_near_linear(made: impl Fn(usize) -> Findings) {
    let (some, twice) = (made(SOME), made(2 * SOME));
    for (name, report) in REPORTS {
        let work = |found: &Findings| drop(std::hint::black_box(report(found)));
        assert_eq!(near_linear(&|| work(&some), &|| work(&twice)), Ok(()), "{name}");
    }
}

fn run(experiments: Vec<ExperimentFindings>) -> Findings {
    Findings { experiments, gates: Vec::new() }
}

/// So many values of a knob.
fn values(count: usize) -> Vec<i64> {
    (1..=count as i64).collect()
}

fn fails() -> Rule {
    let failure = Failure { stage: Stage::Start, reason: "it ended".to_owned(), output: String::new() };
    Rule { system: Some("a".to_owned()), fail: Some(failure), ..Rule::default() }
}

#[test]
fn of_scenarios() {
    are_near_linear(|count| run(vec![found(&["a"], &[("pools", &values(count))], &[])]));
}

#[test]
fn of_scenarios_in_a_grid() {
    are_near_linear(|count| {
        let knobs: [(&str, &[i64]); 2] = [("pools", &values(count / 20)), ("concurrency", &values(20))];
        run(vec![found(&["a"], &knobs, &[])])
    });
}

#[test]
fn of_scenarios_whose_knobs_change_together() {
    are_near_linear(|count| run(vec![found_in_pairs(["pools", "concurrency"], &values(count))]));
}

#[test]
fn of_scenarios_that_fail() {
    are_near_linear(|count| run(vec![found(&["a"], &[("pools", &values(count))], &[fails()])]));
}

#[test]
fn of_experiments() {
    let one = found(&["a"], &[("pools", &[1, 2])], &[]);
    are_near_linear(|count| {
        let named = |at: usize| {
            let mut one = one.clone();
            one.shared.setup.subject.name = format!("e{at}");
            one
        };
        run((0..count).map(named).collect())
    });
}
