//! The effect of a rate: it is a knob for response times, and an amount of work for throughput.

use super::tests::{Axes, int, measured, measurement, observe, one, plan_of, value};
use super::*;
use crate::experiment::Figure;
use crate::observation::Failure;
use measurement::Measurement;
use stats::Verdict;
use systems::Value;
use systems::knob::Kind;

/// The findings of two systems at two rates. `trial` gives the measurement from the system and the rate.
fn found(figure: Figure, trial: impl Fn(&str, u64) -> Measurement) -> FigureView<'static> {
    let rates = int(&[1000, 5000]);
    let axes: Axes = &[("rate", Kind::Integer, &rates)];
    let plan = plan_of(Workload::Requests, figure, &["a", "b"], axes);
    let observations = observe(&plan, |t| {
        let Some(Value::Integer(rate)) = t.scenario.point.get("rate") else { panic!("{t:?}") };
        measured(trial(&t.scenario.system, rate.unsigned_abs()))
    });
    one(findings(&plan, &observations))
}

/// The answers of two seconds at this rate. One in a hundred takes `slow` microseconds, the others 200.
fn answers(rate: u64, slow: u64) -> Measurement {
    let n = 2 * rate;
    let mut m = measurement(n, 200.0);
    // A hundredth and one more, so that p99 is the first slow answer.
    m.response_us.buckets = vec![(200, n - n / 100 - 1), (slow, n / 100 + 1)];
    m
}

#[test]
fn claims_say_which_server_keeps_its_p99_at_which_rate() {
    let e = found(Figure::P99Us, |system, rate| {
        answers(rate, if system == "b" && rate == 5000 { 8000 } else { 2000 })
    });
    let [
        Claim::Knob { comparison: rate, narrow: true, .. },
        Claim::Systems { comparison: systems, unequal: false, .. },
    ] = e.claims
    else {
        panic!("{:?}", e.claims)
    };
    let name = |index: usize| (e.estimates[index].scenario.system.as_str(), value(&e, index, "rate"));
    assert_eq!(
        (name(rate.scenario), name(rate.against)),
        (("b", "5000".to_owned()), ("b", "1000".to_owned()))
    );
    assert_eq!(
        (name(systems.scenario), name(systems.against)),
        (("a", "5000".to_owned()), ("b", "5000".to_owned()))
    );
    assert_eq!([rate.verdict, systems.verdict], [Verdict::Slower, Verdict::Faster]);
    let times = |c: &Comparison| c.ratio.expect("a ratio").upwards().estimate;
    assert!((times(rate) - 4.0).abs() < 1e-9 && (times(systems) - 4.0).abs() < 1e-9);
    let shown: Vec<(&str, Option<f64>)> =
        e.estimates.iter().map(|e| (e.scenario.system.as_str(), e.figure)).collect();
    assert_eq!(shown[..2], [("a", Some(2000.0)), ("a", Some(2000.0))]);
    assert_eq!(shown[3], ("b", Some(8000.0)));
    let verdicts = |system: &str| {
        let comparisons = e.comparisons.iter().filter(|c| e.estimates[c.scenario].scenario.system == system);
        comparisons.filter(|c| c.by == By::Knob("rate".to_owned())).map(|c| c.verdict).collect::<Vec<_>>()
    };
    assert_eq!((verdicts("a"), verdicts("b")), (vec![Verdict::NoDifference], vec![Verdict::Slower]));
    // The table shows the figure once.
    let names: Vec<&str> = e.tables[0].columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names.iter().filter(|name| **name == "p99").count(), 1, "{names:?}");
    assert!(["p50", "service p99", "late", "dropped"].iter().all(|name| names.contains(name)), "{names:?}");
}

#[test]
fn all_trials_together_need_enough_operations_for_a_p99() {
    let figure_and_warning = |operations: u64| {
        let e = found(Figure::P99Us, |_, _| measurement(operations, 200.0));
        let figures: Vec<bool> = e.estimates.iter().map(|e| e.figure.is_some()).collect();
        assert!(figures.iter().all(|figure| *figure == figures[0]));
        (figures[0], e.warnings.iter().any(|warning| warning.code == Code::PercentileUnsupported))
    };
    // There are three trials.
    assert_eq!((figure_and_warning(333), figure_and_warning(334)), ((false, true), (true, false)));
}

/// One trial of three answers hardly anything: what was due and not answered waited for a second.
#[test]
fn a_trial_without_answers_is_slow_and_not_unknown() {
    let rates = int(&[1000]);
    let axes: Axes = &[("rate", Kind::Integer, &rates)];
    let plan = plan_of(Workload::Requests, Figure::P99Us, &["a"], axes);
    let found = |answered: u64| {
        let observations = observe(&plan, |t| {
            let mut m = answers(1000, 300);
            if answered < 2000 && t.round == 1 && t.scenario.system == "a" {
                m.response_us.buckets = vec![(200, answered)];
                m.response_us.unanswered = vec![(1_000_000, 2000 - answered)];
                m.successes = answered;
            }
            measured(m)
        });
        one(findings(&plan, &observations))
    };
    for answered in [0, 500] {
        let e = found(answered);
        let a = &e.estimates[0];
        assert_eq!((a.by_round.len(), a.by_round.get(&1)), (3, Some(&1e6)), "{answered}");
        assert_eq!((a.figure, a.p99_us.map(|p99| p99.is_lower_bound())), (Some(1e6), Some(true)));
        assert!(e.warnings.iter().any(|warning| warning.code == Code::FewTrialsDecide), "{:?}", e.warnings);
    }
    let usual = found(2000);
    assert!(usual.warnings.iter().all(|warning| warning.code != Code::FewTrialsDecide));
}

/// The percentile of all rounds tells nothing of those that two rows share.
#[test]
fn rows_that_miss_different_rounds_are_compared_by_the_percentiles_of_their_trials() {
    let rates = int(&[1000]);
    let axes: Axes = &[("rate", Kind::Integer, &rates)];
    let mut plan = plan_of(Workload::Requests, Figure::P99Us, &["a", "b"], axes);
    plan.grow(&[(0, 8)]);
    let ratio = |missed: bool| {
        let observations = observe(&plan, |t| {
            let (a, slow) = (t.scenario.system == "a", t.round == 1);
            if missed && a && t.round == 2 {
                return Outcome::Failed(Failure {
                    stage: crate::observation::Stage::Start,
                    reason: "it ended".to_owned(),
                    output: String::new(),
                });
            }
            let mut m = answers(1000, 300);
            if a && slow {
                m.response_us.buckets = vec![(200, 1600), (20_000, 400)];
            }
            measured(m)
        });
        let e = one(findings(&plan, &observations));
        e.comparisons[0].ratio.expect("seven rounds or more").estimate
    };
    // More than a hundredth of all its answers are slow, and a mean of the trials leaves out the slowest trial.
    assert!((ratio(false).ln().abs() / (20_000_f64 / 300.0).ln() - 1.0).abs() < 0.01, "{}", ratio(false));
    assert_eq!(ratio(true), 1.0);
}

#[test]
fn throughput_that_follows_the_rate_is_no_finding() {
    let e = found(Figure::RequestsPerS, |_, rate| answers(rate, 300));
    let steps: Vec<Verdict> =
        e.comparisons.iter().filter(|c| c.by == By::Step("rate".to_owned())).map(|c| c.verdict).collect();
    assert_eq!(steps, [Verdict::NoDifference; 2]);
    assert!(e.claims.iter().all(|claim| claim.knob() != Some("rate")), "{:?}", e.claims);
}
