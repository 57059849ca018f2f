//! Compares two scenarios within rounds: how many times better one is, with an interval and a verdict.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Bar, Design, FEWEST_ROUNDS, LEVEL, Location, Verdict, holm};

use super::asked::{Asked, By, CLIFF, asked};
use super::{Estimate, estimate};
use crate::experiment::Figure;
use crate::observation::Observation;
use crate::plan::Planned;

/// A ratio and its interval.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Ratio {
    /// The estimate: the exponential of the trimmed mean of the rounds' log-ratios.
    pub estimate: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl Ratio {
    /// Makes a ratio from logarithms.
    pub fn of_logs(estimate: f64, low: f64, high: f64) -> Self {
        // Larger exponents give infinity, which JSON cannot represent.
        let finite = |log: f64| log.clamp(-700.0, 700.0).exp();
        Self { estimate: finite(estimate), low: finite(low), high: finite(high) }
    }

    /// The ratio of the second to the first.
    pub fn inverse(&self) -> Self {
        Self { estimate: 1.0 / self.estimate, low: 1.0 / self.high, high: 1.0 / self.low }
    }

    /// The ratio of the better to the worse, which is at least 1.
    pub fn upwards(&self) -> Self {
        if self.estimate < 1.0 { self.inverse() } else { *self }
    }
}

/// The noise of a run: the reference compared with itself.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Rounds in which the reference and its twin ran.
    pub rounds: u32,
    /// The ratio of the reference to its twin, although both are the same.
    pub ratio: Ratio,
    /// The end of the interval that is farther from 1. Smaller differences are noise.
    pub smallest: f64,
}

/// One of the comparisons that the experiment asks for. Scenarios are positions in the estimates.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Comparison {
    /// The scenario that is compared.
    pub scenario: usize,
    /// The scenario that it is compared with.
    pub against: usize,
    /// What differs between the two.
    pub by: By,
    /// Rounds in which both have a figure.
    pub rounds: u32,
    /// How many times better the first is than the second, whether more or less of the figure is better. None if there
    /// are fewer than three rounds.
    pub ratio: Option<Ratio>,
    /// For a `step`: the ratio divided by what the additional work explains. A cliff is far below 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess: Option<f64>,
    /// The p-value, corrected for looks and for the number of comparisons.
    pub p: Option<f64>,
    /// Whether the ratio is a lower bound, because the generator held the better scenario back.
    pub at_least: bool,
    /// The verdict. For a `step` it says whether more is lost than the additional work explains.
    pub verdict: Verdict,
}

impl Comparison {
    /// Whether this is a step that loses far more than the additional work explains ([`CLIFF`]).
    pub fn is_cliff(&self) -> bool {
        self.verdict == Verdict::Slower
            && self.excess.is_some_and(|excess| matches!(self.by, By::Step(_)) && excess <= 1.0 / CLIFF)
    }
}

/// All comparisons of an experiment, and the noise floor that their verdicts depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparisons {
    /// The comparisons, in the order in which the experiment asks for them.
    pub all: Vec<Comparison>,
    /// None unless the reference and its twin ran in three rounds.
    pub floor: Option<NoiseFloor>,
}

/// Makes the comparisons that an experiment asks for, without its other findings.
pub fn compare_scenarios(planned: &Planned, design: Design, observations: &[&Observation]) -> Comparisons {
    let estimates = estimate::estimates(planned, observations);
    let floor = floor(planned, &estimates, observations);
    let all = comparisons(planned, design, &estimates, floor.as_ref());
    Comparisons { all, floor }
}

/// The logarithm of how many times better `a` is than `b`, for each round that both have. The machine drifts between
/// rounds, so figures of different rounds are not compared.
pub fn log_ratios(figure: Figure, a: &BTreeMap<u32, f64>, b: &BTreeMap<u32, f64>) -> Vec<(u32, f64)> {
    let both = a.iter().filter_map(|(round, a)| Some((*round, figure.advantage(*a, *b.get(round)?).ln())));
    both.filter(|(_, ratio)| ratio.is_finite()).collect()
}

/// Compares the reference with its twin.
pub(super) fn floor(
    planned: &Planned,
    estimates: &[Estimate],
    observations: &[&Observation],
) -> Option<NoiseFloor> {
    let reference = estimates.iter().find(|e| e.is_reference())?;
    let twin = estimate::twin(planned, observations);
    let ratios: Vec<f64> =
        log_ratios(planned.figure, &reference.by_round, &twin).into_iter().map(|(_, ratio)| ratio).collect();
    let location = Location::of(&ratios).filter(|_| ratios.len() >= FEWEST_ROUNDS)?;
    let (low, high) = location.interval(LEVEL);
    Some(NoiseFloor {
        rounds: ratios.len() as u32,
        ratio: Ratio::of_logs(location.estimate, low, high),
        smallest: low.abs().max(high.abs()).exp(),
    })
}

/// Makes every comparison that the experiment asks for.
pub(super) fn comparisons(
    planned: &Planned,
    design: Design,
    estimates: &[Estimate],
    floor: Option<&NoiseFloor>,
) -> Vec<Comparison> {
    let asked = asked(planned);
    let seen: Vec<Option<stats::LogRatio>> = asked
        .iter()
        .map(|asked| {
            let (a, b) = (&estimates[asked.scenario], &estimates[asked.against]);
            let comparable = a.compares() && b.compares();
            let mut ratios = log_ratios(planned.figure, &a.by_round, &b.by_round);
            ratios.iter_mut().for_each(|(_, ratio)| *ratio -= asked.expected);
            design.compare(&ratios).filter(|_| comparable)
        })
        .collect();
    let p = holm(&seen.iter().map(|seen| seen.map_or(1.0, |s| s.p)).collect::<Vec<_>>());
    let estimated = asked.into_iter().zip(seen).zip(p);
    estimated.map(|((asked, seen), p)| comparison(asked, seen, p, estimates, floor)).collect()
}

fn comparison(
    asked: Asked,
    seen: Option<stats::LogRatio>,
    p: f64,
    estimates: &[Estimate],
    floor: Option<&NoiseFloor>,
) -> Comparison {
    let Asked { scenario, against, by, expected, threshold } = asked;
    let (a, b) = (&estimates[scenario], &estimates[against]);
    let rounds = a.by_round.keys().filter(|round| b.by_round.contains_key(round)).count() as u32;
    let bar = Bar { threshold, floor: floor.map(|f| f.smallest.ln()) };
    let hopeless = Verdict::Undecided { more_rounds: None };
    // One more round may give the floor that is missing.
    let floor_to_come = floor.is_none() && estimates.iter().any(|e| e.is_reference() && e.trials > 0);
    let verdict = match seen.as_ref().map(|seen| bar.judge(seen, p)) {
        // A lower bound may be better than it looks, so it can be neither slower nor equal.
        Some(Verdict::Slower) if a.is_lower_bound() => hopeless,
        Some(Verdict::Faster) if b.is_lower_bound() => hopeless,
        Some(Verdict::NoDifference) if a.is_lower_bound() || b.is_lower_bound() => hopeless,
        Some(Verdict::Undecided { more_rounds: None }) if floor_to_come => {
            Verdict::Undecided { more_rounds: Some(1) }
        }
        Some(verdict) => verdict,
        None if a.compares() && b.compares() => {
            Verdict::Undecided { more_rounds: Some((FEWEST_ROUNDS as u32).saturating_sub(rounds).max(1)) }
        }
        None => hopeless,
    };
    let at_least = match verdict {
        Verdict::Faster => a.is_lower_bound(),
        Verdict::Slower => b.is_lower_bound(),
        _ => false,
    };
    let ratio =
        seen.map(|s| Ratio::of_logs(s.location.estimate + expected, s.low + expected, s.high + expected));
    let step = matches!(by, By::Step(_));
    let excess = seen.filter(|_| step).map(|s| s.location.estimate.exp());
    Comparison { scenario, against, by, rounds, ratio, excess, p: seen.map(|_| p), at_least, verdict }
}
