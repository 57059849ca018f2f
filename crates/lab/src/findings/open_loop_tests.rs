//! What a rate does to a figure: to response times, of which it is a knob, and to throughput, of which it is the amount.

use super::tests::{Axes, int, measured, measurement, observe, one, plan_of, value};
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
    let [
        Claim::Knob { comparison: rate, narrow: true, .. },
        Claim::Systems { comparison: systems, unequal: false, .. },
    ] = &e.claims[..]
    else {
        panic!("{:?}", e.claims)
    };
    let of = |at: usize| (e.estimates[at].scenario.system.as_str(), value(&e, at, "rate"));
    assert_eq!((of(rate.scenario), of(rate.against)), (("b", "5000".to_owned()), ("b", "1000".to_owned())));
    assert_eq!(
        (of(systems.scenario), of(systems.against)),
        (("b", "5000".to_owned()), ("a", "5000".to_owned()))
    );
    assert_eq!([rate.verdict, systems.verdict], [Verdict::Slower; 2]);
    let times = |c: &Comparison| c.ratio.expect("a ratio").upwards().estimate;
    assert!((times(rate) - 4.0).abs() < 1e-9 && (times(systems) - 4.0).abs() < 1e-9);
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
    let steps: Vec<Verdict> =
        e.comparisons.iter().filter(|c| c.by == By::Step("rate".to_owned())).map(|c| c.verdict).collect();
    assert_eq!(steps, [Verdict::NoDifference; 2]);
    assert!(e.claims.iter().all(|claim| claim.knob() != Some("rate")), "{:?}", e.claims);
}
