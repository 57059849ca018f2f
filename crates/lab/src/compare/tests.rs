//! Tests of which scenarios are paired. Verdicts are tested by simulation, and texts by snapshots.

use stats::Noise;
use systems::{Point, Value};

use super::*;
use crate::findings::findings;
use crate::session::{Fake, Rule};
use crate::simulation::{Rounds, observed, plan};

#[test]
fn sides_are_parsed_as_users_write_them() {
    let side: Side = "last:frames/erlang-packet framing=4 buffer=8K".parse().unwrap();
    assert_eq!(side.run, "last");
    let Selection { experiment, system, knobs } = side.selection;
    assert_eq!((experiment.as_deref(), system.as_deref()), (Some("frames"), Some("erlang-packet")));
    assert_eq!(knobs, [("framing".to_owned(), "4".to_owned()), ("buffer".to_owned(), "8K".to_owned())]);
    let whole: Side = "12".parse().unwrap();
    assert_eq!((whole.run.as_str(), whole.selection), ("12", Selection::default()));
    for bad in ["", "  ", ":e", "last:", "last:/s", "last:e/", "last knob", "last =1", "last knob="] {
        assert!(bad.parse::<Side>().is_err(), "{bad:?}");
    }
}

/// Compares two sides by their own rounds.
fn compare(a: &Chosen, b: &Chosen) -> RunComparison {
    super::compare(a, b, None)
}

/// A run over the values 0, 1, … of a knob. Value n is 1 + n · `better` times as good as value 0.
fn chosen(name: &str, words: &str, values: i64, better: f64) -> Chosen {
    let rule = |value: i64| Rule {
        point: Point::from([("knob".to_owned(), Value::Integer(value))]),
        better: Some(1.0 + better * value as f64),
        ..Rule::default()
    };
    let noise = Noise { spread: 0.01, ..Noise::default() };
    let fake = Fake::new(1e6, (0..values).map(rule).collect(), noise, 1);
    let plan = plan(values, Rounds::Fixed(6), 1);
    let seen = observed(&plan, fake);
    Chosen {
        name: name.to_owned(),
        findings: findings(&plan, &seen),
        environment: serde_json::json!({"cpu": "one", "kernel": "6"}),
        selection: format!("1{words}").parse::<Side>().unwrap().selection,
        identity: name.to_owned(),
    }
}

fn labels(found: &RunComparison) -> Vec<(&str, &str)> {
    found.matched.iter().map(|m| (m.a.as_str(), m.b.as_str())).collect()
}

#[test]
fn equal_scenarios_of_two_runs_are_paired() {
    let found = compare(&chosen("a", "", 3, 0.1), &chosen("b", "", 2, 0.1));
    assert_eq!(labels(&found), [("s knob=0", "s knob=0"), ("s knob=1", "s knob=1")]);
    let alone = Alone { first: true, experiment: "e".to_owned(), scenario: "s knob=2".to_owned() };
    assert_eq!(found.unmatched, [alone]);
    assert!(found.matched.iter().all(|m| m.verdict == Verdict::NoDifference), "{:?}", found.matched);
    // A selection on one side applies to the other as well.
    let found = compare(&chosen("a", ":e knob=1", 3, 0.1), &chosen("b", "", 3, 0.5));
    assert_eq!(labels(&found), [("s knob=1", "s knob=1")]);
    assert_eq!(found.matched[0].verdict, Verdict::Faster);
    assert!((found.matched[0].ratio.unwrap().estimate - 1.5 / 1.1).abs() < 0.03);
}

#[test]
fn scenarios_under_different_objectives_are_not_paired() {
    let under = |name, objective| {
        let mut side = chosen(name, "", 1, 0.1);
        side.findings.experiments[0].shared.setup.subject.objective = load::Slo::parse(objective).ok();
        side
    };
    let found = compare(&under("a", "p99<20ms"), &under("b", "p99<20ms"));
    assert_eq!(labels(&found), [("s", "s")]);
    let found = compare(&under("a", "p99<20ms"), &under("b", "p99<5ms"));
    assert!(found.matched.is_empty() && found.unmatched.len() == 2, "{found:?}");
}

#[test]
fn scenarios_of_one_run_are_paired_by_everything_that_is_not_selected() {
    let found = compare(&chosen("a", ":e/s knob=0", 3, 0.5), &chosen("a", ":e/s knob=2", 3, 0.5));
    assert_eq!(labels(&found), [("s knob=0", "s knob=2")]);
    assert_eq!(found.matched[0].verdict, Verdict::Faster);
    assert!(found.differences.is_empty() && found.machine.is_empty());
    let reference = compare(&chosen("a", ":e/reference", 2, 0.5), &chosen("a", ":e/s knob=1", 2, 0.5));
    assert_eq!(labels(&reference), [("reference", "s knob=1")]);
}

#[test]
fn differences_are_listed_and_only_grave_ones_make_a_comparison_meaningless() {
    let (a, mut b) = (chosen("a", "", 2, 0.1), chosen("b", "", 2, 0.1));
    b.environment = serde_json::json!({"cpu": "one", "kernel": "7", "governor": "performance"});
    let found = compare(&a, &b);
    let whats: Vec<&str> = found.differences.iter().map(|d| d.what.as_str()).collect();
    assert_eq!((whats, found.is_meaningless()), (vec!["governor", "kernel"], false));
    b.environment = serde_json::json!({"cpu": "two", "kernel": "6"});
    assert!(compare(&a, &b).is_meaningless());
    // An unknown machine is listed, but is not grave.
    b.environment = serde_json::Value::Null;
    assert!(!compare(&a, &b).is_meaningless() && compare(&a, &b).differences.len() == 1);
    b.findings.experiments[0].shared.setup.timing.measure_s = 9.0;
    assert!(compare(&a, &b).is_meaningless());
}

#[test]
fn two_runs_without_a_reference_are_not_compared() {
    let (a, mut b) = (chosen("a", "", 2, 0.1), chosen("b", "", 2, 0.1));
    b.findings.experiments[0].figures[0].estimates.retain(|e| !e.is_reference());
    let found = compare(&a, &b);
    assert!(found.matched.iter().all(|m| m.ratio.is_none() && !m.verdict.is_decided()));
    assert_eq!(found.matched[0].because, Some(Incomparable::NoReference));
}
