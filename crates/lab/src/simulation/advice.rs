//! What following the advice costs: the speed that is lost against the value that is truly best. Beside it stands an
//! older rule, which proposed the value nearest to the default that could not be told from the best.

use std::sync::OnceLock;

use stats::{LEVEL, Noise, SplitMix64, Verdict};

use super::sample::{at_least, runs, share};
use super::{RUNS, Rounds, fast_reference, observed, plan, value_rule};
use crate::findings::{Comparison, FigureView, findings};
use crate::session::{Fake, Rule};

/// The values of the knob. The first is the default.
const VALUES: usize = 7;

/// The lost speed of all runs, as shares of the best, ascending.
pub(super) struct Regret {
    shares: Vec<f64>,
}

impl Regret {
    /// The share that so many of a hundred runs do not exceed.
    pub fn percentile(&self, percent: usize) -> f64 {
        self.shares[self.shares.len() * percent / 100 - 1]
    }
}

/// The value that findings propose. The default, if they propose none.
fn proposed(found: &FigureView<'_>) -> usize {
    found.effects.first().filter(|effect| effect.verdict == Verdict::Faster).map_or(0, |effect| effect.best)
}

/// The older rule: of the values certainly better than the default, the nearest one that is not certainly worse than the
/// best of them, by a paired comparison.
fn nearest(found: &FigureView<'_>) -> usize {
    let better: Vec<&Comparison> =
        found.comparisons.iter().filter(|c| c.verdict == Verdict::Faster).collect();
    let gain = |c: &&&Comparison| c.ratio.map_or(0.0, |ratio| ratio.estimate);
    let Some(top) = better.iter().max_by(|a, b| gain(a).total_cmp(&gain(b))) else { return 0 };
    let worse = |c: &&&Comparison| {
        let log =
            |at: usize| found.estimates[at].by_round.values().map(|figure| figure.ln()).collect::<Vec<f64>>();
        let ratios: Vec<f64> = log(top.scenario).iter().zip(log(c.scenario)).map(|(a, b)| a - b).collect();
        let location = stats::Location::of(&ratios).expect("three rounds");
        location.estimate > 0.05_f64.ln_1p() && location.p() * better.len() as f64 <= LEVEL
    };
    better.iter().filter(|c| !worse(c)).map(|c| c.scenario).min().unwrap_or(top.scenario)
}

/// Simulates runs of so many rounds. All values but the default are 1.5 to 6 times as good as it.
fn regret(rounds: u32, rule: fn(&FigureView<'_>) -> usize) -> Regret {
    let lost = |seed: u64| {
        let mut rng = SplitMix64::new(seed + 9_000_000);
        let mut better: Vec<f64> =
            (0..VALUES).map(|_| (1.5_f64.ln() + rng.unit() * 4_f64.ln()).exp()).collect();
        better[0] = 1.0;
        let mut rules: Vec<Rule> =
            better.iter().enumerate().map(|(value, better)| value_rule(value as i64, *better)).collect();
        // Far better than all values, so that it limits nothing.
        rules.extend([fast_reference(), fast_reference()]);
        let fake = Fake::new(1e6, rules, Noise::SHARED_MACHINE, seed + 1_000_000);
        let plan = plan(VALUES as i64, Rounds::Fixed(rounds), seed);
        let seen = observed(&plan, fake);
        let all = findings(&plan, &seen);
        let found = all.views().next().unwrap();
        let best = better.iter().copied().fold(0.0, f64::max);
        1.0 - better[rule(&found)] / best
    };
    let mut shares: Vec<f64> = (0..runs(RUNS)).map(lost).collect();
    shares.sort_by(f64::total_cmp);
    Regret { shares }
}

/// The regret of both rules after three rounds: the one that is used, and the older one.
pub(super) fn regrets() -> &'static [Regret; 2] {
    static REGRETS: OnceLock<[Regret; 2]> = OnceLock::new();
    REGRETS.get_or_init(|| [regret(3, proposed), regret(3, nearest)])
}

#[test]
#[ignore = "simulates for long; `make simulate` runs it"]
fn following_the_advice_loses_little() {
    let [regret, _] = regrets();
    for (most, runs) in [(0.05, 0.5), (0.15, 0.9)] {
        let within = share(&regret.shares, |lost| *lost <= most);
        assert!(at_least(within, runs, RUNS), "{most}: {within}");
    }
}
