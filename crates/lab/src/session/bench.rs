//! The bench that systems are put on: who gets which cores, what is built, and how one trial goes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::{Job, LoadError};
use systems::build::{Built, build};
use systems::machine::Placement;
use systems::probe::Context;
use systems::process::{Launch, Running};
use systems::{Catalog, Manifest, Point, Role, SystemError, Value, Workload};

use crate::observation::{Failure, Outcome, SystemUse, Trial};
use crate::session::{Executor, Interrupted, clients, drive};

/// Executes trials on this machine.
#[derive(Debug)]
pub struct Bench {
    catalog: Catalog,
    narrows: PathBuf,
    placement: Placement,
    cancel: Arc<AtomicBool>,
    /// Versions of what the systems need, by system.
    versions: HashMap<String, String>,
    built: HashMap<String, Result<Built, SystemError>>,
}

/// Why a trial ended without a measurement.
pub(super) enum Stopped {
    Interrupted,
    Failed(Failure),
}

impl From<SystemError> for Stopped {
    fn from(error: SystemError) -> Self {
        let stage = error.stage.name().to_owned();
        Self::Failed(Failure { stage, reason: error.reason, output: error.output })
    }
}

impl From<LoadError> for Stopped {
    fn from(error: LoadError) -> Self {
        Self::failed("drive", error.to_string())
    }
}

impl Stopped {
    pub(super) fn failed(stage: &str, reason: impl Into<String>) -> Self {
        Self::Failed(Failure { stage: stage.to_owned(), reason: reason.into(), output: String::new() })
    }
}

/// One trial on the bench: everything that executing it needs.
pub(super) struct Place<'a> {
    pub trial: &'a Trial,
    pub manifest: &'a Manifest,
    pub placement: &'a Placement,
    pub cancel: &'a AtomicBool,
    launch: Launch<'a>,
    version: String,
}

impl Bench {
    /// A bench for the systems of `catalog`. `narrows` is the running binary, `versions` what the systems' needs
    /// reported, by system.
    pub fn new(
        catalog: Catalog,
        narrows: PathBuf,
        placement: Placement,
        versions: HashMap<String, String>,
        cancel: Arc<AtomicBool>,
    ) -> Self {
        Self { catalog, narrows, placement, cancel, versions, built: HashMap::new() }
    }

    /// Builds a system, once.
    ///
    /// # Errors
    /// The first failure, each time: what could not be built does not get better within a run.
    pub fn build(&mut self, system: &str) -> Result<Built, SystemError> {
        if let Some(known) = self.built.get(system) {
            return known.clone();
        }
        let manifest = self.catalog.get(system).map_err(|error| SystemError {
            stage: systems::Stage::Build,
            system: system.to_owned(),
            reason: error.to_string(),
            output: String::new(),
        })?;
        let context = Context { home: self.catalog.home(), narrows: &self.narrows, cancel: &self.cancel };
        let built = build(manifest, context);
        if !self.cancel.load(Ordering::Relaxed) {
            self.built.insert(system.to_owned(), built.clone());
        }
        built
    }

    fn attempt(&mut self, trial: &Trial) -> Result<Outcome, Stopped> {
        let system = &trial.scenario.system;
        let built = self.build(system)?;
        let manifest =
            self.catalog.get(system).map_err(|error| Stopped::failed("build", error.to_string()))?;
        let version = built.version.clone().or_else(|| self.versions.get(system).cloned());
        let port = match manifest.role {
            Role::Server => Some(
                systems::ports::free_port()
                    .map_err(|error| Stopped::failed("start", format!("no free port: {error}")))?,
            ),
            Role::Client => None,
        };
        let place = Place {
            trial,
            manifest,
            placement: &self.placement,
            cancel: &self.cancel,
            launch: Launch {
                manifest,
                out: &built.out,
                port,
                point: &trial.scenario.point,
                cores: &self.placement.system,
                narrows: &self.narrows,
            },
            version: version.unwrap_or_default(),
        };
        let measurement = match port {
            Some(port) => drive::measure(&place, port)?,
            None => clients::measure(&place)?,
        };
        Ok(Outcome::Measured(Box::new(measurement)))
    }
}

impl Executor for Bench {
    fn execute(&mut self, trial: &Trial) -> Result<Outcome, Interrupted> {
        let end = self.attempt(trial);
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Interrupted);
        }
        match end {
            Ok(outcome) => Ok(outcome),
            Err(Stopped::Failed(failure)) => Ok(Outcome::Failed(failure)),
            Err(Stopped::Interrupted) => Err(Interrupted),
        }
    }
}

impl Place<'_> {
    pub(super) fn point(&self) -> &Point {
        &self.trial.scenario.point
    }

    /// The value of a knob of the workload: as the trial sets it, or its default.
    fn knob(&self, name: &str) -> Option<&Value> {
        let workload = self.trial.scenario.workload;
        self.point().get(name).or_else(|| workload.knob(name).map(|knob| &knob.default))
    }

    /// An integer knob of the workload.
    pub(super) fn number(&self, name: &str) -> Result<u64, Stopped> {
        match self.knob(name) {
            Some(Value::Integer(number)) if *number >= 0 => Ok(number.unsigned_abs()),
            other => Err(Stopped::failed("drive", format!("knob {name} is {other:?}, not a number"))),
        }
    }

    /// Whether a knob of the workload says this word.
    pub(super) fn says(&self, name: &str, word: &Value) -> bool {
        self.knob(name) == Some(word)
    }

    pub(super) fn workload(&self) -> Workload {
        self.trial.scenario.workload
    }

    pub(super) fn warmup(&self) -> Duration {
        Duration::from_secs_f64(self.trial.timing.warmup_s)
    }

    pub(super) fn window(&self) -> Duration {
        Duration::from_secs_f64(self.trial.timing.measure_s)
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.trial.timing.timeout_s)
    }

    /// Starts the system and waits until it is ready.
    pub(super) fn start(&self) -> Result<Running, Stopped> {
        let running = self.launch.start()?;
        match running.wait_ready(Instant::now() + self.manifest.ready.timeout, self.cancel) {
            Ok(()) => Ok(running),
            Err(_) if self.cancelled() => Err(Stopped::Interrupted),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// One generator thread for each of the generator's cores, as long as there are connections for them.
    pub(super) fn threads(&self) -> Vec<Option<usize>> {
        self.placement.generator.iter().map(|core| Some(*core)).collect()
    }

    /// Drives a job; interruptions stop it early.
    pub(super) fn drive(&self, job: &Job, watch: &load::Watch<'_>) -> Result<load::Tally, Stopped> {
        let tally = load::drive(job, self.cancel, watch)?;
        if self.cancelled() { Err(Stopped::Interrupted) } else { Ok(tally) }
    }

    pub(super) fn system_use(&self, used: systems::sample::Use) -> SystemUse {
        SystemUse {
            cpu_s: used.cpu_s,
            peak_pss_bytes: used.peak_pss_bytes,
            peak_rss_bytes: used.peak_rss_bytes,
            context_switches: used.context_switches,
            socket_memory_bytes: used.socket_memory_bytes,
            cores: if self.placement.shared { Vec::new() } else { self.placement.system.clone() },
            version: self.version.clone(),
        }
    }
}
