//! Trials far from the others of their scenario: marked, kept, and explained where a doubt about them explains them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{median, outliers as far};

use super::{Estimate, estimate};
use crate::doubt::Evidence;
use crate::observation::{Observation, Outcome, Scenario};
use crate::plan::Planned;

/// One such trial.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Outlier {
    /// The scenario, as `system knob=value …`.
    pub scenario: String,
    /// The round, from 1.
    pub round: u32,
    /// How many times as good as the median of its scenario, by the experiment's figure.
    pub ratio: f64,
    /// The doubts about this trial and no other of the scenario's; empty where nothing explains it.
    pub because: Vec<Evidence>,
}

/// All of an experiment's, in the plan's order.
pub(super) fn outliers(
    planned: &Planned,
    estimates: &[Estimate],
    observations: &[&Observation],
) -> Vec<Outlier> {
    estimates.iter().flat_map(|e| of_scenario(planned, &e.scenario, e, observations)).collect()
}

fn of_scenario(
    planned: &Planned,
    scenario: &Scenario,
    e: &Estimate,
    observations: &[&Observation],
) -> Vec<Outlier> {
    let figures: Vec<(u32, f64)> = e
        .by_round
        .iter()
        .map(|(round, figure)| (*round, figure.ln()))
        .filter(|(_, x)| x.is_finite())
        .collect();
    let logs: Vec<f64> = figures.iter().map(|(_, log)| *log).collect();
    let Some(middle) = median(logs.iter().copied()) else { return Vec::new() };
    let marked = figures.iter().zip(far(&logs, planned.threshold.ln_1p())).filter(|(_, far)| *far);
    marked
        .map(|((round, log), _)| Outlier {
            scenario: planned.label(scenario),
            round: round + 1,
            ratio: planned.figure.advantage(log.exp(), middle.exp()),
            because: reasons(scenario, *round, e, observations),
        })
        .collect()
}

/// What was wrong with this trial and is not wrong with the scenario as a whole.
fn reasons(scenario: &Scenario, round: u32, e: &Estimate, observations: &[&Observation]) -> Vec<Evidence> {
    let own = observations
        .iter()
        .find(|o| o.trial.scenario == *scenario && o.trial.round == round && !o.trial.twin);
    let Some(Outcome::Measured(m)) = own.map(|o| &o.outcome) else { return Vec::new() };
    let doubts = estimate::doubts_of(scenario, m).into_iter();
    doubts.filter(|seen| !e.doubts.contains_key(&seen.doubt())).collect()
}
