//! Compares three estimators on the same rounds, to show why Narrows uses the trimmed mean.

use stats::{Disturbances, LEVEL, Location, Noise, SplitMix64, shuffle};

use super::RUNS;

/// An interval of log-ratios.
type Interval = Option<(f64, f64)>;

/// Computes an interval from the log-ratios of rounds.
type Estimator = fn(&[f64]) -> Interval;

/// The mean with Student's t.
fn mean(ratios: &[f64]) -> Interval {
    Some(Location::trimmed(ratios, 0)?.interval(LEVEL))
}

/// The trimmed mean, which Narrows uses.
fn trimmed(ratios: &[f64]) -> Interval {
    Some(Location::of(ratios)?.interval(LEVEL))
}

/// Hodges and Lehmann's interval: the means of pairs that the signed-rank test does not reject.
fn signed_ranks(ratios: &[f64]) -> Interval {
    let (n, most) = (ratios.len(), ratios.len() * (ratios.len() + 1) / 2);
    // In how many of the 2^n choices of signs the positive ranks have each sum.
    let mut ways = vec![0.0; most + 1];
    ways[0] = 1.0;
    for rank in 1..=n {
        (rank..=most).rev().for_each(|sum| ways[sum] += ways[sum - rank]);
    }
    let all = 2_f64.powi(i32::try_from(n).ok()?);
    let mut below = 0.0;
    let allowed = |way: &&f64| {
        below += **way;
        2.0 * below / all <= LEVEL
    };
    let cut = ways.iter().take_while(allowed).count().checked_sub(1)?;
    let pairs =
        ratios.iter().enumerate().flat_map(|(i, a)| ratios[i..].iter().map(move |b| f64::midpoint(*a, *b)));
    let mut means: Vec<f64> = pairs.collect();
    means.sort_by(f64::total_cmp);
    Some((means[cut], means[most - 1 - cut]))
}

/// The estimators by name.
pub(super) const WAYS: [(&str, Estimator); 3] = [
    ("mean, Student", mean),
    ("trimmed mean, Yuen", trimmed),
    ("signed ranks, Hodges and Lehmann", signed_ranks),
];

/// The share of simulated comparisons whose interval contains the truth after `rounds` rounds, and the share that shows
/// a difference of 5 %. None if there is no interval.
pub(super) fn judge(way: Estimator, rounds: usize) -> Option<(f64, f64)> {
    let (mut held, mut found) = (0.0, 0.0);
    for seed in 0..RUNS {
        let mut noise = Disturbances::new(Noise::SHARED_MACHINE, seed);
        let mut order = SplitMix64::new(seed);
        let round = |_| {
            // Two equal systems, the reference and its twin.
            let (mut who, mut logs) = ([0, 1, 2, 3], [0.0; 4]);
            shuffle(&mut who, &mut order);
            who.iter().for_each(|index| logs[*index] = noise.next_log());
            logs[1] - logs[0]
        };
        let ratios: Vec<f64> = (0..rounds).map(round).collect();
        let (low, high) = way(&ratios)?;
        let share = 1.0 / RUNS as f64;
        held += if low <= 0.0 && high >= 0.0 { share } else { 0.0 };
        found += if low + 0.05_f64.ln_1p() > 0.0 { share } else { 0.0 };
    }
    Some((held, found))
}

#[test]
fn the_trimmed_mean_has_the_stated_coverage_and_finds_the_most_differences() {
    for rounds in [10, 20] {
        let [mean, trimmed, ranks] = WAYS.map(|(_, way)| judge(way, rounds).unwrap());
        assert!((0.93..=0.97).contains(&trimmed.0), "{trimmed:?}");
        assert!(trimmed.1 > mean.1 && trimmed.1 >= ranks.1, "{mean:?} {trimmed:?} {ranks:?}");
    }
}
