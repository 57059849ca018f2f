//! What drives servers and serves clients: the generator of this machine, or several generators on other machines.
//!
//! A trial knows only this trait. [`Here`] is the generator of this machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use load::{Job, Tally};
use measurement::{Measurement, Metered, Together};
use serde::{Deserialize, Serialize};
use serve::{CloseStyle, CounterSnapshot, Server, Speaks};
use systems::work::Clients;

use crate::meter::Meter;
use crate::observation::Stage;
use crate::session::trial_error::TrialError;

/// What drives servers and serves clients.
pub trait Generator: Send + Sync {
    /// Does a job, on the threads of its own machines. Calls `watch` when the window opens and when it closes.
    ///
    /// # Errors
    /// The drive failed as a whole, or the user interrupted.
    fn drive(&self, job: &Job, cancel: &AtomicBool, watch: &load::Watch<'_>) -> Result<Driven, TrialError>;

    /// Starts Narrows' own server for a client.
    ///
    /// # Errors
    /// The server cannot be started.
    fn serve(&self, work: &Clients) -> Result<Box<dyn Serving + '_>, TrialError>;

    /// Drives only so that the server works, and lets it be watched in the window. Returns whether it worked.
    ///
    /// # Errors
    /// See [`Self::drive`].
    fn works(&self, job: &Job, cancel: &AtomicBool, watch: &load::Watch<'_>) -> Result<bool, TrialError> {
        Ok(self.drive(job, cancel, watch)?.tally.successes > 0)
    }

    /// Whether it runs on the machine of the system.
    fn is_here(&self) -> bool {
        false
    }

    /// The program that drives, if it is not Narrows: it does not verify answers as Narrows does.
    fn meter(&self) -> Option<&Meter> {
        None
    }
}

/// What a drive counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Driven {
    /// The counts of all generators.
    pub tally: Tally,
    /// What is known of generators on other machines. `None` for the one of this machine.
    pub elsewhere: Option<Elsewhere>,
    /// What another program says that drove. `None` if Narrows did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metered: Option<Metered>,
}

/// What generators on other machines know besides their counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Elsewhere {
    /// How they worked together.
    pub together: Together,
    /// The CPU time that was stolen from their machines in the window, in seconds.
    pub stolen_s: f64,
    /// How often their processors were throttled in the window.
    pub throttles: u64,
    /// The ports from which all of them can connect to one address.
    pub ports: u64,
}

impl Elsewhere {
    /// Adds this to the measurement of a trial.
    pub(super) fn record(self, measurement: &mut Measurement) {
        measurement.stolen_s += self.stolen_s;
        measurement.throttles = measurement.throttles.saturating_add(self.throttles);
        measurement.ports = self.ports;
        measurement.together = Some(self.together);
    }
}

/// A server of Narrows' own, for one trial of a client. Dropping it stops it.
pub trait Serving {
    /// Where it listens.
    fn address(&self) -> SocketAddr;
    /// How many threads it has.
    fn threads(&self) -> usize;
    /// What it has counted so far.
    ///
    /// # Errors
    /// It cannot be asked any more.
    fn counts(&self) -> Result<CounterSnapshot, TrialError>;
    /// Stops it, and returns what it has counted.
    ///
    /// # Errors
    /// One of its threads failed.
    fn stop(self: Box<Self>) -> Result<CounterSnapshot, TrialError>;
}

/// The generator of this machine, with one thread on each of these cores.
#[derive(Debug, Clone)]
pub struct Here {
    /// The cores.
    pub cores: Vec<usize>,
}

impl Generator for Here {
    fn drive(&self, job: &Job, cancel: &AtomicBool, watch: &load::Watch<'_>) -> Result<Driven, TrialError> {
        let mut job = job.clone();
        job.threads = self.cores.iter().map(|core| Some(*core)).collect();
        let tally = load::drive(&job, cancel, watch)?;
        match cancel.load(Ordering::Relaxed) {
            true => Err(TrialError::Interrupted),
            false => Ok(Driven { tally, elsewhere: None, metered: None }),
        }
    }

    fn serve(&self, work: &Clients) -> Result<Box<dyn Serving + '_>, TrialError> {
        start_server(work.max_keepalive, work.silent, (Ipv4Addr::LOCALHOST, 0).into(), &self.cores)
            .map(|server| Box::new(OfClients { server, threads: self.cores.len() }) as Box<dyn Serving>)
    }

    fn is_here(&self) -> bool {
        true
    }
}

/// Starts Narrows' own server for clients at this address, with one thread on each of these cores. It closes a connection
/// after `max_keepalive` requests, if that is not 0, and does not announce it if `silent`.
///
/// # Errors
/// It cannot listen there.
pub fn start_server(
    max_keepalive: u64,
    silent: bool,
    address: SocketAddr,
    cores: &[usize],
) -> Result<Server, TrialError> {
    let config = serve::Config {
        ports: vec![(address, Speaks::Http)],
        threads: cores.iter().map(|core| Some(*core)).collect(),
        max_keepalive: (max_keepalive > 0).then_some(max_keepalive),
        tls: None,
        farewell: if silent { CloseStyle::Silent } else { CloseStyle::Announced },
        limits: serve::Limits::default(),
        http2: serve::Http2::USUAL,
        backend: reactor::Backend::Auto,
    };
    serve::start(&config)
        .map_err(|error| TrialError::failed(Stage::Drive, format!("Narrows' own server: {error}")))
}

struct OfClients {
    server: Server,
    threads: usize,
}

impl Serving for OfClients {
    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn counts(&self) -> Result<CounterSnapshot, TrialError> {
        Ok(self.server.counts())
    }

    fn stop(self: Box<Self>) -> Result<CounterSnapshot, TrialError> {
        self.server.stop().map_err(|error| TrialError::failed(Stage::Drive, error.to_string()))
    }
}
