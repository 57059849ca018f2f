//! Levels: one number for each row, so that their differences are those of the pairs that were compared.
//!
//! Differences of trimmed means do not add up: that of `a` and `c` is not that of `a` and `b` plus that of `b` and `c`. Nor do
//! those of rows that miss some rounds. So the means of single rows contradict what was found of pairs. Levels do not, as far
//! as pairs form no circle.

/// The middle of a row's own numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Middle {
    /// A finite number.
    pub level: f64,
    /// How many numbers it is the middle of.
    pub n: usize,
}

/// The levels of rows, of which `own` has the middles. A pair says by how much its first row exceeds its second. Earlier pairs take
/// precedence: a pair is left out if those before it imply the difference of its rows.
///
/// Rows that pairs connect are moved together, so that their levels are on average their own middles, weighted by how many numbers
/// these have. A level is None if neither the row nor one that it is connected with has a middle.
pub fn levels(
    own: &[Option<Middle>],
    pairs: impl IntoIterator<Item = (usize, usize, f64)>,
) -> Vec<Option<f64>> {
    let mut groups: Vec<usize> = (0..own.len()).collect();
    let mut members: Vec<Vec<usize>> = (0..own.len()).map(|row| vec![row]).collect();
    let mut levels = vec![0.0; own.len()];
    for (a, b, difference) in pairs {
        let (from, to, moved) = (groups[a], groups[b], levels[b] + difference - levels[a]);
        if from == to {
            continue;
        }
        // The smaller group moves, so that no row moves often.
        let smaller = members[from].len() <= members[to].len();
        let (from, to, moved) = if smaller { (from, to, moved) } else { (to, from, -moved) };
        let rows = std::mem::take(&mut members[from]);
        for row in &rows {
            levels[*row] += moved;
            groups[*row] = to;
        }
        members[to].extend(rows);
    }
    let mut off = vec![(0.0, 0.0); own.len()];
    for ((own, group), level) in own.iter().zip(&groups).zip(&levels) {
        let Some(own) = own else { continue };
        off[*group].0 += own.n as f64 * (own.level - level);
        off[*group].1 += own.n as f64;
    }
    let moved = |(group, level): (&usize, f64)| {
        let (sum, weight) = off[*group];
        (weight > 0.0).then(|| level + sum / weight)
    };
    groups.iter().zip(levels).map(moved).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn middle(level: f64, n: usize) -> Option<Middle> {
        Some(Middle { level, n })
    }

    #[test]
    fn by_hand() {
        let own = [middle(1.0, 2), middle(2.0, 2), None, middle(7.0, 3), None];
        // The first two are 2 apart instead of 1, so each is moved by a half. The third is known from the second alone.
        let pairs = [(1, 0, 2.0), (2, 1, 0.25), (2, 0, 9.0)];
        assert_eq!(levels(&own, pairs), [Some(0.5), Some(2.5), Some(2.75), Some(7.0), None]);
        assert_eq!(levels(&own, []), [Some(1.0), Some(2.0), None, Some(7.0), None]);
        // A row that was seen more often is moved less.
        assert_eq!(levels(&[middle(0.0, 3), middle(1.0, 1)], [(0, 1, 3.0)])[0], Some(1.0));
    }

    proptest! {
        #[test]
        fn earlier_pairs_hold(
            own in prop::collection::vec((-5.0..5.0_f64, 1..9_usize), 2..8),
            pairs in prop::collection::vec((0..8_usize, 0..8_usize, -1.0..1.0_f64), 0..12),
        ) {
            let own: Vec<Option<Middle>> = own.into_iter().map(|(level, n)| middle(level, n)).collect();
            let pairs: Vec<_> = pairs.into_iter().filter(|(a, b, _)| a.max(b) < &own.len() && a != b).collect();
            let found: Vec<f64> = levels(&own, pairs.clone()).into_iter().map(Option::unwrap).collect();
            let mut connected: Vec<usize> = (0..own.len()).collect();
            for (a, b, difference) in pairs {
                if connected[a] != connected[b] {
                    prop_assert!((found[a] - found[b] - difference).abs() < 1e-9);
                    let (from, to) = (connected[a], connected[b]);
                    connected.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
                }
            }
            let moved = |(own, level): (&Option<Middle>, &f64)| own.unwrap().n as f64 * (own.unwrap().level - level);
            prop_assert!(own.iter().zip(&found).map(moved).sum::<f64>().abs() < 1e-9);
        }
    }
}
