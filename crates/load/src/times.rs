//! Times of exchanges, of which some are known only to be longer than what was seen of them.

mod counts;

use hdrhistogram::Histogram;
use stats::Percentile;

use counts::Counts;

/// The longest time that is recorded: an hour, in nanoseconds. Times have three significant digits.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// The times of answered exchanges, and the ages at which the others failed or were given up. All are nanoseconds.
///
/// An age is a lower bound of a time, so it can make a percentile a lower bound, too: see [`stats::percentile_with_ages`].
#[derive(Debug, Clone, Default)]
pub struct Times {
    answered: Counts,
    /// Only if there are any, because a histogram is large.
    unanswered: Option<Box<Histogram<u64>>>,
}

/// A histogram of nanoseconds as `(microseconds, count)`, ascending.
pub fn micros_of(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    let mut buckets: Vec<(u64, u64)> = Vec::new();
    for value in histogram.iter_recorded() {
        let micros = (value.value_iterated_to() + 500) / 1000;
        match buckets.last_mut() {
            Some((last, count)) if *last == micros => *count += value.count_at_value(),
            _ => buckets.push((micros, value.count_at_value())),
        }
    }
    buckets
}

impl From<Histogram<u64>> for Times {
    /// The times of answered exchanges. The histogram must have the bounds of [`histogram`].
    fn from(answered: Histogram<u64>) -> Self {
        Self { answered: Counts::from(&answered), unanswered: None }
    }
}

/// An empty histogram. All of them have the same bounds.
#[expect(clippy::expect_used, reason = "the bounds are constants, and a test makes one")]
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are valid")
}

impl Times {
    /// The times of answered exchanges, and the ages of the others. Both histograms have the bounds of [`histogram`].
    pub(crate) fn new(answered: Histogram<u64>, unanswered: Option<Histogram<u64>>) -> Self {
        Self { unanswered: unanswered.map(Box::new), ..answered.into() }
    }

    /// Records the time of an answered exchange.
    #[inline]
    pub(crate) fn record(&mut self, nanos: u64) {
        self.answered.record(nanos);
    }

    /// Records the age of an exchange that was given up.
    pub(crate) fn give_up(&mut self, nanos: u64) {
        self.unanswered.get_or_insert_with(|| Box::new(histogram())).saturating_record(nanos.max(1));
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.answered.merge(&other.answered);
        // All histograms have the same bounds, so adding cannot fail.
        if let Some(theirs) = &other.unanswered {
            let _ = self.unanswered.get_or_insert_with(|| Box::new(histogram())).add(&**theirs);
        }
    }

    /// The times of answered exchanges.
    pub fn answered(&self) -> Histogram<u64> {
        self.answered.histogram()
    }

    /// The ages of exchanges that were given up. `None` if there are none.
    pub fn unanswered(&self) -> Option<&Histogram<u64>> {
        self.unanswered.as_deref()
    }

    /// Both together, each age as if it were a time.
    pub fn all(&self) -> Histogram<u64> {
        let mut all = self.answered();
        if let Some(ages) = &self.unanswered {
            let _ = all.add(&**ages);
        }
        all
    }

    /// The number of exchanges, answered or not.
    pub fn len(&self) -> u64 {
        self.answers() + self.ages()
    }

    /// The number of those that were answered.
    pub(crate) fn answers(&self) -> u64 {
        self.answered.len()
    }

    /// The number of those that were given up.
    pub(crate) fn ages(&self) -> u64 {
        self.unanswered.as_ref().map_or(0, |ages| ages.len())
    }

    /// Whether there are no exchanges.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Percentile `p` (0..100) in nanoseconds. None if there are too few exchanges ([`stats::samples_needed`]).
    pub fn percentile(&self, p: f64) -> Option<Percentile> {
        let Some(ages) = &self.unanswered else {
            let answered = self.answered();
            let enough = answered.len() >= stats::samples_needed(p)?;
            return enough.then(|| Percentile::Exactly(answered.value_at_percentile(p)));
        };
        stats::percentile_with_ages(&buckets(&self.answered()), &buckets(ages), p)
    }

    /// The longest time in nanoseconds. None if there are no exchanges.
    pub fn max(&self) -> Option<Percentile> {
        let longest = self.all().max();
        let bound = || Percentile::AtLeast { at_least: longest };
        (longest > 0).then(|| if self.unanswered.is_some() { bound() } else { Percentile::Exactly(longest) })
    }
}

/// The recorded values, each with its count.
pub(crate) fn buckets(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    let recorded = histogram.iter_recorded();
    recorded.map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `answered` times and `unanswered` ages, in milliseconds with counts.
    fn times(answered: &[(u64, u64)], unanswered: &[(u64, u64)]) -> Times {
        let mut times = Times::default();
        for (ms, count) in answered {
            (0..*count).for_each(|_| times.record(ms * 1_000_000));
        }
        for (ms, count) in unanswered {
            (0..*count).for_each(|_| times.give_up(ms * 1_000_000));
        }
        times
    }

    /// A percentile in milliseconds, and whether it is a lower bound.
    fn shown(percentile: Option<Percentile>) -> Option<(u64, bool)> {
        percentile.map(|p| ((p.value() + 500_000) / 1_000_000, p.is_lower_bound()))
    }

    #[test]
    fn what_was_given_up_counts_as_at_least_its_age() {
        let mut total = times(&[(1, 900)], &[]);
        total.merge(&times(&[], &[(1000, 100)]));
        assert_eq!(shown(total.percentile(90.0)), Some((1, false)));
        assert_eq!(shown(total.percentile(99.0)), Some((1000, true)));
        assert_eq!(
            (total.len(), total.answered().len(), shown(total.max())),
            (1000, 900, Some((1000, true)))
        );
    }

    #[test]
    fn without_ages_percentiles_are_exact() {
        let answered = times(&[(1, 10), (7, 10)], &[]);
        assert_eq!(shown(answered.percentile(50.0)), Some((1, false)));
        assert_eq!((shown(answered.percentile(90.0)), shown(answered.max())), (None, Some((7, false))));
        assert_eq!((times(&[], &[]).percentile(50.0), times(&[], &[]).max()), (None, None));
    }
}
