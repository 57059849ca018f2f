//! From an interval to what may be said: better, worse, no difference worth having, or undecided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::location::Location;
use crate::looks::{Compared, LEVEL};
use crate::sample::median;

/// What a comparison amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Faster: the interval is clear of 1, after correction for all comparisons and beyond the noise floor.
    Faster,
    /// Slower, in the same way.
    Slower,
    /// The whole interval lies within the threshold: whatever difference there may be is not worth having.
    NoDifference,
    /// Neither. So many more rounds may decide it; None where no number would.
    Undecided {
        /// Beyond those that it has.
        more_rounds: Option<u32>,
    },
}

impl Verdict {
    /// Whether it says something.
    pub fn is_decided(self) -> bool {
        !matches!(self, Self::Undecided { .. })
    }
}

/// What a difference must exceed, as logarithms of ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// Below this a difference is not worth having.
    pub threshold: f64,
    /// The smallest difference that the run can claim; None where it was not measured, so that it can claim none.
    pub floor: Option<f64>,
}

impl Bar {
    /// Judges a comparison of log-ratios, above zero where the first is better; `p` is corrected for all comparisons
    /// that are judged together.
    ///
    /// No difference comes first (Schuirmann, "A comparison of the two one-sided tests procedure", J.
    /// Pharmacokinet. Biopharm. 15, 1987, in the stricter form of the whole interval): what is certainly smaller than
    /// the threshold may be certainly there, too, and is still not worth having.
    pub fn judge(&self, compared: &Compared, p: f64) -> Verdict {
        let Compared { location, low, high, .. } = compared;
        if *low > -self.threshold && *high < self.threshold {
            return Verdict::NoDifference;
        }
        let clear = *low > 0.0 || *high < 0.0;
        let claimed = self.floor.is_some_and(|floor| location.estimate.abs() > floor);
        match clear && claimed && p <= LEVEL {
            true if location.estimate > 0.0 => Verdict::Faster,
            true => Verdict::Slower,
            false => Verdict::Undecided {
                // Without a floor no number of rounds shows a difference.
                more_rounds: self.floor.map(|_| self.more_rounds(compared)),
            },
        }
    }

    /// Errors shrink with the root of the rounds: how many more until the interval is clear of zero, or inside the
    /// threshold, whichever the estimate is farther from missing. An expectation, and no promise.
    fn more_rounds(&self, compared: &Compared) -> u32 {
        let Location { estimate, error, n, .. } = compared.location;
        let room = estimate.abs().max(self.threshold - estimate.abs()).max(f64::MIN_POSITIVE);
        let needed = n as f64 * (CRITICAL * error / room).powi(2);
        (needed - n as f64).ceil().clamp(1.0, f64::from(MOST_ROUNDS)) as u32
    }
}

/// What an interval at [`crate::NOMINAL`] is long in errors, when there are many rounds.
const CRITICAL: f64 = 2.8;

/// More rounds than this are not told apart.
const MOST_ROUNDS: u32 = 1000;

/// Which of some numbers lie far from their median: by more than `FAR` times the median distance from it, scaled to
/// the normal distribution's deviation (Hampel, "The influence curve and its role in robust estimation", JASA 69, 1974;
/// the cut of 3.5 is Iglewicz and Hoaglin's, 1993), and by more than `least`. In the order given; none of fewer than four,
/// where the median distance is one number's whim.
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

    fn compared(numbers: &[f64]) -> Compared {
        let rounds: Vec<(u32, f64)> = (0..).zip(numbers.iter().copied()).collect();
        Design::Once.compare(&rounds).unwrap()
    }

    const BAR: Bar = Bar { threshold: 0.05, floor: Some(0.02) };

    fn judge(bar: Bar, numbers: &[f64]) -> Verdict {
        let compared = compared(numbers);
        bar.judge(&compared, compared.p)
    }

    #[test]
    fn a_verdict_needs_interval_correction_and_floor() {
        let clear = [0.30, 0.31, 0.29, 0.30];
        assert_eq!(judge(BAR, &clear), Verdict::Faster);
        assert_eq!(judge(BAR, &clear.map(|x| -x)), Verdict::Slower);
        let high = Bar { floor: Some(0.4), ..BAR };
        assert!(!judge(high, &clear).is_decided());
        assert!(!judge(Bar { floor: None, ..BAR }, &clear).is_decided());
        assert!(!BAR.judge(&compared(&clear), 0.06).is_decided(), "corrected for many comparisons");
        assert!(!judge(BAR, &[0.3, -0.3, 0.4, 0.1]).is_decided());
    }

    #[test]
    fn what_is_small_for_certain_is_no_difference() {
        assert_eq!(judge(BAR, &[0.02, 0.021, 0.019, 0.02]), Verdict::NoDifference);
        assert_eq!(judge(Bar { floor: None, ..BAR }, &[0.0, 0.001, -0.001]), Verdict::NoDifference);
        // As large as the threshold is not small.
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
        assert_eq!(far(&[1.0, 1.0, 1.0, 1.0, 1.04]), [false; 5], "not worth a word");
        assert_eq!(far(&[1.0, 1.3, 0.7, 1.6, 0.4]), [false; 5], "all of them are far apart");
        assert_eq!(far(&[1.0, 1.0, 9.0]), [false; 3], "too few to say who is far from whom");
        assert_eq!(far(&[f64::NAN, 1.0, 1.0, 1.0]), [false; 4]);
    }
}
