//! How large a plan may be. A file of a few kilobytes can ask for millions of trials. Every loop over a plan that is within these
//! bounds ends soon enough for nobody to wait for it.

use systems::knob::MOST_VALUES;
use systems::{InputError, Value};

use super::{Plan, Planned};
use crate::experiment::Experiment;
use crate::observation::{Scenario, Trial};

/// The most scenarios of an experiment: points, times the systems that have them. A scenario counts in each block that has it. They are
/// as many as a knob has values, so that a grid can have all values of any one knob.
pub const MOST_SCENARIOS: usize = MOST_VALUES;

/// The most rounds that a person may ask for.
pub const MOST_ROUNDS: u32 = 10_000;

/// The most trials of a run.
pub const MOST_TRIALS: usize = 100_000;

/// The most memory that the trials of a run may take, as [`size`] estimates it.
pub const MOST_BYTES: usize = 256 << 20;

/// The most memory that the trials of a search may take. After each of its rounds its whole plan is written again.
pub const MOST_BYTES_OF_SEARCH: usize = MOST_BYTES / 16;

/// About how many bytes the value of a knob takes in a point. A text counts four times: in the plan and in the observation, and both
/// also in the store.
pub(crate) fn entry_bytes(knob: &str, value: &Value) -> usize {
    const ENTRY: usize = 64;
    const COPIES: usize = 4;
    let text = if let Value::Text(text) = value { text.len() } else { 0 };
    ENTRY + knob.len() + COPIES * text
}

/// About how many bytes a trial of a scenario takes in memory and in the store.
pub(crate) fn size(scenario: &Scenario) -> usize {
    let knobs: usize = scenario.point.iter().map(|(knob, value)| entry_bytes(knob, value)).sum();
    size_of::<Trial>() + scenario.experiment.len() + scenario.system.len() + knobs
}

/// What a plan would have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extent {
    trials: usize,
    bytes: usize,
}

impl Extent {
    /// Adds so many rounds of an experiment. Each may have a twin, and each duet has a trial of the base.
    pub(super) fn add(&mut self, planned: &Planned, rounds: u32) {
        let times = if planned.duet { 2 } else { 1 };
        let trials = planned.scenarios.len().saturating_add(1).saturating_mul(times);
        let bytes: usize = planned.scenarios.iter().map(size).sum();
        let largest = planned.scenarios.iter().map(size).max().unwrap_or(0);
        let rounds = rounds as usize;
        self.trials = self.trials.saturating_add(trials.saturating_mul(rounds));
        let of_round = bytes.saturating_add(largest).saturating_mul(times);
        self.bytes = self.bytes.saturating_add(of_round.saturating_mul(rounds));
    }

    /// Whether it is within the bounds.
    ///
    /// # Errors
    /// The bound that it exceeds.
    fn check(self) -> Result<(), String> {
        let Self { trials, bytes } = self;
        if trials > MOST_TRIALS {
            return Err(format!("about {trials} trials, and a run may have {MOST_TRIALS}"));
        }
        if bytes > MOST_BYTES {
            let mib = |bytes: usize| bytes.div_ceil(1 << 20);
            return Err(format!("its trials take {} MiB, and may take {}", mib(bytes), mib(MOST_BYTES)));
        }
        Ok(())
    }

    /// Whether it is within the bounds, with the position of the rounds of the experiment that exceeds them.
    ///
    /// # Errors
    /// The bound that it exceeds.
    pub(super) fn check_at(self, experiment: &Experiment, planned: &Planned) -> Result<(), InputError> {
        self.check().map_err(|why| {
            let what = format!("{} scenarios in {} rounds: {why}", planned.scenarios.len(), planned.rounds);
            let help = match experiment.is_from_file() {
                true => "ask for fewer rounds, systems or values, or divide them among several runs",
                false => "ask for fewer rounds, commands, URLs or values, or divide them among several runs",
            };
            experiment.error_at_rounds(planned.form, what, help)
        })
    }
}

impl Plan {
    /// Whether it stays within the bounds with so many more rounds of each of its experiments.
    pub(crate) fn has_room_for(&self, rounds: &[(usize, u32)]) -> bool {
        let bytes = self.trials.iter().map(|trial| size(&trial.scenario)).sum();
        let mut extent = Extent { trials: self.trials.len(), bytes };
        for (index, rounds) in rounds {
            if let Some(planned) = self.experiments.get(*index) {
                extent.add(planned, rounds.saturating_sub(planned.rounds));
            }
        }
        extent.check().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systems::Workload;

    #[test]
    fn memory_is_bounded() {
        let extent = |bytes| Extent { trials: 1, bytes };
        assert_eq!(extent(MOST_BYTES).check(), Ok(()));
        let why = extent(MOST_BYTES + 1).check().expect_err("too much");
        assert_eq!(why, "its trials take 257 MiB, and may take 256");
    }

    /// A plan of so many trials whose knob has a value of this length.
    fn plan(trials: u32, length: usize) -> Plan {
        let point = [("w".to_owned(), Value::Text("x".repeat(length)))].into();
        let scenario = Scenario::new("e", "s", Workload::Requests, point).expect("the defaults");
        let mut plan = crate::simulation::plan(1, crate::simulation::Rounds::Fixed(1), 1);
        plan.trials.truncate(1);
        plan.experiments[0].scenarios = vec![scenario.clone()];
        plan.experiments[0].setup.rounds = trials;
        let trial = Trial { scenario, ..plan.trials.remove(0) };
        plan.trials = (0..trials).map(|index| Trial { index, ..trial.clone() }).collect();
        plan
    }

    #[test]
    fn what_is_planned_already_counts_when_a_plan_grows() {
        // A trial takes about four MiB, and each round has room for a twin.
        let with = |trials| plan(trials, 1 << 20).has_room_for(&[(0, trials + 1)]);
        assert!(with(60));
        assert!(!with(62));
        assert!(plan(62, 1 << 19).has_room_for(&[(0, 63)]));
    }
}
