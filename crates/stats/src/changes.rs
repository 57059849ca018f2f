//! Where the level of a course of numbers changes.
//!
//! This is E-divisive (Matteson and James, "A nonparametric approach for multiple change point analysis of multivariate data",
//! J. Am. Stat. Assoc. 109, 2014) for single numbers: the place that makes the energy distance between what is before and after it
//! largest, tested by shuffling, and then the same again in each of the two parts. It needs no distribution and no penalty. It
//! takes numbers as independent of each other, so a slow drift is a change, too.

use crate::{SplitMix64, shuffle};

/// The fewest numbers between two changes.
const FEWEST: usize = 3;

/// In fewer numbers [`changes`] finds none. Nine numbers can be split into four and five in 126 ways, and two of these are as far apart
/// as a clear change. That is more than one in a hundred.
pub const FEWEST_TO_CHANGE: usize = 10;

/// How often the numbers are shuffled.
const SHUFFLES: u32 = 999;

/// So often a change may be found where there is none. A course of any length is tested as a whole first, so this holds for all of
/// it together.
const LEVEL: f64 = 0.01;

/// The seed of all shuffles: the same numbers always have the same changes.
const SEED: u64 = 0x6368_616e_6765;

/// A change of the level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The position of the first number after it.
    pub at: usize,
    /// The share of shuffled courses that have a change as large.
    pub p: f64,
}

/// The changes of a course, the first in front. Empty if a number is not finite. The time is quadratic in the numbers, with a factor
/// of a thousand: 300 of them take about 0.1 s for each change.
pub fn changes(numbers: &[f64]) -> Vec<Change> {
    let mut found = Vec::new();
    if numbers.iter().any(|number| !number.is_finite()) {
        return found;
    }
    let mut rng = SplitMix64::new(SEED);
    let mut parts = vec![(0, numbers.len())];
    while let Some((from, to)) = parts.pop() {
        let part = numbers.get(from..to).unwrap_or_default();
        let Some((at, distance)) = farthest(part) else { continue };
        if let Some(p) = significance(part, distance, &mut rng) {
            found.push(Change { at: from + at, p });
            parts.extend([(from, from + at), (from + at, to)]);
        }
    }
    found.sort_by_key(|change| change.at);
    found
}

/// The share of shuffled courses with a distance at least as large. None if it is above [`LEVEL`], which few shuffles show.
fn significance(part: &[f64], distance: f64, rng: &mut SplitMix64) -> Option<f64> {
    let most = (LEVEL * f64::from(SHUFFLES + 1)) as u32;
    let mut shuffled = part.to_vec();
    let mut as_far = 1;
    for _ in 0..SHUFFLES {
        shuffle(&mut shuffled, rng);
        as_far += u32::from(farthest(&shuffled).is_some_and(|(_, other)| other >= distance));
        if as_far > most {
            return None;
        }
    }
    Some(f64::from(as_far) / f64::from(SHUFFLES + 1))
}

/// The place with the largest scaled energy distance between what is before and after it. None if there are too few numbers, or all
/// are equal.
fn farthest(numbers: &[f64]) -> Option<(usize, f64)> {
    let n = numbers.len();
    let apart = |x: f64, others: &[f64]| others.iter().map(|y| (x - y).abs()).sum::<f64>();
    let mut before = 0.0;
    let mut after: f64 =
        numbers.iter().enumerate().map(|(at, x)| apart(*x, numbers.get(..at).unwrap_or_default())).sum();
    let total = after;
    let mut best: Option<(usize, f64)> = None;
    for (at, x) in numbers.iter().enumerate() {
        // The place before this number.
        if at >= FEWEST && n - at >= FEWEST {
            let (m, k) = (at as f64, (n - at) as f64);
            let between = 2.0 * (total - before - after) / (m * k);
            let within = 2.0 * before / (m * (m - 1.0)) + 2.0 * after / (k * (k - 1.0));
            let distance = m * k / (m + k) * (between - within);
            if distance > best.map_or(0.0, |(_, best)| best) {
                best = Some((at, distance));
            }
        }
        before += apart(*x, numbers.get(..at).unwrap_or_default());
        after -= apart(*x, numbers.get(at + 1..).unwrap_or_default());
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RUNS: usize = 30;
    const HISTORIES: usize = 400;

    /// Runs whose level rises by `step` standard errors in the middle.
    fn course(step: f64, rng: &mut SplitMix64) -> Vec<f64> {
        (0..RUNS).map(|at| rng.normal() + if at < RUNS / 2 { 0.0 } else { step }).collect()
    }

    #[test]
    fn a_course_without_a_change_rarely_has_one() {
        let mut rng = SplitMix64::new(1);
        let wrong = (0..HISTORIES).filter(|_| !changes(&course(0.0, &mut rng)).is_empty()).count();
        assert!(wrong as f64 <= 0.05 * HISTORIES as f64, "{wrong} of {HISTORIES}");
    }

    #[test]
    fn a_step_of_three_errors_is_found_where_it_is() {
        let mut rng = SplitMix64::new(2);
        let near = |change: &Change| change.at.abs_diff(RUNS / 2) <= 1;
        let found = (0..HISTORIES).filter(|_| changes(&course(3.0, &mut rng)).iter().any(near)).count();
        assert!(found as f64 >= 0.8 * HISTORIES as f64, "{found} of {HISTORIES}");
    }

    #[test]
    fn several_changes_are_found_in_order() {
        let mut rng = SplitMix64::new(3);
        let level = |at: usize| [0.0, 10.0, 4.0][at / 10];
        let numbers: Vec<f64> = (0..30).map(|at| level(at) + rng.normal()).collect();
        assert_eq!(changes(&numbers).iter().map(|change| change.at).collect::<Vec<_>>(), [10, 20]);
    }

    #[test]
    fn few_numbers_equal_ones_and_those_that_are_none_have_no_change() {
        assert!(changes(&[]).is_empty() && changes(&[0.0, 0.0, 9.0, 9.0]).is_empty());
        assert!(changes(&[1.0; 50]).is_empty());
        let step =
            |n: usize, place: usize| changes(&(0..n).map(|at| f64::from(at >= place)).collect::<Vec<_>>());
        assert!((0..FEWEST_TO_CHANGE).all(|place| step(FEWEST_TO_CHANGE - 1, place).is_empty()));
        assert!((0..FEWEST_TO_CHANGE).any(|place| step(FEWEST_TO_CHANGE, place).len() == 1));
        let mut numbers = [0.0; 40];
        numbers[20..].fill(5.0);
        assert_eq!(changes(&numbers).len(), 1);
        numbers[3] = f64::NAN;
        assert!(changes(&numbers).is_empty());
    }

    proptest! {
        #[test]
        fn changes_are_inside_and_apart(numbers in proptest::collection::vec(-1e300..1e300_f64, 0..40)) {
            let places: Vec<usize> = changes(&numbers).iter().map(|change| change.at).collect();
            let ends = [vec![0], places, vec![numbers.len()]].concat();
            prop_assert!(ends.len() == 2 || ends.windows(2).all(|pair| pair[1] - pair[0] >= FEWEST));
        }
    }
}
