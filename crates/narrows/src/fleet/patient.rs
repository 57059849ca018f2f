//! Does a trial again if a machine was lost in its midst.

use std::collections::{BTreeMap, BTreeSet};

use lab::ask::Ask;
use lab::observation::{Outcome, Path, Scenario, Timing, Trial};
use lab::plan::Plan;
use lab::session::{Executor, Interrupted, Look, MACHINE, TrialError};
use machines::Hello;
use serde_json::json;

use crate::common;

/// How often a trial is done again.
const AGAIN: u32 = 2;

/// An executor that does a trial again, up to twice, if a machine was lost. If the machine stays away, the run stops before the
/// trial, so that it can go on when the machine is back.
pub struct Patient {
    inner: Box<dyn Executor>,
    about: About,
}

/// What is saved of the machines besides the environment of the systems.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The machine of the systems. `None` for this one.
    pub sut: Option<String>,
    /// The generators' machines, and what each said of itself.
    pub generators: Vec<(String, Hello)>,
    /// The way between them and the systems.
    pub path: Option<Path>,
}

impl Patient {
    /// Makes an executor patient.
    pub fn new(inner: Box<dyn Executor>, about: About) -> Self {
        Self { inner, about }
    }
}

impl Executor for Patient {
    fn probe(&mut self, systems: &BTreeSet<String>) -> Result<BTreeMap<String, String>, Interrupted> {
        self.inner.probe(systems)
    }

    fn environment(&self) -> serde_json::Value {
        let mut environment = self.inner.environment();
        let About { sut, generators, path } = &self.about;
        // Runs on unlike sets of machines are not compared. Their names and the way do not matter for that.
        let kind = |(_, hello): &(String, Hello)| json!({"cpu": hello.cpu, "cores": hello.cores.len(), "architecture": hello.architecture});
        environment["generators"] = generators.iter().map(kind).collect();
        let names: Vec<&String> = generators.iter().map(|(name, _)| name).collect();
        environment["machines"] = json!({"sut": sut, "generators": names, "path": path});
        environment
    }

    fn prepare(&mut self, plan: &Plan, pending: &[u32], say: &mut dyn FnMut(&str)) {
        self.inner.prepare(plan, pending, say);
    }

    fn look(
        &mut self,
        scenario: &Scenario,
        ask: &Ask,
        timing: Timing,
        measured: bool,
    ) -> Result<Option<Look>, TrialError> {
        self.inner.look(scenario, ask, timing, measured)
    }

    fn execute(&mut self, trial: &Trial) -> Result<Outcome, Interrupted> {
        for attempt in 0..=AGAIN {
            match self.inner.execute(trial)? {
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
        self.inner.now_unix_s()
    }
}
