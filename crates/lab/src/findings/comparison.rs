//! Two scenarios compared: how many times better one is, inside rounds, with an interval and a verdict.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Bar, Design, FEWEST_ROUNDS, LEVEL, Location, Verdict, holm};

use super::asked::{Asked, By, CLIFF, asked};
use super::{Estimate, estimate};
use crate::experiment::Figure;
use crate::observation::Observation;
use crate::plan::Planned;

/// A ratio and what the truth lies between.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Ratio {
    /// How many times: the trimmed mean of the logarithms of the rounds' ratios.
    pub estimate: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl Ratio {
    /// From logarithms.
    pub fn of_logs(estimate: f64, low: f64, high: f64) -> Self {
        // Beyond this they would be infinite, which JSON does not know.
        let finite = |log: f64| log.clamp(-700.0, 700.0).exp();
        Self { estimate: finite(estimate), low: finite(low), high: finite(high) }
    }

    /// The same the other way round.
    pub fn inverse(&self) -> Self {
        Self { estimate: 1.0 / self.estimate, low: 1.0 / self.high, high: 1.0 / self.low }
    }

    /// Above 1 in any case: the ratio of the better to the worse.
    pub fn upwards(&self) -> Self {
        if self.estimate < 1.0 { self.inverse() } else { *self }
    }
}

/// The smallest difference that a run can claim: the reference against itself.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Rounds in which it ran twice.
    pub rounds: u32,
    /// Of one to the other, though both are the same.
    pub ratio: Ratio,
    /// The interval's farther end: differences below it are noise here.
    pub smallest: f64,
}

/// One of the comparisons that the experiment asks for. Scenarios are positions among the estimates.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared ...
    pub scenario: usize,
    /// ... with what.
    pub against: usize,
    /// In what they differ.
    pub by: By,
    /// Rounds in which both have a figure.
    pub rounds: u32,
    /// How many times better the first is than the second, whichever way the figure points; None where there are fewer
    /// than three rounds.
    pub ratio: Option<Ratio>,
    /// Of a `step`: how many times better it is than the additional work explains; a cliff is far below 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess: Option<f64>,
    /// How likely such a ratio is without a difference; corrected for looks and for all comparisons.
    pub p: Option<f64>,
    /// Whether the generator held the better one back: it is at least so much better.
    pub at_least: bool,
    /// What may be said. Of a `step`: whether more is lost than the additional work explains.
    pub verdict: Verdict,
}

impl Comparison {
    /// Of a step: whether so much more is lost than the additional work explains that it is a cliff.
    pub fn is_cliff(&self) -> bool {
        self.verdict == Verdict::Slower
            && self.excess.is_some_and(|excess| matches!(self.by, By::Step(_)) && excess <= 1.0 / CLIFF)
    }
}

/// All comparisons of an experiment, and what they were judged by.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// As asked for.
    pub comparisons: Vec<Comparison>,
    /// None without three rounds of the reference and its twin.
    pub floor: Option<NoiseFloor>,
}

/// Compares what was observed of an experiment.
pub fn judged(planned: &Planned, design: Design, observations: &[&Observation]) -> Judged {
    let estimates = estimate::estimates(planned, observations);
    let floor = floor(planned, &estimates, observations);
    let comparisons = comparisons(planned, design, &estimates, floor.as_ref());
    Judged { comparisons, floor }
}

/// Logarithms of how many times better `a` is than `b`, round by round. Ratios inside a round, because the machine
/// drifts between them.
pub fn log_ratios(figure: Figure, a: &BTreeMap<u32, f64>, b: &BTreeMap<u32, f64>) -> Vec<(u32, f64)> {
    let both = a.iter().filter_map(|(round, a)| Some((*round, figure.advantage(*a, *b.get(round)?).ln())));
    both.filter(|(_, ratio)| ratio.is_finite()).collect()
}

/// How far the reference and its twin lie apart.
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

/// Judges every comparison that is asked for.
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
            let fair = a.compares() && b.compares();
            let mut ratios = log_ratios(planned.figure, &a.by_round, &b.by_round);
            ratios.iter_mut().for_each(|(_, ratio)| *ratio -= asked.expected);
            design.compare(&ratios).filter(|_| fair)
        })
        .collect();
    let p = holm(&seen.iter().map(|seen| seen.map_or(1.0, |s| s.p)).collect::<Vec<_>>());
    let each = asked.into_iter().zip(seen).zip(p);
    each.map(|((asked, seen), p)| comparison(asked, seen, p, estimates, floor)).collect()
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
    let judged = seen.as_ref().map(|seen| bar.judge(seen, p));
    let hopeless = Verdict::Undecided { more_rounds: None };
    // A reference that lacks a round may have it next time.
    let floor_to_come = floor.is_none() && estimates.iter().any(|e| e.is_reference() && e.trials > 0);
    let verdict = match judged {
        // What the generator held back may be better than it looks: it is not known to be the worse one, or as good.
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
