//! Sessions of attempts with the p-values that real comparisons give, which noise like that of a shared
//! machine disturbs.

use stats::{CONFIRMATION_LEVEL, Decision, LEVEL, Ledger, Noise};

use super::{arm_rule, arms, observed};
use crate::findings::findings;
use crate::session::Fake;

/// The rounds of an attempt, and those that confirm it.
const ROUNDS: u32 = 10;

/// The p-value of an attempt whose candidate is so many times as good.
fn p_value(noise: Noise, better: f64, seed: u64) -> f64 {
    let plan = arms(2, ROUNDS, seed);
    let fake = Fake::new(1e6, vec![arm_rule(1, better)], noise, seed + 1_000_000);
    let found = findings(&plan, &observed(&plan, fake));
    found.views().next().and_then(|e| e.candidate()).map_or(1.0, |candidate| candidate.p)
}

/// What becomes of each attempt of a session. `better` is the truth of each.
fn session(noise: Noise, better: &[f64], seed: u64) -> Vec<Decision> {
    let mut ledger = Ledger::default();
    let attempts = (seed * 1000..).step_by(2).zip(better);
    let decide = |(seed, better): (u64, &f64)| {
        let p = p_value(noise, *better, seed);
        let fresh = (p <= ledger.level()).then(|| p_value(noise, *better, seed + 1));
        ledger.record(p, fresh)
    };
    attempts.map(decide).collect()
}

const NORMAL: Noise = Noise { spread: 0.02, ..Noise::NONE };

#[test]
fn p_values_of_equal_candidates_are_not_too_small_too_often() {
    const RUNS: u64 = 2000;
    for noise in [NORMAL, Noise::SHARED_MACHINE] {
        let p: Vec<f64> = (0..RUNS).map(|seed| p_value(noise, 1.0, seed)).collect();
        for level in [LEVEL, CONFIRMATION_LEVEL] {
            let share = p.iter().filter(|p| **p <= level).count() as f64 / RUNS as f64;
            let error = (level * (1.0 - level) / RUNS as f64).sqrt();
            assert!(share <= level + 3.0 * error, "{noise:?}: {share} at {level}");
        }
        assert!(p.iter().any(|p| *p < 0.5) && p.iter().any(|p| *p > 0.5));
    }
}

#[test]
#[ignore = "simulates for long; `make test` runs it"]
fn sessions_accept_what_is_better_and_hardly_anything_else() {
    const SESSIONS: u64 = 200;
    for noise in [NORMAL, Noise::SHARED_MACHINE] {
        let is_wrong = |seed| session(noise, &[1.0; 200], seed).contains(&Decision::Accept);
        let wrong = (0..SESSIONS).filter(|seed| is_wrong(*seed)).count();
        // Three standard errors of 5 % of 200.
        assert!(wrong <= 10 + 9, "{noise:?}: {wrong} of {SESSIONS} sessions");
        let mut truths = [1.0; 40];
        truths[19] = 1.05;
        let finds = |seed| session(noise, &truths, seed).get(19) == Some(&Decision::Accept);
        let found = (0..SESSIONS).filter(|seed| finds(*seed)).count();
        assert!(found >= 160, "{noise:?}: {found} of {SESSIONS} sessions");
    }
}
