//! Samples of a few repeated measurements (trials, rounds): their median and spread.
//!
//! Uses medians, because a few disturbed trials can dominate a mean. That turned a factor of eight into 0.7 in the
//! published Cowboy table (experiments, A4).

use std::fmt;

use serde::{Deserialize, Serialize};

/// At least one finite number, in ascending order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Sample(Vec<f64>);

/// Why some numbers are not a [`Sample`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotASample {
    /// There are no numbers.
    Empty,
    /// The number at this position is infinite or not a number.
    NotFinite(usize),
}

impl fmt::Display for NotASample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a sample needs at least one number"),
            Self::NotFinite(index) => write!(f, "number {index} of the sample is infinite or not a number"),
        }
    }
}

impl std::error::Error for NotASample {}

impl TryFrom<Vec<f64>> for Sample {
    type Error = NotASample;
    fn try_from(numbers: Vec<f64>) -> Result<Self, NotASample> {
        Self::new(numbers)
    }
}

impl From<Sample> for Vec<f64> {
    fn from(sample: Sample) -> Self {
        sample.0
    }
}

impl Sample {
    /// Makes a sample of numbers in any order and unit.
    ///
    /// # Errors
    /// [`NotASample`] if there are none, or one is not finite.
    pub fn new(mut numbers: Vec<f64>) -> Result<Self, NotASample> {
        if numbers.is_empty() {
            return Err(NotASample::Empty);
        }
        if let Some(index) = numbers.iter().position(|x| !x.is_finite()) {
            return Err(NotASample::NotFinite(index));
        }
        numbers.sort_by(f64::total_cmp);
        Ok(Self(numbers))
    }

    /// The numbers in ascending order. Never empty.
    pub fn sorted(&self) -> &[f64] {
        &self.0
    }

    /// How many numbers there are; at least one.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The smallest number.
    pub fn min(&self) -> f64 {
        self.0[0]
    }

    /// The largest number.
    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// The middle number, or the mean of the middle two.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The value at quantile `q` (0..=1, clamped), interpolated linearly between neighbours: Hyndman and Fan's
    /// type 7 (The American Statistician 50, 1996), which R and NumPy use, too.
    pub fn quantile(&self, q: f64) -> f64 {
        let position = q.clamp(0.0, 1.0) * (self.0.len() - 1) as f64;
        let below = position.floor() as usize;
        let above = (below + 1).min(self.0.len() - 1);
        let share = position - below as f64;
        // Not low + share * (high - low): that can overflow, and can leave [low, high] by rounding.
        (self.0[below] * (1.0 - share) + self.0[above] * share).clamp(self.0[below], self.0[above])
    }

    /// The spread relative to the median. None for a single number, which has no spread. Also None if the median is not
    /// positive, because "relative" then has no meaning.
    pub fn spread(&self) -> Option<Spread> {
        let median = self.median();
        if self.count() < 2 || median <= 0.0 {
            return None;
        }
        let middle = self.count() >= Spread::QUARTILES_FROM;
        Some(Spread {
            range: (self.max() - self.min()) / median,
            interquartile: middle.then(|| (self.quantile(0.75) - self.quantile(0.25)) / median),
        })
    }
}

/// The spread of repeated measurements, as shares of their median (0.05 is 5 %).
///
/// There are two figures. The range hides nothing, but it grows with the number of trials. The interquartile range does
/// not grow, but it is meaningless for a handful of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    /// (largest - smallest) / median.
    pub range: f64,
    /// (third quartile - first quartile) / median, for five numbers or more.
    pub interquartile: Option<f64>,
}

impl Spread {
    /// The fewest numbers for which quartiles are given.
    pub const QUARTILES_FROM: usize = 5;

    /// The figure to show if there is room for only one. It is the interquartile range if there is one, so that runs of
    /// different lengths can be compared; otherwise the range.
    pub fn shown(&self) -> f64 {
        self.interquartile.unwrap_or(self.range)
    }
}

/// The median of some numbers; None if they are not a [`Sample`].
pub fn median(numbers: impl IntoIterator<Item = f64>) -> Option<f64> {
    Sample::new(numbers.into_iter().collect()).ok().map(|s| s.median())
}

/// The median of the ratios of `(numerator, denominator)` pairs, one pair per round. Disturbances that affect a whole round
/// cancel. Pairs whose ratio is not finite (zero denominator) are left out; None if no pair is left.
pub fn median_ratio(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    median(pairs.into_iter().map(|(above, below)| above / below).filter(|ratio| ratio.is_finite()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(numbers: &[f64]) -> Sample {
        Sample::new(numbers.to_vec()).unwrap()
    }

    #[test]
    fn medians_and_quartiles_by_hand() {
        assert_eq!(sample(&[3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(sample(&[4.0, 1.0, 2.0, 3.0]).median(), 2.5);
        assert_eq!(sample(&[5.0, 1.0, 2.0, 4.0, 3.0]).quantile(0.25), 2.0);
        assert_eq!(median([]), None);
        assert_eq!(median([f64::NAN]), None);
    }

    #[test]
    fn the_cowboy_one_megabyte_row_is_not_its_mean() {
        // Four of ten uploads waited for a delayed acknowledgement; the mean says 18.8, the median 1.4 (A4.1).
        let ms = [1.3, 1.3, 1.4, 1.4, 1.4, 1.428, 44.0, 45.0, 44.0, 49.0];
        assert!(sample(&ms).median() < 1.5);
        assert!(ms.iter().sum::<f64>() / 10.0 > 18.0);
    }

    #[test]
    fn spread_is_relative_or_none() {
        assert_eq!(sample(&[7.0]).spread(), None);
        assert_eq!(sample(&[-1.0, 0.0, 1.0]).spread(), None);
        let three = sample(&[9.0, 10.0, 12.0]).spread().unwrap();
        assert_eq!((three.range, three.interquartile, three.shown()), (0.3, None, 0.3));
        let five = sample(&[1.0, 9.0, 10.0, 11.0, 100.0]).spread().unwrap();
        assert_eq!((five.range, five.shown()), (9.9, 0.2));
    }

    #[test]
    fn medians_of_ratios_skip_zero_denominators() {
        assert_eq!(median_ratio([(1.0, 2.0), (1.0, 0.0), (3.0, 2.0)]), Some(1.0));
        assert_eq!(median_ratio([(0.0, 0.0)]), None);
    }

    #[test]
    fn an_invalid_sample_is_an_error_that_says_why() {
        assert_eq!(Sample::new(vec![]), Err(NotASample::Empty));
        assert_eq!(Sample::new(vec![1.0, f64::INFINITY]), Err(NotASample::NotFinite(1)));
    }

    proptest! {
        #[test]
        fn quantiles_stay_inside_and_rise(numbers in proptest::collection::vec(-1e300..1e300f64, 1..40),
                                          a in 0.0..1.0f64, b in 0.0..1.0f64) {
            let s = Sample::new(numbers).unwrap();
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            prop_assert!(s.min() <= s.quantile(low) && s.quantile(high) <= s.max());
            prop_assert!(s.quantile(low) <= s.quantile(high));
        }

        #[test]
        fn half_lies_on_each_side_of_the_median(numbers in proptest::collection::vec(-1e9..1e9f64, 1..40)) {
            let s = Sample::new(numbers).unwrap();
            let m = s.median();
            let below = s.sorted().iter().filter(|x| **x < m).count();
            let above = s.sorted().iter().filter(|x| **x > m).count();
            prop_assert!(below <= s.count() / 2 && above <= s.count() / 2);
        }

        #[test]
        fn order_does_not_matter(numbers in proptest::collection::vec(-1e9..1e9f64, 1..20), seed: u64) {
            let mut shuffled = numbers.clone();
            crate::shuffle(&mut shuffled, &mut crate::SplitMix64::new(seed));
            prop_assert_eq!(Sample::new(numbers), Sample::new(shuffled));
        }

        #[test]
        fn a_scale_does_not_change_the_spread(numbers in proptest::collection::vec(1.0..1e6f64, 2..20)) {
            let wide = |f: f64| Sample::new(numbers.iter().map(|x| x * f).collect()).unwrap().spread().unwrap();
            prop_assert!((wide(1.0).range - wide(8.0).range).abs() < 1e-9);
        }
    }
}
