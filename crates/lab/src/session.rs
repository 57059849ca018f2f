//! Carries a plan out: the only part of Narrows with effects on systems.
//!
//! For each trial: start the system, wait until it is ready, check that it does equal work, drive it, sample it, stop it,
//! and append the observation to the store before the next trial starts.

mod bench;
mod clients;
pub mod conformance;
mod drive;
mod place;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub use bench::Bench;

use crate::observation::{Observation, Outcome, Trial};
use crate::plan::Plan;
use crate::store::{RunId, Store, StoreError};

/// Executes trials: the real [`Bench`], or a fake with known timings.
pub trait Executor {
    /// Executes one trial to its end. What goes wrong with the system is an outcome.
    ///
    /// # Errors
    /// [`Interrupted`]: the trial has no outcome.
    fn execute(&mut self, trial: &Trial) -> Result<Outcome, Interrupted>;
}

/// The user interrupted a trial before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

/// Told how a session goes.
pub trait Progress {
    /// A trial begins.
    fn begins(&mut self, trial: &Trial);
    /// It has ended and is stored.
    fn ended(&mut self, observation: &Observation);
}

/// Carries out the trials of `plan` that are `pending`, in order; true if all were done, false after an interruption.
///
/// # Errors
/// An observation could not be stored; those before it are.
pub fn carry_out(
    plan: &Plan,
    pending: &[u32],
    executor: &mut dyn Executor,
    (store, run): (&Store, RunId),
    cancel: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<bool, StoreError> {
    for trial in pending.iter().filter_map(|index| plan.trials.get(*index as usize)) {
        if cancel.load(Ordering::Relaxed) {
            return Ok(false);
        }
        progress.begins(trial);
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Ok(outcome) = executor.execute(trial) else { return Ok(false) };
        let observation = Observation { trial: trial.clone(), began_unix_s: began.as_secs_f64(), outcome };
        store.append(run, &observation)?;
        progress.ended(&observation);
    }
    store.finish(run)?;
    Ok(true)
}
