//! What a search found: its advice, which fresh rounds prove, and the course of its race, which proves nothing.

mod advice;
mod course;

use serde::{Deserialize, Serialize};
use systems::{Point, Value};

use crate::experiment::Figure;
use crate::observation::Observation;
use crate::plan::Planned;
use crate::search::{Race, Search, Space, Stage, shown};

pub use advice::{Advice, Because, Contribution, Keeps, Kept, Unmeasured};

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tuned {
    /// What is advised. None until all rounds of the proof have run, and if nothing but the default has a figure.
    pub advice: Option<Advice>,
    /// The most promising setting other than the default, as the race sees it. None if no other has a figure.
    pub favourite: Option<Favourite>,
    /// The number of settings in the space. The largest number if there are more than that.
    pub settings: usize,
    /// How many of them never ran.
    pub untried: usize,
    /// The trials of the race.
    pub raced: u32,
    /// The rounds of the proof that are planned, and how many of them are complete.
    pub proof: (u32, u32),
    /// The figures of `tried`: the deciding one first.
    pub figures: Vec<Figure>,
    /// Every setting that ran, in the order of their first trials. The default is the first.
    pub tried: Vec<Tried>,
    /// The heats of the race in their order.
    pub heats: Vec<Heat>,
    /// What each knob does by itself, as the race estimates it, the strongest first.
    pub knobs: Vec<KnobEffect>,
    /// What the two strongest knobs do together. None if there is one knob only.
    pub together: Option<PairEffect>,
    /// The settings that no other beats in all figures, as positions in `tried`. Empty if there is one figure only.
    pub front: Vec<usize>,
    /// Values with which every setting failed.
    pub failing: Vec<Failing>,
    /// How much better another setting may be. None before there is an advice, if the race had fewer than 70 trials, and if no other
    /// setting can be judged.
    pub left_open: Option<LeftOpen>,
}

/// A setting that may be the best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Favourite {
    /// Its knobs.
    pub point: Point,
    /// How many times better it is than the default, as the race estimates it. It is biased, because the race chose.
    pub ratio: f64,
    /// About 95 % of what it may be. None if no setting but the default ran twice, so that the noise is not known.
    pub interval: Option<(f64, f64)>,
}

/// A setting that ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tried {
    /// Its knobs.
    pub point: Point,
    /// Its trials, in the race and in the proof.
    pub trials: u32,
    /// How many of them failed or had too many errors.
    pub failed: u32,
    /// How many of its trials were in the proof.
    pub fresh: u32,
    /// For each figure, how many times better it is than the default: the median over the rounds of both. None without one.
    pub ratios: Vec<Option<f64>>,
    /// Whether its trials kept all limits, as far as the medians tell.
    pub keeps: bool,
}

/// A heat of the race: rounds in which more and more settings are dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Heat {
    /// What it is for.
    pub stage: Stage,
    /// Its rounds.
    pub rounds: u32,
    /// The settings that ran, as positions in `tried`, with how many times better each is than the default in this heat:
    /// the median of its rounds. None if none of its trials has a figure. The default is left out.
    pub settings: Vec<(usize, Option<f64>)>,
    /// The best setting after it, as a position in `tried`.
    pub best: usize,
}

/// What the values of a knob do by themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnobEffect {
    /// The knob.
    pub knob: String,
    /// Each value with how many times better it is than the default's, averaged over what the other knobs do.
    pub values: Vec<(Value, f64)>,
    /// Whether its values differ by less than the threshold.
    pub flat: bool,
}

/// What two knobs do together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairEffect {
    /// The knob of the rows.
    pub first: String,
    /// The knob of the columns.
    pub second: String,
    /// How many times better than the default each pair of values is, with all other knobs as in the favourite.
    pub ratios: Vec<Vec<f64>>,
    /// Whether the setting ran.
    pub tried: Vec<Vec<bool>>,
}

/// A value with which every setting failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failing {
    /// The knob.
    pub knob: String,
    /// The value.
    pub value: Value,
    /// How many settings ran with it.
    pub settings: u32,
    /// Why the first of their trials failed. Empty if it was measured and had too many errors.
    pub reason: String,
}

/// How much better than the advised one another setting may be. In simulations the bound holds in 95 % of searches
/// (docs/statistics.md).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOpen {
    /// How many settings were examined in a space of more than 5,000: those that ran and those beside the advised one. None if all that
    /// did not fail were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examined: Option<usize>,
    /// How many of them may be better by more than the threshold.
    pub settings: usize,
    /// How many times better one of them may be.
    pub up_to: f64,
}

/// What the search of an experiment found so far, from the observations of its trials. None if it has no search.
pub(super) fn tuned(planned: &Planned, observations: &[&Observation]) -> Option<Tuned> {
    let (search, space) = (planned.search.as_ref()?, Space::of(&planned.setup)?);
    let hunt = Hunt { planned, search, space: &space, observations };
    search.is_in(&space).then(|| hunt.tuned())
}

/// A search with what its trials have shown.
struct Hunt<'a> {
    planned: &'a Planned,
    search: &'a Search,
    space: &'a Space,
    observations: &'a [&'a Observation],
}

impl Hunt<'_> {
    fn tuned(&self) -> Tuned {
        let Self { planned, search, space, observations } = self;
        let from = search.steps.iter().position(|step| step.stage == Stage::Proof);
        let from = from.unwrap_or(search.steps.len());
        let raced = &search.steps[..from];
        let all = shown(planned, space, search, observations.iter().copied());
        let race = Race::new(&space.lattice, &search.terms, raced, &all.until(from));
        let course = course::Course { hunt: self, race: &race, shown: &all };
        let in_race = |o: &&&Observation| (o.trial.round as usize) < from;
        let tried = course.tried();
        let advice = advice::advice(self, from);
        Tuned {
            left_open: advice.as_ref().and_then(|advice| course.left_open(&advice.point)),
            advice,
            favourite: course.favourite(),
            settings: space.lattice.size(),
            untried: crate::search::untried(&space.lattice, &search.steps),
            raced: observations.iter().filter(in_race).count() as u32,
            proof: ((search.steps.len() - from) as u32, self.complete(from)),
            figures: planned.figures.iter().collect(),
            heats: course.heats(raced),
            knobs: course.knobs(),
            together: course.together(),
            front: course::front(&tried),
            failing: course.failing(),
            tried,
        }
    }

    /// The rounds from this one on whose trials have all run.
    fn complete(&self, from: usize) -> u32 {
        let has_run = |round: usize| {
            let trials = self.observations.iter().filter(|o| o.trial.round as usize == round);
            trials.count() == self.search.steps[round].cells.len()
        };
        (from..self.search.steps.len()).filter(|round| has_run(*round)).count() as u32
    }
}

#[cfg(test)]
mod tests;
