//! Few rounds: how two rows of a table of rounds compare when each has been measured only a few times.
//!
//! The difference of two rows over three rounds has two degrees of freedom, and an interval of 4.3 standard errors to each
//! side. The other rows of the same rounds know more. They show what a round did to everything that ran in it, and how
//! noisy a row usually is here. Below [`MANY`] rounds both are used. From there on, the pair alone is enough: Yuen's t of
//! the paired differences.
//!
//! Below [`MANY`] rounds, a comparison of `a` and `b` is computed as follows:
//!
//! 1. What each round did is estimated from the other rows. They are centred, and weighted by their precision. The result
//!    is shrunk towards nothing by as much of its variance as chance explains (James and Stein, "Estimation with quadratic
//!    loss", 4th Berkeley Symposium, 1961), and taken away from both rows.
//! 2. The variance of each row is raised, but never lowered, towards the mean of the systems' variances. That mean counts
//!    as one degree of freedom. It is the empirical Bayes estimate of Smyth ("Linear models and empirical Bayes methods",
//!    Stat. Appl. Genet. Mol. Biol. 3, 2004) in one direction only, because variances that are lowered break the promise
//!    where rows differ in their noise.
//! 3. The variance of the difference is the sum of both, or that of the paired differences if that is larger. Its degrees
//!    of freedom are those of Welch and Satterthwaite.
//!
//! Simulations of this rule and of what was rejected are in docs/statistics.md.

use std::collections::{BTreeMap, BTreeSet};

use crate::sample::median;
use crate::{Location, Middle};

/// The number of rounds from which a pair of rows is compared by itself.
pub const MANY: usize = 9;

/// The most rows that show what a round did.
const MOST_ROWS: usize = 64;

/// The logarithms of a row's figures by round. Higher is better.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PanelRow {
    /// Finite numbers.
    pub by_round: BTreeMap<u32, f64>,
    /// Whether the row is one of those that are compared. The others are yardsticks: they show what a round did, but not
    /// how noisy systems are.
    pub system: bool,
    /// By how much all of its numbers may be wrong alike.
    pub bound: f64,
}

/// Everything that ran in the same rounds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Panel {
    rows: Vec<PanelRow>,
    /// Whether no numbers are left out of means.
    untrimmed: bool,
}

/// The numbers of all rows in the same rounds, as used for one comparison.
struct Rounds {
    /// See [`Panel`].
    untrimmed: bool,
    /// Each has one number for each round.
    rows: Vec<Vec<f64>>,
    /// The positions of the systems.
    systems: Vec<usize>,
}

impl Panel {
    /// Makes a panel of rows. They are referred to by their position.
    pub fn new(rows: Vec<PanelRow>) -> Self {
        Self { rows, untrimmed: false }
    }

    /// The same for numbers of which only the mean of all means something: those of [`crate::pseudo_values`].
    pub fn of_pseudo_values(rows: Vec<PanelRow>) -> Self {
        Self { rows, untrimmed: true }
    }

    /// The rounds in which both rows have a number, in ascending order.
    pub fn shared_rounds(&self, a: usize, b: usize) -> Vec<u32> {
        let (a, b) = (&self.rows[a].by_round, &self.rows[b].by_round);
        a.keys().filter(|round| b.contains_key(round)).copied().collect()
    }

    /// By how much row `a` exceeds row `b` in these rounds, which both have. None for fewer than two rounds.
    pub fn difference(&self, a: usize, b: usize, rounds: &[u32]) -> Option<Location> {
        let bound = self.rows[a].bound + self.rows[b].bound;
        Some(self.difference_by_chance(a, b, rounds)?.within(bound))
    }

    fn difference_by_chance(&self, a: usize, b: usize, rounds: &[u32]) -> Option<Location> {
        let numbers = |row: usize| rounds.iter().map(move |round| self.rows[row].by_round[round]);
        let differences: Vec<f64> = numbers(a).zip(numbers(b)).map(|(x, y)| x - y).collect();
        let paired = location(&differences, self.untrimmed)?;
        if rounds.len() >= MANY || a == b {
            return Some(paired);
        }
        let (first, table) = self.rounds(&[a, b], rounds);
        if table.rows.len() == first.len() {
            return Some(paired);
        }
        table.difference(first[0], first[1], &paired)
    }

    /// By how much row `a` exceeds row `b` in all rounds that both have, however few. None if there is none.
    pub fn gap(&self, a: usize, b: usize) -> Option<f64> {
        let rounds = self.shared_rounds(a, b);
        match rounds[..] {
            [] => None,
            [only] => Some(self.rows[a].by_round[&only] - self.rows[b].by_round[&only]),
            _ => Some(self.difference(a, b, &rounds)?.estimate),
        }
    }

    /// The mean of a row in these rounds, which it has, as it was measured: what the rounds did to everything is in its error.
    /// None for fewer than two rounds.
    pub fn mean(&self, row: usize, rounds: &[u32]) -> Option<Location> {
        let row = &self.rows[row];
        let numbers: Vec<f64> = rounds.iter().filter_map(|round| row.by_round.get(round).copied()).collect();
        Some(location(&numbers, self.untrimmed)?.within(row.bound))
    }

    /// The middle of a row's numbers. None if it has none.
    pub fn middle(&self, row: usize) -> Option<Middle> {
        let numbers: Vec<f64> = self.rows[row].by_round.values().copied().collect();
        let level = match numbers[..] {
            [] => None,
            [only] => Some(only),
            _ => Some(location(&numbers, self.untrimmed)?.estimate),
        };
        Some(Middle { level: level?, n: numbers.len() })
    }

    /// The `wanted` rows and others that have a number in each of these rounds, and where the wanted ones are among them. Of
    /// many rows it takes some at equal distances, because each of them adds less.
    fn rounds(&self, wanted: &[usize], rounds: &[u32]) -> (Vec<usize>, Rounds) {
        let mut table = Rounds { untrimmed: self.untrimmed, rows: Vec::new(), systems: Vec::new() };
        let mut positions = vec![0; wanted.len()];
        let step = self.rows.len().div_ceil(MOST_ROWS).max(1);
        let spread = (0..self.rows.len()).step_by(step);
        for index in spread.chain(wanted.iter().copied()).collect::<BTreeSet<usize>>() {
            let row = &self.rows[index];
            let numbers: Option<Vec<f64>> =
                rounds.iter().map(|round| row.by_round.get(round).copied()).collect();
            let Some(numbers) = numbers else { continue };
            if let Some(place) = wanted.iter().position(|wanted| *wanted == index) {
                positions[place] = table.rows.len();
            }
            if row.system {
                table.systems.push(table.rows.len());
            }
            table.rows.push(numbers);
        }
        (positions, table)
    }
}

/// The location of numbers, `untrimmed` if none may be left out.
fn location(numbers: &[f64], untrimmed: bool) -> Option<Location> {
    if untrimmed { Location::trimmed(numbers, 0) } else { Location::of(numbers) }
}

/// The variance of a mean, raised towards that of the systems, which counts as one degree of freedom.
fn raised(variance: f64, df: f64, prior: Option<f64>) -> f64 {
    prior.map_or(variance, |prior| variance.max((prior + df * variance) / (df + 1.0)))
}

/// The degrees of freedom of such a variance: the prior adds as much as it is small beside it, at most one.
fn degrees(variance: f64, df: f64, prior: Option<f64>) -> f64 {
    let added = prior.filter(|_| variance > 0.0).map_or(0.0, |prior| (prior / variance).min(1.0));
    df + added
}

impl Rounds {
    fn difference(&self, a: usize, b: usize, paired: &Location) -> Option<Location> {
        let effects = self.effects(&[a, b]);
        let (first, second) = (self.location(a, &effects)?, self.location(b, &effects)?);
        let prior = self.prior(&effects);
        let (own_a, own_b) = (first.error.powi(2), second.error.powi(2));
        let sum = raised(own_a, first.df, prior) + raised(own_b, second.df, prior);
        let df = if own_a + own_b > 0.0 {
            (own_a + own_b).powi(2)
                / (own_a.powi(2) / degrees(own_a, first.df, prior)
                    + own_b.powi(2) / degrees(own_b, second.df, prior))
        } else {
            first.df + second.df
        };
        Some(Location {
            estimate: first.estimate - second.estimate,
            error: sum.max(paired.error.powi(2)).sqrt(),
            df,
            n: paired.n,
            bound: 0.0,
        })
    }

    /// What each round did to the rows but `without`, as far as it is more than chance.
    fn effects(&self, without: &[usize]) -> Vec<f64> {
        let rounds = self.rows.first().map_or(0, Vec::len);
        let centred: Vec<Vec<f64>> = self.rows.iter().map(|row| centred(row)).collect();
        let squares = |row: &[f64]| row.iter().map(|x| x * x).sum::<f64>() / (rounds.max(2) - 1) as f64;
        let variances: Vec<f64> = centred.iter().map(|row| squares(row)).collect();
        let usual = median(variances.iter().copied()).unwrap_or(0.0);
        let others: Vec<usize> = (0..self.rows.len()).filter(|row| !without.contains(row)).collect();
        // The smallest addition keeps the weight of rows without any noise finite.
        let weight = |row: usize| 1.0 / (variances[row] + usual + 1e-18);
        let total: f64 = others.iter().map(|row| weight(*row)).sum();
        if others.is_empty() {
            return vec![0.0; rounds];
        }
        let mean =
            |round: usize| others.iter().map(|row| weight(*row) * centred[*row][round]).sum::<f64>() / total;
        let mut effects: Vec<f64> = (0..rounds).map(mean).collect();
        let middle = effects.iter().sum::<f64>() / rounds as f64;
        effects.iter_mut().for_each(|effect| *effect -= middle);
        let chance: f64 =
            others.iter().map(|row| weight(*row).powi(2) * variances[*row]).sum::<f64>() / total.powi(2);
        let seen = squares(&effects);
        let kept = if seen > 0.0 { (1.0 - chance / seen).max(0.0) } else { 0.0 };
        effects.iter_mut().for_each(|effect| *effect *= kept);
        effects
    }

    /// The location of a row without the effects of the rounds.
    fn location(&self, row: usize, effects: &[f64]) -> Option<Location> {
        let numbers: Vec<f64> = self.rows[row].iter().zip(effects).map(|(x, effect)| x - effect).collect();
        location(&numbers, self.untrimmed)
    }

    /// The usual squared error of a system's mean. Two systems do not show what is usual.
    fn prior(&self, effects: &[f64]) -> Option<f64> {
        let squared = |row: &usize| Some(self.location(*row, effects)?.error.powi(2));
        let all: Vec<f64> = self.systems.iter().filter_map(squared).collect();
        (all.len() > 2).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }
}

/// The numbers less their middle: the mean, which becomes the median when there are enough numbers for one.
fn centred(row: &[f64]) -> Vec<f64> {
    let mean = || row.iter().sum::<f64>() / row.len() as f64;
    let middle = if row.len() < 5 { mean() } else { median(row.iter().copied()).unwrap_or_else(mean) };
    row.iter().map(|x| x - middle).collect()
}

#[cfg(test)]
mod tests;
