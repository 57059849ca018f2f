//! What duets can decide on a noisy machine, and what trials one after the other can.

use stats::{Noise, Verdict};

use super::{arm_rule, arms};
use crate::duet::{Duets, Refusal};
use crate::findings::{Comparison, findings};
use crate::plan::Plan;
use crate::session::{Fake, Rule};

/// Trials beside light work of others, one after the other, and the share of that which the two of a duet do not share. On a machine
/// of two cores, the logarithms of ratios had a standard deviation of 0.2 and of 0.02.
const NOISE: Noise = Noise { spread: 0.14, ..Noise::NONE };
const OWN: f64 = 0.1;
const ROUNDS: u32 = 6;
const RUNS: u64 = 1000;

/// A plan of the base and another arm.
fn plan(duet: bool, count: usize, seed: u64) -> Plan {
    let mut plan = arms(count, 0, seed);
    plan.experiments[0].setup.duet = duet;
    plan.grow(&[(0, ROUNDS)]);
    plan
}

fn compared(duet: bool, better: f64, seed: u64) -> Comparison {
    let plan = plan(duet, 2, seed);
    let fake = Fake::new(1e6, vec![arm_rule(1, better)], NOISE, seed).with_duets(OWN);
    let mut found = findings(&plan, &super::observed(&plan, fake));
    found.experiments[0].figures[0].comparisons.remove(0)
}

/// How often this is true of so many runs, as a share.
fn share(duet: bool, better: f64, is: impl Fn(&Comparison) -> bool) -> f64 {
    (0..RUNS).filter(|seed| is(&compared(duet, better, *seed))).count() as f64 / RUNS as f64
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn duets_keep_the_promise_and_decide_what_single_trials_cannot() {
    let different = |c: &Comparison| matches!(c.verdict, Verdict::Faster | Verdict::Slower);
    assert!(share(true, 1.0, different) <= 0.025);
    for better in [1.0, 1.02, 1.1] {
        let holds = |c: &Comparison| c.ratio.is_some_and(|r| (r.low..=r.high).contains(&better));
        let held = share(true, better, holds);
        assert!(held >= 0.93, "{better}: {held}");
    }
    let faster = |c: &Comparison| c.verdict == Verdict::Faster;
    let (duets, alone) = (share(true, 1.1, faster), share(false, 1.1, faster));
    assert!(duets >= 0.95 && alone <= 0.2, "{duets} of duets, {alone} of trials one after the other");
}

#[test]
fn a_pair_that_is_no_duet_ends_as_trials_that_are_alone() {
    let apart = Rule { refuse: Some(Refusal::Apart { ratio: 2.0 }), ..arm_rule(1, 2.0) };
    let plan = plan(true, 3, 1);
    let fake = Fake::new(1e6, vec![apart], Noise { spread: 0.01, ..Noise::NONE }, 1).with_duets(OWN);
    let found = findings(&plan, &super::observed(&plan, fake)).experiments.remove(0);
    let Some(Duets { refused, not_tried, count, why, .. }) = found.duets else { panic!("it has duets") };
    assert_eq!((refused, count, why), (2, false, Some(Refusal::Apart { ratio: 2.0 })));
    assert!(not_tried > 0);
    let judged: Vec<Verdict> = found.figures[0].comparisons.iter().map(|c| c.verdict).collect();
    assert_eq!(judged, [Verdict::Faster, Verdict::NoDifference]);
    assert!(
        found.figures[0].comparisons.iter().all(|c| c.rounds >= ROUNDS - 1),
        "{:?}",
        found.figures[0].comparisons
    );
}

#[test]
fn each_arm_of_several_is_compared_with_the_base_only() {
    let plan = plan(true, 3, 1);
    let rules = vec![arm_rule(1, 1.1), arm_rule(2, 0.9)];
    let found = findings(&plan, &super::observed(&plan, Fake::new(1e6, rules, NOISE, 1).with_duets(OWN)));
    let found = &found.experiments[0].figures[0];
    let judged: Vec<(usize, usize, u32)> =
        found.comparisons.iter().map(|c| (c.scenario, c.against, c.rounds)).collect();
    assert_eq!(judged, [(1, 0, ROUNDS), (2, 0, ROUNDS)]);
    // A against A shows the noise of duets.
    let floor = found.noise_floor.expect("the base has a twin");
    assert!(floor.smallest < 1.2, "{floor:?}");
}
