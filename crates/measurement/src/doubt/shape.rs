//! The shape of throughput over time and of the latency distribution: steady or not, one peak or two.

use super::Evidence;

/// The halves of a steady window differ by at most this share.
pub const HALVES: f64 = 0.15;
/// The first tenth of a warmed-up window has at least this share of a usual tenth's operations.
const BEGINNING: f64 = 0.8;
/// Tenths with fewer operations than this on average vary too much by chance.
const FEWEST: f64 = 100.0;

/// Whether a window is unsteady: its halves differ, or the standard deviation of its tenths exceeds their mean.
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

/// Whether the first tenth is slower than all others.
pub(super) fn rising(tenths: &[u64]) -> Option<Evidence> {
    mean(tenths)?;
    let (first, rest) = tenths.split_first()?;
    let mut sorted = rest.to_vec();
    sorted.sort_unstable();
    let usual = sorted[sorted.len() / 2] as f64;
    // If another tenth is as slow, the first tenth is a hiccup rather than a warm-up.
    let lowest = sorted[0] as f64;
    let share = *first as f64 / usual.max(1.0);
    (share < BEGINNING && lowest > *first as f64).then_some(Evidence::SlowBeginning { share })
}

fn mean(tenths: &[u64]) -> Option<f64> {
    let mean = tenths.iter().sum::<u64>() as f64 / tenths.len().max(1) as f64;
    (tenths.len() >= 4 && mean >= FEWEST).then_some(mean)
}

/// The factor between the bounds of neighbouring bins of latency: fine enough to separate peaks, wide enough to be
/// smooth.
const STEP: f64 = 1.5;
/// The smallest share of all operations that makes a peak.
const PEAK: f64 = 0.005;
/// The fewest operations that make a peak.
const PEAK_COUNT: u64 = 20;
/// The most that the valley between two peaks has, as a share of the lower one's density.
const VALLEY: f64 = 0.1;
/// Peaks are distinct if their latencies differ by at least this factor.
const APART: f64 = 4.0;

/// Finds two peaks in a latency distribution of `(microseconds, count)` pairs in ascending order.
pub(super) fn bimodal(buckets: &[(u64, u64)]) -> Option<Evidence> {
    let total: u64 = buckets.iter().map(|(_, count)| count).sum();
    let first = buckets.first()?.0.max(1) as f64;
    let bin = |micros: u64| ((micros.max(1) as f64 / first).ln() / STEP.ln()) as usize;
    let mut bins = vec![0_u64; bin(buckets.last()?.0) + 1];
    for (micros, count) in buckets {
        bins[bin(*micros)] += count;
    }
    // A cluster is a run of bins between valleys: its highest bin, that bin's count, and its total.
    let mut clusters: Vec<(usize, u64, u64)> = Vec::new();
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
    let micros = |index: usize| first * STEP.powi(index as i32);
    let peak = |(index, _, sum): (usize, u64, u64)| (sum as f64 / total as f64, micros(index));
    (micros(high.0) >= APART * micros(low.0))
        .then(|| Evidence::TwoPeaks { quick: peak(*low), slow: peak(*high) })
}
