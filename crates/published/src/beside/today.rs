//! What of a shape today's rounds decide: ratios inside rounds, with intervals that hold for all that one shape asks.
//!
//! As with verdicts, nothing is claimed within the noise floor, and what an interval leaves open is open.

use stats::Design;

use super::{FLAT, SAME_SIZE};
use lab::experiment::Figure;
use lab::findings::{Estimate, NoiseFloor, Ratio, log_ratios};

/// How today's rows are compared.
pub(super) struct Today {
    pub figure: Figure,
    design: Design,
    /// The smallest difference that the run can claim, as a logarithm.
    floor: Option<f64>,
}

impl Today {
    pub fn new(figure: Figure, design: Design, floor: Option<&NoiseFloor>) -> Self {
        Self { figure, design, floor: floor.map(|floor| floor.smallest.ln()) }
    }

    /// How many times better `a` is than `b`, with an interval that holds together with those of `several` such ratios, and
    /// is no narrower than the noise floor. None without three rounds, or without a floor.
    pub fn ratio(&self, a: &Estimate, b: &Estimate, several: usize) -> Option<Ratio> {
        let compared = self.design.compare(&log_ratios(self.figure, &a.by_round, &b.by_round))?;
        let (low, high) = compared.location.interval(self.design.level(several));
        let (estimate, floor) = (compared.location.estimate, self.floor?);
        Some(Ratio::of_logs(estimate, low.min(estimate - floor), high.max(estimate + floor)))
    }
}

/// Whether the truth lies between these; None where the interval leaves it open.
pub(super) fn within(ratio: Option<Ratio>, (low, high): (f64, f64)) -> Option<bool> {
    let ratio = ratio?;
    match () {
        () if ratio.low >= low && ratio.high <= high => Some(true),
        () if ratio.high < low || ratio.low > high => Some(false),
        () => None,
    }
}

/// Whether all are so: one that is not is enough to know, one that is open leaves it open.
pub(super) fn all(each: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let each: Vec<Option<bool>> = each.into_iter().collect();
    match () {
        () if each.contains(&Some(false)) => Some(false),
        () if each.contains(&None) => None,
        () => Some(true),
    }
}

/// Which of two was ahead, if one was.
pub(super) fn side(ratio: f64) -> i8 {
    i8::from(ratio > FLAT) - i8::from(ratio < 1.0 / FLAT)
}

/// Whether what was ahead then is ahead today, and what was level is level.
pub(super) fn same_side(then: f64, now: Option<Ratio>) -> Option<bool> {
    let level = within(now, (1.0 / FLAT, FLAT));
    match side(then) {
        0 => level,
        _ if level == Some(true) => Some(false),
        1 => within(now, (1.0, f64::INFINITY)),
        _ => within(now, (0.0, 1.0)),
    }
}

/// Whether a factor is of the size of those then: flat as they, or within their range widened.
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
    fn what_an_interval_leaves_open_is_open() {
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
    fn one_that_is_not_so_decides_and_one_that_is_open_leaves_all_open() {
        assert_eq!(all([]), Some(true));
        assert_eq!(all([Some(true), Some(true)]), Some(true));
        assert_eq!(all([Some(true), None]), None);
        assert_eq!(all([None, Some(false), Some(true)]), Some(false));
    }
}
