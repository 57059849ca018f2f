//! Verifies comparisons of two runs on different occasions: how often equal runs are called different although their rounds
//! agree, and what is found, with what earlier runs of the same question show.

use std::sync::OnceLock;

use stats::{Noise, SplitMix64, Verdict};
use systems::{Point, Value};

use super::sample::{add, at_least, at_most, runs};
use super::{Rounds, chosen, fast_reference, plan};
use crate::compare::{Chosen, History, RunComparison, compare};
use crate::session::{Fake, Rule};

/// The simulated pairs of runs of each case.
const PAIRS: u64 = 600;

/// The rounds of a run.
const ROUNDS: u32 = 10;

/// How many times better the second run truly is.
pub(super) const TRUTHS: [f64; 4] = [1.0, 1.05, 1.1, 1.2];

/// The name of the noise, the noise, the earlier runs, and the standard deviation between runs.
type Case = (&'static str, Noise, usize, f64);

/// The cases of the table.
pub(super) const CASES: [Case; 9] = [
    (SHARED, Noise::SHARED_MACHINE, 5, 0.0),
    (SHARED, Noise::SHARED_MACHINE, 5, 0.01),
    (SHARED, Noise::SHARED_MACHINE, 5, 0.02),
    (SHARED, Noise::SHARED_MACHINE, 5, 0.03),
    (SHARED, Noise::SHARED_MACHINE, 5, 0.05),
    (SHARED, Noise::SHARED_MACHINE, 10, 0.01),
    (SHARED, Noise::SHARED_MACHINE, 10, 0.03),
    (NORMAL, FIVE, 5, 0.03),
    (NORMAL, FIVE, 5, 0.05),
];

const SHARED: &str = "that of a shared machine";
const NORMAL: &str = "normal, 5 %";
const FIVE: Noise = Noise { spread: 0.05, ..Noise::NONE };

/// What comparisons of two runs found, as shares of them.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// The runs are equal, and their own rounds are believed: a difference is claimed.
    pub within_run: f64,
    /// The runs are equal: a difference is claimed.
    pub false_claims: f64,
    /// The second is so much better: it is called faster, by truth.
    pub found: [f64; TRUTHS.len()],
    /// It is called slower.
    pub slower: f64,
    /// The interval holds the truth.
    pub held: f64,
}

/// What is found in each of the cases.
pub(super) fn compared() -> &'static [Compared] {
    static COMPARED: OnceLock<Vec<Compared>> = OnceLock::new();
    COMPARED.get_or_init(|| CASES.iter().map(of_case).collect())
}

fn of_case((_, noise, earlier, spread): &Case) -> Compared {
    let mut all = Compared::default();
    let claims = |found: &RunComparison| {
        found.matched.iter().any(|m| matches!(m.verdict, Verdict::Faster | Verdict::Slower))
    };
    for pair in 0..runs(PAIRS) {
        let mut occasions = SplitMix64::new(pair + 7_000_000);
        let mut run = |number: usize| one_run(*noise, *spread, pair * 100 + number as u64, &mut occasions);
        let runs: Vec<Chosen> = (0..*earlier).map(&mut run).collect();
        let second = run(*earlier);
        let first = runs[*earlier - 1].clone();
        let history = History { runs, first_is_later: false };
        add(PAIRS, &mut all.within_run, claims(&compare(&first, &second, None)));
        for (truth, found_so) in TRUTHS.iter().zip(&mut all.found) {
            let found = compare(&first, &improved(&second, *truth), Some(&history));
            let of_value = &found.matched[1];
            add(PAIRS, found_so, of_value.verdict == Verdict::Faster);
            if *truth == 1.0 {
                add(PAIRS, &mut all.false_claims, claims(&found));
                add(PAIRS, &mut all.held, of_value.ratio.is_some_and(|r| (r.low..=r.high).contains(truth)));
            } else {
                add(3 * PAIRS, &mut all.slower, of_value.verdict == Verdict::Slower);
            }
        }
    }
    all
}

/// A run of two values of a knob beside the reference. What its hour does to each value holds for all of its rounds.
fn one_run(noise: Noise, spread: f64, seed: u64, occasions: &mut SplitMix64) -> Chosen {
    let of_value = |value: i64| {
        let point = Point::from([("knob".to_owned(), Value::Integer(value))]);
        let system = Some("s".to_owned());
        Rule { system, point, better: Some((spread * occasions.normal()).exp()), ..Rule::default() }
    };
    let rules = (0..2).map(of_value).chain([fast_reference()]).collect();
    let fake = Fake::new(1e6, rules, noise, seed + 1_000_000);
    chosen(&plan(2, Rounds::Fixed(ROUNDS), seed), fake, seed)
}

/// The same run, in which value 1 is so many times as good.
fn improved(run: &Chosen, better: f64) -> Chosen {
    let mut run = run.clone();
    let estimates =
        run.findings.experiments.iter_mut().flat_map(|e| &mut e.figures).flat_map(|e| &mut e.estimates);
    let value =
        estimates.filter(|e| e.scenario.system == "s" && e.scenario.point["knob"] == Value::Integer(1));
    value.flat_map(|estimate| estimate.by_round.values_mut()).for_each(|figure| *figure *= better);
    run
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn equal_runs_on_different_occasions_are_rarely_called_different() {
    for ((noise, _, earlier, spread), found) in CASES.iter().zip(compared()) {
        let what = format!("{noise}, {earlier} earlier runs, {spread}: {found:?}");
        assert!(at_most(found.false_claims, 0.05, PAIRS) && at_least(found.held, 0.95, PAIRS), "{what}");
        assert!(at_most(found.slower, 0.01, PAIRS), "{what}");
    }
}
