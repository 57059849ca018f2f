//! How often the interval of a row's figure holds the figure, if the machine drifts: from round to round anew, or slowly.

use std::sync::OnceLock;

use stats::{Disturbances, Noise, SplitMix64};

use super::sample::{add, at_least, runs};
use super::{arm_rule, arms, observed};
use crate::findings::findings;
use crate::plan::Plan;
use crate::session::{Fake, Rule};

/// The number of simulated runs for each line of the table.
const RUNS: u64 = 1000;

/// The figure of the base on a machine that does not drift.
const FIGURE: f64 = 1e6;

/// What each trial's noise is, by itself.
const NOISE: Noise = Noise { spread: 0.03, ..Noise::NONE };

/// The drifts and the numbers of rounds of the table.
pub(super) const DRIFTS: [f64; 3] = [0.0, 0.1, 0.2];
pub(super) const LENGTHS: [u32; 4] = [3, 5, 10, 20];

/// The shares of runs in which the interval of the base's figure holds the truth.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Coverage {
    /// Each round is as fast as chance makes it, and the truth is the mean of all rounds that there could be.
    pub each_round: f64,
    /// The machine swings slowly, and the truth is its mean while the run lasted.
    pub of_the_run: f64,
    /// The same, and the truth is its mean over hours.
    pub of_hours: f64,
}

/// Whether the interval of the base's figure holds each of these truths.
fn holds<const N: usize>(plan: &Plan, fake: Fake, truths: [f64; N]) -> [bool; N] {
    let seen = observed(plan, fake);
    let all = findings(plan, &seen);
    let found = all.views().next().unwrap();
    let base = &found.estimates[0];
    assert!(base.scenario == found.setup.base.as_ref().unwrap().scenario);
    let (low, high) = base.interval.unwrap();
    truths.map(|truth| (low..=high).contains(&truth))
}

/// What the arms are beside the base.
fn others() -> Vec<Rule> {
    vec![arm_rule(1, 1.1), arm_rule(2, 0.7)]
}

fn simulate(drift: f64, rounds: u32) -> Coverage {
    let mut held = Coverage::default();
    for seed in 0..runs(RUNS) {
        let plan = arms(3, rounds, seed);
        let mut rng = SplitMix64::new(seed + 7_000_000);
        let round = |round| Rule {
            rounds: Some(vec![round]),
            better: Some((drift * rng.normal()).exp()),
            ..Rule::default()
        };
        let rules = others().into_iter().chain((0..rounds).map(round)).collect();
        let [each] = holds(&plan, Fake::new(FIGURE, rules, NOISE, seed + 1_000_000), [FIGURE]);
        add(RUNS, &mut held.each_round, each);

        let slow = Noise { drift, ..NOISE };
        // The swing alone has the phase of the same seed.
        let mut swing = Disturbances::new(Noise { spread: 0.0, ..slow }, seed + 1_000_000);
        let slower: f64 = plan.trials.iter().map(|_| swing.next_log()).sum();
        let of_the_run = FIGURE * (-slower / plan.trials.len() as f64).exp();
        let of_hours = FIGURE / (1.0 + drift).sqrt();
        let fake = Fake::new(FIGURE, others(), slow, seed + 1_000_000);
        let [run, hours] = holds(&plan, fake, [of_the_run, of_hours]);
        add(RUNS, &mut held.of_the_run, run);
        add(RUNS, &mut held.of_hours, hours);
    }
    held
}

/// What was found, by drift and rounds.
pub(super) fn held() -> &'static [(f64, u32, Coverage)] {
    static HELD: OnceLock<Vec<(f64, u32, Coverage)>> = OnceLock::new();
    HELD.get_or_init(|| {
        let cases = DRIFTS.into_iter().flat_map(|drift| LENGTHS.map(|rounds| (drift, rounds)));
        cases.map(|(drift, rounds)| (drift, rounds, simulate(drift, rounds))).collect()
    })
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn the_interval_of_a_figure_holds_what_the_machine_gave() {
    for (drift, rounds, held) in held() {
        let often = [held.each_round, held.of_the_run].iter().all(|share| at_least(*share, 0.93, RUNS));
        assert!(often, "{drift} {rounds}: {held:?}");
    }
}
