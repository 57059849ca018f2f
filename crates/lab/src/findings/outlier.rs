//! Finds trials that lie far from the others of their scenario, and the doubts that may explain them. Such trials are kept.

use std::collections::BTreeMap;

use measurement::doubt::Evidence;
use serde::{Deserialize, Serialize};
use stats::median;

use super::{Estimate, estimate};
use crate::experiment::Figure;
use crate::observation::{Observation, Outcome, Scenario};
use crate::plan::View;

/// A trial that lies far from the others of its scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outlier {
    /// The scenario, as `system knob=value …`.
    pub scenario: String,
    /// The round, from 1.
    pub round: u32,
    /// How many times better its figure is than the scenario's median.
    pub ratio: f64,
    /// The doubts about this trial that do not apply to the scenario. Empty if nothing explains the trial.
    pub because: Vec<Evidence>,
}

/// The outliers of an experiment, in the plan's order.
pub(super) fn outliers(
    planned: &View<'_>,
    estimates: &[Estimate],
    observations: &[&Observation],
) -> Vec<Outlier> {
    let own = observations.iter().rev().filter(|o| !o.trial.twin);
    let trials: Trials<'_> = own.map(|o| ((&o.trial.scenario, o.trial.block()), *o)).collect();
    estimates.iter().flat_map(|e| scenario_outliers(planned, &e.scenario, e, &trials)).collect()
}

/// The trials by scenario and block. Of several, the first.
type Trials<'a> = BTreeMap<(&'a Scenario, u32), &'a Observation>;

fn scenario_outliers(
    planned: &View<'_>,
    scenario: &Scenario,
    e: &Estimate,
    trials: &Trials<'_>,
) -> Vec<Outlier> {
    let figures: Vec<(u32, f64)> = e
        .by_round
        .iter()
        .map(|(round, figure)| (*round, figure.ln()))
        .filter(|(_, x)| x.is_finite())
        .collect();
    let logs: Vec<f64> = figures.iter().map(|(_, log)| *log).collect();
    let Some(middle) = median(logs.iter().copied()) else { return Vec::new() };
    let far = stats::outliers(&logs, planned.threshold.ln_1p());
    let marked = figures.iter().zip(far).filter(|(_, far)| *far);
    marked
        .map(|((block, log), _)| {
            let trial = trials.get(&(scenario, *block)).copied();
            Outlier {
                scenario: planned.label(scenario),
                round: trial.map_or(*block, |o| o.trial.round) + 1,
                ratio: planned.figure.advantage(log.exp(), middle.exp()),
                because: trial.map_or_else(Vec::new, |o| reasons(planned.figure, e, o)),
            }
        })
        .collect()
}

/// The doubts about this trial that do not apply to the scenario.
fn reasons(figure: Figure, e: &Estimate, trial: &Observation) -> Vec<Evidence> {
    let Outcome::Measured(m) = &trial.outcome else { return Vec::new() };
    let doubts = estimate::doubts_of(figure, &e.scenario, m).into_iter();
    doubts.filter(|seen| !e.doubts.contains_key(&seen.doubt())).collect()
}
