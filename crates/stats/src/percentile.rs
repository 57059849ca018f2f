//! Percentiles of large samples in histogram buckets, and how many samples a percentile needs.

use serde::{Deserialize, Serialize};

/// How many samples percentile `p` (0..100) needs before it is shown: enough that ten are expected beyond it, which is
/// 10 / (1 - p/100). That is 20 for the median, 1000 for p99 and 10,000 for p99.9. None for 100 and above, because a
/// maximum is not a percentile, however many samples there are. Also None below 0 and for NaN.
///
/// Why ten: the number of samples beyond a percentile is binomial (Le Boudec, "Performance Evaluation of Computer and
/// Communication Systems", chapter 2, derives confidence intervals of quantiles from that). If ten are expected, the
/// standard deviation is a third of that, and the order statistics that bound the percentile at 95 % (some six ranks to
/// either side) lie within the sample. With fewer than four, nothing bounds the percentile from above, and the figure is
/// really a maximum.
pub fn samples_needed(p: f64) -> Option<u64> {
    if !(0.0..100.0).contains(&p) {
        return None;
    }
    // Compute in thousandths of a percent, so that 10 / (1 - 0.999) is not 10,001 because of rounding.
    let beyond = ((100.0 - p) * 1000.0).round().max(1.0) as u64;
    Some(1_000_000_u64.div_ceil(beyond))
}

/// Percentile `p` (0..100) of `(value, count)` pairs in ascending order of value: the smallest value such that at least p
/// percent of all samples are not above it (nearest rank). None if there are too few samples ([`samples_needed`]).
pub fn percentile_of_buckets(buckets: &[(u64, u64)], p: f64) -> Option<u64> {
    let total: u64 = buckets.iter().map(|(_, count)| count).sum();
    if total < samples_needed(p)? { None } else { any_percentile(buckets, p) }
}

/// The same of however few samples, for what is judged together with others. None if there are none.
pub fn any_percentile(buckets: &[(u64, u64)], p: f64) -> Option<u64> {
    let rank = rank(p, buckets.iter().map(|(_, count)| count).sum());
    let mut seen = 0;
    buckets.iter().find_map(|&(value, count)| {
        seen += count;
        (seen >= rank).then_some(value)
    })
}

/// A percentile of samples of which some are known only to be longer than an age (censored samples).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Percentile {
    /// The percentile.
    Exactly(u64),
    /// A lower bound, because samples that count with their age may be longer.
    AtLeast {
        /// The lower bound.
        at_least: u64,
    },
}

impl Percentile {
    /// The percentile or its lower bound.
    pub fn value(self) -> u64 {
        match self {
            Self::Exactly(value) | Self::AtLeast { at_least: value } => value,
        }
    }

    /// Whether it is a lower bound.
    pub fn is_lower_bound(self) -> bool {
        matches!(self, Self::AtLeast { .. })
    }
}

/// Percentile `p` like [`percentile_of_buckets`], of samples and of ages at which other samples were given up. An age counts as
/// a sample. The percentile is exact if enough samples reach it: then it does not matter how long the others would have
/// taken.
pub fn percentile_with_ages(samples: &[(u64, u64)], ages: &[(u64, u64)], p: f64) -> Option<Percentile> {
    if ages.is_empty() {
        return percentile_of_buckets(samples, p).map(Percentile::Exactly);
    }
    let all = merge_buckets([samples, ages]);
    let value = percentile_of_buckets(&all, p)?;
    let total: u64 = all.iter().map(|(_, count)| count).sum();
    let reached: u64 =
        samples.iter().take_while(|(sample, _)| *sample <= value).map(|(_, count)| count).sum();
    let exact = reached >= rank(p, total);
    Some(if exact { Percentile::Exactly(value) } else { Percentile::AtLeast { at_least: value } })
}

/// The nearest rank of percentile `p` among `total` samples, from 1.
pub(crate) fn rank(p: f64, total: u64) -> u64 {
    ((p / 100.0 * total as f64).ceil() as u64).clamp(1, total.max(1))
}

/// Merges bucket lists into one in ascending order. Each value appears once, and its counts are summed.
pub fn merge_buckets<'a>(lists: impl IntoIterator<Item = &'a [(u64, u64)]>) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> =
        lists.into_iter().flatten().copied().filter(|&(_, count)| count > 0).collect();
    all.sort_unstable();
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.saturating_add(next.1);
        }
        same
    });
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_percentile_is_a_lower_bound_if_samples_that_were_given_up_may_move_it() {
        let timed_out = |p| percentile_with_ages(&[(1, 900)], &[(1000, 100)], p);
        assert_eq!(timed_out(50.0), Some(Percentile::Exactly(1)));
        assert_eq!(timed_out(90.0), Some(Percentile::Exactly(1)));
        assert_eq!(timed_out(90.1), Some(Percentile::AtLeast { at_least: 1000 }));
        // These ages are below all samples, so they move every percentile that they can reach.
        let cut = |p| percentile_with_ages(&[(10, 900)], &[(1, 100)], p);
        assert_eq!(cut(5.0), Some(Percentile::AtLeast { at_least: 1 }));
        assert_eq!(cut(50.0), Some(Percentile::Exactly(10)));
        assert_eq!(cut(99.0), Some(Percentile::AtLeast { at_least: 10 }));
        assert_eq!(percentile_with_ages(&[(7, 100)], &[], 50.0), Some(Percentile::Exactly(7)));
        assert_eq!(percentile_with_ages(&[], &[(7, 19)], 50.0), None, "too few");
        let all_lost = percentile_with_ages(&[], &[(7, 20)], 50.0);
        assert_eq!(all_lost, Some(Percentile::AtLeast { at_least: 7 }));
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        for (p, n) in [(50.0, 20), (90.0, 100), (99.0, 1000), (99.9, 10_000), (0.0, 10)] {
            assert_eq!(samples_needed(p), Some(n), "p{p}");
        }
        for p in [100.0, 101.0, -1.0, f64::NAN] {
            assert_eq!(samples_needed(p), None);
        }
    }

    #[test]
    fn too_few_samples_have_no_percentile() {
        assert_eq!(percentile_of_buckets(&[(7, 999)], 99.0), None);
        assert_eq!(percentile_of_buckets(&[(7, 1000)], 99.0), Some(7));
        assert_eq!(percentile_of_buckets(&[], 50.0), None);
    }

    #[test]
    fn nearest_rank_by_hand() {
        let thousand: Vec<(u64, u64)> = (1..=1000).map(|v| (v, 1)).collect();
        assert_eq!(percentile_of_buckets(&thousand, 50.0), Some(500));
        assert_eq!(percentile_of_buckets(&thousand, 99.0), Some(990));
        assert_eq!(percentile_of_buckets(&[(1, 990), (50, 10)], 99.0), Some(1));
        assert_eq!(percentile_of_buckets(&[(1, 989), (50, 11)], 99.0), Some(50));
    }

    fn buckets() -> impl Strategy<Value = Vec<(u64, u64)>> {
        proptest::collection::btree_map(0..5000u64, 1..50u64, 0..60).prop_map(|map| map.into_iter().collect())
    }

    proptest! {
        /// However long the samples that were given up would have taken, a percentile that is called exact stays, and a
        /// lower bound is one.
        #[test]
        fn what_was_given_up_cannot_refute_a_percentile(
            samples in prop::collection::vec((1_u64..100, 1_u64..50), 1..20),
            given_up in prop::collection::vec((1_u64..100, 0_u64..1000), 1..20),
            p in 1.0..99.0,
        ) {
            let samples = merge_buckets([samples.as_slice()]);
            let ages: Vec<(u64, u64)> = given_up.iter().map(|(age, _)| (*age, 1)).collect();
            let truth: Vec<(u64, u64)> = given_up.iter().map(|(age, more)| (age + more, 1)).collect();
            let truth = percentile_of_buckets(&merge_buckets([samples.as_slice(), &truth]), p);
            match percentile_with_ages(&samples, &merge_buckets([ages.as_slice()]), p) {
                Some(Percentile::Exactly(value)) => prop_assert_eq!(truth, Some(value)),
                Some(Percentile::AtLeast { at_least }) => prop_assert!(truth >= Some(at_least)),
                None => prop_assert_eq!(truth, None),
            }
        }

        #[test]
        fn as_if_every_sample_were_sorted(list in buckets(), p in 0.0..99.9f64) {
            let flat: Vec<u64> = list.iter().flat_map(|&(v, n)| std::iter::repeat_n(v, n as usize)).collect();
            let expected = (flat.len() as u64 >= samples_needed(p).unwrap())
                .then(|| flat[((p / 100.0 * flat.len() as f64).ceil() as usize).max(1) - 1]);
            prop_assert_eq!(percentile_of_buckets(&list, p), expected);
        }

        #[test]
        fn merging_keeps_every_sample(a in buckets(), b in buckets()) {
            let merged = merge_buckets([a.as_slice(), b.as_slice()]);
            prop_assert!(merged.windows(2).all(|w| w[0].0 < w[1].0));
            let count = |list: &[(u64, u64)]| list.iter().map(|x| x.1).sum::<u64>();
            prop_assert_eq!(count(&merged), count(&a) + count(&b));
        }
    }
}
