//! Turns an interval into a verdict: faster, slower, no difference that matters, or undecided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::location::Location;
use crate::looks::{LEVEL, LogRatio};
use crate::sample::median;

/// The verdict on a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Faster: the interval excludes 1 after correction for all comparisons, and the difference exceeds the noise floor.
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

/// What a difference must exceed, as log-ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// A smaller difference does not matter.
    pub threshold: f64,
    /// The noise floor: the smallest difference that the run can claim. None if it was not measured; the run can then claim
    /// no difference.
    pub floor: Option<f64>,
}

impl Bar {
    /// Judges a log-ratio, which is above zero if the first is better. `p` is corrected for all comparisons that are judged
    /// together.
    ///
    /// Checks for no difference first (Schuirmann, "A comparison of the two one-sided tests procedure", J. Pharmacokinet.
    /// Biopharm. 15, 1987, in the stricter form of the whole interval): a difference that is certainly smaller than the
    /// threshold does not matter, even if it certainly exists.
    pub fn judge(&self, ratio: &LogRatio, p: f64) -> Verdict {
        let LogRatio { location, low, high, .. } = ratio;
        if *low > -self.threshold && *high < self.threshold {
            return Verdict::NoDifference;
        }
        let clear = *low > 0.0 || *high < 0.0;
        let claimed = self.floor.is_some_and(|floor| location.estimate.abs() > floor);
        match clear && claimed && p <= LEVEL {
            true if location.estimate > 0.0 => Verdict::Faster,
            true => Verdict::Slower,
            false => Verdict::Undecided {
                // Without a floor, no number of rounds can show a difference.
                more_rounds: self.floor.map(|_| self.more_rounds(ratio)),
            },
        }
    }

    /// How many more rounds are expected until the interval excludes zero or lies within the threshold, whichever comes
    /// first. Assumes that the error shrinks with the square root of the rounds.
    fn more_rounds(&self, ratio: &LogRatio) -> u32 {
        let Location { estimate, error, n, .. } = ratio.location;
        let room = estimate.abs().max(self.threshold - estimate.abs()).max(f64::MIN_POSITIVE);
        let needed = n as f64 * (CRITICAL * error / room).powi(2);
        (needed - n as f64).ceil().clamp(1.0, f64::from(MOST_ROUNDS)) as u32
    }
}

/// Half the length of an interval at [`crate::NOMINAL`] with many rounds, in standard errors.
const CRITICAL: f64 = 2.8;

/// The most rounds that are reported as needed.
const MOST_ROUNDS: u32 = 1000;

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
    use crate::looks::Design;

    fn ratio(numbers: &[f64]) -> LogRatio {
        let rounds: Vec<(u32, f64)> = (0..).zip(numbers.iter().copied()).collect();
        Design::Once.compare(&rounds).unwrap()
    }

    const BAR: Bar = Bar { threshold: 0.05, floor: Some(0.02) };

    fn judge(bar: Bar, numbers: &[f64]) -> Verdict {
        let ratio = ratio(numbers);
        bar.judge(&ratio, ratio.p)
    }

    #[test]
    fn a_verdict_needs_interval_correction_and_floor() {
        let clear = [0.30, 0.31, 0.29, 0.30];
        assert_eq!(judge(BAR, &clear), Verdict::Faster);
        assert_eq!(judge(BAR, &clear.map(|x| -x)), Verdict::Slower);
        let high = Bar { floor: Some(0.4), ..BAR };
        assert!(!judge(high, &clear).is_decided());
        assert!(!judge(Bar { floor: None, ..BAR }, &clear).is_decided());
        assert!(!BAR.judge(&ratio(&clear), 0.06).is_decided(), "corrected for many comparisons");
        assert!(!judge(BAR, &[0.3, -0.3, 0.4, 0.1]).is_decided());
    }

    #[test]
    fn a_certainly_small_difference_is_no_difference() {
        assert_eq!(judge(BAR, &[0.02, 0.021, 0.019, 0.02]), Verdict::NoDifference);
        assert_eq!(judge(Bar { floor: None, ..BAR }, &[0.0, 0.001, -0.001]), Verdict::NoDifference);
        // A difference as large as the threshold does matter.
        assert_eq!(judge(BAR, &[0.05, 0.051, 0.049, 0.05]), Verdict::Faster);
    }

    #[test]
    fn more_rounds_are_as_many_as_the_interval_needs() {
        let more = |numbers: &[f64]| match judge(BAR, numbers) {
            Verdict::Undecided { more_rounds } => more_rounds,
            other => panic!("{other:?}"),
        };
        let near = more(&[0.1, 0.3, 0.0, 0.2]).unwrap();
        let far = more(&[0.1, 0.6, -0.4, 0.1]).unwrap();
        assert!((1..=8).contains(&near) && far > 4 * near, "{near} {far}");
        assert_eq!(more(&[5.0, -5.0, 0.02, 0.03]), Some(MOST_ROUNDS));
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
