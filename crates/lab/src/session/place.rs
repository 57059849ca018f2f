//! One trial on the bench: its knobs and times, starting its system, and how it can end early.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::{ArrivalSchedule, Gaps, Job, LoadError};
use systems::machine::Placement;
use systems::process::{Launch, Running};
use systems::{Manifest, SystemError, Work, Workload};

use crate::observation::{Failure, SystemUse, Trial};

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

    /// The same with the end of the system's output.
    pub(super) fn with_output(self, output: String) -> Self {
        match self {
            Self::Failed(failure) => Self::Failed(Failure { output, ..failure }),
            Self::Interrupted => Self::Interrupted,
        }
    }
}

/// One trial on the bench: everything that executing it needs.
pub(super) struct Place<'a> {
    pub trial: &'a Trial,
    pub manifest: &'a Manifest,
    pub placement: &'a Placement,
    pub cancel: &'a AtomicBool,
    pub launch: Launch<'a>,
    pub version: String,
}

impl Place<'_> {
    /// What the trial does.
    pub(super) fn work(&self) -> &Work {
        self.trial.scenario.work()
    }

    /// The schedule of an open loop; `None` in a closed one. Every system of a round meets the same arrivals.
    pub(super) fn schedule(&self) -> Option<ArrivalSchedule> {
        let rate = self.work().rate()?;
        let gaps = if rate.poisson { Gaps::Poisson(u64::from(self.trial.round) + 1) } else { Gaps::Constant };
        Some(ArrivalSchedule { from: rate.per_s as f64, to: rate.per_s as f64, gaps })
    }

    pub(super) fn workload(&self) -> Workload {
        self.work().workload()
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

    /// One generator thread for each of the generator's cores.
    pub(super) fn threads(&self) -> Vec<Option<usize>> {
        self.placement.generator.iter().map(|core| Some(*core)).collect()
    }

    /// Drives a job; interruptions stop it early.
    pub(super) fn drive(&self, job: &Job, watch: &load::Watch<'_>) -> Result<load::Tally, Stopped> {
        let tally = load::drive(job, self.cancel, watch)?;
        if self.cancelled() { Err(Stopped::Interrupted) } else { Ok(tally) }
    }

    /// Cores as they are recorded: none where they are nobody's own.
    pub(super) fn own(&self, cores: &[usize]) -> Vec<usize> {
        if self.placement.shared { Vec::new() } else { cores.to_vec() }
    }

    pub(super) fn system_use(&self, used: &systems::sample::Use) -> SystemUse {
        SystemUse {
            cpu_s: used.cpu_s,
            peak_pss_bytes: used.peak_pss_bytes,
            pss_course: used.pss_course.clone(),
            peak_rss_bytes: used.peak_rss_bytes,
            context_switches: used.context_switches,
            socket_memory_bytes: used.socket_memory_bytes,
            cores: self.own(&self.placement.system),
            unequal: self.manifest.answer.as_ref().map(|answer| answer.about.clone()).unwrap_or_default(),
            version: self.version.clone(),
        }
    }
}
