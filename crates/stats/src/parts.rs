//! Which parts of a whole carry its change, with an interval for each part: where CPU time went that profiles counted.
//!
//! Two arms have counts of samples by part, of several rounds. The whole of the second arm is K times that of the first. A part
//! that has the share p of the first whole and q of the second has changed by K q - p wholes of the first arm. The changes of parts
//! that do not overlap add up to K - 1.
//!
//! Samples of one part come in bursts, so its count scatters more from round to round than samples that are independent of each
//! other: by a factor of its own, its dispersion (McCullagh and Nelder, "Generalized Linear Models", 1989, section 4.5). Few
//! rounds hardly show a single part's dispersion, but all parts together show the usual one. Each part's own is drawn towards it,
//! as Smyth does with variances of genes ("Linear models and empirical Bayes methods", Stat. Appl. Genet. Mol. Biol. 3, 2004).
//! All intervals hold together: the level is divided among the parts (Bonferroni), and a fifth of it is kept for K.

use serde::{Deserialize, Serialize};

use crate::location::Location;
use crate::student;

/// What was counted in one round of an arm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// All samples.
    pub total: u64,
    /// Those of each part, in the same order in all rounds. Parts may overlap: a function may have called another.
    pub parts: Vec<u64>,
}

/// How much a part has changed, in wholes of the first arm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartChange {
    /// What it is in the first arm: its share.
    pub first: f64,
    /// What it is in the second arm: K times its share.
    pub second: f64,
    /// The lower end of the interval of `second - first`.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl PartChange {
    /// How much it has changed.
    pub fn change(&self) -> f64 {
        self.second - self.first
    }

    /// Whether it is certainly more in the second arm.
    pub fn has_grown(&self) -> bool {
        self.low > 0.0
    }
}

/// The share of the level that is kept for the ratio of the wholes.
const FOR_WHOLE: f64 = 0.2;

/// So many rounds' worth of a part's dispersion are those of all parts.
const DRAWN: f64 = 4.0;

/// The changes of all parts. `ratio` is the location of the logarithm of K. `level` is the probability that any interval misses the
/// truth.
///
/// None if an arm has fewer than two rounds with samples.
pub fn part_changes(ratio: &Location, rounds: [&[Counted]; 2], level: f64) -> Option<Vec<PartChange>> {
    let arms = [Arm::of(rounds[0])?, Arm::of(rounds[1])?];
    let parts = arms[0].counts.len().max(arms[1].counts.len());
    let own_df = (arms[0].totals.len() + arms[1].totals.len() - 2) as f64;
    let own: Vec<f64> =
        (0..parts).map(|part| arms.iter().map(|arm| arm.scatter(part)).sum::<f64>() / own_df).collect();
    // What hardly occurs says nothing about how parts scatter.
    let tells = |part: &usize| arms.iter().map(|arm| arm.count(*part)).sum::<f64>() >= own_df + 2.0;
    let telling: Vec<f64> = (0..parts).filter(tells).filter_map(|part| own.get(part).copied()).collect();
    let usual = (telling.iter().sum::<f64>() / telling.len().max(1) as f64).max(1.0);
    let critical = student::critical(level * (1.0 - FOR_WHOLE) / parts.max(1) as f64, own_df + DRAWN);
    let whole = ratio.estimate.exp();
    let (lowest, highest) = ratio.interval(level * FOR_WHOLE);
    let change = |(part, own): (usize, f64)| {
        let dispersion = ((DRAWN * usual + own_df * own) / (DRAWN + own_df)).max(1.0);
        let [first, second] = [0, 1].map(|arm: usize| arms.get(arm).map_or(0.0, |arm| arm.share(part)));
        // The interval if the wholes' ratio is this one. Its lower end is concave in the ratio and its upper end is convex, so each is
        // farthest at an end of the ratio's interval.
        let at = |whole: f64| {
            let variance = arms[0].variance(part) + whole * whole * arms[1].variance(part);
            let half = critical * (dispersion * variance).sqrt();
            let change = whole * second - first;
            [change - half, change + half]
        };
        let [[low, high], [other_low, other_high]] = [lowest, highest].map(|log| at(log.exp()));
        PartChange { first, second: whole * second, low: low.min(other_low), high: high.max(other_high) }
    };
    Some(own.into_iter().enumerate().map(change).collect())
}

/// The rounds of an arm.
struct Arm {
    /// All samples of each round.
    totals: Vec<f64>,
    /// For each part, its samples in each round.
    counts: Vec<Vec<f64>>,
}

impl Arm {
    fn of(rounds: &[Counted]) -> Option<Self> {
        let sampled: Vec<&Counted> = rounds.iter().filter(|round| round.total > 0).collect();
        if sampled.len() < 2 {
            return None;
        }
        let parts = sampled.iter().map(|round| round.parts.len()).max().unwrap_or(0);
        let of_part = |part: usize| {
            let of_round = |round: &&Counted| round.parts.get(part).map_or(0.0, |count| *count as f64);
            sampled.iter().map(of_round).collect()
        };
        let totals = sampled.iter().map(|round| round.total as f64).collect();
        Some(Self { totals, counts: (0..parts).map(of_part).collect() })
    }

    fn count(&self, part: usize) -> f64 {
        self.counts.get(part).map_or(0.0, |counts| counts.iter().sum())
    }

    fn total(&self) -> f64 {
        self.totals.iter().sum()
    }

    fn share(&self, part: usize) -> f64 {
        self.count(part) / self.total()
    }

    /// Pearson's sum: how far the counts of the rounds are from what the share of all rounds expects, squared, in variances of
    /// independent samples.
    fn scatter(&self, part: usize) -> f64 {
        let share = self.share(part);
        let Some(counts) = self.counts.get(part).filter(|_| share > 0.0 && share < 1.0) else { return 0.0 };
        let off =
            |(count, total): (&f64, &f64)| (count - total * share).powi(2) / (total * share * (1.0 - share));
        counts.iter().zip(&self.totals).map(off).sum()
    }

    /// The variance of the share, if the samples were independent. What was not seen once may be seen next time (Agresti and
    /// Coull, "Approximate is better than exact", The American Statistician 52, 1998).
    fn variance(&self, part: usize) -> f64 {
        let (count, total) = (self.count(part) + 1.0, self.total() + 2.0);
        count / total * (1.0 - count / total) / total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SplitMix64;

    /// Shares of 60 functions, as profiles have them: few that are large, and many that are small.
    fn shares() -> Vec<f64> {
        let raw: Vec<f64> = (1..=60).map(|rank| 1.0 / f64::from(rank)).collect();
        let sum: f64 = raw.iter().sum();
        raw.iter().map(|share| share / sum).collect()
    }

    /// A round of some 300 samples. They come in runs of one function, and every third function's share varies by 30 % from round
    /// to round.
    fn round(shares: &[f64], run: u64, rng: &mut SplitMix64) -> Counted {
        let vary = |(part, share): (usize, &f64)| {
            if part % 3 == 0 { share * (0.3 * rng.normal()).exp() } else { *share }
        };
        let varied: Vec<f64> = shares.iter().enumerate().map(vary).collect();
        let sum: f64 = varied.iter().sum();
        let mut counts = vec![0; shares.len()];
        for _ in 0..300 / run {
            let mut left = rng.unit() * sum;
            let hit = varied.iter().position(|share| {
                left -= share;
                left < 0.0
            });
            counts[hit.unwrap_or(0)] += run;
        }
        counted(counts)
    }

    /// Parts that do not overlap.
    fn counted(parts: Vec<u64>) -> Counted {
        Counted { total: parts.iter().sum(), parts }
    }

    fn rounds(shares: &[f64], run: u64, n: usize, rng: &mut SplitMix64) -> Vec<Counted> {
        (0..n).map(|_| round(shares, run, rng)).collect()
    }

    /// The location of the logarithm of the wholes' ratio, as rounds show it in which trials vary by 5 %.
    fn whole(truth: f64, n: usize, rng: &mut SplitMix64) -> Location {
        let logs: Vec<f64> = (0..n).map(|_| truth.ln() + 0.05 * rng.normal()).collect();
        Location::of(&logs).unwrap()
    }

    /// How often any of the intervals misses the truth, and how often the part that has grown is certain, of 400 comparisons.
    fn simulated(n: usize, run: u64, grown: f64) -> [f64; 2] {
        let mut rng = SplitMix64::new(38);
        let base = shares();
        let truth = 1.0 + grown;
        let mut second: Vec<f64> = base.iter().map(|share| share / truth).collect();
        second[20] += grown / truth;
        let (mut missed, mut found) = (0, 0);
        for _ in 0..400 {
            let (first, other) = (rounds(&base, run, n, &mut rng), rounds(&second, run, n, &mut rng));
            let changes = part_changes(&whole(truth, n, &mut rng), [&first, &other], 0.05).unwrap();
            let true_change = |part: usize| if part == 20 { grown } else { 0.0 };
            let misses = |(part, c): (usize, &PartChange)| !(c.low..=c.high).contains(&true_change(part));
            missed += usize::from(changes.iter().enumerate().any(misses));
            found += usize::from(changes[20].has_grown());
        }
        [missed, found].map(|count| count as f64 / 400.0)
    }

    #[test]
    fn intervals_hold_together_and_find_the_part_that_has_grown() {
        for (n, run) in [(3, 1), (5, 1), (5, 4), (10, 1), (10, 4)] {
            let [missed, found] = simulated(n, run, 0.2);
            println!("{n} rounds, runs of {run}: missed {missed:.3}, found {found:.3}");
            let [missed_equal, claimed] = simulated(n, run, 0.0);
            println!("  equal arms: missed {missed_equal:.3}, claimed {claimed:.4}");
            assert!(
                missed <= 0.05 && missed_equal <= 0.05,
                "{n} rounds, runs of {run}: {missed} and {missed_equal}"
            );
            assert!(found >= 0.9, "{n} rounds, runs of {run}: {found}");
        }
    }

    #[test]
    fn what_was_not_there_has_grown_however_little_is_known_of_the_whole() {
        // Three rounds, of which one was disturbed: the second arm takes between a third and 18 times as much.
        let ratio = Location { estimate: 2.5_f64.ln(), error: 0.2, df: 2.0, n: 3, bound: 0.0 };
        let first = vec![counted(vec![150, 150, 0]); 3];
        let second = vec![counted(vec![75, 75, 150]); 3];
        let changes = part_changes(&ratio, [&first, &second], 0.05).unwrap();
        assert!(changes[2].has_grown() && !changes[0].has_grown() && changes[0].high > 0.0, "{changes:?}");
    }

    #[test]
    fn changes_add_up_to_that_of_the_whole() {
        let ratio = Location { estimate: 1.25_f64.ln(), error: 0.01, df: 4.0, n: 5, bound: 0.0 };
        let first = [vec![60, 40, 0], vec![62, 38, 0]].map(counted);
        let second = [vec![50, 30, 20], vec![48, 34, 18]].map(counted);
        let changes = part_changes(&ratio, [&first, &second], 0.05).unwrap();
        let sum: f64 = changes.iter().map(PartChange::change).sum();
        assert!((sum - 0.25).abs() < 1e-9, "{sum}");
        assert!(changes[2].has_grown() && !changes[0].has_grown(), "{changes:?}");
        assert!(changes.iter().all(|c| c.low <= c.change() && c.change() <= c.high));
        assert_eq!(part_changes(&ratio, [&first, &second[..1]], 0.05), None);
        assert_eq!(part_changes(&ratio, [&first, &[Counted::default(), counted(vec![1])]], 0.05), None);
    }
}
