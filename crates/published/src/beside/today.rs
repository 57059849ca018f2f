//! Which shapes today's rounds decide. Ratios are taken within rounds, and the intervals of one shape hold together.
//!
//! As with verdicts, a shape is undecided if its interval does not decide it.

use super::{FLAT, SAME_SIZE};
use lab::experiment::Figure;
use lab::findings::{Estimate, FigureView, Range, Ratio, Rows};

/// How today's rows are compared.
pub(super) struct Today<'a> {
    pub figure: Figure,
    estimates: &'a [Estimate],
    rows: Rows,
}

impl<'a> Today<'a> {
    pub fn new(found: &'a FigureView<'a>) -> Self {
        Self { figure: found.figure, estimates: found.estimates, rows: Rows::of(found) }
    }

    /// How many times better `a` is than `b`. The interval holds together with those of all `several` ratios of a shape.
    /// None with fewer than three rounds.
    pub fn ratio(&self, a: &Estimate, b: &Estimate, several: usize) -> Option<Ratio> {
        let position = |e: &Estimate| self.estimates.iter().position(|known| known.scenario == e.scenario);
        self.rows.ratio_among(position(a)?, position(b)?, several)
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
pub(super) fn same_size(then: Range, now: Option<Ratio>) -> Option<bool> {
    let flat = then.high < FLAT;
    let range = if flat { (1.0 / FLAT, FLAT) } else { (then.low / SAME_SIZE, then.high * SAME_SIZE) };
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
        let range = |low, high| Range { low, high };
        assert_eq!(same_size(range(6.0, 9.0), ratio(5.0, 8.0)), Some(true));
        assert_eq!(same_size(range(6.0, 9.0), ratio(2.0, 8.0)), None);
        assert_eq!(same_size(range(6.0, 9.0), ratio(1.0, 3.0)), Some(false));
        assert_eq!(same_size(range(1.0, 1.01), ratio(1.0, 1.03)), Some(true));
        assert_eq!(same_size(range(1.0, 1.01), ratio(1.1, 1.3)), Some(false));
    }

    #[test]
    fn one_contradiction_decides_and_one_open_case_leaves_all_open() {
        assert_eq!(all([]), Some(true));
        assert_eq!(all([Some(true), Some(true)]), Some(true));
        assert_eq!(all([Some(true), None]), None);
        assert_eq!(all([None, Some(false), Some(true)]), Some(false));
    }
}
