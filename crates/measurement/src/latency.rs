//! The distribution of a trial's times.

use hdrhistogram::Histogram;
use load::micros_of;
use load::rows::Form;
use serde::{Deserialize, Deserializer, Serialize};
use stats::{Percentile, any_percentile, merge_buckets, percentile_with_ages};

/// A latency distribution in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The number of samples. In a closed loop it is the number of successes.
    pub count: u64,
    /// The exact minimum.
    pub min: f64,
    /// The exact mean.
    pub mean: f64,
    /// The exact maximum.
    pub max: f64,
    /// The samples as `[microseconds, count]`, ascending, with three significant digits.
    #[serde(deserialize_with = "without_spare_capacity")]
    pub buckets: Vec<(u64, u64)>,
    /// Open loop: the ages at which unanswered operations were given up, in the same form. They are not among the samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<(u64, u64)>,
}

impl Latency {
    /// The samples and ages of several trials together. The other figures are left out.
    pub fn together<'a>(trials: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let unanswered = merge_buckets(trials.clone().map(|latency| latency.unanswered.as_slice()));
        Self {
            buckets: merge_buckets(trials.map(|latency| latency.buckets.as_slice())),
            unanswered,
            ..Self::default()
        }
    }

    /// Percentile `p` (0..100) in microseconds. None if there are too few operations.
    pub fn percentile(&self, p: f64) -> Option<Percentile> {
        percentile_with_ages(&self.buckets, &self.unanswered, p)
    }

    /// Percentile `p` (0..100) of a trial in microseconds, of however few operations. Those that were not answered count with their
    /// ages: a trial whose answers did not come is slow, and not unknown. None if nothing was due.
    pub fn of_trial(&self, p: f64) -> Option<u64> {
        any_percentile(&self.samples(), p)
    }

    /// The samples, and the ages as if they were samples, as `(microseconds, count)`, ascending.
    pub fn samples(&self) -> Vec<(u64, u64)> {
        merge_buckets([self.buckets.as_slice(), self.unanswered.as_slice()])
    }

    /// Converts back to a histogram of nanoseconds with three significant digits, each age as if it were a time.
    pub fn to_nanos(&self) -> Histogram<u64> {
        let mut histogram = load::histogram();
        for (micros, count) in self.buckets.iter().chain(&self.unanswered) {
            histogram.saturating_record_n(micros.saturating_mul(1000).max(1), *count);
        }
        histogram
    }

    /// Converts the `(microseconds, count)` pairs of a client driver. The extremes and the mean are as exact as the
    /// buckets.
    pub fn from_buckets(mut buckets: Vec<(u64, u64)>) -> Self {
        buckets.sort_unstable();
        let count = buckets.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
        let sum: f64 = buckets.iter().map(|(micros, count)| *micros as f64 * *count as f64).sum();
        let edge = |bucket: Option<&(u64, u64)>| bucket.map_or(0.0, |(micros, _)| *micros as f64);
        Self {
            count,
            min: edge(buckets.first()),
            mean: if count > 0 { sum / count as f64 } else { 0.0 },
            max: edge(buckets.last()),
            buckets,
            unanswered: Vec::new(),
        }
    }
}

impl Form<load::Times> for Latency {
    fn of(times: &load::Times) -> Self {
        let answered = times.answered();
        let has_samples = !answered.is_empty();
        let micros = |nanos: u64| if has_samples { nanos as f64 / 1000.0 } else { 0.0 };
        Self {
            count: answered.len(),
            min: micros(answered.min()),
            mean: if has_samples { answered.mean() / 1000.0 } else { 0.0 },
            max: micros(answered.max()),
            buckets: micros_of(&answered),
            unanswered: times.unanswered().map(micros_of).unwrap_or_default(),
        }
    }
}

impl Form<Option<load::Times>> for Latency {
    /// Empty if there are no times.
    fn of(times: &Option<load::Times>) -> Self {
        times.as_ref().map(Self::of).unwrap_or_default()
    }
}

/// A long run holds millions of pairs in memory, and a vector that has grown may have room for twice as many.
pub(crate) fn without_spare_capacity<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(u64, u64)>, D::Error> {
    let mut pairs = Vec::deserialize(deserializer)?;
    pairs.shrink_to_fit();
    Ok(pairs)
}
