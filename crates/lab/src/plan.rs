//! The plan: which trials are carried out, and in which order. Pure: the same experiments and seed always give the same
//! plan.
//!
//! Every round contains every scenario once, in shuffled order. The reference runs in every round at the same points,
//! and at one of them twice: A against A. Experiments run one after another. Trials are grouped by round, not by
//! scenario, because a machine drifts (heat, neighbours), and ratios within a round compare trials that ran close
//! together.
//!
//! A plan without a fixed number of rounds grows look by look (`lab::rounds`, [`Plan::grow`]). The order of the added
//! trials depends only on the seed and on the number of trials planned before.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Design, SplitMix64, shuffle};
use systems::{Catalog, InputError, Manifest, Point, Role, Value, is_reference};

use crate::experiment::grid::{self, Axis, Excluded, Request};
use crate::experiment::{Form, Subject};
use crate::observation::{Scenario, Timing, Trial};

/// Everything that a run will do, in order. It is saved with the run, so that the run can be resumed and its findings
/// recomputed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The seed of the shuffled order.
    pub seed: u64,
    /// If set, rounds are added until every comparison is decided, as long as all trials together take no more seconds
    /// than this. None if the number of rounds is fixed.
    pub budget_s: Option<f64>,
    /// The experiments, in the order in which they run.
    pub experiments: Vec<Planned>,
    /// The trials, in the order in which they run: `trials[i].index == i`.
    pub trials: Vec<Trial>,
}

/// How an experiment is carried out: the question, the rounds, the timing and the values of the knobs.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Setup {
    /// The question.
    #[serde(flatten)]
    pub subject: Subject,
    /// Quick or full.
    pub form: Form,
    /// The number of planned rounds. In a plan that grows, the most of any scenario so far.
    pub rounds: u32,
    /// The timing of each trial.
    pub timing: Timing,
    /// The knobs that are set, with all their values. A knob that is held fixed has one.
    pub axes: Vec<Axis>,
    /// Systems that could not run here.
    pub excluded: Vec<Excluded>,
}

/// What a plan knows of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// How it is carried out.
    #[serde(flatten)]
    pub setup: Setup,
    /// What each round executes: the systems in the file's order, each system's points in the grid's order, and the
    /// reference last.
    pub scenarios: Vec<Scenario>,
    /// How a knob's value is set in a system's own configuration: the manifests' `apply`, by system and knob.
    pub apply: BTreeMap<String, BTreeMap<String, String>>,
    /// The defaults of each system's own knobs.
    pub defaults: BTreeMap<String, Point>,
}

// The subject and the setup are embedded: serde flattens them, and code reads their fields as fields of what embeds
// them.
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
    /// Describes a scenario in one line: the system, and the knobs that the experiment varies.
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

/// The estimated time to start and stop a system, seconds: compiled programs took 0.1, Node and the BEAM 0.3, Python
/// 0.3 to 0.6 (docs/decisions/0009). A JVM needs nearly 1.
const START_S: f64 = 0.35;

/// The same for the reference, which is this program.
const START_REFERENCE_S: f64 = 0.1;

/// How long the kernel's work for a server is counted after the window, seconds. This is enough for a figure per
/// operation.
pub(crate) const COUNTING_S: f64 = 0.2;

/// Whether the kernel's work is counted after a trial. It is in the first round only, because counts hardly vary.
/// Clients are not counted, because they drive themselves.
pub(crate) fn is_counted(trial: &Trial) -> bool {
    trial.round == 0 && trial.scenario.workload().role() == Role::Server
}

/// The expected duration of a trial, seconds: start, warm-up, measured window and counting.
pub fn estimate_s(trial: &Trial) -> f64 {
    let start = if is_reference(&trial.scenario.system) { START_REFERENCE_S } else { START_S };
    let counting = if is_counted(trial) { COUNTING_S } else { 0.0 };
    start + trial.timing.warmup_s + trial.timing.measure_s + counting
}

impl Planned {
    /// The default of a knob in a system. For a knob of the workload, the workload's default.
    pub(crate) fn default_of<'a>(&'a self, system: &str, axis: &'a Axis) -> Option<&'a Value> {
        let of_system = self.defaults.get(system).and_then(|defaults| defaults.get(&axis.knob));
        of_system.or(axis.default.as_ref())
    }

    /// The scenario that each round contains twice: the first of the reference's.
    pub fn twin(&self) -> Option<&Scenario> {
        self.scenarios.iter().find(|scenario| is_reference(&scenario.system))
    }
}

impl Plan {
    /// The expected duration of the whole plan, seconds.
    pub fn estimate_s(&self) -> f64 {
        self.trials.iter().map(estimate_s).sum()
    }

    /// How often its comparisons are examined.
    pub fn design(&self) -> Design {
        if self.budget_s.is_some() { Design::AtEachLook } else { Design::Once }
    }

    /// Adds rounds to an experiment until it has `rounds`. The new rounds contain only these of its scenarios, and the
    /// twin.
    pub fn grow(&mut self, experiment: usize, scenarios: &[Scenario], rounds: u32) {
        let Some(planned) = self.experiments.get_mut(experiment) else { return };
        let from = std::mem::replace(&mut planned.setup.rounds, rounds);
        let (timing, twin) = (planned.timing, planned.twin().cloned());
        let mut rng = SplitMix64::new(self.seed.wrapping_add(self.trials.len() as u64));
        for round in from..rounds {
            push_round(&mut self.trials, round, timing, scenarios, twin.as_ref(), &mut rng);
        }
    }

    /// The same plan with as many rounds as fit into `budget_s` seconds, but at least one round of each experiment.
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

/// Plans the trials of all `requests`. `excluded` names the systems that cannot run here, each with the reason; they
/// get no trials. The points of the reference are those of the available systems, reduced to the workload's own knobs.
/// An experiment that is requested twice runs once, as first requested, because observations are found by its name.
///
/// # Errors
/// A system, knob or value that does not exist, with its position in the file or on the command line, and the nearest
/// that does.
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
            continue; // No system that --systems names does this experiment's workload.
        }
        for round in 0..planned.rounds {
            let (timing, twin) = (planned.timing, planned.twin());
            push_round(&mut plan.trials, round, timing, &planned.scenarios, twin, &mut rng);
        }
        plan.experiments.push(planned);
    }
    Ok(plan)
}

/// Appends one round: every scenario once, and the reference's twin, in shuffled order.
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
    let mut left_out = all.broken;
    for scenario in &scenarios {
        let known = left_out.iter().any(|e: &Excluded| e.system == scenario.system);
        if let Some(reason) = excluded.get(&scenario.system).filter(|_| !known) {
            left_out.push(Excluded { system: scenario.system.clone(), reason: reason.clone() });
        }
    }
    scenarios.retain(|scenario| !excluded.contains_key(&scenario.system));
    let system = experiment.workload.reference();
    let missing = match catalog.reference_for(experiment.workload) {
        Some(_) => excluded.get(system).cloned(),
        None => Some("its manifest is missing or broken".to_owned()),
    };
    match missing {
        Some(reason) => left_out.push(Excluded { system: system.to_owned(), reason }),
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
        excluded: left_out,
    };
    let apply = apply(&scenarios, catalog);
    let defaults = manifests(&scenarios, catalog).map(|m| (m.name.clone(), m.defaults())).collect();
    Ok(Planned { setup, scenarios, apply, defaults })
}

/// The manifests of the systems that take part.
fn manifests<'a>(scenarios: &'a [Scenario], catalog: &'a Catalog) -> impl Iterator<Item = &'a Manifest> {
    let systems: BTreeSet<&String> = scenarios.iter().map(|scenario| &scenario.system).collect();
    systems.into_iter().filter_map(|name| catalog.get(name).ok())
}

/// The `apply` tables of the manifests, by system.
fn apply(scenarios: &[Scenario], catalog: &Catalog) -> BTreeMap<String, BTreeMap<String, String>> {
    let manifests = manifests(scenarios, catalog).filter(|manifest| !manifest.apply.is_empty());
    manifests.map(|manifest| (manifest.name.clone(), manifest.apply.clone())).collect()
}

/// The reference's scenarios: one for each distinct point of the workload's own knobs.
fn references(scenarios: &[Scenario]) -> Vec<Scenario> {
    let mut seen = BTreeSet::new();
    let references = scenarios.iter().map(Scenario::reference);
    references.filter(|scenario| seen.insert(scenario.clone())).collect()
}

#[cfg(test)]
mod tests;
