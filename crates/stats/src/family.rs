//! Several statements that are made together: corrects their p-values so that the probability of any error is that of a
//! single statement.
//!
//! Holm ("A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6, 1979) multiplies the smallest
//! p-value by the number of statements, the next one by one less, and so on. Shaffer ("Modified sequentially rejective
//! multiple test procedures", JASA 81, 1986) multiplies by the number of equalities that can still be true. If of three
//! systems two differ, at least one of the others differs from the third as well.

/// The most things whose pairs have Shaffer's multipliers. With more of them, Holm's are hardly larger at first, and the
/// numbers of equalities take long to list.
const MOST_THINGS: usize = 50;

/// Which numbers of a family's equalities can be true at once: `possible[n]` for each number from 0 to its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    possible: Vec<bool>,
}

impl Family {
    /// Equalities of which any may be true or not.
    pub fn unrelated(size: usize) -> Self {
        Self { possible: vec![true; size + 1] }
    }

    /// The equalities of all pairs of so many things. Those of more than [`MOST_THINGS`] count as unrelated, which only
    /// makes statements more careful.
    pub fn pairs(of: usize) -> Self {
        let pairs = |n: usize| n * n.saturating_sub(1) / 2;
        if of > MOST_THINGS {
            return Self::unrelated(pairs(of));
        }
        let mut possible = vec![false; pairs(of) + 1];
        // What is equal forms groups. The numbers of the first `n` things follow from the size of the last group.
        let mut numbers = vec![vec![0]];
        for n in 1..=of {
            let mut here: Vec<usize> = (1..=n)
                .flat_map(|group| numbers[n - group].iter().map(move |rest| rest + pairs(group)))
                .collect();
            here.sort_unstable();
            here.dedup();
            numbers.push(here);
        }
        numbers[of].iter().for_each(|number| possible[*number] = true);
        Self { possible }
    }

    /// The number of equalities.
    pub fn size(&self) -> usize {
        self.possible.len() - 1
    }

    /// This family and another, as one.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut possible = vec![false; self.possible.len() + other.possible.len() - 1];
        for (a, _) in self.possible.iter().enumerate().filter(|(_, possible)| **possible) {
            for (b, _) in other.possible.iter().enumerate().filter(|(_, possible)| **possible) {
                possible[a + b] = true;
            }
        }
        Self { possible }
    }

    /// The corrected p-values, in the order of the input: one for each statement of the family.
    pub fn correct(&self, p: &[f64]) -> Vec<f64> {
        let mut order: Vec<usize> = (0..p.len()).collect();
        order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
        let (mut corrected, mut largest) = (vec![1.0; p.len()], 0.0_f64);
        for (rank, index) in order.into_iter().enumerate() {
            let left = (p.len() - rank).min(self.size());
            let true_at_most = (0..=left).rev().find(|n| self.possible[*n]).unwrap_or(left).max(1);
            largest = largest.max(p[index] * true_at_most as f64).min(1.0);
            corrected[index] = largest;
        }
        corrected
    }
}

/// Corrects p-values of statements without any relation (Holm).
pub fn holm(p: &[f64]) -> Vec<f64> {
    Family::unrelated(p.len()).correct(p)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn holm_by_hand() {
        assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
        assert_eq!(holm(&[0.5, 0.6]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    /// The multipliers of the sorted p-values.
    fn multipliers(family: &Family) -> Vec<usize> {
        let size = family.size();
        // Distances that leave the maximum of all smaller ones behind.
        let p: Vec<f64> = (0..size).map(|i| 1e-9 * 10_f64.powi(i as i32)).collect();
        family.correct(&p).iter().zip(p).map(|(corrected, p)| (corrected / p).round() as usize).collect()
    }

    #[test]
    fn pairs_have_shaffers_multipliers() {
        assert_eq!(multipliers(&Family::pairs(2)), [1]);
        assert_eq!(multipliers(&Family::pairs(3)), [3, 1, 1]);
        assert_eq!(multipliers(&Family::pairs(4)), [6, 3, 3, 3, 2, 1]);
        assert_eq!(multipliers(&Family::unrelated(3)), [3, 2, 1]);
        assert_eq!(multipliers(&Family::pairs(0).and(&Family::unrelated(2))), [2, 1]);
        // Miri takes seconds for each hundred thousand.
        let many = if cfg!(miri) { 60 } else { 1000 };
        assert_eq!(Family::pairs(many), Family::unrelated(many * (many - 1) / 2));
    }

    #[test]
    fn families_together_allow_what_each_allows() {
        // Three systems at two points: 0, 1 or 3 equalities at each, so 0, 1, 2, 3, 4 or 6 in all.
        let both = Family::pairs(3).and(&Family::pairs(3));
        assert_eq!(multipliers(&both), [6, 4, 4, 3, 2, 1]);
    }

    proptest! {
        #[test]
        fn corrections_only_raise_and_keep_the_order(
            pairs in 0_usize..5,
            p in proptest::collection::vec(0.0..1.0_f64, 10..20),
        ) {
            let family = Family::pairs(pairs).and(&Family::unrelated(p.len() - pairs * pairs.saturating_sub(1) / 2));
            let corrected = family.correct(&p);
            let by_holm = holm(&p);
            for (i, a) in p.iter().enumerate() {
                prop_assert!(corrected[i] >= *a && corrected[i] <= by_holm[i]);
                for (j, b) in p.iter().enumerate() {
                    prop_assert!(a > b || corrected[i] <= corrected[j]);
                }
            }
        }
    }
}
