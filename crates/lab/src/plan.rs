//! The plan: which trials are carried out, and in which order. Pure: the same experiments and seed always give the same
//! plan.
//!
//! Every round contains every scenario once, in shuffled order. Trials are grouped by round, not by scenario, because a
//! machine drifts (heat, neighbours), and ratios within a round compare trials that ran close together. Rounds go over all
//! experiments in turn: the first round of each, then the second. Rounds that follow each other at once share a slow drift,
//! which looks like a difference between systems that feel it differently.
//!
//! In the full form, the reference runs in every round at each point of the workload, and at one of them twice in one round of
//! four: A against A. In the quick form it runs once in each round, because rounds are what decides. An experiment with a base has
//! no reference: the base runs twice in one round of four.
//!
//! A plan without a fixed number of rounds grows (`lab::rounds`, [`Plan::grow`]). The order of the added trials depends
//! only on the seed and on the number of trials planned before.

mod bounds;
mod times;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stats::{Design, FEWEST_ROUNDS, LOOKS, SplitMix64, USUAL_LOOKS, shuffle};
use systems::{Catalog, InputError, Manifest, Role, Value, is_reference};

use bounds::Extent;

use crate::ask::Ask;
use crate::condition::Condition;
use crate::experiment::grid::{self, Axis, Excluded, Request};
use crate::experiment::{Experiment, Figure, Form};
use crate::observation::{LONGEST_TRIAL_S, Observation, Scenario, Timing, Trial};
use crate::search::{Round, Search, Stage};
pub use crate::setup::{Base, Setup};
pub use bounds::{MOST_BYTES, MOST_BYTES_OF_SEARCH, MOST_ROUNDS, MOST_SCENARIOS, MOST_TRIALS};
pub(crate) use bounds::{entry_bytes, size};
pub use times::{RoundTimes, estimate_s};

/// Everything that a run will do, in order. It is saved with the run, so that the run can be resumed and its findings
/// recomputed.
// The derived functions are called by the traits' below.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Plan {
    /// The seed of the shuffled order.
    pub seed: u64,
    /// How often its comparisons are examined.
    pub design: Design,
    /// If set, rounds are added as long as all trials together take no more seconds than this. None if the number of
    /// rounds is fixed.
    pub budget_s: Option<f64>,
    /// How long the first look took to start a system, to ask it and to stop it, seconds. Nobody looked at the others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub starts: BTreeMap<String, f64>,
    /// The conditions of a gate. Rounds are added until each is decided, instead of the comparisons of what they limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Whether all experiments ask one question, so that their comparisons are judged together. Otherwise each asks its own.
    #[serde(default)]
    pub together: bool,
    /// The experiments, in the order in which they run.
    pub experiments: Vec<Planned>,
    /// The trials, in the order in which they run: `trials[i].index == i`.
    pub trials: Vec<Trial>,
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut plan = Self::deserialize(from)?;
        let asks: BTreeMap<&str, &Arc<Ask>> =
            plan.experiments.iter().filter_map(|e| Some((e.name.as_str(), e.ask.as_ref()?))).collect();
        for trial in &mut plan.trials {
            trial.ask = asks.get(trial.scenario.experiment.as_str()).copied().cloned();
        }
        Ok(plan)
    }
}

/// What a plan knows of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// How it is carried out.
    #[serde(flatten)]
    pub setup: Setup,
    /// What each round executes: the systems in the file's order, each system's points in the grid's order, and the
    /// reference's last.
    pub scenarios: Vec<Scenario>,
    /// How a knob's value is set in a system's own configuration: the manifests' `apply`, by system and knob.
    pub apply: BTreeMap<String, BTreeMap<String, String>>,
    /// The search that chooses the scenarios of each round. None if each round executes all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// Whether it tests reasons: its arms explain, and need no explanation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_test: bool,
}

// The setup is embedded: serde flattens it, and code reads its fields as fields of the experiment.
impl Deref for Planned {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

/// A planned experiment as one of its figures sees it.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub planned: &'a Planned,
    pub figure: Figure,
}

impl Deref for View<'_> {
    type Target = Planned;

    fn deref(&self) -> &Planned {
        self.planned
    }
}

/// How long the kernel's work for a server is counted after the window, seconds. This is enough for a figure per
/// operation.
pub(crate) const COUNTING_S: f64 = 0.2;

/// How long a server's CPU time is sampled after the window, seconds: some 300 samples of a thread that runs all the time.
pub(crate) const PROFILING_S: f64 = 0.3;

/// How long a server is driven before its CPU time is sampled, so that connections are not part of it, seconds.
pub(crate) const PROFILING_AFTER_S: f64 = 0.05;

/// How long a system is watched without load, seconds.
pub(crate) const REST_S: f64 = 1.0;

/// Whether the kernel's work is counted after a trial. It is in the first round only, because counts hardly vary.
/// Clients are not counted, because they drive themselves. A figure that is a count needs it in each round.
fn is_counted(planned: &Planned, round: u32) -> bool {
    let each = planned.figures.iter().any(Figure::needs_counts);
    (round == 0 || each) && planned.workload.role() == Role::Server
}

/// Whether the system's CPU time is sampled after a trial. It is in all rounds, because functions scatter more than counts. The reference
/// explains nothing, and a search compares too much to explain each comparison. In the quick form of a file a trial takes a second.
/// Sampling would take a third more, and so cost rounds. The base's twin is started as the base is, so it is sampled, too.
fn is_profiled(planned: &Planned, scenario: &Scenario) -> bool {
    let explained = !planned.is_test && planned.search.is_none() && !scenario.is_reference();
    let affordable = !planned.from_file || planned.form == Form::Full;
    explained && affordable && planned.workload.role() == Role::Server && planned.scenarios.len() > 1
}

impl Planned {
    /// The value of a knob that others are compared with in a system: that of the base, if there is one. Otherwise the
    /// system's default; for a knob of the workload, the workload's default.
    pub(crate) fn default_of<'a>(&'a self, system: &str, axis: &'a Axis) -> Option<&'a Value> {
        if let Some(value) = self.base.as_ref().and_then(|base| base.scenario.point.get(&axis.knob)) {
            return Some(value);
        }
        let of_system = self.defaults.get(system).and_then(|defaults| defaults.get(&axis.knob));
        of_system.or(axis.default.as_ref())
    }

    /// The experiment as each of its figures sees it. A search has one answer, whatever its figures: its first sees it.
    pub(crate) fn views(&self) -> impl Iterator<Item = View<'_>> {
        let answers = if self.search.is_some() { 1 } else { usize::MAX };
        self.figures.iter().take(answers).map(|figure| View { planned: self, figure })
    }

    /// Whether its next round is one of duets. In a search, a round of the proof is, if nothing is compared but the winner and the
    /// default: what a race or a knob of the winner shows is not beside the default.
    fn is_of_duets(&self) -> bool {
        let step = self.search.as_ref().map(|search| search.steps.last());
        let is_of_two = |step: &Round| step.stage == Stage::Proof && step.cells.len() == 2;
        self.duet && step.is_none_or(|step| step.is_some_and(is_of_two))
    }

    /// The scenario that one round of four contains twice: the base, or in the full form the first of the reference's.
    pub fn twin(&self) -> Option<&Scenario> {
        if let Some(base) = &self.base {
            return Some(&base.scenario);
        }
        let full = self.form == Form::Full;
        self.scenarios.iter().find(|scenario| full && is_reference(&scenario.system))
    }
}

impl Plan {
    /// A plan without trials, examined once.
    pub fn new(seed: u64, experiments: Vec<Planned>) -> Self {
        Self {
            seed,
            design: Design::ONCE,
            budget_s: None,
            starts: BTreeMap::new(),
            conditions: Vec::new(),
            together: false,
            experiments,
            trials: Vec::new(),
        }
    }

    /// Lets the plan grow until its trials have taken so many seconds. It is examined at as many of the `stats::LOOKS` as
    /// are expected to fit, and at its end; with `once`, only at its end.
    pub fn grow_within(&mut self, budget_s: f64, once: bool) {
        let most = if self.conditions.is_empty() { USUAL_LOOKS as usize } else { LOOKS.len() };
        let times = self.round_times();
        let looks = LOOKS.iter().take(most).filter(|look| times.of_s(0..**look) <= budget_s).count();
        // The last comes after the rounds for which there is still time.
        let looks = (looks + usize::from(looks > 0)).min(most);
        self.design = if once { Design::ONCE } else { Design::with_looks(looks as u32) };
        self.budget_s = Some(budget_s);
    }

    /// Adds as many rounds as are expected to fit into so many seconds, at most as many as the last of
    /// `stats::LOOKS`, and fixes their number: it depends on no figure and on no trial's duration. The plan is
    /// examined once.
    pub fn fill(&mut self, budget_s: f64) {
        let planned = self.experiments.iter().map(|planned| planned.rounds).max().unwrap_or(0);
        let most = LOOKS.last().copied().unwrap_or(planned);
        let times = self.round_times();
        let rounds = (planned..=most).take_while(|rounds| times.of_s(0..*rounds) <= budget_s);
        let rounds = rounds.last().unwrap_or(planned);
        (self.design, self.budget_s) = (Design::ONCE, None);
        self.grow(&(0..self.experiments.len()).map(|index| (index, rounds)).collect::<Vec<_>>());
    }

    /// Adds rounds to experiments, given by index, until each has as many as stated. They go over the experiments in turn.
    pub fn grow(&mut self, rounds: &[(usize, u32)]) {
        let mut rng = SplitMix64::new(self.seed.wrapping_add(self.trials.len() as u64));
        let first = rounds.iter().filter_map(|(index, _)| Some(self.experiments.get(*index)?.rounds)).min();
        let last = rounds.iter().map(|(_, rounds)| *rounds).max().unwrap_or(0);
        for round in first.unwrap_or(last)..last {
            for (index, rounds) in rounds {
                let Some(planned) = self.experiments.get_mut(*index) else { continue };
                if (planned.rounds..*rounds).contains(&round) {
                    planned.setup.rounds = round.saturating_add(1);
                    let twin = planned.twin().filter(|_| has_twin(round));
                    push_round(
                        &mut self.trials,
                        round,
                        planned,
                        planned.scenarios.iter().collect(),
                        twin,
                        &mut rng,
                    );
                }
            }
        }
    }

    /// Adds a round of these scenarios to an experiment, given by index. New ones join the experiment's.
    pub(crate) fn add_round(&mut self, index: usize, scenarios: &[Scenario]) {
        let mut rng = SplitMix64::new(self.seed.wrapping_add(self.trials.len() as u64));
        let Some(planned) = self.experiments.get_mut(index) else { return };
        let known: BTreeSet<&Scenario> = planned.scenarios.iter().collect();
        let new: Vec<Scenario> = scenarios.iter().filter(|new| !known.contains(new)).cloned().collect();
        planned.scenarios.extend(new);
        let round = planned.rounds;
        planned.setup.rounds = round.saturating_add(1);
        push_round(&mut self.trials, round, planned, scenarios.iter().collect(), None, &mut rng);
    }

    /// The indices of the trials that are not among these, in order.
    pub fn missing(&self, seen: &[Observation]) -> Vec<u32> {
        let done: BTreeSet<u32> = seen.iter().map(|observation| observation.trial.index).collect();
        self.trials.iter().map(|trial| trial.index).filter(|index| !done.contains(index)).collect()
    }

    /// Gives all trials another timing.
    ///
    /// # Errors
    /// A trial cannot take so long.
    pub fn retime(&mut self, timing: Timing) -> Result<(), String> {
        let times = [timing.warmup_s, timing.measure_s, timing.timeout_s];
        if let Some(time) = times.into_iter().find(|time| !(0.0..=LONGEST_TRIAL_S).contains(time)) {
            return Err(format!("{time} seconds is not a time that a trial can take"));
        }
        self.experiments.iter_mut().for_each(|planned| planned.setup.timing = timing);
        self.trials.iter_mut().for_each(|trial| trial.timing = timing);
        Ok(())
    }

    /// The same plan with as many rounds as fit into `budget_s` seconds, but at least one round of each experiment.
    pub fn within(&self, budget_s: f64) -> Self {
        let all = self.experiments.iter().map(|e| e.rounds).max().unwrap_or(0);
        let mut spent_s = 0.0;
        // The first trial that does not fit. Its round is left out.
        let beyond = self.trials.iter().find(|trial| {
            spent_s += self.trial_s(trial);
            spent_s > budget_s
        });
        let rounds = beyond.map_or(all, |trial| trial.round.clamp(1, all.max(1)));
        let mut plan = self.clone();
        plan.trials.retain(|trial| trial.round < rounds);
        for (index, trial) in plan.trials.iter_mut().enumerate() {
            trial.index = index as u32;
        }
        plan.experiments.iter_mut().for_each(|e| e.setup.rounds = e.rounds.min(rounds));
        plan
    }
}

/// Plans the trials of all `requests`. `excluded` names the systems that cannot run here, each with the reason; they
/// get no trials. The points of the reference are those of the available systems, reduced to the workload's own knobs.
/// An experiment that is requested twice runs once, as first requested, because observations are found by its name.
///
/// # Errors
/// A system, knob or value that does not exist, with its position in the file or on the command line, and the nearest
/// that does; and a plan that is larger than a run may be.
pub fn plan(
    requests: &[Request],
    catalog: &Catalog,
    excluded: &BTreeMap<String, String>,
    seed: u64,
) -> Result<Plan, InputError> {
    grid::check_overrides(requests, catalog)?;
    let mut plan = Plan::new(seed, Vec::new());
    let (mut rounds, mut extent) = (Vec::new(), Extent::default());
    let mut names = BTreeSet::new();
    for request in requests {
        if names.contains(&request.experiment.name) {
            continue;
        }
        let mut planned = planned(request, catalog, excluded)?;
        if planned.scenarios.is_empty() && planned.excluded.is_empty() {
            continue; // No system that --systems names does this experiment's workload.
        }
        extent.add(&planned, planned.rounds);
        extent.check_at(&request.experiment, &planned)?;
        names.insert(&request.experiment.name);
        rounds.push((plan.experiments.len(), std::mem::take(&mut planned.setup.rounds)));
        plan.experiments.push(planned);
    }
    plan.grow(&rounds);
    Ok(plan)
}

/// Whether the yardstick has a twin in this round. The first three show the noise, and from then on one of four is enough.
fn has_twin(round: u32) -> bool {
    const FIRST: u32 = FEWEST_ROUNDS as u32;
    const ONE_OF: u32 = 4;
    round < FIRST || (round >= ONE_OF * FIRST && round.is_multiple_of(ONE_OF))
}

/// Appends one round of an experiment: these scenarios in shuffled order, and the twin of one of them next to it. A pair that is
/// compared is not parted, because neighbouring trials share more of what disturbs them.
fn push_round(
    trials: &mut Vec<Trial>,
    round: u32,
    planned: &Planned,
    mut scenarios: Vec<&Scenario>,
    twin: Option<&Scenario>,
    rng: &mut SplitMix64,
) {
    shuffle(&mut scenarios, rng);
    let mut order: Vec<(&Scenario, bool)> = scenarios.iter().map(|scenario| (*scenario, false)).collect();
    if let Some(base) = planned.base.as_ref().filter(|_| planned.is_of_duets()) {
        return push_duets(trials, round, planned, &base.scenario, twin.is_some(), &scenarios, rng);
    }
    if let Some(twin) = twin {
        let at = scenarios.iter().position(|scenario| *scenario == twin).unwrap_or(0);
        let after = match (at, scenarios.len()) {
            (0, 2..) => false,
            (at, size) if at + 1 == size && size > 1 => true,
            _ => rng.below(2) == 1,
        };
        order.insert((at + usize::from(after)).min(order.len()), (twin, true));
    }
    for (scenario, twin) in order {
        push(trials, round, planned, scenario, None, twin);
    }
}

/// Appends one round of duets: each scenario with the base, and the base with its twin. Of each two, either may start first.
fn push_duets(
    trials: &mut Vec<Trial>,
    round: u32,
    planned: &Planned,
    base: &Scenario,
    with_twin: bool,
    scenarios: &[&Scenario],
    rng: &mut SplitMix64,
) {
    let numbers: BTreeMap<&Scenario, u32> = planned.scenarios.iter().zip(0..).collect();
    for scenario in scenarios.iter().filter(|scenario| **scenario != base || with_twin) {
        let number = numbers.get(*scenario).copied().unwrap_or(0);
        let mut two = [(base, false), (*scenario, *scenario == base)];
        shuffle(&mut two, rng);
        for (scenario, twin) in two {
            push(trials, round, planned, scenario, Some(number), twin);
        }
    }
}

/// Appends a trial.
fn push(
    trials: &mut Vec<Trial>,
    round: u32,
    planned: &Planned,
    scenario: &Scenario,
    duet: Option<u32>,
    twin: bool,
) {
    let index = trials.len() as u32;
    let (scenario, timing, counted) = (scenario.clone(), planned.timing, is_counted(planned, round));
    let (objective, ask) = (planned.objective.clone(), planned.ask.clone());
    let rests = planned.figures.iter().any(|figure| figure == Figure::IdleCpu);
    let profiled = is_profiled(planned, &scenario);
    trials.push(Trial {
        index,
        round,
        scenario,
        timing,
        objective,
        ask,
        duet,
        twin,
        rests,
        counted,
        profiled,
    });
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
    let mut left_out = all.left_out;
    let wholly = left_out.iter().filter(|e| !e.partly).map(|e| e.system.clone());
    let mut wholly: BTreeSet<String> = wholly.collect();
    for Scenario { system, .. } in &scenarios {
        if let Some(reason) = excluded.get(system).filter(|_| wholly.insert(system.clone())) {
            left_out.push(Excluded::new(system, reason, false));
        }
    }
    scenarios.retain(|scenario| !excluded.contains_key(&scenario.system));
    let base = base(experiment, &scenarios, catalog);
    let system = experiment.workload.reference();
    let missing = match catalog.reference_for(experiment.workload) {
        Some(_) => excluded.get(system).cloned(),
        None => Some("its manifest is missing or broken".to_owned()),
    };
    match missing {
        _ if base.is_some() => {}
        Some(reason) => left_out.push(Excluded::new(system, &reason, false)),
        None => {
            // Who names the reference wants all of its points.
            let named = overrides.systems.iter().any(|name| name == system);
            let points = if *form == Form::Quick && !named { 1 } else { usize::MAX };
            let references = references(&scenarios, points);
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
        base,
        repeats: experiment.repeats.clone(),
        ask: experiment.ask.clone().map(Arc::new),
        defaults: manifests(&scenarios, catalog).map(|m| (m.name.clone(), m.defaults())).collect(),
        alike: manifests(&scenarios, catalog)
            .map(|m| (m.name.clone(), m.alike()))
            .filter(|(_, alike)| !alike.is_empty())
            .collect(),
        duet: experiment.duet,
        from_file: experiment.is_from_file(),
    };
    let apply = apply(&scenarios, catalog);
    Ok(Planned { setup, scenarios, apply, search: None, is_test: false })
}

/// The scenario that the experiment names as its base: the first of that system's.
fn base(experiment: &Experiment, scenarios: &[Scenario], catalog: &Catalog) -> Option<Base> {
    let name = experiment.base.as_ref()?;
    let scenario = scenarios.iter().find(|scenario| scenario.system == *name)?.clone();
    let manifest = catalog.get(name).ok()?;
    let command = match &manifest.version {
        Some(version) => format!("{} ({version})", manifest.program.command_line()),
        None => manifest.program.command_line(),
    };
    Some(Base { scenario, command })
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

/// The reference's scenarios: one for each distinct point of the workload's own knobs, at most as many as stated.
fn references(scenarios: &[Scenario], points: usize) -> Vec<Scenario> {
    let mut seen = BTreeSet::new();
    let references = scenarios.iter().map(Scenario::reference);
    let distinct = references.filter(|scenario| seen.insert(scenario.clone()));
    distinct.take(points).collect()
}

#[cfg(test)]
mod tests;
