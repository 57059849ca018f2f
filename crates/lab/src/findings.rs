//! Findings: what a plan's observations amount to, as estimates, tables, sentences and warnings.
//!
//! Pure: knows plans and observations, reads and writes nothing, so that stored runs can be judged again later. Tables
//! hold numbers with units; how they look is the business of `report`.

mod apply;
mod asked;
mod best;
mod ceiling;
mod comparison;
mod detail;
mod effect;
mod effort;
mod estimate;
mod headline;
mod outlier;
mod pivot;
mod reason;
mod table;
mod verdicts;
mod warning;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Bar, Design};
use systems::Workload;

pub use apply::Snippet;
pub use asked::By;
pub(crate) use asked::CLIFF;
pub(crate) use comparison::log_ratios;
pub use comparison::{Comparison, Judged, NoiseFloor, Ratio, judged};
pub use detail::Detail;
pub use effect::{Effect, Interaction};
pub use effort::Effort;
pub use estimate::{Estimate, figure_of};
pub use outlier::Outlier;
pub(crate) use table::column;
pub use table::{Cell, Column, Row, Table, Unit};
pub use verdicts::NO_FLOOR;
pub use warning::{Code, Warning};
pub(crate) use warning::{FEWEST_TRIALS, words};

use crate::doubt::{Doubt, nothing_ended};
use crate::experiment::grid::{Axis, Excluded};
use crate::experiment::{Figure, Form};
use crate::observation::{Measurement, Observation, Outcome, Scenario, Timing};
use crate::plan::{Plan, Planned};
use crate::published::{self, Beside};
use systems::is_reference;

/// The share of failed operations above which a row ranks nothing (a published table of pooled clients ranked one with 79.6 % errors first).
pub const RANKED_ERRORS: f64 = 0.01;

/// All that is found in a run.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Findings {
    /// In the order of the plan.
    pub experiments: Vec<ExperimentFindings>,
}

/// What is found in one experiment.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ExperimentFindings {
    /// The experiment's name.
    pub name: String,
    /// One line for headings.
    pub title: String,
    /// What was asked, and where it was published.
    pub about: String,
    /// What its trials did.
    pub workload: Workload,
    /// What its table shows.
    pub figure: Figure,
    /// Quick or full.
    pub form: Form,
    /// The names of tables under `published/`.
    pub published: Vec<String>,
    /// Rounds planned.
    pub rounds: u32,
    /// Of each trial.
    pub timing: Timing,
    /// How often its comparisons were looked at.
    pub design: Design,
    /// Trials planned.
    pub trials_planned: u32,
    /// Trials that have an observation, failed ones among them.
    pub trials_done: u32,
    /// The share by which a difference must exceed nothing to be worth having.
    pub threshold: f64,
    /// The smallest difference that can be claimed here; None where the reference did not run twice in three rounds.
    pub noise_floor: Option<NoiseFloor>,
    /// One sentence for each knob, the largest effect first: the first is the headline.
    pub headlines: Vec<String>,
    /// What was asked, with ratios, intervals and verdicts.
    pub comparisons: Vec<Comparison>,
    /// Each knob's effect, best against worst, and on what it depends.
    pub effects: Vec<Effect>,
    /// Trials that lie far from the others of their scenario; they count like all.
    pub outliers: Vec<Outlier>,
    /// The published table's shape first.
    pub tables: Vec<Table>,
    /// Every knob that is set, with all its values; one, where it is only held fixed.
    pub axes: Vec<Axis>,
    /// One for each scenario, in the plan's order; the reference's last.
    pub estimates: Vec<Estimate>,
    /// The published figures beside these, table by table: which of their shapes are found again.
    #[serde(default)]
    pub beside: Vec<Beside>,
    /// What makes numbers untrustworthy, with its remedy.
    pub warnings: Vec<Warning>,
    /// Trials without a measurement.
    pub failures: Vec<FailedTrials>,
    /// Systems that could not run here.
    pub excluded: Vec<Excluded>,
    /// What the trials themselves had to say, each once, with the system's name: raised limits, a client's retries.
    pub notes: Vec<String>,
    /// The systems' versions as they reported them.
    pub versions: BTreeMap<String, String>,
    /// How to set the best point in each system's own configuration, where its manifest says so.
    pub snippets: Vec<Snippet>,
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

/// Judges the observations of a plan, complete or not.
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
    let mut tables = tables(planned, plan.design(), &estimates);
    tables.extend(effect::table(planned, &estimates, &effects));
    tables.extend(verdicts::table(planned, plan.design(), &estimates, &comparisons, noise_floor.as_ref()));
    ExperimentFindings {
        name: planned.name.clone(),
        title: planned.title.clone(),
        about: planned.about.clone(),
        workload: planned.workload,
        figure: planned.figure,
        form: planned.form,
        published: planned.published.clone(),
        rounds: planned.rounds,
        timing: planned.timing,
        design: plan.design(),
        trials_planned,
        trials_done,
        threshold: planned.threshold,
        noise_floor,
        headlines: headline::headlines(planned, &estimates, &comparisons, &effects),
        snippets,
        comparisons,
        effects,
        outliers: outlier::outliers(planned, &estimates, observations),
        tables,
        beside: published::beside(planned, plan.design(), noise_floor.as_ref(), &estimates),
        warnings: warning::warnings(planned, &estimates, observations, trials),
        failures: failures(planned, observations),
        excluded: planned.excluded.clone(),
        notes: notes(observations),
        versions: versions(observations),
        axes: planned.axes.clone(),
        estimates,
    }
}

fn failures(planned: &Planned, observations: &[&Observation]) -> Vec<FailedTrials> {
    let mut groups: BTreeMap<(String, &str, &str), FailedTrials> = BTreeMap::new();
    for observation in observations {
        let Outcome::Failed(failure) = &observation.outcome else { continue };
        let scenario = label(planned, &observation.trial.scenario);
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

fn measurements<'a>(observations: &[&'a Observation]) -> impl Iterator<Item = (&'a str, &'a Measurement)> {
    let each = observations.iter().map(|o| (o.trial.scenario.system.as_str(), &o.outcome));
    each.filter_map(|(system, outcome)| match outcome {
        Outcome::Measured(m) => Some((system, m.as_ref())),
        Outcome::Failed(_) => None,
    })
}

fn notes(observations: &[&Observation]) -> Vec<String> {
    let told = measurements(observations)
        .flat_map(|(system, m)| m.notes.iter().map(move |n| format!("{system}: {n}")));
    let empty = measurements(observations)
        .filter_map(|(system, m)| Some(format!("{system}: a trial has no figure: {}", nothing_ended(m)?)));
    told.chain(empty).collect::<BTreeSet<String>>().into_iter().collect()
}

fn versions(observations: &[&Observation]) -> BTreeMap<String, String> {
    let all = measurements(observations).filter(|(_, m)| !m.system.version.is_empty());
    all.map(|(system, m)| (system.to_owned(), m.system.version.clone())).collect()
}

/// A scenario in a line: the system, and the knobs that the experiment varies.
pub(crate) fn label(planned: &Planned, scenario: &Scenario) -> String {
    let mut words = vec![scenario.system.clone()];
    for axis in planned.axes.iter().filter(|axis| axis.values.len() > 1) {
        if let Some(value) = scenario.point.get(&axis.knob) {
            words.push(format!("{}={}", axis.knob, axis.show(value)));
        }
    }
    words.join(" ")
}

/// The tables of an experiment, that of the published shape first.
fn tables(planned: &Planned, design: Design, estimates: &[Estimate]) -> Vec<Table> {
    let rows: Vec<&Estimate> = estimates.iter().collect();
    let mut tables = match planned.workload {
        Workload::Upload | Workload::Requests => vec![table::list(planned, &rows)],
        Workload::Frames => vec![pivot::pivot(planned, estimates), table::list(planned, &rows)],
        Workload::Clients => vec![table::ranked(planned, design, estimates)],
    };
    tables.extend(reason::table(planned, estimates));
    tables
}

impl Estimate {
    /// Whether the figure may be ranked: it may be compared, and the generator was not the bottleneck.
    pub fn ranks(&self) -> bool {
        self.compares() && !self.doubts.keys().any(|doubt| doubt.disqualifies())
    }

    /// Whether it has a place in a ranking: nothing is ranked without an interval.
    pub fn is_ranked(&self) -> bool {
        self.ranks() && self.interval.is_some()
    }

    /// Whether there is a figure above zero that the server's counts do not contradict, few operations failed, and nothing
    /// disqualifies it but that the generator was at its limit.
    pub fn compares(&self) -> bool {
        let fair = |doubt: &Doubt| *doubt == Doubt::GeneratorBound || !doubt.disqualifies();
        self.figure.is_some_and(|f| f > 0.0)
            && self.error_share <= RANKED_ERRORS
            && self.counts_agree != Some(false)
            && self.doubts.keys().all(fair)
    }

    /// Whether the generator may have been the bottleneck: the system is at least as fast as the figure says.
    pub fn is_lower_bound(&self) -> bool {
        self.doubts.contains_key(&Doubt::GeneratorBound)
    }

    /// Whether this is Narrows' own endpoint.
    pub fn is_reference(&self) -> bool {
        is_reference(&self.scenario.system)
    }
}

#[cfg(test)]
mod doubt_tests;
#[cfg(test)]
mod open_loop_tests;
#[cfg(test)]
mod tests;
