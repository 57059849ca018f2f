//! Shapes in time and in latency: steady or not, one peak or two. Pure.

use super::Evidence;

/// The halves of a steady window differ by less than this.
pub const HALVES: f64 = 0.15;
/// The beginning of a warmed-up window reaches this share of the rest.
const BEGINNING: f64 = 0.8;
/// Tenths with fewer operations than this on average scatter by chance.
const FEWEST: f64 = 100.0;

/// What makes a window unsteady: its second half against its first, or tenths that scatter more than their mean.
pub(super) fn unsteady(tenths: &[u64]) -> Option<Evidence> {
    let mean = mean(tenths)?;
    let half = |part: &[u64]| part.iter().sum::<u64>() as f64;
    let (first, second) = tenths.split_at(tenths.len() / 2);
    let change = half(second) / half(first).max(1.0) - 1.0;
    let variance =
        tenths.iter().map(|count| (*count as f64 - mean).powi(2)).sum::<f64>() / tenths.len() as f64;
    if variance.sqrt() > mean {
        return Some(Evidence::Scatter { times: variance.sqrt() / mean });
    }
    (change.abs() > HALVES).then_some(Evidence::Halves { change })
}

/// Whether the first tenth lags behind a rest that is steady in itself.
pub(super) fn rising(tenths: &[u64]) -> Option<Evidence> {
    mean(tenths)?;
    let (first, rest) = tenths.split_first()?;
    let mut sorted = rest.to_vec();
    sorted.sort_unstable();
    let usual = sorted[sorted.len() / 2] as f64;
    // All of the rest faster than the first: a single hiccup there is no warm-up.
    let lowest = sorted[0] as f64;
    let share = *first as f64 / usual.max(1.0);
    (share < BEGINNING && lowest > *first as f64).then_some(Evidence::SlowBeginning { share })
}

fn mean(tenths: &[u64]) -> Option<f64> {
    let mean = tenths.iter().sum::<u64>() as f64 / tenths.len().max(1) as f64;
    (tenths.len() >= 4 && mean >= FEWEST).then_some(mean)
}

/// Bins of latency grow by this factor: fine enough to keep peaks apart, wide enough to be smooth.
const STEP: f64 = 1.5;
/// A peak is this share of all operations or more ...
const PEAK: f64 = 0.005;
/// ... and at least so many.
const PEAK_COUNT: u64 = 20;
/// The valley between two peaks has at most this share of the lower one's density.
const VALLEY: f64 = 0.1;
/// Peaks nearer than this are one.
const APART: f64 = 4.0;

/// Two peaks in a latency distribution, of `(microseconds, count)` pairs in ascending order.
pub(super) fn bimodal(buckets: &[(u64, u64)]) -> Option<Evidence> {
    let total: u64 = buckets.iter().map(|(_, count)| count).sum();
    let first = buckets.first()?.0.max(1) as f64;
    let bin = |micros: u64| ((micros.max(1) as f64 / first).ln() / STEP.ln()) as usize;
    let mut bins = vec![0_u64; bin(buckets.last()?.0) + 1];
    for (micros, count) in buckets {
        bins[bin(*micros)] += count;
    }
    // Clusters: runs of bins between valleys.
    let mut clusters: Vec<(usize, u64, u64)> = Vec::new(); // highest bin, its count, total
    let mut gap = true;
    for (index, count) in bins.iter().enumerate() {
        let height = clusters.last().map_or(0, |cluster| cluster.1);
        if (*count as f64) <= VALLEY * PEAK * total as f64
            || (*count as f64) < VALLEY * VALLEY * height as f64
        {
            gap = true;
        } else if std::mem::take(&mut gap) {
            clusters.push((index, *count, *count));
        } else if let Some(cluster) = clusters.last_mut() {
            cluster.2 += count;
            if *count > cluster.1 {
                (cluster.0, cluster.1) = (index, *count);
            }
        }
    }
    clusters.retain(|(_, _, sum)| *sum >= PEAK_COUNT && *sum as f64 >= PEAK * total as f64);
    let (low, high) = (clusters.first()?, clusters.last()?);
    let at = |index: usize| first * STEP.powi(index as i32);
    let peak = |(index, _, sum): (usize, u64, u64)| (sum as f64 / total as f64, at(index));
    (at(high.0) >= APART * at(low.0)).then(|| Evidence::TwoPeaks { quick: peak(*low), slow: peak(*high) })
}
