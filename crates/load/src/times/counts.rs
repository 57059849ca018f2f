//! Counts in the buckets of a histogram, for the moment of recording, which happens twice for each exchange. A record is a
//! shift and an addition. [`Histogram`] also keeps the sum, the largest and the smallest value up to date, and checks its
//! bounds in several steps; all that can be computed in the end.

use hdrhistogram::Histogram;

use super::{LONGEST_NS, histogram};

/// Values below this have a bucket each. Above, each power of two is divided into half as many buckets: three digits.
const FINE: u64 = 2048;
/// The number of buckets.
const BUCKETS: usize = bucket(LONGEST_NS) + 1;

/// How many times values fell into each bucket. The buckets are those of [`histogram`].
#[derive(Clone)]
pub(super) struct Counts(Vec<u64>);

impl Default for Counts {
    fn default() -> Self {
        // The kernel provides the memory of each page when it is first touched.
        Self(vec![0; BUCKETS])
    }
}

impl std::fmt::Debug for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.histogram().fmt(f)
    }
}

/// The bucket of a value.
#[inline]
const fn bucket(value: u64) -> usize {
    let shift = (value | (FINE - 1)).ilog2() - (FINE - 1).ilog2();
    shift as usize * (FINE as usize / 2) + (value >> shift) as usize
}

/// The smallest value of a bucket.
const fn smallest(bucket: usize) -> u64 {
    let half = FINE as usize / 2;
    let shift = (bucket / half).saturating_sub(1);
    ((bucket - shift * half) as u64) << shift
}

impl Counts {
    /// Counts a value. Zero counts as one, and values over the longest count as that.
    #[inline]
    pub(super) fn record(&mut self, value: u64) {
        *self.count_of(value) += 1;
    }

    /// The count of a value's bucket.
    #[expect(clippy::indexing_slicing, reason = "the bucket of the longest value is the last")]
    #[inline]
    fn count_of(&mut self, value: u64) -> &mut u64 {
        &mut self.0[bucket(value.clamp(1, LONGEST_NS))]
    }

    pub(super) fn merge(&mut self, other: &Self) {
        // Pages without counts stay untouched.
        for (mine, theirs) in self.0.iter_mut().zip(&other.0).filter(|(_, theirs)| **theirs > 0) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// The counts as a histogram.
    pub(super) fn histogram(&self) -> Histogram<u64> {
        let mut histogram = histogram();
        for (bucket, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.saturating_record_n(smallest(bucket), *count);
        }
        histogram
    }

    /// How many values were recorded.
    pub(super) fn len(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl From<&Histogram<u64>> for Counts {
    fn from(histogram: &Histogram<u64>) -> Self {
        let mut counts = Self::default();
        for value in histogram.iter_recorded() {
            *counts.count_of(value.value_iterated_to()) += value.count_at_value();
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use stats::SplitMix64;

    use super::*;

    #[test]
    fn every_bucket_begins_where_the_one_before_ends() {
        assert_eq!(smallest(0), 0);
        for number in 1..BUCKETS {
            assert_eq!(bucket(smallest(number)), number);
            assert_eq!(bucket(smallest(number) - 1), number - 1);
        }
    }

    #[test]
    fn the_histogram_is_the_one_that_recording_into_it_would_have_made() {
        let (mut counts, mut direct) = (Counts::default(), histogram());
        let mut random = SplitMix64::new(1);
        let any = (0..20_000).map(|_| random.next_u64() >> (random.next_u64() % 64));
        for value in any.chain([0, 1, 2047, 2048, LONGEST_NS - 1, LONGEST_NS, u64::MAX]) {
            counts.record(value);
            direct.saturating_record(value.clamp(1, LONGEST_NS));
        }
        let histogram = counts.histogram();
        assert_eq!(histogram, direct);
        assert_eq!((histogram.min(), histogram.max()), (direct.min(), direct.max()));
        assert_eq!((histogram.len(), counts.len()), (direct.len(), direct.len()));
        assert_eq!(Counts::from(&histogram).histogram(), direct);
    }
}
