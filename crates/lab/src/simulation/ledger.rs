//! Sessions of attempts with the p-values that real comparisons give, under noise like that of a shared machine.

use stats::{CONFIRMATION_LEVEL, Decision, LEVEL, Ledger, Noise, SplitMix64};

use super::sample::{at_least, at_most, runs, share};
use super::{arm_rule, arms, observed};
use crate::findings::findings;
use crate::session::Fake;

/// The rounds of an attempt, and those that confirm it: what fits into a minute.
const ROUNDS: u32 = 16;

/// So small a threshold rejects nothing, and all errors remain.
const THRESHOLD: f64 = 0.001;

const NORMAL: Noise = Noise { spread: 0.02, ..Noise::NONE };

/// The p-values of so many attempts whose candidate is so many times as good.
fn p_values(noise: Noise, better: f64, runs: u64) -> Vec<f64> {
    let p_value = |seed: u64| {
        let mut plan = arms(2, ROUNDS, seed);
        plan.experiments[0].setup.subject.threshold = THRESHOLD;
        let fake = Fake::new(1e6, vec![arm_rule(1, better)], noise, seed + 1_000_000);
        let found = findings(&plan, &observed(&plan, fake));
        found.views().next().and_then(|e| e.candidate()).unwrap().p
    };
    (0..runs).map(p_value).collect()
}

/// What becomes of each attempt of a session, whose p-values are drawn from these.
fn session<'a>(attempts: impl Iterator<Item = &'a Vec<f64>>, rng: &mut SplitMix64) -> Vec<Decision> {
    let mut ledger = Ledger::default();
    let mut draw = |from: &Vec<f64>| from[(rng.unit() * from.len() as f64) as usize];
    let decide = |from: &'a Vec<f64>| {
        let p = draw(from);
        let fresh = (p <= ledger.level()).then(|| draw(from));
        ledger.record(p, fresh)
    };
    attempts.map(decide).collect()
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn p_values_of_equal_candidates_are_not_too_small_too_often() {
    const RUNS: u64 = 1000;
    for noise in [NORMAL, Noise::SHARED_MACHINE] {
        let p = p_values(noise, 1.0, RUNS);
        for level in [LEVEL, CONFIRMATION_LEVEL] {
            let share = share(&p, |p| *p <= level);
            let error = (level * (1.0 - level) / RUNS as f64).sqrt();
            assert!(share <= level + 3.0 * error, "{noise:?}: {share} at {level}");
        }
        // Half of all look better, and their p-values are below 0.7.
        let low = share(&p, |p| *p < 0.5);
        assert!((0.3..0.42).contains(&low), "{noise:?}: {low}");
    }
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn sessions_accept_what_is_better_and_hardly_anything_else() {
    const SESSIONS: u64 = 2000;
    const BETTER: u64 = 1000;
    let mut rng = SplitMix64::new(1);
    for noise in [NORMAL, Noise::SHARED_MACHINE] {
        let (equal, better) = (p_values(noise, 1.0, runs(5000)), p_values(noise, 1.05, runs(BETTER)));
        let mut share_of = |better_at: Option<usize>, attempts: usize, is: &dyn Fn(&[Decision]) -> bool| {
            let all = || (0..attempts).map(|at| if Some(at) == better_at { &better } else { &equal });
            share(0..runs(SESSIONS), |_| is(&session(all(), &mut rng)))
        };
        let wrong = share_of(None, 200, &|all| all.contains(&Decision::Accept));
        assert!(at_most(wrong, LEVEL, SESSIONS), "{noise:?}: {wrong}");
        for (at, attempts) in [(19, 40), (99, 200)] {
            let found = share_of(Some(at), attempts, &|all| all[at] == Decision::Accept);
            // The sessions draw from so many p-values.
            assert!(at_least(found, 0.8, BETTER), "{noise:?}: {found} at {at} of {attempts}");
        }
    }
}
