//! One trial on the bench: its system, who drives it, and what both saw.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use systems::machine::Placement;
use systems::process::{Launch, Running};
use systems::{Manifest, Work, Workload};

use crate::observation::{Measurement, Trial};
use crate::session::driver::{Driver, Orders};
use crate::session::stopped::Stopped;
use crate::session::window::Seen;

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

    pub(super) fn workload(&self) -> Workload {
        self.work().workload()
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

    /// Who drives it, if it is a server.
    pub(super) fn driver(&self) -> Driver<'_> {
        Driver { cores: &self.placement.generator, cancel: self.cancel }
    }

    /// What the driver is told of a server at this port.
    pub(super) fn orders(&self, port: u16) -> Orders {
        Orders {
            work: *self.work(),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            answer: self.manifest.answer_body().to_owned(),
            timing: self.trial.timing,
            round: self.trial.round,
        }
    }

    /// Cores as they are recorded: none where they are nobody's own.
    pub(super) fn own(&self, cores: &[usize]) -> Vec<usize> {
        if self.placement.shared { Vec::new() } else { cores.to_vec() }
    }

    /// Adds what the system's side saw to what the driver measured.
    pub(super) fn record(&self, seen: &Seen, measurement: &mut Measurement) {
        seen.record(measurement);
        measurement.system.cores = self.own(&self.placement.system);
        measurement.system.unequal =
            self.manifest.answer.as_ref().map(|answer| answer.about.clone()).unwrap_or_default();
        measurement.system.version.clone_from(&self.version);
        measurement.generator.cores = self.own(&self.placement.generator);
    }
}
