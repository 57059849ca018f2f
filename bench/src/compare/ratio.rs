//! The median of paired ratios, with a distribution-free interval.

use stats::Sample;

/// The median of some ratios, and an interval between two of the ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// The probability that such an interval covers the true median.
    pub confidence: f64,
    pub pairs: usize,
}

/// The interval is the narrowest with at least this confidence.
const WANTED: f64 = 0.95;

impl Ratio {
    /// The median and interval of these ratios; None if there are none.
    pub fn of(ratios: impl IntoIterator<Item = f64>) -> Option<Self> {
        let finite = ratios.into_iter().filter(|ratio| ratio.is_finite()).collect();
        let sample = Sample::new(finite).ok()?;
        let count = sample.count();
        let inside =
            (1..=count.div_ceil(2)).rev().find(|&rank| confidence(count, rank) >= WANTED).unwrap_or(1);
        let sorted = sample.sorted();
        Some(Self {
            median: sample.median(),
            low: sorted[inside - 1],
            high: sorted[count - inside],
            confidence: confidence(count, inside),
            pairs: count,
        })
    }

    /// `0.71 [0.69, 0.74]`
    pub fn text(&self) -> String {
        format!("{:.3} [{:.3}, {:.3}]", self.median, self.low, self.high)
    }
}

/// The probability that the median lies between the `rank`-th smallest and the `rank`-th largest of `count` ratios. Each
/// ratio lies below the median with probability 1/2.
fn confidence(count: usize, rank: usize) -> f64 {
    let half = 0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut ways = 1.0;
    let mut below = 0.0;
    for k in 0..rank {
        below += ways * half;
        ways = ways * (count - k) as f64 / (k + 1) as f64;
    }
    (1.0 - 2.0 * below).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_pairs_need_all_of_them() {
        let ratio = Ratio::of([0.9, 0.7, 0.8, 1.0, 0.6, 0.75, 0.85]).unwrap();
        assert_eq!((ratio.median, ratio.low, ratio.high), (0.8, 0.6, 1.0));
        assert!((ratio.confidence - (1.0 - 2.0 / 128.0)).abs() < 1e-12);
    }

    #[test]
    fn nine_pairs_leave_out_the_outermost() {
        let ratio = Ratio::of((1..=9).map(f64::from)).unwrap();
        assert_eq!((ratio.low, ratio.high), (2.0, 8.0));
        assert!((ratio.confidence - (1.0 - 20.0 / 512.0)).abs() < 1e-12);
    }

    #[test]
    fn one_pair_has_no_confidence() {
        let ratio = Ratio::of([2.0, f64::INFINITY]).unwrap();
        assert_eq!((ratio.low, ratio.high, ratio.confidence, ratio.pairs), (2.0, 2.0, 0.0, 1));
        assert_eq!(Ratio::of([f64::NAN]), None);
    }
}
