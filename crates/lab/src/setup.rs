//! How an experiment is carried out. Plans, searches and findings share it.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use systems::{Point, Value};

use crate::ask::Ask;
use crate::experiment::grid::{Axis, Excluded};
use crate::experiment::{Form, Subject};
use crate::observation::{Scenario, Timing};

/// How an experiment is carried out: the question, the rounds, the timing and the values of the knobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The defaults of each system's own knobs.
    pub defaults: BTreeMap<String, Point>,
    /// Values of systems' own knobs at which they work as systems do that have no such knobs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub alike: BTreeMap<String, Point>,
    /// The scenario that all are set beside. None if that is the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// Whether each scenario is measured at the same time as the base's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duet: bool,
    /// Whether it was read from a file, whose timing `narrows run` takes. False if `try` or `tune` made it, and in older runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_file: bool,
    /// The experiment that this one repeats with other builds of the same systems. A verdict counts only if both find it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
    /// What is sent, if it is not what docs/contracts.md says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Arc<Ask>>,
}

/// The scenario that the others are set beside, instead of the reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Base {
    /// The scenario. One round of four contains it twice.
    pub scenario: Scenario,
    /// The command that starts it with its version, if that is known, or the URL of a server that its user started. Shares of
    /// two bases can be compared only if these are equal.
    pub command: String,
}

// The subject is embedded: serde flattens it, and code reads its fields as fields of the setup.
impl Deref for Setup {
    type Target = Subject;

    fn deref(&self) -> &Subject {
        &self.subject
    }
}

impl Setup {
    /// The scenario that a scenario is set beside in each round: the base, or the reference at its point.
    pub fn yardstick(&self, scenario: &Scenario) -> Scenario {
        self.base.as_ref().map_or_else(|| scenario.reference(), |base| base.scenario.clone())
    }

    /// Whether a scenario is one that others are set beside.
    pub fn is_yardstick(&self, scenario: &Scenario) -> bool {
        self.base.as_ref().map_or_else(|| scenario.is_reference(), |base| base.scenario == *scenario)
    }

    /// Whether scenarios are compared. They are not if their answers may differ ([`Ask::unequal`]).
    pub fn is_compared(&self) -> bool {
        !self.ask.as_ref().is_some_and(|ask| ask.unequal)
    }

    /// The settings at which the system of a scenario works otherwise than systems do that have no such knobs.
    pub fn unlike<'a>(&'a self, scenario: &'a Scenario) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let system = &scenario.system;
        let default = move |knob: &str| self.defaults.get(system).and_then(|defaults| defaults.get(knob));
        self.alike.get(system).into_iter().flatten().filter_map(move |(knob, alike)| {
            let value = scenario.point.get(knob).or_else(|| default(knob))?;
            (value != alike).then_some((knob.as_str(), value))
        })
    }

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
