//! A percentile of the samples of several trials together, and how well it is known.
//!
//! The unit is the trial, because samples of one trial share its conditions. The error of the percentile is that of the jackknife,
//! which leaves out one trial after another (Tukey, "Bias and confidence in not-quite large samples", Ann. Math. Statist. 29, 1958;
//! Miller, "The jackknife: a review", Biometrika 61, 1974). It needs no random numbers, and its pseudo-values are one number for
//! each trial, which can be paired by rounds as other figures are.

use crate::percentile::{merge_buckets, rank};

/// The logarithm of percentile `p` (0..100) of all trials' samples together: one number for each trial, so that their mean is that
/// logarithm, and the error of their mean the error of the jackknife. Trials are `(value, count)` pairs in ascending order; values
/// below 1 count as 1. None if there are no samples. How many a percentile needs is [`crate::samples_needed`].
pub fn pseudo_values(trials: &[Vec<(u64, u64)>], p: f64) -> Option<Vec<f64>> {
    let all = merge_buckets(trials.iter().map(Vec::as_slice));
    let log = |without: &[(u64, u64)]| nearest_rank(&all, without, p).map(|value| (value.max(1) as f64).ln());
    let whole = log(&[])?;
    let without: Vec<f64> = trials.iter().map(|trial| log(trial).unwrap_or(whole)).collect();
    let mean = without.iter().sum::<f64>() / without.len() as f64;
    let others = trials.len() as f64 - 1.0;
    Some(without.into_iter().map(|log| whole + others * (mean - log)).collect())
}

/// Percentile `p` of the samples (nearest rank), as if those of one of their trials were not there. None if there are no others.
fn nearest_rank(all: &[(u64, u64)], without: &[(u64, u64)], p: f64) -> Option<u64> {
    let count = |buckets: &[(u64, u64)]| buckets.iter().map(|(_, count)| count).sum::<u64>();
    let total = count(all).saturating_sub(count(without));
    let (wanted, mut seen, mut left_out) = (rank(p, total), 0_u64, without.iter().peekable());
    let reached = |(value, count): &&(u64, u64)| {
        let own = left_out.next_if(|(other, _)| other == value).map_or(0, |(_, count)| *count);
        seen += count.saturating_sub(own);
        seen >= wanted
    };
    all.iter().filter(|_| total > 0).find(reached).map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Location;

    #[test]
    fn by_hand() {
        // The 60th percentile of all 20 is 2; without the first trial it is 4, without one of the others 1.
        let trials = [vec![(1, 10)], vec![(2, 1), (4, 4)], vec![(2, 1), (4, 4)]];
        let found = pseudo_values(&trials, 60.0).unwrap();
        let mean = found.iter().sum::<f64>() / 3.0;
        assert!((mean - 2_f64.ln()).abs() < 1e-12, "{found:?}");
        let without = [4_f64.ln(), 1_f64.ln(), 1_f64.ln()];
        let middle = without.iter().sum::<f64>() / 3.0;
        for (found, without) in found.iter().zip(without) {
            assert!((found - (2_f64.ln() + 2.0 * (middle - without))).abs() < 1e-12);
        }
        assert_eq!(
            pseudo_values(&[vec![(0, 3)]], 50.0),
            Some(vec![0.0]),
            "a single trial, and no time is below a microsecond"
        );
        assert_eq!(pseudo_values(&[vec![], vec![]], 50.0), None);
    }

    #[test]
    fn a_trial_unlike_the_others_makes_the_error_large() {
        let usual = || vec![(100, 990), (200, 10)];
        let mut trials: Vec<_> = (0..10).map(|_| usual()).collect();
        let error = |trials: &[Vec<(u64, u64)>]| {
            Location::trimmed(&pseudo_values(trials, 99.0).unwrap(), 0).unwrap().error
        };
        assert_eq!(error(&trials), 0.0);
        trials[3] = vec![(100, 700), (30_000, 300)];
        assert!(error(&trials) > 1.0, "{}", error(&trials));
    }

    proptest! {
        #[test]
        fn their_mean_is_the_percentile_of_all(
            trials in prop::collection::vec(prop::collection::btree_map(1..5000_u64, 1..50_u64, 1..20), 1..12),
            p in 1.0..99.9_f64,
        ) {
            let trials: Vec<Vec<(u64, u64)>> = trials.into_iter().map(|trial| trial.into_iter().collect()).collect();
            let found = pseudo_values(&trials, p).unwrap();
            let all: Vec<u64> = trials.iter().flatten().flat_map(|(value, n)| vec![*value; *n as usize]).collect();
            let sorted = { let mut all = all; all.sort_unstable(); all };
            let expected = sorted[((p / 100.0 * sorted.len() as f64).ceil() as usize).max(1) - 1];
            let mean = found.iter().sum::<f64>() / found.len() as f64;
            prop_assert!((mean - (expected as f64).ln()).abs() < 1e-9, "{} {}", mean.exp(), expected);
        }
    }
}
