//! Findings: what a plan's observations amount to, as estimates, comparisons, claims, tables and warnings.
//!
//! Pure: knows plans and observations, reads and writes nothing, so that stored runs can be judged again later. Tables
//! hold numbers with units, claims are values; how numbers look and how claims are worded is the business of `report`.

mod apply;
mod asked;
mod beside;
mod best;
mod ceiling;
mod claim;
mod comparison;
mod detail;
mod effect;
mod effort;
mod estimate;
mod outlier;
mod pivot;
mod reason;
mod table;
mod warning;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Bar, Design};
use systems::Workload;

pub use apply::Snippet;
pub use asked::{By, CLIFF};
pub use beside::{
    Beside, BestOf, BestValues, ChangedOrder, Difference, OrderOfTwo, Placed, Presence, Range, Shape,
    ShapeFigures, SizeRatio,
};
pub use claim::{Claim, Silence};
pub use comparison::{Comparison, Judged, NoiseFloor, Ratio, judged, log_ratios};
pub use detail::Detail;
pub use effect::{Effect, Interaction};
pub use effort::Effort;
pub use estimate::{Estimate, RANKED_ERRORS, figure_of};
pub use outlier::Outlier;
pub use reason::{Counted, Reason};
pub use table::{Cell, Column, FigureTable, Note, Row, Table, TableKind, Unit, column};
pub use warning::{Code, FEWEST_TRIALS, FirstFailure, Seen, UNSTEADY, Warning};

use crate::doubt::{Evidence, nothing_ended};
use crate::observation::{Measurement, Observation, Outcome, measurements};
use crate::plan::{Plan, Planned, Setup};

/// All that is found in a run.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Findings {
    /// In the order of the plan.
    pub experiments: Vec<ExperimentFindings>,
}

/// What is found in one experiment.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ExperimentFindings {
    /// What was asked, and how it was carried out.
    #[serde(flatten)]
    pub setup: Setup,
    /// How often its comparisons were looked at.
    pub design: Design,
    /// Trials planned.
    pub trials_planned: u32,
    /// Trials that have an observation, failed ones among them.
    pub trials_done: u32,
    /// The smallest difference that can be claimed here; None where the reference did not run twice in three rounds.
    pub noise_floor: Option<NoiseFloor>,
    /// One for each knob, the largest effect first: the first is the headline.
    pub claims: Vec<Claim>,
    /// What was asked, with ratios, intervals and verdicts.
    pub comparisons: Vec<Comparison>,
    /// Each knob's effect, best against worst, and on what it depends.
    pub effects: Vec<Effect>,
    /// Trials that lie far from the others of their scenario; they count like all.
    pub outliers: Vec<Outlier>,
    /// The published table's shape first.
    pub tables: Vec<FigureTable>,
    /// One for each scenario, in the plan's order; the reference's last.
    pub estimates: Vec<Estimate>,
    /// The published figures beside these, table by table: which of their shapes are found again.
    pub beside: Vec<Beside>,
    /// What makes numbers untrustworthy.
    pub warnings: Vec<Warning>,
    /// Trials without a measurement.
    pub failures: Vec<FailedTrials>,
    /// What the trials themselves had to say, each once, with the system's name: raised limits, a client's retries.
    pub notes: Vec<String>,
    /// Trials in which nothing ended, and which have no figure for that.
    pub unended: Vec<Unended>,
    /// The systems' versions as they reported them.
    pub versions: BTreeMap<String, String>,
    /// How to set the best point in each system's own configuration, where its manifest says so.
    pub snippets: Vec<Snippet>,
}

/// A trial in which nothing ended.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Unended {
    /// The system.
    pub system: String,
    /// Operations under way and the length of the window.
    pub evidence: Evidence,
}

/// Trials of one scenario that failed in the same way.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct FailedTrials {
    /// The scenario, as `system knob=value …`.
    pub scenario: String,
    /// Where in the trial.
    pub stage: String,
    /// What was wrong and what to do.
    pub reason: String,
    /// The end of the system's output, of the first of them.
    pub output: String,
    /// How many.
    pub trials: u32,
}

/// Judges the observations of a plan, complete or not. What others published stands beside it when the crate `published`
/// has put it there.
pub fn findings(plan: &Plan, observations: &[Observation]) -> Findings {
    let experiments = plan.experiments.iter().map(|planned| {
        let of = observations.iter().filter(|o| o.trial.scenario.experiment == planned.name);
        of_experiment(planned, plan, &of.collect::<Vec<_>>())
    });
    Findings { experiments: experiments.collect() }
}

fn of_experiment(planned: &Planned, plan: &Plan, observations: &[&Observation]) -> ExperimentFindings {
    let estimates = estimate::estimates(planned, observations);
    let trials = plan.trials.iter().filter(|t| t.scenario.experiment == planned.name).count();
    let (trials_planned, trials_done) = (trials as u32, observations.len() as u32);
    let noise_floor = comparison::floor(planned, &estimates, observations);
    let comparisons = comparison::comparisons(planned, plan.design(), &estimates, noise_floor.as_ref());
    let bar = Bar { threshold: planned.threshold.ln_1p(), floor: noise_floor.map(|f| f.smallest.ln()) };
    let judgement = best::Judgement {
        planned,
        design: plan.design(),
        estimates: &estimates,
        comparisons: &comparisons,
        bar,
    };
    let (effects, snippets) = (effect::effects(&judgement), apply::snippets(&judgement));
    ExperimentFindings {
        setup: planned.setup.clone(),
        design: plan.design(),
        trials_planned,
        trials_done,
        noise_floor,
        claims: claim::claims(planned, &estimates, &comparisons, &effects),
        snippets,
        comparisons,
        effects,
        outliers: outlier::outliers(planned, &estimates, observations),
        tables: tables(planned, plan.design(), &estimates),
        beside: Vec::new(),
        warnings: warning::warnings(planned, &estimates, observations, trials),
        failures: failures(planned, observations),
        notes: notes(observations),
        unended: unended(observations),
        versions: versions(observations),
        estimates,
    }
}

fn failures(planned: &Planned, observations: &[&Observation]) -> Vec<FailedTrials> {
    let mut groups: BTreeMap<(String, &str, &str), FailedTrials> = BTreeMap::new();
    for observation in observations {
        let Outcome::Failed(failure) = &observation.outcome else { continue };
        let scenario = planned.label(&observation.trial.scenario);
        let key = (scenario.clone(), failure.stage.as_str(), failure.reason.as_str());
        let group = groups.entry(key).or_insert_with(|| FailedTrials {
            scenario,
            stage: failure.stage.clone(),
            reason: failure.reason.clone(),
            output: failure.output.clone(),
            trials: 0,
        });
        group.trials += 1;
    }
    groups.into_values().collect()
}

fn notes(observations: &[&Observation]) -> Vec<String> {
    let told = measurements(observations)
        .flat_map(|(system, m)| m.notes.iter().map(move |n| format!("{system}: {n}")));
    told.collect::<BTreeSet<String>>().into_iter().collect()
}

fn unended(observations: &[&Observation]) -> Vec<Unended> {
    let unended = |(system, m): (&str, &Measurement)| {
        Some(Unended { system: system.to_owned(), evidence: nothing_ended(m)? })
    };
    measurements(observations).filter_map(unended).collect()
}

fn versions(observations: &[&Observation]) -> BTreeMap<String, String> {
    let all = measurements(observations).filter(|(_, m)| !m.system.version.is_empty());
    all.map(|(system, m)| (system.to_owned(), m.system.version.clone())).collect()
}

/// The tables of an experiment, that of the published shape first.
fn tables(planned: &Planned, design: Design, estimates: &[Estimate]) -> Vec<FigureTable> {
    let rows: Vec<&Estimate> = estimates.iter().collect();
    let mut tables = match planned.workload {
        Workload::Upload | Workload::Requests => vec![table::list(planned, &rows)],
        Workload::Frames => vec![pivot::pivot(planned, estimates), table::list(planned, &rows)],
        Workload::Clients => vec![table::ranked(planned, design, estimates)],
    };
    tables.extend(reason::table(planned, estimates));
    tables
}

impl Deref for ExperimentFindings {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

#[cfg(test)]
mod doubt_tests;
#[cfg(test)]
mod open_loop_tests;
#[cfg(test)]
mod tests;
