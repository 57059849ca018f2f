//! What a rate does to a figure: to response times, of which it is a knob, and to throughput, of which it is the amount.

use super::tests::{Axes, int, measured, measurement, observe, one, plan_of};
use super::*;
use crate::experiment::Figure;
use crate::observation::Measurement;
use stats::Verdict;
use systems::Value;
use systems::knob::Kind;

/// Two systems at two rates; what each trial measured, by its system and rate.
fn found(figure: Figure, of: impl Fn(&str, u64) -> Measurement) -> ExperimentFindings {
    let rates = int(&[1000, 5000]);
    let axes: Axes = &[("rate", Kind::Integer, &rates)];
    let plan = plan_of(Workload::Requests, figure, &["a", "b"], axes);
    let observations = observe(&plan, |trial| {
        let Some(Value::Integer(rate)) = trial.scenario.point.get("rate") else { panic!("{trial:?}") };
        measured(of(&trial.scenario.system, rate.unsigned_abs()))
    });
    one(findings(&plan, &observations))
}

/// One of a hundred answers takes `slow` microseconds, the others 200; all of them a window of two seconds at this rate.
fn answers(rate: u64, slow: u64) -> Measurement {
    let n = 2 * rate;
    let mut m = measurement(n, 200.0);
    // The hundredth part and one more: p99 is the first of them.
    m.response_us.buckets = vec![(200, n - n / 100 - 1), (slow, n / 100 + 1)];
    m
}

#[test]
fn which_server_keeps_its_p99_at_which_rate() {
    let e = found(Figure::P99Us, |system, rate| {
        answers(rate, if system == "b" && rate == 5000 { 8000 } else { 2000 })
    });
    assert_eq!(
        e.headlines,
        [
            "`rate` is the narrow place: 5000 is 4.0x [4.0, 4.0] slower than 1000 (p99, b; 3 rounds)",
            "a is 4.0x [4.0, 4.0] faster than b (p99, rate 5000; 3 rounds)",
        ]
    );
    let shown: Vec<(&str, Option<f64>)> =
        e.estimates.iter().map(|e| (e.scenario.system.as_str(), e.figure)).collect();
    assert_eq!(shown[..2], [("a", Some(2000.0)), ("a", Some(2000.0))]);
    assert_eq!(shown[3], ("b", Some(8000.0)));
    let kept = |system: &str| {
        let own = e.comparisons.iter().filter(|c| e.estimates[c.scenario].scenario.system == system);
        own.filter(|c| c.by == By::Knob("rate".to_owned())).map(|c| c.verdict).collect::<Vec<_>>()
    };
    assert_eq!((kept("a"), kept("b")), (vec![Verdict::NoDifference], vec![Verdict::Slower]));
    // It stands in the table once.
    let names: Vec<&str> = e.tables[0].columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names.iter().filter(|name| **name == "p99").count(), 1, "{names:?}");
    assert!(["p50", "service p99", "late", "dropped"].iter().all(|name| names.contains(name)), "{names:?}");
}

#[test]
fn each_trial_must_support_its_p99() {
    let unsupported = |operations: u64| {
        let e = found(Figure::P99Us, |_, _| measurement(operations, 200.0));
        let figures: Vec<bool> = e.estimates.iter().map(|e| e.figure.is_some()).collect();
        assert!(figures.iter().all(|figure| *figure == figures[0]));
        (figures[0], e.warnings.iter().any(|warning| warning.code == Code::PercentileUnsupported))
    };
    // Three trials of 999 have 2997 together, which is enough for the column and not for the figure.
    assert_eq!((unsupported(999), unsupported(1000)), ((false, true), (true, false)));
}

#[test]
fn as_many_answers_as_were_asked_for_are_no_finding() {
    let e = found(Figure::RequestsPerS, |_, rate| answers(rate, 300));
    let steps: Vec<String> =
        e.comparisons.iter().filter(|c| c.by == By::Step("rate".to_owned())).map(|c| c.words()).collect();
    assert_eq!(steps, ["as its work", "as its work"]);
    assert!(e.headlines.iter().all(|sentence| !sentence.contains("`rate`")), "{:?}", e.headlines);
}
