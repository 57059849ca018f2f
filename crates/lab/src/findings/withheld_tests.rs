//! Verdicts that are withheld: windows with few answers, and speeds that still change.

use stats::{SplitMix64, Verdict};
use systems::knob::Kind;

use super::tests::{Axes, int, measured, measurement, observe, one, plan_of};
use super::*;
use crate::experiment::Figure;

/// The findings of two systems. `trial` gives the measurement from the system and the round.
fn found(warmup_s: f64, mut trial: impl FnMut(&str, u32) -> Measurement) -> FigureView<'static> {
    let one_value = int(&[10]);
    let axes: Axes = &[("connections", Kind::Integer, &one_value)];
    let mut plan = plan_of(Workload::Requests, Figure::RequestsPerS, &["a", "b"], axes);
    plan.experiments[0].setup.timing.warmup_s = warmup_s;
    let trial = std::cell::RefCell::new(&mut trial);
    let observations = observe(&plan, |t| match t.scenario.is_reference() {
        true => measured(measurement(1_000_000, 20.0)),
        false => measured((trial.borrow_mut())(&t.scenario.system, t.round)),
    });
    one(findings(&plan, &observations))
}

/// What ten callers count in two seconds if every answer takes `ms`. They begin together or apart.
fn fixed(ms: f64, phases: [f64; 10], parts: bool) -> Measurement {
    let (took, window) = (ms / 1e3, 2.0);
    let count = |phase: &f64| ((phase * took + window) / took).floor();
    let ended: f64 = phases.iter().map(count).sum();
    let edges: f64 = phases.iter().map(|phase| window / took - count(phase)).sum();
    let edges = parts.then_some(edges);
    Measurement { concurrency: 10, edges, ..measurement(ended as u64, ms * 1e3) }
}

/// The ratio of `b` to `a` and its verdict, and whether its interval contains the truth.
fn judged(e: &FigureView<'_>, truth: f64) -> (Verdict, Option<Withheld>, bool) {
    let [c] = e.comparisons else { panic!("{:?}", e.comparisons) };
    let ratio = c.ratio.expect("three rounds");
    let (ratio, verdict) = match (e.estimates[c.scenario].scenario.system.as_str(), c.verdict) {
        ("b", verdict) => (ratio, verdict),
        (_, Verdict::Faster) => (ratio.inverse(), Verdict::Slower),
        (_, Verdict::Slower) => (ratio.inverse(), Verdict::Faster),
        (_, verdict) => (ratio.inverse(), verdict),
    };
    // The made-up parts are exact, so only rounding is left.
    (verdict, c.withheld, (ratio.low / 1.0001..=ratio.high * 1.0001).contains(&truth))
}

fn is_wrong(verdict: Verdict, truth: f64) -> bool {
    match verdict {
        Verdict::Faster => truth <= 1.0,
        Verdict::Slower => truth >= 1.0,
        Verdict::NoDifference => !(1.0 / 1.05..=1.05).contains(&truth),
        Verdict::Undecided { .. } => false,
    }
}

#[test]
fn whole_answers_never_give_a_certainty_that_they_do_not_have() {
    let mut rng = SplitMix64::new(1);
    let mut decided = [0; 3];
    for _ in 0..300 {
        let (a, b) = (50.0 + 1150.0 * rng.unit(), 50.0 + 1150.0 * rng.unit());
        // Together, as in runs of earlier versions; apart, with parts; and together, with parts.
        for (way, decided) in decided.iter_mut().enumerate() {
            let together = rng.unit();
            let phases: [f64; 10] = std::array::from_fn(|_| if way == 1 { rng.unit() } else { together });
            let e = found(0.5, |system, _| fixed(if system == "a" { a } else { b }, phases, way > 0));
            let (verdict, _, holds) = judged(&e, a / b);
            assert!(holds && !is_wrong(verdict, a / b), "{way}: {a} and {b}: {:?}", e.comparisons);
            *decided += usize::from(verdict.is_decided());
        }
    }
    assert!(decided[0] < decided[1] && decided[1] > 270 && decided[2] > 270, "{decided:?}");
}

#[test]
fn a_comparison_that_the_edges_of_windows_leave_open_says_so() {
    // Five answers on each connection, or none at the edge: 1.02x looks like 1.2x in every round.
    let e = found(0.5, |system, _| fixed(if system == "a" { 400.0 } else { 399.0 }, [0.0; 10], false));
    let (verdict, why, holds) = judged(&e, 400.0 / 399.0);
    assert!(!verdict.is_decided() && holds, "{verdict:?}");
    assert_eq!(why, Some(Withheld::ShortWindow));
    let spread = |e: &FigureView<'_>| e.estimates[0].interval.expect("three rounds");
    let (low, high) = spread(&e);
    assert!(high > 1.3 * low, "no figure is known exactly: {low} to {high}");
}

/// A window whose second half is so many times as quick as its first; the noise of halves is 10 %.
fn drifting(per_s: f64, change: f64, rng: &mut SplitMix64) -> Measurement {
    let n = (2.0 * per_s * (0.03 * rng.normal()).exp()) as u64;
    let second = n as f64 / (1.0 + 1.0 / (change * (0.1 * rng.normal()).exp()));
    let tenth = |half: f64| (half / 5.0) as u64;
    let mut tenths = vec![tenth(n as f64 - second); 5];
    tenths.extend([tenth(second); 5]);
    Measurement { concurrency: 10, edges: Some(0.0), tenths, ..measurement(n, 1e7 / per_s) }
}

#[test]
fn a_speed_that_still_changes_withholds_the_verdict() {
    let mut rng = SplitMix64::new(2);
    let mut outcome = |factor: f64, change: f64, warmup_s: f64| {
        let e = found(warmup_s, |system, _| match system {
            "a" => drifting(1000.0, 1.0, &mut rng),
            _ => drifting(1000.0 * factor, change, &mut rng),
        });
        let (verdict, why, _) = judged(&e, factor);
        (verdict.is_decided(), why == Some(Withheld::Drift), e.estimates[1].warmth.drift)
    };
    // A machine that compiles: 7.6x and more than half again as fast from half to half.
    let withheld = (0..100).filter(|_| outcome(7.6, 1.8, 0.5).1).count();
    assert!(withheld > 80, "{withheld} of 100");
    // Without a warm-up, that is what is measured.
    assert_eq!(outcome(7.6, 1.8, 0.0), (true, false, None));
    // Steady servers: the noise of windows rarely withholds anything.
    let steady: Vec<_> = (0..400).map(|_| outcome(2.0, 1.0, 0.5)).collect();
    let withheld = steady.iter().filter(|(_, drift, _)| *drift).count();
    assert!(withheld <= 20, "{withheld} of 400");
    assert!(steady.iter().filter(|(decided, ..)| *decided).count() > 350);
}

#[test]
fn answers_that_all_callers_have_in_the_same_half_are_no_drift() {
    // Ten callers whose answers take 102 ms have three answers each in the first half of half a second and two in the second, in
    // every trial; answers of 10 ms have one in fifty more.
    let locked = |first: u64, second: u64| {
        let mut tenths = vec![first / 5; 5];
        tenths.extend([second / 5; 5]);
        let n = first + second;
        Measurement { concurrency: 10, edges: Some(0.0), tenths, ..measurement(n, 5e6 / n as f64) }
    };
    let e = found(0.1, |system, _| if system == "a" { locked(250, 240) } else { locked(30, 20) });
    assert!(e.estimates.iter().all(|e| e.warmth.drift.is_none()), "{:?}", e.estimates);
    // As much in one of many more answers is a change.
    let e = found(0.1, |system, _| if system == "a" { locked(250, 240) } else { locked(3000, 2000) });
    assert_eq!(e.estimates[1].warmth.drift, Some((2.0_f64 / 3.0).ln()));
}

#[test]
fn what_makes_an_interval_wide_is_warned_of_though_the_verdict_is_decided() {
    let mut rng = SplitMix64::new(3);
    let mut outcome = |change: f64| {
        let e = found(0.5, |system, _| match system {
            "a" => drifting(100.0, 1.0, &mut rng),
            _ => drifting(100_000.0, change, &mut rng),
        });
        let [c] = e.comparisons else { panic!("{:?}", e.comparisons) };
        let ratio = c.ratio.expect("three rounds");
        let concerned = e.warnings.iter().find(|warning| warning.code == Code::SpeedChanges);
        (c.verdict.is_decided(), ratio.high / ratio.low, concerned.map(|warning| warning.scenarios.clone()))
    };
    let (decided, wide, warned) = outcome(1.4);
    assert!(decided && wide > 20.0, "{wide}");
    assert!(warned.is_some_and(|of| of.len() == 1 && of[0].starts_with('b')));
    let (decided, narrow, warned) = outcome(1.0);
    assert!(decided && narrow < 5.0 && warned.is_none(), "{narrow}");
}

#[test]
fn a_machine_whose_compilers_still_work_has_no_verdict() {
    let mut rng = SplitMix64::new(4);
    let mut outcome = |share: f64, warmup_s: f64| {
        let e = found(warmup_s, |system, _| {
            let per_s = if system == "a" { 1000.0 } else { 3000.0 };
            let mut m = drifting(per_s, 1.0, &mut rng);
            m.system.cpu_s = 0.9;
            m.system.compiled_s = (system == "b").then_some(0.9 * share);
            m
        });
        let (verdict, why, _) = judged(&e, 3.0);
        (verdict.is_decided(), why)
    };
    // A plateau: the speed stands still in the windows, and better code is being made.
    assert_eq!(outcome(0.2, 4.0), (false, Some(Withheld::Compiling)));
    // A warm machine compiles a little now and then.
    assert_eq!(outcome(0.03, 4.0), (true, None));
    // Without a warm-up, a cold machine is what is measured.
    assert_eq!(outcome(0.2, 0.0), (true, None));
}
