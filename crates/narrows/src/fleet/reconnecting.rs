//! Does a trial again if a machine was lost in its midst.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use lab::ask::Ask;
use lab::observation::{Outcome, Scenario, Stage, Timing, Trial};
use lab::plan::Plan;
use lab::session::{Away, Executor, Interrupted, Look, Speed, TrialError, Without};
use machines::Machine;
use measurement::Path;
use serde_json::json;
use systems::machine::Environment;
use systems::network::Interface;

use super::Described;
use super::driving::LastLost;
use crate::common;

/// How long it waits before it does a trial again. A machine or its network may need a moment to come back.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// An executor that does a trial again, up to twice, if a machine was lost. If the machine stays away, the run stops before the
/// trial, so that it can go on when the machine is back.
pub struct Reconnecting {
    inner: Box<dyn Executor>,
    about: About,
    cancel: Arc<AtomicBool>,
    /// The machine that stays away.
    away: Option<Away>,
}

/// What is saved of the machines besides the environment of the systems.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The machine of the systems. `None` for this one.
    pub sut: Option<String>,
    /// The interface of the systems' address.
    pub interface: Option<Interface>,
    /// The generators' machines, and what each said of itself.
    pub generators: Vec<(String, Described)>,
    /// The way between them and the systems.
    pub path: Option<Path>,
    /// Those without which it goes on, because an earlier run lost them.
    pub without: Vec<String>,
    /// The generators as they were named, if it may go on without one of them.
    pub dispensable: Vec<Machine>,
    /// The generator that was lost last.
    pub lost: LastLost,
}

impl Reconnecting {
    /// Makes an executor patient.
    pub fn new(inner: Box<dyn Executor>, about: About, cancel: &Arc<AtomicBool>) -> Self {
        Self { inner, about, cancel: Arc::clone(cancel), away: None }
    }

    /// The generators without the one that was lost, if the run may do without it and there are others.
    fn without(&self) -> Option<Without> {
        let lost = self.about.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let others = others(&self.about.dispensable, &lost)?;
        Some(Without { lost, others: machines::names(&others) })
    }

    /// Waits before a trial is done again. Returns false if the user interrupted.
    fn wait(&self, pause: Duration) -> bool {
        let interrupted = || self.cancel.load(Ordering::Relaxed);
        if let (false, Ok(mut alarm)) = (interrupted(), common::Alarm::new()) {
            alarm.sleep(pause);
        }
        !interrupted()
    }
}

/// These machines without the one that was lost. `None` if it is none of them, or the only one.
fn others(machines: &[Machine], lost: &str) -> Option<Vec<Machine>> {
    // The name of a node of Slurm has the node's own name at its end.
    let is_lost = |machine: &Machine| {
        let rest = lost.strip_prefix(&machine.to_string());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" (node "))
    };
    let mut others = machines.to_vec();
    others.remove(machines.iter().position(is_lost)?);
    Some(others).filter(|others| !others.is_empty())
}

impl Executor for Reconnecting {
    fn probe(&mut self, systems: &BTreeSet<String>) -> Result<BTreeMap<String, String>, Interrupted> {
        self.inner.probe(systems)
    }

    fn environment(&self) -> serde_json::Value {
        let mut environment = self.inner.environment();
        let Some(fields) = environment.as_object_mut() else { return environment };
        let About { sut, interface, generators, path, without, .. } = &self.about;
        // Runs on unlike sets of machines are not compared. Their names, their settings and the way do not matter for that.
        let kind = |(_, described): &(String, Described)| {
            let Environment { cpu, cores, .. } = &described.environment;
            json!({"cpu": cpu, "cores": cores.len(), "architecture": described.architecture})
        };
        fields.insert("generators".to_owned(), generators.iter().map(kind).collect());
        let names: Vec<&String> = generators.iter().map(|(name, _)| name).collect();
        // By number, because several may have one name.
        let each = generators.iter().enumerate();
        let each = each.map(|(at, (_, described))| ((at + 1).to_string(), json!(described)));
        let each: serde_json::Map<_, _> = each.collect();
        let mut machines = json!({"sut": sut, "interface": interface, "generators": names, "path": path, "each generator": each});
        if let Some(machines) = machines.as_object_mut().filter(|_| !without.is_empty()) {
            machines.insert("without".to_owned(), json!(without));
        }
        fields.insert("machines".to_owned(), machines);
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
        speed: Speed,
    ) -> Result<Option<Look>, TrialError> {
        self.inner.look(scenario, ask, timing, speed)
    }

    fn execute(&mut self, trial: &Trial) -> Result<Outcome, Interrupted> {
        let mut pauses = PAUSES.into_iter();
        loop {
            // A generator that came back is not lost.
            *self.about.lost.lock().unwrap_or_else(PoisonError::into_inner) = None;
            let failure = match self.inner.execute(trial)? {
                Outcome::Failed(failure) if failure.stage == Stage::Machine => failure,
                outcome => return Ok(outcome),
            };
            let Some(pause) = pauses.next() else {
                let why = format!("{}; it stays away, so the run ends here", failure.reason);
                self.away = Some(Away { why, without: self.without() });
                return Err(Interrupted);
            };
            let seconds = pause.as_secs();
            common::say(format_args!("{}; the trial is done again in {seconds} s", failure.reason));
            if !self.wait(pause) {
                return Err(Interrupted);
            }
        }
    }

    fn away(&self) -> Option<&Away> {
        self.away.as_ref().or_else(|| self.inner.away())
    }

    fn now_unix_s(&self) -> f64 {
        self.inner.now_unix_s()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_not_taken_for_another_whose_name_begins_like_its_own() {
        let left = |machines: &[&str], lost: &str| {
            let parsed: Vec<Machine> = machines.iter().map(|name| name.parse().expect("a machine")).collect();
            others(&parsed, lost).map(|others| others.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let two = ["ssh://gen1", "ssh://gen10"];
        assert_eq!(left(&two, "ssh://gen10"), Some(vec!["ssh://gen1".to_owned()]));
        assert_eq!(left(&two, "ssh://gen1"), Some(vec!["ssh://gen10".to_owned()]));
        assert_eq!(left(&two, "ssh://gen"), None);
        assert_eq!(left(&two[..1], "ssh://gen1"), None);
    }
}
