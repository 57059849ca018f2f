//! How long trials and rounds are expected to take.

use std::ops::{Add, Range};
use std::time::Duration;

use stats::SplitMix64;
use systems::is_reference;

use super::{COUNTING_S, PROFILING_AFTER_S, PROFILING_S, Plan, Planned, REST_S, has_twin, push_round};
use crate::climb;
use crate::meter::Meter;
use crate::observation::Trial;

/// The estimated time to start and stop a system, seconds: compiled programs took 0.1, Node and the BEAM 0.3, Python
/// 0.3 to 0.6 (docs/decisions/0009). A JVM needs nearly 1.
const START_S: f64 = 0.35;

/// The same for the reference, which is this program.
const START_REFERENCE_S: f64 = 0.1;

/// The expected duration of a trial, seconds, of a system at which nobody looked.
pub fn estimate_s(trial: &Trial) -> f64 {
    let start = if is_reference(&trial.scenario.system) { START_REFERENCE_S } else { START_S };
    with_start(trial, start)
}

/// The expected duration of a trial, seconds: start and stop, warm-up, measured windows, counting and sampling.
fn with_start(trial: &Trial, start: f64) -> f64 {
    // Another program that drives works for whole seconds, or does all its work again.
    let counting_s = match trial.ask.as_ref().and_then(|ask| ask.meter.as_ref()) {
        Some(meter) if meter.is_timed() => Meter::duration(Duration::from_secs_f64(COUNTING_S)).as_secs_f64(),
        Some(_) => trial.timing.measure_s,
        None => COUNTING_S,
    };
    let counting = if trial.counted { counting_s } else { 0.0 };
    let profiling = if trial.profiled { PROFILING_AFTER_S + PROFILING_S } else { 0.0 };
    let rest = if trial.rests { REST_S } else { 0.0 };
    let windows = match trial.objective {
        Some(_) => climb::estimate_s(trial.timing),
        None => trial.timing.measure_s,
    };
    // Two that happen at the same time share it.
    let sharing = if trial.duet.is_some() { 2.0 } else { 1.0 };
    start + rest + (trial.timing.warmup_s + windows) / sharing + counting + profiling
}

/// How long the rounds of an experiment, or of several, are expected to take, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RoundTimes {
    /// The first round, in which the kernel's work is counted.
    first_s: f64,
    /// A later round in which the yardstick has a twin.
    with_twin_s: f64,
    /// A later round without one.
    without_twin_s: f64,
}

impl RoundTimes {
    /// The expected duration of these rounds, counted from 0.
    pub fn of_s(&self, rounds: Range<u32>) -> f64 {
        let round_s = |round| match round {
            0 => self.first_s,
            _ if has_twin(round) => self.with_twin_s,
            _ => self.without_twin_s,
        };
        rounds.map(round_s).sum()
    }

    /// The same rounds on a machine that takes so many times as long.
    pub fn slowed_by(self, times: f64) -> Self {
        Self {
            first_s: self.first_s * times,
            with_twin_s: self.with_twin_s * times,
            without_twin_s: self.without_twin_s * times,
        }
    }
}

impl Add for RoundTimes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            first_s: self.first_s + other.first_s,
            with_twin_s: self.with_twin_s + other.with_twin_s,
            without_twin_s: self.without_twin_s + other.without_twin_s,
        }
    }
}

impl Plan {
    /// The expected duration of the whole plan, seconds.
    pub fn estimate_s(&self) -> f64 {
        self.trials.iter().map(|trial| self.trial_s(trial)).sum()
    }

    /// The expected duration of a trial, seconds.
    pub fn trial_s(&self, trial: &Trial) -> f64 {
        let seen = self.starts.get(&trial.scenario.system);
        seen.map_or_else(|| estimate_s(trial), |start| with_start(trial, *start))
    }

    /// The expected duration of one more round of all experiments, seconds. It has a twin.
    pub fn round_s(&self) -> f64 {
        self.round_times().with_twin_s
    }

    /// How long rounds of all experiments are expected to take.
    pub fn round_times(&self) -> RoundTimes {
        self.experiments
            .iter()
            .map(|planned| self.round_times_of(planned))
            .fold(RoundTimes::default(), Add::add)
    }

    /// How long rounds of one of its experiments are expected to take.
    pub(crate) fn round_times_of(&self, planned: &Planned) -> RoundTimes {
        let round_s = |round: u32, has_twin: bool| {
            let mut trials = Vec::new();
            let twin = planned.twin().filter(|_| has_twin);
            let scenarios = planned.scenarios.iter().collect();
            push_round(&mut trials, round, planned, scenarios, twin, &mut SplitMix64::new(0));
            trials.iter().map(|trial| self.trial_s(trial)).sum()
        };
        RoundTimes {
            first_s: round_s(0, true),
            with_twin_s: round_s(1, true),
            without_twin_s: round_s(1, false),
        }
    }
}
