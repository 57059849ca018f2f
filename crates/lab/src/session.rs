//! Carries a plan out: the only part of Narrows with effects on systems.
//!
//! For each trial: start the system, wait until it is ready, check that it does equal work, drive it, sample it, stop it,
//! and append the observation to the store before the next trial starts. When a plan that grows is done, what it needs
//! next is asked (`lab::rounds`), saved, and done as well.

mod account;
mod bench;
mod clients;
pub mod conformance;
mod drive;
mod driver;
mod fake;
mod place;
mod stopped;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub use bench::Bench;
pub use fake::{Fake, Instead, Rule};

use crate::observation::{Observation, Outcome, Trial};
use crate::plan::Plan;
use crate::rounds;
use crate::store::{RunId, Store, StoreError};

/// Where trials happen: the real [`Bench`], or a fake with known timings. All that a run wants of the world goes through
/// here; where nothing is said, nothing is needed of it.
pub trait Executor {
    /// Finds out which of these systems can run; by name, what the others lack, and how to get it.
    ///
    /// # Errors
    /// [`Interrupted`]: what was found says nothing.
    fn probe(&mut self, _systems: &BTreeSet<String>) -> Result<BTreeMap<String, String>, Interrupted> {
        Ok(BTreeMap::new())
    }

    /// The machine, as it is saved with a run.
    fn environment(&self) -> serde_json::Value {
        serde_json::json!({})
    }

    /// Makes ready for the pending trials of a plan before the first of them is timed. `say` is told what a person should
    /// know. What cannot be made ready costs its own trials.
    fn prepare(&mut self, _plan: &Plan, _pending: &[u32], _say: &mut dyn FnMut(&str)) {}

    /// Executes one trial to its end. What goes wrong with the system is an outcome.
    ///
    /// # Errors
    /// [`Interrupted`]: the trial has no outcome.
    fn execute(&mut self, trial: &Trial) -> Result<Outcome, Interrupted>;

    /// Seconds since the Unix epoch, by the clock that its trials take time of.
    fn now_unix_s(&self) -> f64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
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
    /// Comparisons are undecided: these trials were added.
    fn added(&mut self, trials: &[Trial]);
}

/// Carries out the trials of a run that have no observation yet, in order, and those that are added while comparisons
/// are undecided; true if all were done, false after an interruption.
///
/// # Errors
/// An observation could not be stored; those before it are.
pub fn carry_out(
    executor: &mut dyn Executor,
    (store, run): (&Store, RunId),
    cancel: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<bool, StoreError> {
    let mut plan = store.header(run)?.plan;
    let mut pending = store.missing(run)?;
    loop {
        for trial in pending.iter().filter_map(|index| plan.trials.get(*index as usize)) {
            if cancel.load(Ordering::Relaxed) {
                return Ok(false);
            }
            progress.begins(trial);
            let Ok(observation) = observe(executor, trial) else { return Ok(false) };
            store.append(run, &observation)?;
            progress.ended(&observation);
        }
        let from = plan.trials.len();
        if !rounds::extend(&mut plan, &store.observations(run)?) {
            break;
        }
        store.replan(run, &plan)?;
        progress.added(&plan.trials[from..]);
        pending = (from as u32..plan.trials.len() as u32).collect();
    }
    store.finish(run)?;
    Ok(true)
}

/// Executes a trial and takes its time.
///
/// # Errors
/// [`Interrupted`]: there is nothing to keep.
pub fn observe(executor: &mut dyn Executor, trial: &Trial) -> Result<Observation, Interrupted> {
    let began_unix_s = executor.now_unix_s();
    let outcome = executor.execute(trial)?;
    let took_s = (executor.now_unix_s() - began_unix_s).max(0.0);
    Ok(Observation { trial: trial.clone(), began_unix_s, took_s, outcome })
}
