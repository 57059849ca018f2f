//! Trials and how they ended. The store keeps observations, and findings are computed from them.
//!
//! Everything here is data with a stable JSON form, which is the store's format. No effects and no estimates.

mod stage;
mod timing;

use std::collections::BTreeMap;
use std::sync::Arc;

use load::Slo;
use measurement::Measurement;
use printable::{printable, printable_lines};
use serde::{Deserialize, Deserializer, Serialize};
use systems::{Point, Value, Work, Workload, is_reference};

pub use stage::Stage;
pub(crate) use timing::LONGEST_TRIAL_S;
pub use timing::Timing;

use crate::ask::Ask;
use crate::duet::Duet;

/// A system under a workload at one point of its knobs.
// The work is resolved from the point when a scenario is made, so that no scenario has invalid knobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "ScenarioFields"))]
#[serde(try_from = "ScenarioFields", into = "ScenarioFields")]
pub struct Scenario {
    /// The experiment that asked for it.
    pub experiment: String,
    /// The system's name.
    pub system: String,
    /// All knobs that the experiment sets for this system, including the workload's.
    pub point: Point,
    /// The work that the workload's knobs describe.
    work: Work,
}

/// A system under a workload at one point of its knobs.
// The stored form of a scenario.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Scenario"))]
struct ScenarioFields {
    /// The experiment that asked for it.
    experiment: String,
    /// The system's name.
    system: String,
    /// The workload.
    workload: Workload,
    /// All knobs that the experiment sets for this system, including the workload's.
    point: Point,
}

impl TryFrom<ScenarioFields> for Scenario {
    type Error = String;

    fn try_from(fields: ScenarioFields) -> Result<Self, String> {
        Self::new(fields.experiment, fields.system, fields.workload, fields.point)
    }
}

impl From<Scenario> for ScenarioFields {
    fn from(scenario: Scenario) -> Self {
        let workload = scenario.workload();
        let Scenario { experiment, system, point, .. } = scenario;
        Self { experiment, system, workload, point }
    }
}

impl Scenario {
    /// Makes a scenario.
    ///
    /// # Errors
    /// The value of a workload's knob that is not allowed.
    pub fn new(
        experiment: impl Into<String>,
        system: impl Into<String>,
        workload: Workload,
        point: Point,
    ) -> Result<Self, String> {
        let work = workload.work(&point)?;
        Ok(Self { experiment: experiment.into(), system: system.into(), point, work })
    }

    /// The work of its trials.
    pub fn work(&self) -> &Work {
        &self.work
    }

    /// The workload.
    pub fn workload(&self) -> Workload {
        self.work.workload()
    }

    /// Whether its system is Narrows' own endpoint.
    pub fn is_reference(&self) -> bool {
        is_reference(&self.system)
    }

    /// The same scenario with another value of a knob. `None` if the knob cannot have that value.
    pub fn with(&self, knob: &str, value: &Value) -> Option<Self> {
        let mut point = self.point.clone();
        point.insert(knob.to_owned(), value.clone());
        Self::new(self.experiment.clone(), self.system.clone(), self.workload(), point).ok()
    }

    /// The reference's scenario that it is compared with.
    pub fn reference(&self) -> Self {
        let system = self.workload().reference().to_owned();
        Self { system, point: projection(self.workload(), &self.point), ..self.clone() }
    }
}

/// Reduces a point to the workload's own knobs. This is the point of its reference.
pub fn projection(workload: Workload, point: &Point) -> Point {
    let knobs = point.iter().filter(|(knob, _)| workload.knob(knob).is_some());
    knobs.map(|(knob, value)| (knob.clone(), value.clone())).collect()
}

/// One timed execution of a scenario, as planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The position in the plan, from 0. It is the key of the observation within the run.
    pub index: u32,
    /// The round, from 0.
    pub round: u32,
    /// The scenario that is executed.
    pub scenario: Scenario,
    /// The durations and the timeout.
    pub timing: Timing,
    /// The objective under which the trial searches the highest rate. None if its work says the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Slo>,
    /// What is sent, if it is not what docs/contracts.md says. All trials of an experiment share it, so it is saved once, with the
    /// experiment, and not with each trial. A plan that is read gives it to its trials again.
    #[serde(skip)]
    pub ask: Option<Arc<Ask>>,
    /// If it happens at the same time as another trial of the round, which is the next or the one before: the number of the two
    /// among the duets of the round. None if it happens alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duet: Option<u32>,
    /// Whether this is the yardstick's second trial in the round. The difference between the two is noise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub twin: bool,
    /// Whether the system is watched without load for a second, before it is driven.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rests: bool,
    /// Whether the kernel's work for the system is counted after the window.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted: bool,
    /// Whether the system's CPU time is sampled after the window.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub profiled: bool,
}

impl Trial {
    /// A trial that belongs to no plan.
    pub fn alone(scenario: Scenario, timing: Timing) -> Self {
        let (index, round, objective, ask, duet) = (0, 0, None, None, None);
        Self {
            index,
            round,
            scenario,
            timing,
            objective,
            ask,
            duet,
            twin: false,
            rests: false,
            counted: false,
            profiled: false,
        }
    }

    /// A number that the trials have in common which are compared with each other: those of a round, or of a duet. That of a duet
    /// is no other's of its experiment.
    pub fn block(&self) -> u32 {
        match self.duet {
            None => self.round,
            Some(duet) => self.round.saturating_mul(MOST_DUETS).saturating_add(duet),
        }
    }

    /// Whether the two happen at the same time.
    pub fn is_with(&self, other: &Self) -> bool {
        let of = |trial: &Self| trial.duet.map(|duet| (trial.round, duet));
        of(self).is_some() && of(self) == of(other) && self.scenario.experiment == other.scenario.experiment
    }
}

/// A round has fewer duets.
pub(crate) const MOST_DUETS: u32 = 1024;

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The trial ran to its end.
    Measured(Box<Measurement>),
    /// It did not. Other trials are not affected.
    Failed(Failure),
}

/// A trial and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The trial that was executed.
    pub trial: Trial,
    /// When it began, in seconds since the Unix epoch.
    pub began_unix_s: f64,
    /// How long it took in seconds, including start, warm-up and stop.
    pub took_s: f64,
    /// What became of the duet. None if the trial was executed alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duet: Option<Duet>,
    /// How it ended.
    pub outcome: Outcome,
}

/// Why a trial has no measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The stage that failed.
    pub stage: Stage,
    /// What was wrong, and what to do about it. One line that may be shown.
    #[serde(deserialize_with = "reason_from")]
    pub reason: String,
    /// The end of the system's output, in lines that may be shown. Empty if there was none.
    #[serde(deserialize_with = "output_from")]
    pub output: String,
}

/// The most characters of a reason.
const LONGEST_REASON: usize = 4000;
/// The most characters of the end of an output. `systems` shows 4096 bytes.
const LONGEST_OUTPUT: usize = 8192;

impl Failure {
    /// A failure of this stage. The texts may be those of programs and other machines.
    pub fn new(stage: Stage, reason: &str, output: &str) -> Self {
        let output = printable_lines(&printable::end(output, LONGEST_OUTPUT));
        Self { stage, reason: shown_reason(reason), output }
    }
}

/// A reason as it may be shown: on one line, and not too long.
pub fn shown_reason(text: &str) -> String {
    printable(&printable::beginning(text, LONGEST_REASON))
}

/// A reason that a file or another machine gave.
pub(crate) fn reason_from<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(|text| shown_reason(&text))
}

fn output_from<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(|text| printable_lines(&printable::end(&text, LONGEST_OUTPUT)))
}

/// The observations of each experiment, in their order.
pub(crate) fn by_experiment(observations: &[Observation]) -> BTreeMap<&str, Vec<&Observation>> {
    let mut found: BTreeMap<&str, Vec<&Observation>> = BTreeMap::new();
    for observation in observations {
        found.entry(&observation.trial.scenario.experiment).or_default().push(observation);
    }
    found
}

/// The measurements among the observations, each with the name of its system.
pub(crate) fn measurements<'a>(
    observations: &[&'a Observation],
) -> impl Iterator<Item = (&'a str, &'a Measurement)> {
    let outcomes = observations.iter().map(|o| (o.trial.scenario.system.as_str(), &o.outcome));
    outcomes.filter_map(|(system, outcome)| match outcome {
        Outcome::Measured(m) => Some((system, m.as_ref())),
        Outcome::Failed(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_can_be_shown_whoever_tells_it() {
        let (reason, output) = ("it ended\u{1b}[31m\u{202e}\n::error::", "a\u{1b}[2J\nb\u{2028}");
        let expected = Failure {
            stage: Stage::Start,
            reason: "it ended [31m  ::error::".to_owned(),
            output: "a [2J\nb ".to_owned(),
        };
        assert_eq!(Failure::new(Stage::Start, reason, output), expected);
        let told = serde_json::json!({ "stage": "start", "reason": reason, "output": output });
        assert_eq!(serde_json::from_value::<Failure>(told).expect("a failure"), expected);
    }

    #[test]
    fn of_a_failure_so_much_is_kept() {
        let lengths = |reason: usize, output: usize| {
            let [reason, output] = [reason, output].map(|length| "é".repeat(length));
            let told = serde_json::json!({ "stage": "start", "reason": reason, "output": output });
            let kept: Failure = serde_json::from_value(told).expect("a failure");
            assert_eq!(kept, Failure::new(Stage::Start, &reason, &output));
            let cut = kept.reason.ends_with('…') || kept.output.starts_with('…');
            (kept.reason.chars().count(), kept.output.chars().count(), cut)
        };
        assert_eq!(lengths(LONGEST_REASON, LONGEST_OUTPUT), (LONGEST_REASON, LONGEST_OUTPUT, false));
        assert_eq!(lengths(LONGEST_REASON + 1, 0), (LONGEST_REASON, 0, true));
        assert_eq!(lengths(0, LONGEST_OUTPUT + 1), (0, LONGEST_OUTPUT, true));
    }
}
