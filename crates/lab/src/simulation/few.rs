//! What few rounds find, and how often they are wrong: several values of a knob, examined once after three or four rounds.
//! The noise is that of a shared machine, or normal; rows may differ in theirs.

use std::sync::OnceLock;

use stats::{Noise, SplitMix64, Verdict};

use super::sample::{add, at_least, at_most, runs};
use super::{RUNS, Rounds, fast_reference, plan, run, value_rule};
use crate::session::{Fake, Rule};

/// One value of several is `better` times as good as the default.
#[derive(Clone, Copy)]
pub(super) struct Trial {
    pub rounds: Rounds,
    pub values: i64,
    pub better: f64,
    pub noise: Noise,
    pub noisier: Noisier,
}

/// How the noise of rows differs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Noisier {
    /// All rows are equally noisy.
    None,
    /// The logarithms of their standard deviations vary with this standard deviation.
    LogNormal(f64),
    /// Only the default is, by this factor.
    Default(f64),
}

/// The shares of runs in which the better value is found, in which any equal value is called different, and in which the
/// interval of the better value contains the truth.
pub(super) struct Found {
    pub found: f64,
    pub false_claims: f64,
    pub held: f64,
}

impl Noisier {
    fn factor(self, value: i64, rng: &mut SplitMix64) -> f64 {
        match self {
            Self::None => 1.0,
            Self::LogNormal(spread) => (spread * rng.normal()).exp(),
            Self::Default(factor) => {
                if value == 0 {
                    factor
                } else {
                    1.0
                }
            }
        }
    }
}

impl Trial {
    pub fn on_shared_machine(rounds: Rounds, values: i64, better: f64) -> Self {
        Self { rounds, values, better, noise: Noise::SHARED_MACHINE, noisier: Noisier::None }
    }

    pub fn simulate(self) -> Found {
        let Self { rounds, values, better, noise, noisier } = self;
        let mut found = Found { found: 0.0, false_claims: 0.0, held: 0.0 };
        for seed in 0..runs(RUNS) {
            let mut rng = SplitMix64::new(seed + 5_000_000);
            let mut rules: Vec<Rule> = (0..values)
                .map(|value| Rule {
                    noisier: Some(noisier.factor(value, &mut rng)),
                    ..value_rule(value, if value == 1 { better } else { 1.0 })
                })
                .collect();
            rules.push(fast_reference());
            let fake = Fake::new(1e6, rules, noise, seed + 1_000_000);
            let ended = run(plan(values, rounds, seed), fake, better);
            let (comparisons, first) = (&ended.found, &ended.found[0]);
            let claimed =
                |c: &crate::findings::Comparison| matches!(c.verdict, Verdict::Faster | Verdict::Slower);
            add(RUNS, &mut found.found, first.verdict == Verdict::Faster);
            let from = usize::from(better != 1.0);
            add(RUNS, &mut found.false_claims, comparisons[from..].iter().any(claimed));
            add(RUNS, &mut found.held, first.ratio.is_some_and(|r| (r.low..=r.high).contains(&better)));
        }
        found
    }
}

/// What is required: rounds, values, the truth, and the share of runs that find it.
pub(super) const REQUIRED: [(u32, i64, f64, f64); 7] = [
    (3, 6, 1.3, 0.72),
    (3, 6, 2.0, 0.86),
    (3, 6, 5.0, 0.98),
    (4, 6, 1.3, 0.77),
    (4, 6, 2.0, 0.98),
    (3, 2, 1.3, 0.80),
    (3, 2, 2.0, 0.97),
];

/// A share of 2,000 runs varies by so much.
const PLAY: f64 = 0.03;

/// What was found of [`REQUIRED`], in its order.
pub(super) fn found() -> &'static [Found] {
    static FOUND: OnceLock<Vec<Found>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let simulate = |(rounds, values, better, _)| {
            Trial::on_shared_machine(Rounds::Fixed(rounds), values, better).simulate()
        };
        REQUIRED.into_iter().map(simulate).collect()
    })
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn few_rounds_find_what_is_large() {
    for ((rounds, values, better, least), found) in REQUIRED.into_iter().zip(found()) {
        let at = format!("{rounds} rounds, {values} values, {better}x");
        assert!(at_least(found.found, least - PLAY, RUNS), "{at}: {}", found.found);
        assert!(at_most(found.false_claims, 0.05, RUNS), "{at}: {}", found.false_claims);
    }
}

const NORMAL: Noise = Noise { spread: 0.08, ..Noise::NONE };

/// The noise in which equal values are compared: its name, the noise, how rows differ, and the share of runs that may be
/// wrong.
pub(super) const EQUAL: [(&str, Noise, Noisier, f64); 4] = [
    ("that of a shared machine", Noise::SHARED_MACHINE, Noisier::None, 0.05),
    ("normal, 8 %", NORMAL, Noisier::None, 0.05),
    ("normal, the rows' spreads vary by a factor of ten", NORMAL, Noisier::LogNormal(0.7), 0.05),
    ("normal, the default is ten times noisier", NORMAL, Noisier::Default(10.0), 0.07),
];

/// The rounds and values with which equal values are compared.
pub(super) const SIZES: [(u32, i64); 3] = [(3, 3), (3, 6), (6, 6)];

/// What was found of [`EQUAL`] with each of [`SIZES`], in their order.
pub(super) fn equal() -> &'static [Vec<Found>] {
    static FOUND: OnceLock<Vec<Vec<Found>>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let simulate = |(_, noise, noisier, _)| {
            let sizes = SIZES.into_iter().map(|(rounds, values)| {
                let rounds = Rounds::Fixed(rounds);
                Trial { rounds, values, better: 1.0, noise, noisier }.simulate()
            });
            sizes.collect()
        };
        EQUAL.into_iter().map(simulate).collect()
    })
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn few_rounds_are_rarely_wrong() {
    for ((name, _, _, most), found) in EQUAL.iter().zip(equal()) {
        for ((rounds, values), found) in SIZES.iter().zip(found) {
            let at = format!("{name}, {rounds} rounds of {values} values");
            assert!(at_most(found.false_claims, most + 0.01, RUNS), "{at}: {}", found.false_claims);
            assert!(at_least(found.held, 0.92, RUNS), "{at}: {}", found.held);
        }
    }
}

/// Predictions of further rounds: how many were made, and how many came true when so many were added.
fn predictions(values: i64, better: f64, noise: Noise) -> [u32; 2] {
    let mut counts = [0, 0];
    for seed in 0..runs(RUNS / 4) {
        // The same trials, and more of them.
        let verdict = |rounds: u32| {
            let rules = vec![value_rule(1, better), fast_reference()];
            let fake = Fake::new(1e6, rules, noise, seed + 1_000_000);
            run(plan(values, Rounds::Fixed(rounds), seed), fake, better).found[0].verdict
        };
        if let Verdict::Undecided { more_rounds: Some(more @ ..=40) } = verdict(3) {
            counts[0] += 1;
            counts[1] += u32::from(verdict(3 + more).is_decided());
        }
    }
    counts
}

/// The predictions for a mixture of truths, in noise of 8 and of 20 percent: made, and come true.
pub(super) fn predicted() -> &'static [(f64, [u32; 2])] {
    static PREDICTED: OnceLock<Vec<(f64, [u32; 2])>> = OnceLock::new();
    PREDICTED.get_or_init(|| {
        let of_spread = |spread: f64| {
            let noise = Noise { spread, ..NORMAL };
            let truths = [(2, 1.0), (2, 1.05), (2, 1.1), (6, 1.3), (6, 2.0)];
            let all = truths.map(|(values, better)| predictions(values, better, noise));
            (spread, all.into_iter().fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]))
        };
        [0.08, 0.2].map(of_spread).to_vec()
    })
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn predicted_rounds_decide_in_at_least_half_of_the_cases() {
    for (spread, [made, come_true]) in predicted() {
        let right = f64::from(*come_true) / f64::from(*made);
        assert!(u64::from(*made) > runs(100), "{spread}: {made}");
        assert!(at_least(right, 0.5, RUNS / 4), "{spread}: {right} of {made}");
    }
}
