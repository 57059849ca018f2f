//! Carries out a plan. This is the only part of Narrows that affects systems.
//!
//! For each trial, a session starts the system, waits until it is ready, checks that it does equal work, drives and
//! samples it, stops it, and appends the observation to the store before the next trial starts. When all trials of a
//! plan that grows are done, `lab::rounds` says what it needs next. The session saves the longer plan and continues.

mod account;
mod bench;
mod certificates;
mod clients;
mod climb;
pub mod conformance;
mod drive;
mod driver;
mod fake;
mod first;
mod generator;
mod look;
mod metering;
mod place;
mod profiling;
mod room;
mod settle;
mod trial_error;
mod window;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub use account::shortest_window;
pub use bench::Bench;
pub use clients::measurement_of_line;
#[cfg(test)]
pub(crate) use fake::tail;
pub use fake::{Fake, MeasurementPatch, Rule};
pub use first::values as first_values;
pub use generator::{Driven, Elsewhere, Generator, Here, Serving, start_server};
pub use look::{Answer, LONGEST_CONTENT, Look, Looked, SECURED};
pub use settle::{Pace, Speed};
pub use trial_error::TrialError;

use load::Script;

use crate::ask::Ask;
use crate::duet::{self, Duet};
use crate::observation::{Failure, Observation, Outcome, Scenario, Stage, Timing, Trial};
use crate::plan::Plan;
use crate::rounds;
use crate::store::{RunId, Store, StoreError};

/// The systems of the pending trials of a plan, and the most connections of one of these trials.
pub fn pending_work(plan: &Plan, pending: &[u32]) -> (BTreeSet<String>, u64) {
    let (mut systems, mut connections) = (BTreeSet::new(), 0);
    for trial in pending.iter().filter_map(|index| plan.trials.get(*index as usize)) {
        connections = trial.scenario.work().connections().max(connections);
        if !systems.contains(&trial.scenario.system) {
            systems.insert(trial.scenario.system.clone());
        }
    }
    (systems, connections)
}

/// Where trials happen: the real [`Bench`], or a fake with known figures. A run reaches the world only through this
/// trait. The default methods suit an executor that needs no preparation.
pub trait Executor {
    /// Finds out which of these systems can run. Returns what each of the others lacks and how to get it, by name.
    ///
    /// # Errors
    /// [`Interrupted`]: the user interrupted the search, so its result is unknown.
    fn probe(&mut self, _systems: &BTreeSet<String>) -> Result<BTreeMap<String, String>, Interrupted> {
        Ok(BTreeMap::new())
    }

    /// A description of the machine, which is saved with a run.
    fn environment(&self) -> serde_json::Value {
        serde_json::json!({})
    }

    /// Prepares the pending trials of a plan, before the first of them is timed. Passes to `say` what a person should
    /// know. If a system cannot be prepared, only its own trials fail.
    fn prepare(&mut self, _plan: &Plan, _pending: &[u32], _say: &mut dyn FnMut(&str)) {}

    /// Brings the requests of the file that `ask` and plans name.
    fn bring(&mut self, _script: Arc<Script>) {}

    /// Starts the scenario's system, exchanges what `ask` says with it, and stops it. Unless its speed is unasked, it is also
    /// driven, for the time of the window that `timing` says at most. `None` if the executor starts no systems.
    ///
    /// # Errors
    /// It did not start, or an exchange failed. The user interrupted.
    fn look(
        &mut self,
        _scenario: &Scenario,
        _ask: &Ask,
        _timing: Timing,
        _speed: Speed,
    ) -> Result<Option<Look>, TrialError> {
        Ok(None)
    }

    /// Executes one trial. A failure of the system is an outcome, not an error.
    ///
    /// # Errors
    /// [`Interrupted`]: the trial has no outcome.
    fn execute(&mut self, trial: &Trial) -> Result<Outcome, Interrupted>;

    /// Executes trials at the same time, in this order if they must be done one after the other. Says what became of the duet, if
    /// they are one. By default they are executed one after the other, and are none.
    ///
    /// # Errors
    /// [`Interrupted`]: none of the trials has an outcome.
    fn execute_together(&mut self, trials: &[&Trial]) -> Result<(Vec<Outcome>, Option<Duet>), Interrupted> {
        let outcomes = trials.iter().map(|trial| self.execute(trial)).collect::<Result<_, _>>()?;
        Ok((outcomes, None))
    }

    /// The machine that it needs and that stays away. Then it says [`Interrupted`] although the user did not interrupt.
    fn away(&self) -> Option<&Away> {
        None
    }

    /// Seconds since the Unix epoch, by the clock of its trials.
    fn now_unix_s(&self) -> f64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

/// A machine that stays away, so that the run cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Away {
    /// Which machine it is, and what is known of it.
    pub why: String,
    /// How another run can begin without it, if the user asked for that.
    pub without: Option<Without>,
}

/// Generators without one that was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Without {
    /// The one that was lost.
    pub lost: String,
    /// The names of the others.
    pub others: Vec<String>,
}

/// The user interrupted a trial before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

/// Receives the progress of a session.
pub trait Progress {
    /// A trial begins.
    fn begins(&mut self, trial: &Trial);
    /// A trial has ended, and its observation is stored.
    fn ended(&mut self, observation: &Observation);
    /// These trials were added.
    fn added(&mut self, trials: &[Trial]);
}

/// Carries out, in order, the trials of a run's plan that are not among those that were `seen`, and those that are added while
/// comparisons are undecided. Returns true if all were done, and false after an interruption.
///
/// # Errors
/// An observation could not be stored. All earlier ones are stored.
pub fn carry_out(
    executor: &mut dyn Executor,
    store: &Store,
    run: RunId,
    plan: &Plan,
    mut seen: Vec<Observation>,
    cancel: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<bool, StoreError> {
    let mut plan = Cow::Borrowed(plan);
    let mut pending = plan.missing(&seen);
    loop {
        for group in duet::groups(pending.iter().filter_map(|index| plan.trials.get(*index as usize))) {
            for part in duet::parts(&group, &seen) {
                if cancel.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                part.iter().for_each(|trial| progress.begins(trial));
                let Ok(observations) = observe_part(executor, part) else { return Ok(false) };
                store.append(run, &observations)?;
                observations.iter().for_each(|observation| progress.ended(observation));
                seen.extend(observations);
            }
        }
        let (from, design) = (plan.trials.len(), plan.design);
        let may_extend = rounds::may_extend(&plan);
        if may_extend && cancel.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let grown = may_extend && rounds::extend(plan.to_mut(), &seen);
        if grown || plan.design != design {
            store.replan(run, &plan)?;
        }
        if !grown {
            break;
        }
        progress.added(&plan.trials[from..]);
        pending = (from as u32..plan.trials.len() as u32).collect();
    }
    store.finish(run)?;
    Ok(true)
}

/// Turns a measurement into a failure if its numbers are impossible, because the store would refuse to read it.
fn possible(outcome: Outcome) -> Outcome {
    let Outcome::Measured(measured) = &outcome else { return outcome };
    let Err(why) = measured.check_sizes() else { return outcome };
    let reason = format!("its measurement makes no sense: {why}");
    Outcome::Failed(Failure::new(Stage::Counts, &reason, ""))
}

/// Executes a trial that is alone, or those of a duet at the same time.
///
/// # Errors
/// [`Interrupted`]: none of them has an observation.
pub(crate) fn observe_part(
    executor: &mut dyn Executor,
    part: &[&Trial],
) -> Result<Vec<Observation>, Interrupted> {
    if let [alone] = part {
        return Ok(vec![observe(executor, alone)?]);
    }
    let began_unix_s = executor.now_unix_s();
    let (outcomes, duet) = executor.execute_together(part)?;
    // What all of them took is the sum.
    let took_s = (executor.now_unix_s() - began_unix_s).max(0.0) / part.len() as f64;
    let observation = |(trial, outcome): (&&Trial, Outcome)| {
        let (trial, duet, outcome) = ((*trial).clone(), duet.clone(), possible(outcome));
        Observation { trial, began_unix_s, took_s, duet, outcome }
    };
    Ok(part.iter().zip(outcomes).map(observation).collect())
}

/// Executes a trial alone, and measures how long it takes.
///
/// # Errors
/// [`Interrupted`]: the trial has no observation.
pub fn observe(executor: &mut dyn Executor, trial: &Trial) -> Result<Observation, Interrupted> {
    let began_unix_s = executor.now_unix_s();
    let outcome = possible(executor.execute(trial)?);
    let took_s = (executor.now_unix_s() - began_unix_s).max(0.0);
    Ok(Observation { trial: trial.clone(), began_unix_s, took_s, duet: None, outcome })
}
