//! The search for the best setting: "what should I set?" A search is one more way to say which trials come next.
//!
//! [`Search::next`] says the next rounds, in which some settings race, and the default with them. `rounds` adds them to the plan.
//! What a race shows is biased, because it chose what to try again. So a search always ends with fresh rounds of a fixed number, in
//! which the winner is compared with the default. The findings judge those rounds alone, as every other comparison is judged.
//!
//! Pure: the next rounds follow from the setup and the observations, so that a search can be resumed.

mod lattice;
mod limit;
mod race;
mod standing;

use serde::{Deserialize, Serialize};
use systems::{Point, Value};

pub use lattice::{Cell, Dimension, Lattice};
pub use limit::{Bounded, Limit};
pub use race::{FEWEST_PROOFS, MOST_PROOFS, Race, Round, Stage, Terms, WHOLE, untried};
pub use standing::{Figures, Shown, Standing};

use crate::figures::{has_too_many_errors, log_figure, measured};
use crate::observation::{Observation, Scenario};
use crate::setup::Setup;

/// The fewest trials of a search: a first look, another, and the proof.
pub const FEWEST_TRIALS: usize = 36;

/// The most values of a knob. Neighbours among more would hardly differ, and the pairs of two such knobs take long to weigh.
pub const MOST_VALUES_OF_KNOB: usize = 256;

/// The most pairs of values of two knobs. Each is weighed again after each round.
pub const MOST_PAIRS: usize = 1 << 18;

/// How many pairs of values of two knobs there are, of knobs with so many values.
pub fn pairs(values: impl IntoIterator<Item = usize>) -> usize {
    let (pairs, _) = values.into_iter().fold((0_usize, 0_usize), |(pairs, before), own| {
        (pairs.saturating_add(before.saturating_mul(own)), before.saturating_add(own))
    });
    pairs
}

/// The most trials of a search. More would show little that these do not.
pub const MOST_TRIALS: usize = 2000;

/// A search, as it is saved in the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// What it may spend.
    pub terms: Terms,
    /// What the advised setting must keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// Its rounds so far: step `i` is round `i`.
    pub steps: Vec<Round>,
}

impl Search {
    /// A search of at most so many trials whose winner must keep the limits, before its first round.
    pub fn new(setup: &Setup, trials: usize, seed: u64, limits: &[Limit]) -> Self {
        let trials = trials.clamp(FEWEST_TRIALS, MOST_TRIALS);
        let terms = Terms { trials, threshold: setup.threshold.ln_1p(), seed };
        Self { terms, limits: limits.to_vec(), steps: Vec::new() }
    }

    /// The rounds that it needs next, each with its scenarios. All trials so far have observations. Empty if the search has ended.
    /// If there is a budget, and trials take longer than was expected, there are fewer of them.
    pub fn next(
        &self,
        setup: &Setup,
        budget_s: Option<f64>,
        observations: &[Observation],
    ) -> Vec<(Round, Vec<Scenario>)> {
        let Some(space) = Space::of(setup).filter(|space| self.is_in(space)) else { return Vec::new() };
        let shown = shown(setup, &space, self, observations);
        let terms = Terms { trials: affordable(budget_s, self.terms.trials, observations), ..self.terms };
        let steps = race::next(&space.lattice, &terms, &self.steps, &shown);
        let round = |step: Round| {
            let cells = step.cells.iter();
            let scenarios = cells.filter_map(|cell| space.scenario(cell)).collect();
            (step, scenarios)
        };
        steps.into_iter().map(round).collect()
    }

    /// Whether every setting of its steps is one of the space, as a plan from another program might not have it.
    pub fn is_in(&self, space: &Space) -> bool {
        let knobs = &space.lattice.knobs;
        let fits = |cell: &Cell| {
            cell.len() == knobs.len() && cell.iter().zip(knobs).all(|(at, knob)| *at < knob.values)
        };
        self.steps.iter().all(|step| !step.cells.is_empty() && step.cells.iter().all(fits))
    }

    /// The scenarios of its last round so far.
    pub fn last_round(&self, setup: &Setup) -> Vec<Scenario> {
        let cells = self.steps.last().map(|step| &step.cells);
        let space = Space::of(setup);
        let scenario = |cell: &Cell| space.as_ref()?.scenario(cell);
        cells.into_iter().flatten().filter_map(scenario).collect()
    }
}

/// The settings of a search: those of the experiment's knobs that have several values. The base is the default.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    /// The knobs with their values, in the order of the grid.
    pub knobs: Vec<(String, Vec<Value>)>,
    /// The settings as positions.
    pub lattice: Lattice,
    /// The default.
    pub base: Scenario,
}

impl Space {
    /// The space of an experiment. None if there is no base, if no knob has several values with the base's among them, or if there are
    /// more than [`MOST_VALUES_OF_KNOB`] or [`MOST_PAIRS`].
    pub fn of(setup: &Setup) -> Option<Self> {
        let base = setup.base.as_ref()?.scenario.clone();
        let mut space = Self {
            knobs: Vec::new(),
            lattice: Lattice { knobs: Vec::new(), default: Cell::new() },
            base: base.clone(),
        };
        for axis in setup.axes.iter().filter(|axis| axis.values.len() > 1) {
            let value = base.point.get(&axis.knob)?;
            let default = axis.values.iter().position(|other| other == value)?;
            let ordered = axis.values.iter().all(|value| matches!(value, Value::Integer(_)));
            space.knobs.push((axis.knob.clone(), axis.values.clone()));
            space.lattice.knobs.push(Dimension { values: axis.values.len(), ordered });
            space.lattice.default.push(default);
        }
        let values = || space.lattice.knobs.iter().map(|knob| knob.values);
        let few = values().all(|values| values <= MOST_VALUES_OF_KNOB) && pairs(values()) <= MOST_PAIRS;
        (few && !space.knobs.is_empty()).then_some(space)
    }

    /// The values of the knobs of a setting.
    pub fn point(&self, cell: &Cell) -> Point {
        let values = self.knobs.iter().zip(cell);
        values.filter_map(|((knob, values), at)| Some((knob.clone(), values.get(*at)?.clone()))).collect()
    }

    /// The scenario at a setting. None if a value cannot be had, and where a store says what is not in the space.
    pub fn scenario(&self, cell: &Cell) -> Option<Scenario> {
        let mut point = self.base.point.clone();
        let own = self.point(cell);
        if own.len() != self.knobs.len() || cell.len() != self.knobs.len() {
            return None;
        }
        point.extend(own);
        let Scenario { experiment, system, .. } = &self.base;
        Scenario::new(experiment.as_str(), system.as_str(), self.base.workload(), point).ok()
    }

    /// The setting of a scenario.
    pub fn cell(&self, scenario: &Scenario) -> Option<Cell> {
        self.cell_of(&scenario.point)
    }

    /// The setting of a point. None if it lacks a knob or has another value.
    pub fn cell_of(&self, point: &Point) -> Option<Cell> {
        let position = |(knob, values): &(String, Vec<Value>)| {
            let value = point.get(knob)?;
            values.iter().position(|other| other == value)
        };
        self.knobs.iter().map(position).collect()
    }
}

/// How many trials fit into the budget, if the next ones take as long as those so far. What is counted in the first round
/// takes longer, so its trials count only as long as there are no others.
fn affordable(budget_s: Option<f64>, trials: usize, observations: &[Observation]) -> usize {
    let spent_s: f64 = observations.iter().map(|o| o.took_s).sum();
    let mean_s = |counted: bool| {
        let took: Vec<f64> =
            observations.iter().filter(|o| counted || !o.trial.counted).map(|o| o.took_s).collect();
        (!took.is_empty()).then(|| took.iter().sum::<f64>() / took.len() as f64)
    };
    match (budget_s, mean_s(false).or_else(|| mean_s(true))) {
        (Some(budget_s), Some(each_s)) if each_s > 0.0 => {
            trials.min(observations.len() + ((budget_s - spent_s).max(0.0) / each_s) as usize)
        }
        _ => trials,
    }
}

/// What each step has shown.
pub fn shown<'a>(
    setup: &'a Setup,
    space: &Space,
    search: &Search,
    observations: impl IntoIterator<Item = &'a Observation>,
) -> Shown {
    let empty = vec![Figures::new(); search.steps.len()];
    let limits = vec![empty.clone(); search.limits.len()];
    let mut shown = Shown { figures: empty, limits, failed: Default::default() };
    let unit = &setup.workload.about().unit;
    for (trial, m) in measured(setup, observations) {
        let Some(cell) = space.cell(&trial.scenario) else { continue };
        if m.is_none_or(has_too_many_errors) {
            shown.failed.insert(cell.clone());
        }
        let Some(m) = m else { continue };
        let log = log_figure(setup.figures.first, unit, m);
        let rooms = search.limits.iter().map(|limit| limit.room(m));
        let all = std::iter::once(&mut shown.figures).chain(&mut shown.limits);
        for (rounds, value) in all.zip(std::iter::once(log).chain(rooms)) {
            if let (Some(figures), Some(value)) = (rounds.get_mut(trial.round as usize), value) {
                figures.insert(cell.clone(), value);
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests;
