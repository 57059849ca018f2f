//! Computes findings from a plan and its observations: estimates, comparisons, claims, tables and warnings.
//!
//! This module does no I/O, so the findings of a stored run can be computed again. Tables hold numbers with units, and
//! claims are values. `report` formats the numbers and puts the claims into words.

mod apply;
mod asked;
mod beside;
mod best;
mod bundled;
pub mod candidate;
mod ceiling;
mod claim;
mod comparison;
mod conditions;
mod cpu;
mod detail;
mod effect;
mod effort;
mod estimate;
pub mod functions;
mod generators;
mod leader;
mod level;
mod missing;
mod noise;
mod outlier;
mod overdriven;
mod panel;
mod per_connection;
mod pivot;
mod rank;
mod reason;
mod repeated;
mod table;
mod tuned;
mod view;
mod waiting;
mod warning;
mod withheld;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use measurement::Measurement;
use measurement::doubt::{Evidence, no_figure};
use serde::{Deserialize, Serialize};
use stats::{Design, Verdict};
use systems::Workload;

pub use apply::Snippet;
pub use asked::{By, CLIFF};
pub use beside::{
    Beside, BestOf, BestValues, ChangedOrder, Difference, OrderOfTwo, Placed, Presence, Range, Shape,
    ShapeFigures, SizeRatio,
};
pub use claim::{Claim, Silence};
pub use comparison::{Comparison, NoiseFloor, Ratio, is_hardly_measured, log_ratios};
use comparison::{Judged, judge};
pub use conditions::{ConditionOutcome, Gate, Gated, Tested};
pub(crate) use conditions::{Shown, Test, test};
pub use cpu::CpuDifference;
pub use detail::Detail;
pub use effect::{Effect, Interaction};
pub use effort::{Effort, Sent};
pub use estimate::{Estimate, Opened};
pub use generators::{Driver, Generators};
pub use leader::Behind;
pub use missing::{Missing, SPARE};
pub use noise::noise;
pub use outlier::Outlier;
pub use panel::Rows;
pub use per_connection::{MANY_CONNECTIONS, PerConnection};
pub use reason::{Counted, Reason};
pub use table::{Cell, Column, FigureTable, Note, Row, Table, TableKind, Unit, column, is_sparse};
pub use tuned::{
    Advice, Because, Contribution, Failing, Favourite, Heat, Keeps, Kept, KnobEffect, LeftOpen, PairEffect,
    Tried, Tuned, Unmeasured,
};
pub use view::FigureView;
pub use waiting::Waiting;
pub use warning::{APART, Code, FEWEST_TRIALS, FirstFailure, Seen, UNSTEADY, Warning};
pub use withheld::{Warmth, Withheld};

use crate::duet::Duets;
use crate::experiment::Figure;
use crate::figures::figure_of;
use crate::observation::{Observation, Outcome, Scenario, by_experiment, measurements};
use crate::plan::{Plan, Planned, Setup, View};
pub use measurement::RANKED_ERRORS;

/// The findings of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Findings {
    /// One for each experiment, in the plan's order.
    pub experiments: Vec<ExperimentFindings>,
    /// One for each condition of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
}

/// The findings of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExperimentFindings {
    /// What its figures share.
    #[serde(flatten)]
    pub shared: Shared,
    /// What each of its figures says, the first in front. A search has its first only.
    pub figures: Vec<FigureFindings>,
}

/// What the figures of an experiment share, because they are of the same trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shared {
    /// The question, and how it was carried out.
    #[serde(flatten)]
    pub setup: Setup,
    /// How often its comparisons were examined.
    pub design: Design,
    /// How many builds of the same systems were measured, each in an experiment of its own. A verdict counts if all show it. None if
    /// each system was built once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builds: Option<usize>,
    /// How the CPU time of scenarios differs that some figure tells apart, or that differ in CPU time although no figure does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<CpuDifference>,
    /// What the slower of two scenarios waits for, where some figure tells them apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waiting>,
    /// What became of its duets. None if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duets: Option<Duets>,
    /// The number of planned trials.
    pub trials_planned: u32,
    /// The number of trials with an observation, including failed ones.
    pub trials_done: u32,
    /// Failed trials, grouped by scenario and reason.
    pub failures: Vec<FailedTrials>,
    /// The generators on other machines. None if the generator was on the machine of the systems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generators: Option<Generators>,
    /// The version that each system reported.
    pub versions: BTreeMap<String, String>,
    /// What the experiment's search found. None if it is no search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<Tuned>,
}

/// What one figure of an experiment says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureFindings {
    /// The figure.
    pub figure: Figure,
    /// The yardstick compared with itself. None unless it and its twin ran in three rounds.
    pub noise_floor: Option<NoiseFloor>,
    /// Claims, the largest effect first. The first is the headline.
    pub claims: Vec<Claim>,
    /// The comparisons that the experiment asks for, with ratios, intervals and verdicts.
    pub comparisons: Vec<Comparison>,
    /// The effect of each knob: its best value against its worst, and the other knobs on which it depends.
    pub effects: Vec<Effect>,
    /// Trials that lie far from the others of their scenario. They are not excluded.
    pub outliers: Vec<Outlier>,
    /// Tables. The first has the shape of the published table.
    pub tables: Vec<FigureTable>,
    /// One for each scenario, in the plan's order. The reference comes last.
    pub estimates: Vec<Estimate>,
    /// Comparisons with published tables, one for each table.
    pub beside: Vec<Beside>,
    /// Why numbers may be untrustworthy.
    pub warnings: Vec<Warning>,
    /// Trials that were measured but have no figure: no operation ended, or `100 Continue` never came.
    pub without_figure: Vec<WithoutFigure>,
    /// How to set the best values in each system's own configuration, if its manifest says so.
    pub snippets: Vec<Snippet>,
}

/// A trial that was measured but has no figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WithoutFigure {
    /// The system.
    pub system: String,
    /// Why.
    pub evidence: Evidence,
}

/// Trials of one scenario that failed in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedTrials {
    /// The scenario, as `system knob=value …`.
    pub scenario: String,
    /// The stage of the trial that failed.
    pub stage: String,
    /// What went wrong, and what to do.
    pub reason: String,
    /// The end of the system's output in the first of these trials.
    pub output: String,
    /// The number of these trials.
    pub trials: u32,
}

/// The number of comparisons that an experiment asks for.
pub fn comparisons_asked(planned: &Planned) -> usize {
    planned.views().next().map_or(0, |view| asked::asked(&view).len())
}

/// Computes the findings of a plan's observations, complete or not, without published tables.
pub fn findings(plan: &Plan, observations: &[Observation]) -> Findings {
    findings_beside(plan, observations, |_| Vec::new())
}

/// The same with published tables: `beside` compares the rest of a figure's findings with them.
pub fn findings_beside(
    plan: &Plan,
    observations: &[Observation],
    beside: impl Fn(&FigureView<'_>) -> Vec<Beside>,
) -> Findings {
    let mut compared = compared(plan, observations);
    let mut causes = Vec::new();
    // What one build shows, the others may not.
    let open_design = plan.experiments.iter().all(|planned| planned.repeats.is_none()).then_some(plan.design);
    for figures in &mut compared {
        let cause =
            Causes { cpu: cpu::differences(figures, open_design), waiting: waiting::waiting(figures) };
        figures.iter_mut().for_each(|figure| figure.conclude(&cause));
        level::share(figures);
        causes.push(cause);
    }
    let gates = conditions::gates(plan, &compared);
    let counts = Counts::of(plan);
    let found = |((planned, figures), causes)| {
        let mut found = experiment(plan.design, &counts, planned, figures, causes);
        let beside: Vec<Vec<Beside>> = found.views().map(|view| beside(&view)).collect();
        found.figures.iter_mut().zip(beside).for_each(|(figure, beside)| figure.beside = beside);
        found
    };
    Findings { experiments: plan.experiments.iter().zip(compared).zip(causes).map(found).collect(), gates }
}

/// Which experiments of the plan more rounds may decide: those that a condition limits until it is decided, and the others until
/// their comparisons are.
pub(crate) fn undecided(plan: &Plan, observations: &[Observation]) -> Vec<bool> {
    let compared = compared(plan, observations);
    let gated = conditions::undecided(plan, &compared);
    let is_open = |c: &Comparison| matches!(c.verdict, Verdict::Undecided { more_rounds: Some(_) });
    let open = compared.iter().enumerate().map(|(at, figures)| match gated.get(&at) {
        Some(open) => *open,
        None => figures.iter().flat_map(|figure| &figure.comparisons).any(is_open),
    });
    open.collect()
}

/// Makes the comparisons that a plan asks for, without its other findings: one list for each experiment and figure.
#[cfg(test)]
pub(crate) fn compare_scenarios(plan: &Plan, observations: &[Observation]) -> Vec<Vec<Comparison>> {
    compared(plan, observations).into_iter().flatten().map(|compared| compared.comparisons).collect()
}

/// The figures of each experiment.
fn compared<'a>(plan: &'a Plan, observations: &'a [Observation]) -> Vec<Vec<Compared<'a>>> {
    let seen = by_experiment(observations);
    let compared = plan.experiments.iter().map(|planned| {
        let own = || seen.get(planned.name.as_str()).cloned().unwrap_or_default();
        planned.views().map(|view| Compared::new(view, plan, own())).collect()
    });
    let mut compared: Vec<Vec<Compared>> = compared.collect();
    let mut families: BTreeMap<Family, Vec<&mut Compared>> = BTreeMap::new();
    for (family, figures) in Family::each(plan).into_iter().zip(&mut compared) {
        families.entry(family).or_default().extend(figures);
    }
    families.values_mut().for_each(|together| comparison::compare(together));
    repeated::demand(&mut compared);
    overdriven::withhold(&mut compared, observations);
    compared
}

/// What is judged together: the figures of an experiment, or all that a run asks of one build.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Family<'a> {
    Experiment(&'a str),
    /// Builds are counted from 0.
    Build(usize),
}

impl<'a> Family<'a> {
    /// That of each experiment of a plan.
    fn each(plan: &'a Plan) -> Vec<Self> {
        // Each experiment that repeats another does so with the next build.
        let mut builds: BTreeMap<&str, usize> = BTreeMap::new();
        let family = |planned: &'a Planned| match &planned.repeats {
            _ if !plan.together => Self::Experiment(&planned.name),
            None => Self::Build(0),
            Some(first) => {
                let build = builds.entry(first).or_default();
                *build += 1;
                Self::Build(*build)
            }
        };
        plan.experiments.iter().map(family).collect()
    }
}

/// How much a plan has of each experiment, by its name.
struct Counts<'a> {
    trials: BTreeMap<&'a str, usize>,
    builds: BTreeMap<&'a str, usize>,
}

impl<'a> Counts<'a> {
    fn of(plan: &'a Plan) -> Self {
        let mut trials = BTreeMap::new();
        for trial in &plan.trials {
            *trials.entry(trial.scenario.experiment.as_str()).or_default() += 1;
        }
        Self { trials, builds: repeated::builds(plan) }
    }
}

/// The trials of each scenario, without twins.
type ByScenario<'a> = BTreeMap<&'a Scenario, Vec<&'a Observation>>;

fn by_scenario<'a>(observations: &[&'a Observation]) -> ByScenario<'a> {
    let mut trials = ByScenario::new();
    for observation in observations.iter().filter(|observation| !observation.trial.twin) {
        trials.entry(&observation.trial.scenario).or_default().push(observation);
    }
    trials
}

/// What the trials say of why scenarios differ, whatever the figure.
struct Causes {
    cpu: Vec<CpuDifference>,
    waiting: Vec<Waiting>,
}

/// An experiment as one of its figures sees it, up to its comparisons, which are made together with those of others, and its claims.
struct Compared<'a> {
    planned: View<'a>,
    observations: Vec<&'a Observation>,
    estimates: Vec<Estimate>,
    rows: Rows,
    comparisons: Vec<Comparison>,
    effects: Vec<Effect>,
    claims: Vec<Claim>,
    tuned: Option<Tuned>,
    /// For each estimate, whether its rate was too near what the system can do. Empty until [`overdriven::withhold`].
    overdriven: Vec<bool>,
}

impl<'a> Compared<'a> {
    fn new(planned: View<'a>, plan: &Plan, observations: Vec<&'a Observation>) -> Self {
        let (estimates, rows) = estimate::estimates(&planned, plan.design, &observations);
        let (comparisons, effects, claims) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            planned,
            observations,
            estimates,
            rows,
            comparisons,
            effects,
            claims,
            tuned: None,
            overdriven: Vec::new(),
        }
    }

    fn results(&self) -> best::Results<'_> {
        let Self { planned, estimates, rows, comparisons, .. } = self;
        best::Results { planned, estimates, rows, comparisons }
    }

    /// Makes the claims, which the figures of the rows then follow.
    fn conclude(&mut self, causes: &Causes) {
        self.tuned = tuned::tuned(&self.planned, &self.observations);
        // The effects of a search would be of settings that the race chose. `tuned` has estimates instead.
        if self.tuned.is_none() && self.planned.is_compared() {
            self.effects = effect::effects(&self.results());
        }
        self.claims = claim::claims(&self.results(), &self.effects, causes);
        let Self { planned, estimates, rows, comparisons, claims, tuned, .. } = self;
        let said = level::said(&planned.setup, estimates, claims, tuned.as_ref());
        level::set(planned, rows, estimates, &said, &level::seen(comparisons));
    }

    fn findings(self, trials: usize) -> FigureFindings {
        let snippets = match &self.tuned {
            Some(tuned) => {
                tuned.advice.iter().filter_map(|advice| apply::advised(&self.planned, advice)).collect()
            }
            None => apply::snippets(&self.results()),
        };
        let Self { planned, observations, estimates, rows, comparisons, effects, claims, .. } = self;
        // The noise of the base beside itself is for comparisons.
        let noise_floor =
            comparison::floor(&planned, &estimates, &observations).filter(|_| planned.is_compared());
        FigureFindings {
            figure: planned.figure,
            noise_floor,
            claims,
            snippets,
            comparisons,
            effects,
            outliers: outlier::outliers(&planned, &estimates, &observations),
            tables: tables(&planned, &rows, &estimates),
            beside: Vec::new(),
            warnings: warning::warnings(&planned, &answering(&planned, &estimates), &observations, trials),
            without_figure: without_figure(&planned, &observations),
            estimates,
        }
    }
}

/// The findings of an experiment: what its figures share, and what each says.
fn experiment(
    design: Design,
    counts: &Counts<'_>,
    planned: &Planned,
    figures: Vec<Compared<'_>>,
    causes: Causes,
) -> ExperimentFindings {
    let trials = counts.trials.get(planned.name.as_str()).copied().unwrap_or(0);
    let builds = counts.builds.get(repeated::first(planned)).copied();
    let first = figures.first();
    let (observations, tuned) =
        first.map(|first| (first.observations.clone(), first.tuned.clone())).unwrap_or_default();
    let shared = Shared {
        setup: planned.setup.clone(),
        design,
        builds: builds.filter(|builds| *builds > 1),
        cpu: causes.cpu,
        waiting: causes.waiting,
        duets: Duets::of(&observations),
        trials_planned: trials as u32,
        trials_done: observations.len() as u32,
        failures: failures(planned, &observations),
        generators: generators::generators(&observations),
        versions: versions(&observations),
        tuned,
    };
    ExperimentFindings {
        shared,
        figures: figures.into_iter().map(|figure| figure.findings(trials)).collect(),
    }
}

/// The estimates on which the answer rests: all, or those of a search's last round. Others of its settings ran once or twice.
fn answering<'a>(planned: &Planned, estimates: &'a [Estimate]) -> Vec<&'a Estimate> {
    let Some(search) = &planned.search else { return estimates.iter().collect() };
    let last: BTreeSet<Scenario> = search.last_round(&planned.setup).into_iter().collect();
    estimates.iter().filter(|e| last.contains(&e.scenario)).collect()
}

fn failures(planned: &Planned, observations: &[&Observation]) -> Vec<FailedTrials> {
    let mut groups: BTreeMap<(String, &str, &str), FailedTrials> = BTreeMap::new();
    for observation in observations {
        let Outcome::Failed(failure) = &observation.outcome else { continue };
        let scenario = planned.label(&observation.trial.scenario);
        let key = (scenario.clone(), failure.stage.name(), failure.reason.as_str());
        let group = groups.entry(key).or_insert_with(|| FailedTrials {
            scenario,
            stage: failure.stage.name().to_owned(),
            reason: failure.reason.clone(),
            output: failure.output.clone(),
            trials: 0,
        });
        group.trials += 1;
    }
    groups.into_values().collect()
}

fn without_figure(planned: &View<'_>, observations: &[&Observation]) -> Vec<WithoutFigure> {
    let unit = &planned.workload.about().unit;
    let without = |(system, m): (&str, &Measurement)| {
        let evidence = no_figure(m).filter(|_| figure_of(planned.figure, unit, m).is_none())?;
        Some(WithoutFigure { system: system.to_owned(), evidence })
    };
    measurements(observations).filter_map(without).collect()
}

fn versions(observations: &[&Observation]) -> BTreeMap<String, String> {
    let reported = measurements(observations).filter(|(_, m)| !m.system.version.is_empty());
    reported.map(|(system, m)| (system.to_owned(), m.system.version.clone())).collect()
}

/// The tables of an experiment. The first has the shape of the published table.
fn tables(planned: &View<'_>, panel: &Rows, estimates: &[Estimate]) -> Vec<FigureTable> {
    let rows: Vec<&Estimate> = estimates.iter().collect();
    let mut tables = match planned.workload {
        Workload::Upload | Workload::Requests | Workload::Streams | Workload::Chats => {
            vec![table::list(planned, &rows)]
        }
        Workload::Frames => {
            pivot::pivot(planned, estimates).into_iter().chain([table::list(planned, &rows)]).collect()
        }
        Workload::Clients => vec![table::ranked(planned, panel, estimates)],
    };
    tables.extend(reason::table(planned, estimates));
    tables
}

impl Deref for ExperimentFindings {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Deref for Shared {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

#[cfg(test)]
mod claim_tests;
#[cfg(test)]
mod cpu_tests;
#[cfg(test)]
mod doubt_tests;
#[cfg(test)]
mod level_tests;
#[cfg(test)]
mod open_loop_tests;
#[cfg(test)]
mod overdriven_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod withheld_tests;
