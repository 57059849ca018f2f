//! Ranks: the rank of a row is the number of rows that are certainly better, plus one.

use stats::{Family, LEVEL};

use super::Rows;

/// The ranks of rows, which are positions in the estimates. A row is certainly better than another if its p-value, corrected
/// for all pairs, is small and its interval excludes 1.
pub(super) fn ranks(rows: &Rows, of: &[usize]) -> Vec<usize> {
    let pairs: Vec<(usize, usize)> = (0..of.len()).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    let seen: Vec<_> = pairs.iter().map(|(a, b)| rows.compare(of[*a], of[*b], 0.0)).collect();
    let p: Vec<f64> = seen.iter().map(|seen| seen.map_or(1.0, |seen| seen.p)).collect();
    let mut ranks = vec![1; of.len()];
    for (((a, b), seen), p) in pairs.iter().zip(&seen).zip(Family::pairs(of.len()).correct(&p)) {
        let Some(seen) = seen.filter(|_| p <= LEVEL) else { continue };
        if seen.low > 0.0 {
            ranks[*b] += 1;
        } else if seen.high < 0.0 {
            ranks[*a] += 1;
        }
    }
    ranks
}
