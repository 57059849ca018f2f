//! The plan: which trial is carried out when. Pure: the same experiments and seed give the same plan for ever.
//!
//! Every scenario once in every round, in an order shuffled inside each round; the reference at the same points in
//! every round, and at one of them twice: A against A. Experiments one after another. Rounds before scenarios, because a
//! machine drifts (heat, neighbours): ratios inside a round compare what ran side by side.
//!
//! A plan without a fixed number of rounds grows by what [`Plan::grow`] is told, look by look (`lab::rounds`); each
//! stage's order depends on the seed and on what was planned before, and on nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Design, SplitMix64, shuffle};
use systems::{Catalog, InputError, Manifest, Point, Role, Value, is_reference};

use crate::experiment::grid::{self, Axis, Excluded, Request};
use crate::experiment::{Form, Subject};
use crate::observation::{Scenario, Timing, Trial};

/// Everything a run will do, in order; saved with the run, so that it can be resumed and its findings recomputed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What the order was shuffled by.
    pub seed: u64,
    /// Rounds are added until every comparison is decided, as long as trials have taken fewer seconds than this; None:
    /// what is planned is all.
    pub budget_s: Option<f64>,
    /// The experiments in the order in which they run.
    pub experiments: Vec<Planned>,
    /// The trials in the order in which they run; `trials[i].index == i`.
    pub trials: Vec<Trial>,
}

/// How an experiment is carried out: what was asked, how often and how long, over which values.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Setup {
    /// What is asked.
    #[serde(flatten)]
    pub subject: Subject,
    /// Quick or full.
    pub form: Form,
    /// Rounds planned.
    pub rounds: u32,
    /// Of each trial.
    pub timing: Timing,
    /// Every knob that is set, with all its values; one, where it is only held fixed.
    pub axes: Vec<Axis>,
    /// Systems that could not run here.
    pub excluded: Vec<Excluded>,
}

/// What a plan knows of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// How it is carried out. Of a plan that grows, the rounds are the most of any scenario so far.
    #[serde(flatten)]
    pub setup: Setup,
    /// What each round executes: systems in the file's order, each in the grid's order; the reference last.
    pub scenarios: Vec<Scenario>,
    /// How a knob's value is set in the system's own configuration: system, knob, and the manifest's `apply`.
    pub apply: BTreeMap<String, BTreeMap<String, String>>,
    /// Where each system's own knobs stand when nobody sets them.
    pub defaults: BTreeMap<String, Point>,
}

// Embedded: what is asked and how is read like an experiment's own fields, in plans and in findings.
impl Deref for Setup {
    type Target = Subject;

    fn deref(&self) -> &Subject {
        &self.subject
    }
}

impl Deref for Planned {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

impl Setup {
    /// A scenario in a line: the system, and the knobs that the experiment varies.
    pub fn label(&self, scenario: &Scenario) -> String {
        let mut words = vec![scenario.system.clone()];
        for axis in self.axes.iter().filter(|axis| axis.values.len() > 1) {
            if let Some(value) = scenario.point.get(&axis.knob) {
                words.push(format!("{}={}", axis.knob, axis.show(value)));
            }
        }
        words.join(" ")
    }
}

/// How long starting and stopping a system is taken to last, seconds. In the ready-made experiments it was 0.2 to 0.4 on average;
/// a BEAM or a JVM needs nearly one.
const START_S: f64 = 0.5;

/// The same for the reference, which is this program.
const START_REFERENCE_S: f64 = 0.3;

/// How long the kernel's work for a server is counted when its window has closed, seconds: enough for a figure per operation.
pub(crate) const COUNTING_S: f64 = 0.2;

/// Whether it is: in the first round, because counts hardly vary. A client drives itself.
pub(crate) fn is_counted(trial: &Trial) -> bool {
    trial.round == 0 && trial.scenario.workload().role() == Role::Server
}

/// How long a trial is expected to last, seconds: start, warm-up, measured window, and counting.
pub fn estimate_s(trial: &Trial) -> f64 {
    let start = if is_reference(&trial.scenario.system) { START_REFERENCE_S } else { START_S };
    let counting = if is_counted(trial) { COUNTING_S } else { 0.0 };
    start + trial.timing.warmup_s + trial.timing.measure_s + counting
}

impl Planned {
    /// What a system does with a knob when nobody says anything; of a workload's knob, what the workload says.
    pub(crate) fn default_of<'a>(&'a self, system: &str, axis: &'a Axis) -> Option<&'a Value> {
        let own = self.defaults.get(system).and_then(|defaults| defaults.get(&axis.knob));
        own.or(axis.default.as_ref())
    }

    /// The scenario that stands in each round twice: the first of the reference's.
    pub fn twin(&self) -> Option<&Scenario> {
        self.scenarios.iter().find(|scenario| is_reference(&scenario.system))
    }
}

impl Plan {
    /// How long the whole plan is expected to last, seconds.
    pub fn estimate_s(&self) -> f64 {
        self.trials.iter().map(estimate_s).sum()
    }

    /// How its comparisons are looked at.
    pub fn design(&self) -> Design {
        if self.budget_s.is_some() { Design::AtEachLook } else { Design::Once }
    }

    /// Adds rounds of an experiment, up to `rounds` in all, with these of its scenarios and the twin.
    pub fn grow(&mut self, experiment: usize, scenarios: &[Scenario], rounds: u32) {
        let Some(planned) = self.experiments.get_mut(experiment) else { return };
        let from = std::mem::replace(&mut planned.setup.rounds, rounds);
        let (timing, twin) = (planned.timing, planned.twin().cloned());
        let mut rng = SplitMix64::new(self.seed.wrapping_add(self.trials.len() as u64));
        for round in from..rounds {
            push_round(&mut self.trials, round, timing, scenarios, twin.as_ref(), &mut rng);
        }
    }

    /// The same plan with as many rounds of each experiment as fit into `budget_s`, at least one of each.
    pub fn within(&self, budget_s: f64) -> Self {
        let mut rounds = self.experiments.iter().map(|e| e.rounds).max().unwrap_or(0);
        loop {
            let mut plan = self.clone();
            plan.trials.retain(|trial| trial.round < rounds);
            if rounds <= 1 || plan.estimate_s() <= budget_s {
                for (index, trial) in plan.trials.iter_mut().enumerate() {
                    trial.index = index as u32;
                }
                plan.experiments.iter_mut().for_each(|e| e.setup.rounds = e.rounds.min(rounds));
                return plan;
            }
            rounds -= 1;
        }
    }
}

/// Orders the trials of all `requests`. `excluded` names the systems that cannot run here, with the reason; they
/// give no trials. The reference runs at each point that is left when an available system's point is reduced to
/// the workload's own knobs. An experiment that is asked for twice runs once, as first asked for: its name is what
/// observations are found by.
///
/// # Errors
/// A system, knob or value that does not exist, with its place (in the file or on the command line) and the
/// nearest that does.
pub fn plan(
    requests: &[Request],
    catalog: &Catalog,
    excluded: &BTreeMap<String, String>,
    seed: u64,
) -> Result<Plan, InputError> {
    grid::check_overrides(requests, catalog)?;
    let mut rng = SplitMix64::new(seed);
    let mut plan = Plan { seed, budget_s: None, experiments: Vec::new(), trials: Vec::new() };
    for request in requests {
        if plan.experiments.iter().any(|known| known.name == request.experiment.name) {
            continue;
        }
        let planned = planned(request, catalog, excluded)?;
        if planned.scenarios.is_empty() && planned.excluded.is_empty() {
            continue; // --systems names none that does this experiment's work
        }
        for round in 0..planned.rounds {
            let (timing, twin) = (planned.timing, planned.twin());
            push_round(&mut plan.trials, round, timing, &planned.scenarios, twin, &mut rng);
        }
        plan.experiments.push(planned);
    }
    Ok(plan)
}

/// One round: every scenario once, and the reference's twin, in shuffled order.
fn push_round(
    trials: &mut Vec<Trial>,
    round: u32,
    timing: Timing,
    scenarios: &[Scenario],
    twin: Option<&Scenario>,
    rng: &mut SplitMix64,
) {
    let once = scenarios.iter().map(|scenario| (scenario, false));
    let mut order: Vec<(&Scenario, bool)> = once.chain(twin.map(|scenario| (scenario, true))).collect();
    shuffle(&mut order, rng);
    for (scenario, twin) in order {
        let index = trials.len() as u32;
        trials.push(Trial { index, round, scenario: scenario.clone(), timing, twin });
    }
}

fn planned(
    request: &Request,
    catalog: &Catalog,
    excluded: &BTreeMap<String, String>,
) -> Result<Planned, InputError> {
    let Request { experiment, form, overrides } = request;
    let schedule = experiment.schedule(*form);
    let all = grid::scenarios(experiment, *form, overrides, catalog)?;
    let mut scenarios = all.scenarios;
    let mut out = all.broken;
    for scenario in &scenarios {
        let known = out.iter().any(|e: &Excluded| e.system == scenario.system);
        if let Some(reason) = excluded.get(&scenario.system).filter(|_| !known) {
            out.push(Excluded { system: scenario.system.clone(), reason: reason.clone() });
        }
    }
    scenarios.retain(|scenario| !excluded.contains_key(&scenario.system));
    let system = experiment.workload.reference();
    let missing = match catalog.reference_for(experiment.workload) {
        Some(_) => excluded.get(system).cloned(),
        None => Some("its manifest is missing or broken".to_owned()),
    };
    match missing {
        Some(reason) => out.push(Excluded { system: system.to_owned(), reason }),
        None => {
            let references = references(&scenarios);
            scenarios.retain(|scenario| !is_reference(&scenario.system));
            scenarios.extend(references);
        }
    }
    let setup = Setup {
        subject: experiment.subject.clone(),
        form: *form,
        rounds: overrides.rounds.unwrap_or(schedule.rounds),
        timing: schedule.timing,
        axes: all.axes,
        excluded: out,
    };
    let apply = apply(&scenarios, catalog);
    let defaults = manifests(&scenarios, catalog).map(|m| (m.name.clone(), m.defaults())).collect();
    Ok(Planned { setup, scenarios, apply, defaults })
}

/// Those of the systems that take part.
fn manifests<'a>(scenarios: &'a [Scenario], catalog: &'a Catalog) -> impl Iterator<Item = &'a Manifest> {
    let systems: BTreeSet<&String> = scenarios.iter().map(|scenario| &scenario.system).collect();
    systems.into_iter().filter_map(|name| catalog.get(name).ok())
}

/// What their manifests say of setting their knobs.
fn apply(scenarios: &[Scenario], catalog: &Catalog) -> BTreeMap<String, BTreeMap<String, String>> {
    let saying = manifests(scenarios, catalog).filter(|manifest| !manifest.apply.is_empty());
    saying.map(|manifest| (manifest.name.clone(), manifest.apply.clone())).collect()
}

/// The reference at each distinct point that is left of the scenarios' points.
fn references(scenarios: &[Scenario]) -> Vec<Scenario> {
    let mut seen = BTreeSet::new();
    let own = scenarios.iter().map(Scenario::reference);
    own.filter(|scenario| seen.insert(scenario.clone())).collect()
}

#[cfg(test)]
mod tests;
