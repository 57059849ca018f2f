//! Warnings that depend on several trials or on the reference. Each is tested in both directions.

use super::tests::{Axes, int, measured, measurement, observe, one, plan_of};
use super::*;
use crate::experiment::Figure;
use measurement::Measurement;
use measurement::doubt::{Doubt, Evidence};
use systems::knob::Kind;
use systems::{Value, is_reference};

/// Runs an experiment with these axes, in which `measurement` gives the measurements of `a` and of the reference. Returns
/// whether it warns with `code`, and whether `a` is ranked.
fn warned(
    workload: Workload,
    axes: Axes,
    code: Code,
    measurement: impl Fn(bool, u32) -> Measurement,
) -> (bool, bool) {
    let plan = plan_of(workload, Figure::RequestsPerS, &["a"], axes);
    let observations = observe(&plan, |t| measured(measurement(is_reference(&t.scenario.system), t.round)));
    let e = one(findings(&plan, &observations));
    (e.warnings.iter().any(|w| w.code == code), e.estimates[0].ranks())
}

#[test]
fn a_system_that_cannot_be_told_from_the_reference_is_a_lower_bound() {
    let code = Code::Trial(Doubt::GeneratorBound);
    let (closed, open, pool) = (int(&[1]), int(&[1000]), int(&[32]));
    let closed: Axes = &[("connections", Kind::Integer, &closed)];
    // The figures of the three rounds: the reference's and the system's.
    for (reference, system, bound) in [
        ([4000, 4100, 4200], [4000, 4100, 4200], true),
        ([4000, 5000, 4200], [3900, 4900, 4300], true),
        ([4000, 5000, 4200], [3000, 3700, 3100], false),
        // The system is ahead in every round, so the reference was not the ceiling.
        ([4000, 5000, 4200], [5000, 5600, 5000], false),
    ] {
        let trial = |is_reference: bool, round: u32| {
            measurement(if is_reference { reference } else { system }[round as usize], 500.0)
        };
        let seen = warned(Workload::Requests, closed, code, trial);
        assert_eq!(seen, (bound, !bound), "{reference:?} {system:?}");
    }
    // A rate and a pool limit the reference as well.
    let open: Axes = &[("rate", Kind::Integer, &open)];
    assert_eq!(warned(Workload::Requests, open, code, |_, _| measurement(4000, 500.0)), (false, true));
    let pool: Axes = &[("pool_size", Kind::Integer, &pool)];
    assert_eq!(warned(Workload::Clients, pool, code, |_, _| measurement(4000, 500.0)), (false, true));
}

#[test]
fn too_few_rounds_do_not_compare_a_system_with_the_reference() {
    let connections = int(&[1]);
    let axes: Axes = &[("connections", Kind::Integer, &connections)];
    let plan = plan_of(Workload::Requests, Figure::RequestsPerS, &["a"], axes);
    let mut observations = observe(&plan, |_| measured(measurement(4000, 500.0)));
    observations.retain(|o| o.trial.round < 2);
    let e = one(findings(&plan, &observations));
    let codes: Vec<Code> = e.warnings.iter().map(|w| w.code).collect();
    assert_eq!(codes, [Code::Incomplete, Code::TooFewTrials]);
    assert!(e.estimates[0].ranks());
}

#[test]
fn warnings_about_several_trials_appear_at_their_limits() {
    let connections = int(&[1]);
    let axes: Axes = &[("connections", Kind::Integer, &connections)];
    let steady =
        |n: u64| move |is_reference: bool, _: u32| measurement(if is_reference { 9000 } else { n }, 500.0);
    let swinging = |is_reference: bool, round: u32| {
        measurement(if is_reference { 9000 } else { 4000 + 1000 * u64::from(round) }, 500.0)
    };
    let seen =
        |code, trial: &dyn Fn(bool, u32) -> Measurement| warned(Workload::Requests, axes, code, trial).0;
    // Three trials of 333 operations have 999, one too few for a p99.
    assert!(seen(Code::PercentileUnsupported, &steady(333)));
    assert!(!seen(Code::PercentileUnsupported, &steady(334)));
    assert!(seen(Code::Unsteady, &swinging));
    assert!(!seen(Code::Unsteady, &steady(4000)));
    assert!(seen(Code::NothingFinished, &steady(0)));
    assert!(!seen(Code::NothingFinished, &steady(1)));
}

/// The codes of the warnings about an experiment in which `trial` gives the measurement of `a` in each round.
fn codes(workload: Workload, trial: impl Fn(u32) -> Measurement) -> Vec<Code> {
    let one_value = int(&[1]);
    let knob = if workload == Workload::Clients { "pool_size" } else { "connections" };
    let axes: Axes = &[(knob, Kind::Integer, &one_value)];
    let plan = plan_of(workload, Figure::RequestsPerS, &["a"], axes);
    let observations = observe(&plan, |t| {
        let reference = is_reference(&t.scenario.system);
        measured(if reference { measurement(9000, 500.0) } else { trial(t.round) })
    });
    one(findings(&plan, &observations)).warnings.iter().map(|warning| warning.code).collect()
}

#[test]
fn sound_trials_raise_no_warning() {
    assert_eq!(codes(Workload::Requests, |_| measurement(4000, 500.0)), []);
    assert_eq!(codes(Workload::Clients, |_| measurement(4000, 500.0)), []);
}

#[test]
fn one_disturbed_trial_of_three_raises_no_warning_but_two_do() {
    let stolen = |trials: u32| {
        codes(Workload::Requests, |round| {
            let mut m = measurement(4000, 500.0);
            m.stolen_s = if round < trials { 0.5 } else { 0.0 };
            m
        })
    };
    assert_eq!((stolen(1), stolen(2)), (vec![], vec![Code::Trial(Doubt::StolenTime)]));
}

#[test]
fn errors_contradictory_counts_and_unequal_work_raise_warnings() {
    let errors = codes(Workload::Requests, |_| {
        let mut m = measurement(4000, 500.0);
        m.errors = BTreeMap::from([("status".to_owned(), 1)]);
        m.mean_error_us = 500.0;
        m
    });
    assert_eq!(errors, [Code::Errors]);
    let counts = |responses: u64| {
        codes(Workload::Clients, |_| {
            let mut m = measurement(4000, 500.0);
            m.server = Some(measurement::ServerCounts {
                requests: 4001,
                responses,
                client_attempts: 4001,
                client_successes: 4000,
                ..Default::default()
            });
            m
        })
    };
    assert_eq!((counts(4000), counts(3999)), (vec![], vec![Code::CountsDisagree]));
    let other = codes(Workload::Requests, |_| {
        let mut m = measurement(4000, 500.0);
        m.system.unequal = "it answers nothing".to_owned();
        m
    });
    assert_eq!(other, [Code::UnequalWork]);
}

#[test]
fn a_disqualified_scenario_is_shown_but_not_ranked() {
    let pool = int(&[32]);
    let axes: Axes = &[("pool_size", Kind::Integer, &pool)];
    for (doubt, spoil) in [
        (Doubt::GeneratorBound, (|m| m.generator.busiest_core = 0.99) as fn(&mut Measurement)),
        (Doubt::BehindSchedule, |m| m.late = 1000),
        (Doubt::FailFast, |m| {
            m.errors = BTreeMap::from([("busy".to_owned(), 100)]);
            m.mean_error_us = 1.0;
        }),
        (Doubt::PoolCapExceeded, |m| {
            m.server = Some(measurement::ServerCounts { peak_connections: 33, ..Default::default() });
        }),
    ] {
        assert!(doubt.disqualifies());
        let plan = plan_of(Workload::Clients, Figure::RequestsPerS, &["good", "bad"], axes);
        let observations = observe(&plan, |t| {
            let bad = t.scenario.system == "bad";
            let mut m = measurement(if bad { 9000 } else { 4000 }, 500.0);
            if bad {
                spoil(&mut m);
            }
            measured(m)
        });
        let table = &one(findings(&plan, &observations)).tables[0];
        let rows: Vec<(&Cell, &Cell)> = table.rows.iter().map(|r| (&r.cells[0], &r.cells[1])).collect();
        assert_eq!(rows.len(), 3, "{doubt:?}");
        assert_eq!(
            rows[2],
            (&Cell::Empty, &"bad".into()),
            "{doubt:?}: the fastest is shown last, without a rank"
        );
        assert!(rows[..2].iter().all(|(rank, _)| **rank != Cell::Empty), "{doubt:?}");
    }
}

#[test]
fn a_second_of_waiting_for_100_continue_is_never_a_figure() {
    let expect = [false, true].map(Value::Boolean);
    let axes: Axes = &[("expect", Kind::Boolean, &expect)];
    let plan = plan_of(Workload::Upload, Figure::MsPerUpload, &["good", "silent"], axes);
    // One of the trials is without a figure, and all of them are.
    for silent_rounds in [1, 3] {
        let observations = observe(&plan, |t| {
            let waits = t.scenario.system == "silent" && t.scenario.point["expect"] == Value::Boolean(true);
            let waits = waits && t.round < silent_rounds;
            let mut m = measurement(20, if waits { 1_001_000.0 } else { 1000.0 });
            m.no_continue = if waits { 19 } else { 0 };
            measured(m)
        });
        let e = one(findings(&plan, &observations));
        let silent = &e.estimates[3];
        assert_eq!(silent.scenario.system, "silent");
        let seen = (silent.no_continue, silent.by_round.len(), silent.figure);
        let figure = (silent_rounds < 3).then_some(1.0);
        assert_eq!(seen, (19 * u64::from(silent_rounds), 3 - silent_rounds as usize, figure));
        let evidence = Evidence::NoContinue { count: 19, of: 21, waited_s: 1.0 };
        let without = WithoutFigure { system: "silent".to_owned(), evidence };
        assert_eq!(e.without_figure, vec![without; silent_rounds as usize]);
        // The doubt is about the scenario only if it is about half of its trials.
        let warned = e.warnings.iter().any(|w| w.code == Code::Trial(Doubt::NoContinue));
        assert_eq!((warned, silent.compares()), (silent_rounds == 3, silent_rounds < 3));
        let compared = e.comparisons.iter().filter(|c| [c.scenario, c.against].contains(&3));
        assert!(compared.map(|c| c.ratio).all(|ratio| ratio.is_none()), "{:?}", e.comparisons);
        let blames = |claim: &Claim| matches!(claim, Claim::Knob { .. } | Claim::Systems { .. });
        assert!(!e.claims.iter().any(blames), "{:?}", e.claims);
        let column = e.tables[0].columns.iter().position(|column| column.name == "no 100");
        let cell = &e.tables[0].rows[3].cells[column.expect("the reason")];
        assert_eq!(*cell, Cell::Number(19.0 * f64::from(silent_rounds)));
    }
}

#[test]
fn errors_are_explained_by_at_most_one_for_each_announced_close() {
    // The setting; the server's closes; the class of 36 errors of 2,000 operations, and of all in the client's life.
    for (keep, close, closes, class, whole_life, explained) in [
        (100, "announced", 40, "closed_early", 40, true),
        (100, "announced", 40, "reset", 36, true),
        (100, "announced", 39, "closed_early", 40, false),
        (100, "announced", 35, "closed_early", 0, false),
        (100, "announced", 400, "pool_wait", 40, false),
        (100, "announced", 400, "wrong_id", 40, false),
        (100, "silent", 40, "closed_early", 40, false),
        (0, "announced", 40, "closed_early", 40, false),
    ] {
        let (keep, close_as) = (int(&[keep]), [Value::Text(close.to_owned())]);
        let axes: Axes = &[("max_keepalive", Kind::Integer, &keep), ("close", Kind::Choice, &close_as)];
        let plan = plan_of(Workload::Clients, Figure::RequestsPerS, &["a"], axes);
        let found = |lost: u64| {
            let observations = observe(&plan, |t| {
                let mut m = measurement(1964, 500.0);
                if !is_reference(&t.scenario.system) {
                    m.errors = BTreeMap::from([(class.to_owned(), lost)]);
                    // The connection is gone at once.
                    m.mean_error_us = 1.0;
                }
                m.server = Some(measurement::ServerCounts {
                    closes,
                    client_errors: BTreeMap::from([(class.to_owned(), whole_life)]),
                    ..Default::default()
                });
                measured(m)
            });
            one(findings(&plan, &observations))
        };
        let e = found(36);
        let case = format!("{keep:?} {close} {closes} {class} {whole_life}");
        let warned = e.warnings.iter().any(|w| w.code == Code::Trial(Doubt::FailFast));
        assert_eq!((e.estimates[0].ranks(), !warned), (explained, explained), "{case}");
        let named = e.tables[0].notes.contains(&Note::Explained { scenarios: vec!["a".to_owned()] });
        assert_eq!(named, explained, "{case}");
        // Few errors need no explanation.
        let e = found(19);
        assert!(e.estimates[0].ranks() && !e.estimates[0].is_explained(), "{case}");
    }
}

#[test]
fn an_open_loop_shows_late_and_dropped_arrivals_and_both_latencies() {
    let rate = int(&[1000]);
    let axes: Axes = &[("rate", Kind::Integer, &rate)];
    let plan = plan_of(Workload::Requests, Figure::RequestsPerS, &["a"], axes);
    let observations = observe(&plan, |_| {
        let mut m = measurement(3999, 500.0);
        (m.late, m.dropped) = (10, 1000);
        m.response_us.buckets = vec![(900, 3999)];
        measured(m)
    });
    let e = one(findings(&plan, &observations));
    let cell = |name: &str| {
        let index = e.tables[0].columns.iter().position(|column| column.name == name);
        e.tables[0].rows[0].cells[index.unwrap_or_else(|| panic!("{name}"))].clone()
    };
    // There were 4000 attempts, of which 10 were late, and 1000 arrivals that were dropped.
    assert_eq!((cell("late"), cell("dropped")), (Cell::Number(0.002), Cell::Number(0.2)));
    assert_eq!((cell("p50"), cell("service p50")), (Cell::Number(900.0), Cell::Number(500.0)));
    assert!(e.warnings.iter().any(|w| w.code == Code::Trial(Doubt::BehindSchedule)));
    assert!(!e.warnings.iter().any(|w| w.code == Code::Trial(Doubt::HiddenQueueing)));
}
