//! How much runs of the same question differ, and what that leaves of the difference of two of them.
//!
//! The rounds of a run share its hour, so their spread does not show how far the next run may lie. Earlier runs do. The
//! estimate of a run is taken as the truth, plus what its hour did, plus what its rounds leave open. The variance between
//! runs is estimated by restricted maximum likelihood (Viechtbauer, "Bias and efficiency of meta-analytic variance
//! estimators in the random-effects model", J. Educ. Behav. Stat. 30, 2005), and adjusted as by Hartung and Knapp ("A refined
//! method for the meta-analysis of controlled clinical trials with binary outcome", Statistics in Medicine 20, 2001), but
//! never downwards (Röver, Knapp and Friede, BMC Medical Research Methodology 15, 2015).

use crate::Location;

/// The fewest earlier runs that show how much runs differ.
pub const FEWEST_RUNS: usize = 5;

/// How often the variance is estimated anew, at most.
const STEPS: usize = 200;

/// The smallest variance of a run. It keeps runs without any noise finite.
const LEAST: f64 = 1e-18;

/// How much runs of the same question differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BetweenRuns {
    /// The number of runs from which this is known.
    pub runs: usize,
    /// The variance of the truth between runs, without what their rounds leave open.
    pub variance: f64,
    /// How many times larger the runs' squared distances are than both variances explain; at least 1.
    inflation: f64,
}

impl BetweenRuns {
    /// Learns from the estimates of at least [`FEWEST_RUNS`] runs. None from fewer, and if one is not finite.
    pub fn of(runs: &[Location]) -> Option<Self> {
        let finite = runs.iter().all(|run| run.estimate.is_finite() && run.error.is_finite());
        if runs.len() < FEWEST_RUNS || !finite {
            return None;
        }
        let df = (runs.len() - 1) as f64;
        let own = |run: &Location| run.error.powi(2).max(LEAST);
        let middle = runs.iter().map(|run| run.estimate).sum::<f64>() / runs.len() as f64;
        let squares: f64 = runs.iter().map(|run| (run.estimate - middle).powi(2)).sum();
        let mut variance = squares / df;
        for _ in 0..STEPS {
            let weights: Vec<f64> = runs.iter().map(|run| 1.0 / (variance + own(run))).collect();
            let (middle, total) = weighted(runs, &weights);
            let squares = weights.iter().map(|weight| weight.powi(2)).sum::<f64>();
            let apart = runs.iter().zip(&weights).map(|(run, weight)| {
                weight.powi(2) * ((run.estimate - middle).powi(2) + 1.0 / total - own(run))
            });
            let next = (apart.sum::<f64>() / squares).max(0.0);
            let moved = (next - variance).abs();
            variance = next;
            if moved <= 1e-9 * variance + LEAST {
                break;
            }
        }
        let weights: Vec<f64> = runs.iter().map(|run| 1.0 / (variance + own(run))).collect();
        let (middle, _) = weighted(runs, &weights);
        let apart = runs.iter().zip(&weights).map(|(run, weight)| weight * (run.estimate - middle).powi(2));
        Some(Self { runs: runs.len(), variance, inflation: (apart.sum::<f64>() / df).max(1.0) })
    }

    /// The standard deviation between runs.
    pub fn spread(&self) -> f64 {
        self.variance.sqrt()
    }

    /// The difference of two runs, `a` minus `b`, each with what is known of runs like it. The error holds the variance between
    /// runs, so the interval is one of prediction: of two runs between which nothing has changed, it contains zero in 95 % of the
    /// cases.
    pub fn difference(a: (&Location, &Self), b: (&Location, &Self)) -> Location {
        let variance = |(run, of): (&Location, &Self)| of.inflation * (of.variance + run.error.powi(2));
        let runs = a.1.runs.min(b.1.runs);
        Location {
            estimate: a.0.estimate - b.0.estimate,
            error: (variance(a) + variance(b)).sqrt(),
            df: (runs - 1) as f64,
            n: runs,
            bound: a.0.bound + b.0.bound,
        }
    }
}

/// The weighted mean of the runs' estimates, and the sum of the weights.
fn weighted(runs: &[Location], weights: &[f64]) -> (f64, f64) {
    let total: f64 = weights.iter().sum();
    (runs.iter().zip(weights).map(|(run, weight)| weight * run.estimate).sum::<f64>() / total, total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LEVEL, SplitMix64};

    fn run(estimate: f64, error: f64) -> Location {
        Location { estimate, error, df: 9.0, n: 10, bound: 0.0 }
    }

    #[test]
    fn by_hand() {
        // Equal errors: the variance of the estimates, 0.025, less that of each, and nothing to adjust.
        let runs = [0.0, 0.1, 0.2, 0.3, 0.4].map(|estimate| run(estimate, 0.1));
        let known = BetweenRuns::of(&runs).unwrap();
        assert!((known.variance - 0.015).abs() < 1e-6 && (known.inflation - 1.0).abs() < 1e-4, "{known:?}");
        let apart = BetweenRuns::difference((&run(0.5, 0.1), &known), (&run(0.1, 0.1), &known));
        assert!((apart.error - 0.05_f64.sqrt()).abs() < 1e-5 && apart.df == 4.0, "{apart:?}");
        // 2.776 standard errors to either side.
        let (low, high) = apart.interval(LEVEL);
        assert!((low - (0.4 - 0.6208)).abs() < 1e-3 && (high - (0.4 + 0.6208)).abs() < 1e-3, "{low} {high}");
    }

    #[test]
    fn runs_that_are_closer_than_their_errors_have_no_spread() {
        let runs = [0.0, 0.01, 0.02, 0.01, 0.0].map(|estimate| run(estimate, 0.1));
        let known = BetweenRuns::of(&runs).unwrap();
        assert_eq!((known.variance, known.inflation), (0.0, 1.0));
        let same = [run(0.3, 0.0); 5];
        assert_eq!(BetweenRuns::of(&same).map(|known| known.spread()), Some(0.0));
    }

    #[test]
    fn few_runs_and_those_without_a_number_tell_nothing() {
        let runs = [run(0.1, 0.01); 5];
        assert!(BetweenRuns::of(&runs).is_some() && BetweenRuns::of(&runs[1..]).is_none());
        assert!(BetweenRuns::of(&[runs[0], runs[1], runs[2], runs[3], run(f64::NAN, 0.1)]).is_none());
    }

    /// The earlier runs hold the first of the two that are compared, as a store does. Their errors are known only from their
    /// rounds, and differ by a factor of three.
    #[test]
    fn equal_runs_are_rarely_called_different() {
        let mut rng = SplitMix64::new(1);
        for spread in [0.0, 0.3, 1.0, 5.0] {
            let runs = 4000;
            let wrong = (0..runs).filter(|_| {
                let mut one = || {
                    let error = 0.5 + rng.unit();
                    let squares: f64 = (0..6).map(|_| rng.normal().powi(2)).sum();
                    run(spread * rng.normal() + error * rng.normal(), error * (squares / 6.0).sqrt())
                };
                let earlier: Vec<Location> = (0..5).map(|_| one()).collect();
                let known = BetweenRuns::of(&earlier).unwrap();
                BetweenRuns::difference((&one(), &known), (&earlier[4], &known)).p() <= LEVEL
            });
            let share = wrong.count() as f64 / f64::from(runs);
            // Three standard errors of the share are 0.010.
            assert!(share <= LEVEL + 0.010, "{spread}: {share}");
        }
    }
}
