//! Interim looks: when to look at comparisons that grow round by round, and what may be claimed at each look.
//!
//! This is a group-sequential design with a constant nominal level (Pocock, "Group sequential methods in the design and
//! analysis of clinical trials", Biometrika 64, 1977). Its intervals are valid at all looks together: they are repeated
//! confidence intervals (Jennison and Turnbull, "Group Sequential Methods with Applications to Clinical Trials", 2000,
//! chapter 9). It does not spend its error late (Lan and DeMets, Biometrika 70, 1983), because the effects that matter
//! here, such as a knob that costs a factor of ten, show after three rounds and should be found then.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Location;

/// The probability with which a statement may be wrong: 1 in 20.
pub const LEVEL: f64 = 0.05;

/// The rounds after which a run without a fixed number of rounds is examined. It ends at the last.
pub const LOOKS: [u32; 8] = [3, 4, 6, 9, 14, 19, 29, 39];

/// The level at each look for which any of the [`LOOKS`] errs with probability [`LEVEL`]. The statistics at the looks do
/// not depend on scale or truth, so this is a constant. It was found with 10^6 simulated runs, and a test verifies it.
/// Heavier tails than the normal distribution's make errors rarer.
pub const NOMINAL: f64 = 0.0078;

/// The fewest rounds of a comparison. Fewer give no estimate.
pub const FEWEST_ROUNDS: usize = 3;

/// How often a comparison is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// Once, after a number of rounds that was chosen in advance.
    Once,
    /// At every one of the [`LOOKS`] that is reached. The run may stop at each.
    AtEachLook,
}

/// The log-ratio that a comparison has estimated so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogRatio {
    /// The estimate and its error, from all rounds.
    pub location: Location,
    /// The lower end of the interval that covers the truth with probability 1 - [`LEVEL`], for all looks so far together.
    pub low: f64,
    /// The upper end of that interval.
    pub high: f64,
    /// The smallest p-value of all looks, corrected for their number.
    pub p: f64,
}

impl Design {
    /// Estimates the log-ratio from `(round, log-ratio)` pairs in ascending order of round. None if there are fewer than
    /// [`FEWEST_ROUNDS`].
    pub fn compare(self, rounds: &[(u32, f64)]) -> Option<LogRatio> {
        let numbers: Vec<f64> = rounds.iter().map(|(_, ratio)| *ratio).collect();
        let first = |n: usize| Location::of(&numbers[..n]).filter(|_| n >= FEWEST_ROUNDS);
        let location = first(numbers.len())?;
        let least = match self {
            Self::Once => location.p(),
            Self::AtEachLook => {
                let mut seen: Vec<usize> =
                    LOOKS.iter().map(|look| rounds.partition_point(|(round, _)| round < look)).collect();
                seen.push(numbers.len());
                seen.dedup(); // a look without new rounds does not count
                seen.into_iter().filter_map(first).map(|l| l.p()).fold(1.0, f64::min)
            }
        };
        let (low, high) = location.interval(self.level(1));
        Some(LogRatio { location, low, high, p: self.corrected(least) })
    }

    /// The level that each of `several` intervals needs so that all of them hold together, at all looks.
    pub fn level(self, several: usize) -> f64 {
        match (self, several) {
            (Self::AtEachLook, 0 | 1) => NOMINAL,
            _ => LEVEL / self.looks() / several.max(1) as f64,
        }
    }

    /// Corrects the smallest p-value of all looks for their number. Uses Bonferroni, because [`NOMINAL`] holds for one level
    /// only, and a correction for several comparisons (Holm) needs all levels.
    pub fn corrected(self, p: f64) -> f64 {
        (p * self.looks()).min(1.0)
    }

    fn looks(self) -> f64 {
        if self == Self::Once { 1.0 } else { LOOKS.len() as f64 }
    }

    /// The number of rounds at the next look; None if there is none.
    pub fn next_look(self, rounds: u32) -> Option<u32> {
        match self {
            Self::Once => None,
            Self::AtEachLook => LOOKS.into_iter().find(|look| *look > rounds),
        }
    }
}

/// Corrects the p-values of statements that are made together, so that the probability of any error is that of a single
/// statement (Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6, 1979). The result is
/// in the order of the input.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let (mut corrected, mut largest) = (vec![1.0; p.len()], 0.0_f64);
    for (rank, index) in order.into_iter().enumerate() {
        largest = largest.max(p[index] * (p.len() - rank) as f64).min(1.0);
        corrected[index] = largest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::SplitMix64;

    fn rounds(numbers: &[f64]) -> Vec<(u32, f64)> {
        (0..).zip(numbers.iter().copied()).collect()
    }

    /// The share of `runs` simulated runs (no difference, normal noise) in which some look denies the truth.
    fn wrong(runs: u64, nominal: f64) -> f64 {
        let most = *LOOKS.last().unwrap() as usize;
        let mut rng = SplitMix64::new(1);
        let one = |rng: &mut SplitMix64| {
            let numbers: Vec<f64> = (0..most).map(|_| rng.normal()).collect();
            LOOKS.iter().any(|look| Location::of(&numbers[..*look as usize]).unwrap().p() <= nominal)
        };
        (0..runs).filter(|_| one(&mut rng)).count() as f64 / runs as f64
    }

    #[test]
    fn the_nominal_level_is_what_the_looks_need() {
        // The standard error is 0.13 percentage points; the bounds are three of them to either side.
        let share = wrong(30_000, NOMINAL);
        assert!((0.0455..=0.0535).contains(&share), "{share}");
    }

    #[test]
    #[ignore = "prints the table that NOMINAL is taken from"]
    fn nominal_levels() {
        for level in [0.0070, 0.0075, 0.008, 0.0085, 0.009, 0.01] {
            println!("{level}: {:.5}", wrong(1_000_000, level));
        }
    }

    #[test]
    fn fewer_than_three_rounds_give_no_estimate() {
        for design in [Design::Once, Design::AtEachLook] {
            assert_eq!(design.compare(&rounds(&[])), None);
            assert_eq!(design.compare(&rounds(&[1.0, 1.1])), None);
            assert!(design.compare(&rounds(&[1.0, 1.1, 0.9])).is_some());
        }
    }

    #[test]
    fn a_look_keeps_the_result_of_an_earlier_one() {
        let clear = [1.0, 1.001, 0.999];
        let early = Design::AtEachLook.compare(&rounds(&clear)).unwrap();
        let muddied = [&clear[..], &[-3.0, 2.0, -2.5]].concat();
        let later = Design::AtEachLook.compare(&rounds(&muddied)).unwrap();
        assert!(early.p < 1e-4 && later.p == early.p && later.low < 0.0);
        assert!(Design::Once.compare(&rounds(&muddied)).unwrap().p > 0.05);
        // Looking has a price: the same rounds give a wider interval.
        let once = Design::Once.compare(&rounds(&clear)).unwrap();
        assert!(early.low < once.low && early.high > once.high && early.p > once.p);
    }

    #[test]
    fn rounds_that_a_comparison_missed_are_not_looks() {
        // It stopped after round 4 and continued at 20, so the looks are those at 3, 4, 29 and now.
        let ratios = [0, 1, 2, 3, 20, 21, 22, 30].map(|round| (round, f64::from(round % 3)));
        let known = Design::AtEachLook.compare(&ratios).unwrap();
        let p = |n: usize| Location::of(&ratios[..n].iter().map(|x| x.1).collect::<Vec<_>>()).unwrap().p();
        let least = [3, 4, 7, 8].map(p).into_iter().fold(1.0, f64::min);
        assert!((known.p - (least * LOOKS.len() as f64).min(1.0)).abs() < 1e-12);
    }

    #[test]
    fn looks_follow_each_other() {
        let mut rounds = 0;
        let mut looks = Vec::new();
        while let Some(next) = Design::AtEachLook.next_look(rounds) {
            looks.push(next);
            rounds = next;
        }
        assert_eq!(looks, LOOKS);
        assert_eq!(Design::Once.next_look(3), None);
    }

    #[test]
    fn holm_by_hand() {
        assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
        assert_eq!(holm(&[0.5, 0.6]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn holm_only_raises_and_keeps_the_order(p in proptest::collection::vec(0.0..1.0_f64, 0..20)) {
            let corrected = holm(&p);
            for (i, a) in p.iter().enumerate() {
                prop_assert!(corrected[i] >= *a && corrected[i] <= 1.0);
                for (j, b) in p.iter().enumerate() {
                    prop_assert!(a > b || corrected[i] <= corrected[j]);
                }
            }
        }
    }
}
