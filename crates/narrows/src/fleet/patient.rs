//! Does a trial again if a machine was lost in its midst.

use std::collections::{BTreeMap, BTreeSet};

use lab::ask::Ask;
use lab::observation::{Outcome, Scenario, Timing, Trial};
use lab::plan::Plan;
use lab::session::{Executor, Interrupted, Look, MACHINE, TrialError};

use crate::common;

/// How often a trial is done again.
const AGAIN: u32 = 2;

/// An executor that does a trial again, up to twice, if a machine was lost. If the machine stays away, the run stops before the
/// trial, so that it can go on when the machine is back.
pub struct Patient(pub Box<dyn Executor>);

impl Executor for Patient {
    fn probe(&mut self, systems: &BTreeSet<String>) -> Result<BTreeMap<String, String>, Interrupted> {
        self.0.probe(systems)
    }

    fn environment(&self) -> serde_json::Value {
        self.0.environment()
    }

    fn prepare(&mut self, plan: &Plan, pending: &[u32], say: &mut dyn FnMut(&str)) {
        self.0.prepare(plan, pending, say);
    }

    fn look(
        &mut self,
        scenario: &Scenario,
        ask: &Ask,
        timing: Timing,
        measured: bool,
    ) -> Result<Option<Look>, TrialError> {
        self.0.look(scenario, ask, timing, measured)
    }

    fn execute(&mut self, trial: &Trial) -> Result<Outcome, Interrupted> {
        for attempt in 0..=AGAIN {
            match self.0.execute(trial)? {
                Outcome::Failed(failure) if failure.stage == MACHINE => {
                    let end = if attempt < AGAIN { "the trial is done again" } else { "the run stops here" };
                    common::say(format_args!("{}; {end}", failure.reason));
                }
                outcome => return Ok(outcome),
            }
        }
        Err(Interrupted)
    }

    fn now_unix_s(&self) -> f64 {
        self.0.now_unix_s()
    }
}
