//! Turns an interval into a verdict: faster, slower, no difference that matters, or undecided.

use serde::{Deserialize, Serialize};

use crate::location::Location;
use crate::looks::{LEVEL, LogRatio};
use crate::sample::median;
use crate::student;

/// The verdict on a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Faster: the interval excludes 1, also after correction for all comparisons that are judged together.
    Faster,
    /// Slower, by the same rule.
    Slower,
    /// The whole interval lies within the threshold: any difference is too small to matter.
    NoDifference,
    /// None of these.
    Undecided {
        /// How many more rounds may decide it; None if no number would.
        more_rounds: Option<u32>,
    },
}

impl Verdict {
    /// Whether the comparison is decided.
    pub fn is_decided(self) -> bool {
        !matches!(self, Self::Undecided { .. })
    }
}

impl LogRatio {
    /// Judges the log-ratio, which is above zero if the first is better. `p` is corrected for all comparisons that are
    /// judged together. A log-ratio below `threshold` does not matter.
    ///
    /// Checks for no difference first (Schuirmann, "A comparison of the two one-sided tests procedure", J. Pharmacokinet.
    /// Biopharm. 15, 1987, in the stricter form of the whole interval): a difference that is certainly smaller than the
    /// threshold does not matter, even if it certainly exists.
    pub fn verdict(&self, threshold: f64, p: f64) -> Verdict {
        if self.low > -threshold && self.high < threshold {
            return Verdict::NoDifference;
        }
        let clear = self.low > 0.0 || self.high < 0.0;
        match clear && p <= LEVEL {
            true if self.location.estimate > 0.0 => Verdict::Faster,
            true => Verdict::Slower,
            false => Verdict::Undecided { more_rounds: Some(self.more_rounds(threshold, p)) },
        }
    }

    /// How many more rounds are expected until the interval excludes zero, corrected like `p`, or lies within the
    /// threshold, whichever comes first; at most [`MOST_ROUNDS`].
    ///
    /// The estimate is shrunk first (James and Stein 1961): an undecided difference looks larger than it is more often than
    /// smaller. Over a mixture of truths, from equal to a factor of two, the prediction comes true in more than half of the
    /// cases (docs/statistics.md).
    fn more_rounds(&self, threshold: f64, p: f64) -> u32 {
        let correction = if self.p > 0.0 { (p / self.p).max(1.0) } else { 1.0 };
        let shrunk = self.location.shrunk().abs();
        self.location.rounds_until(|half| {
            half(self.level / correction) < shrunk || half(self.level) < threshold - shrunk
        })
    }
}

impl Location {
    /// How many more rounds are expected until a one-sided p-value of at most `level` shows that it is above zero, or
    /// until its interval lies below `threshold`, whichever comes first; at most [`MOST_ROUNDS`]. The estimate is
    /// shrunk as in [`LogRatio::verdict`].
    pub fn more_rounds(&self, threshold: f64, level: f64) -> u32 {
        let shrunk = self.shrunk();
        self.rounds_until(|half| half(2.0 * level) < shrunk || shrunk + half(LEVEL) < threshold)
    }

    /// The estimate, drawn towards zero by as much as chance explains.
    fn shrunk(&self) -> f64 {
        self.estimate * (1.0 - (self.error / self.estimate).powi(2)).max(0.0)
    }

    /// How many more rounds it takes until `decides` is true. It gets half the expected width of an interval at a level.
    fn rounds_until(&self, decides: impl Fn(&dyn Fn(f64) -> f64) -> bool) -> u32 {
        let Self { error, df, n, bound, .. } = *self;
        let decided = |rounds: usize| {
            let grown = rounds as f64 / n as f64;
            decides(&|level| (student::critical(level, df * grown) + MARGIN) * error / grown.sqrt() + bound)
        };
        // Intervals only become narrower with rounds.
        let (mut needed, mut enough) = (n + 1, n + MOST_ROUNDS);
        while needed < enough {
            let middle = needed.midpoint(enough);
            if decided(middle) { enough = middle } else { needed = middle + 1 }
        }
        (needed - n) as u32
    }
}

/// How many standard errors the estimate must lie clear of what it is compared with. With none, it would be on the wrong
/// side in half of the cases.
const MARGIN: f64 = 0.5;

/// The most rounds that are predicted.
const MOST_ROUNDS: usize = 200;

/// Which numbers are outliers, in the order of the input. An outlier differs from the median by more than `least`, and by
/// more than `FAR` times the median absolute deviation, scaled to the standard deviation of a normal distribution (Hampel,
/// "The influence curve and its role in robust estimation", JASA 69, 1974; the cut-off of 3.5 is from Iglewicz and Hoaglin,
/// 1993). Fewer than four numbers have no outliers, because a single number determines their median deviation.
pub fn outliers(numbers: &[f64], least: f64) -> Vec<bool> {
    const FAR: f64 = 3.5;
    const NORMAL: f64 = 1.4826;
    let none = || vec![false; numbers.len()];
    if numbers.len() < 4 {
        return none();
    }
    let Some(middle) = median(numbers.iter().copied()) else { return none() };
    let Some(distance) = median(numbers.iter().map(|x| (x - middle).abs())) else { return none() };
    numbers.iter().map(|x| (x - middle).abs() > (FAR * NORMAL * distance).max(least)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Design, Panel, PanelRow};

    const THRESHOLD: f64 = 0.05;

    fn ratio(numbers: &[f64]) -> LogRatio {
        let row = |numbers: &[f64]| PanelRow {
            by_round: (0..).zip(numbers.iter().copied()).collect(),
            system: true,
            ..PanelRow::default()
        };
        let panel = Panel::new(vec![row(numbers), row(&vec![0.0; numbers.len()])]);
        Design::ONCE.compare(&panel, 0, 1, 0.0).unwrap()
    }

    fn judge(numbers: &[f64]) -> Verdict {
        let ratio = ratio(numbers);
        ratio.verdict(THRESHOLD, ratio.p)
    }

    #[test]
    fn a_smaller_level_takes_more_rounds_and_a_clear_loser_few() {
        let better = Location::of(&[0.06, -0.02, 0.07, 0.04, -0.01, 0.05]).unwrap();
        let rounds = |location: &Location, level| location.more_rounds(THRESHOLD, level);
        // It is above this threshold, so no interval below decides first.
        let proven = |level| better.more_rounds(0.01, level);
        assert!(proven(0.001) > proven(0.02), "{better:?}");
        let worse = Location { estimate: -0.2, ..better };
        assert_eq!(rounds(&worse, 0.001), 1);
        let hopeless = Location { estimate: THRESHOLD, bound: THRESHOLD, ..better };
        assert_eq!(rounds(&hopeless, 0.02), MOST_ROUNDS as u32);
    }

    #[test]
    fn a_verdict_needs_interval_and_correction() {
        let clear = [0.30, 0.31, 0.29, 0.30];
        assert_eq!(judge(&clear), Verdict::Faster);
        assert_eq!(judge(&clear.map(|x| -x)), Verdict::Slower);
        assert!(!ratio(&clear).verdict(THRESHOLD, 0.06).is_decided(), "corrected for many comparisons");
        assert!(!judge(&[0.3, -0.3, 0.4, 0.1]).is_decided());
    }

    #[test]
    fn a_certainly_small_difference_is_no_difference() {
        assert_eq!(judge(&[0.02, 0.021, 0.019, 0.02]), Verdict::NoDifference);
        // A difference as large as the threshold does matter.
        assert_eq!(judge(&[0.05, 0.051, 0.049, 0.05]), Verdict::Faster);
    }

    #[test]
    fn more_rounds_are_as_many_as_the_interval_needs() {
        let more = |numbers: &[f64]| match judge(numbers) {
            Verdict::Undecided { more_rounds } => more_rounds,
            other => panic!("{other:?}"),
        };
        let near = more(&[0.1, 0.3, 0.0, 0.2]).unwrap();
        let far = more(&[0.1, 0.6, -0.4, 0.1]).unwrap();
        assert!((1..=20).contains(&near) && far > 4 * near, "{near} {far}");
        assert_eq!(more(&[5.0, -5.0, 0.02, 0.03]), Some(MOST_ROUNDS as u32));
    }

    #[test]
    fn outliers_are_far_in_terms_of_the_others() {
        let far = |numbers: &[f64]| outliers(numbers, 0.05);
        assert_eq!(far(&[1.0, 1.01, 0.99, 1.02, 2.0]), [false, false, false, false, true]);
        assert_eq!(far(&[1.0, 1.0, 1.0, 1.0, 1.04]), [false; 5], "too small to matter");
        assert_eq!(far(&[1.0, 1.3, 0.7, 1.6, 0.4]), [false; 5], "all of them are far apart");
        assert_eq!(far(&[1.0, 1.0, 9.0]), [false; 3], "too few to tell");
        assert_eq!(far(&[f64::NAN, 1.0, 1.0, 1.0]), [false; 4]);
    }
}
