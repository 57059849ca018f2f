//! Percentiles of large samples in histogram buckets, and how many samples a percentile needs.

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
    if total < samples_needed(p)? {
        return None;
    }
    let rank = ((p / 100.0 * total as f64).ceil() as u64).clamp(1, total);
    let mut seen = 0;
    buckets.iter().find_map(|&(value, count)| {
        seen += count;
        (seen >= rank).then_some(value)
    })
}

/// Merges bucket lists into one in ascending order. Each value appears once, and its counts are summed.
pub fn merge_buckets<'a>(lists: impl IntoIterator<Item = &'a [(u64, u64)]>) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> =
        lists.into_iter().flatten().copied().filter(|&(_, count)| count > 0).collect();
    all.sort_unstable();
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
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
