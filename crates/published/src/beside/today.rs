//! Which shapes today's rounds decide. Ratios are taken within rounds, and the intervals of one shape hold together.
//!
//! As with verdicts, nothing is claimed within the noise floor, and a shape is undecided if its interval does not
//! decide it.

use stats::Design;

use super::{FLAT, SAME_SIZE};
use lab::experiment::Figure;
use lab::findings::{Estimate, NoiseFloor, Ratio, log_ratios};

/// How today's rows are compared.
pub(super) struct Today {
    pub figure: Figure,
    design: Design,
    /// The logarithm of the smallest difference that the run can claim.
    floor: Option<f64>,
}

impl Today {
    pub fn new(figure: Figure, design: Design, floor: Option<&NoiseFloor>) -> Self {
        Self { figure, design, floor: floor.map(|floor| floor.smallest.ln()) }
    }

    /// How many times better `a` is than `b`. The interval holds together with those of all `several` ratios of a
    /// shape, and is at least as wide as the noise floor. None with fewer than three rounds or without a noise floor.
    pub fn ratio(&self, a: &Estimate, b: &Estimate, several: usize) -> Option<Ratio> {
        let compared = self.design.compare(&log_ratios(self.figure, &a.by_round, &b.by_round))?;
        let (low, high) = compared.location.interval(self.design.level(several));
        let (estimate, floor) = (compared.location.estimate, self.floor?);
        Some(Ratio::of_logs(estimate, low.min(estimate - floor), high.max(estimate + floor)))
    }
}

/// Whether the true ratio is between two bounds. None if the interval does not decide it.
pub(super) fn within(ratio: Option<Ratio>, (low, high): (f64, f64)) -> Option<bool> {
    let ratio = ratio?;
    match () {
        () if ratio.low >= low && ratio.high <= high => Some(true),
        () if ratio.high < low || ratio.low > high => Some(false),
        () => None,
    }
}

/// Combines answers: false if any is false, otherwise None if any is undecided.
pub(super) fn all(answers: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let answers: Vec<Option<bool>> = answers.into_iter().collect();
    match () {
        () if answers.contains(&Some(false)) => Some(false),
        () if answers.contains(&None) => None,
        () => Some(true),
    }
}

/// Which of two is ahead: 1 for the first, -1 for the second, 0 for neither.
pub(super) fn side(ratio: f64) -> i8 {
    i8::from(ratio > FLAT) - i8::from(ratio < 1.0 / FLAT)
}

/// Whether the same one is ahead today, or both are level as they were then.
pub(super) fn same_side(then: f64, now: Option<Ratio>) -> Option<bool> {
    let level = within(now, (1.0 / FLAT, FLAT));
    match side(then) {
        0 => level,
        _ if level == Some(true) => Some(false),
        1 => within(now, (1.0, f64::INFINITY)),
        _ => within(now, (0.0, 1.0)),
    }
}

/// Whether a factor has the size of the published ones: flat if they were, or else within their widened range.
pub(super) fn same_size(then: (f64, f64), now: Option<Ratio>) -> Option<bool> {
    let range = if then.1 < FLAT { (1.0 / FLAT, FLAT) } else { (then.0 / SAME_SIZE, then.1 * SAME_SIZE) };
    within(now, range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(low: f64, high: f64) -> Option<Ratio> {
        Some(Ratio { estimate: (low * high).sqrt(), low, high })
    }

    #[test]
    fn a_comparison_is_open_if_its_interval_allows_both_sides() {
        let table = [
            // Then, today's interval, on the same side?
            (2.0, ratio(1.1, 3.0), Some(true)),
            (2.0, ratio(0.9, 3.0), None),
            (2.0, ratio(0.5, 0.9), Some(false)),
            (2.0, ratio(0.98, 1.02), Some(false)),
            (2.0, None, None),
            (0.5, ratio(0.3, 0.9), Some(true)),
            (0.5, ratio(1.1, 3.0), Some(false)),
            (1.0, ratio(0.98, 1.02), Some(true)),
            (1.0, ratio(0.9, 1.02), None),
            (1.0, ratio(1.1, 1.2), Some(false)),
        ];
        for (then, now, expected) in table {
            assert_eq!(same_side(then, now), expected, "{then} {now:?}");
        }
        assert_eq!(same_size((6.0, 9.0), ratio(5.0, 8.0)), Some(true));
        assert_eq!(same_size((6.0, 9.0), ratio(2.0, 8.0)), None);
        assert_eq!(same_size((6.0, 9.0), ratio(1.0, 3.0)), Some(false));
        assert_eq!(same_size((1.0, 1.01), ratio(1.0, 1.03)), Some(true));
        assert_eq!(same_size((1.0, 1.01), ratio(1.1, 1.3)), Some(false));
    }

    #[test]
    fn one_contradiction_decides_and_one_open_case_leaves_all_open() {
        assert_eq!(all([]), Some(true));
        assert_eq!(all([Some(true), Some(true)]), Some(true));
        assert_eq!(all([Some(true), None]), None);
        assert_eq!(all([None, Some(false), Some(true)]), Some(false));
    }
}
