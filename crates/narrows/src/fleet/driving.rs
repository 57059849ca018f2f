//! The generators of trials, if they are on other machines.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lab::observation::{Generated, Path, Together as Saved};
use lab::session::{Driven, Elsewhere, Generator, MACHINE, Serving, TrialError};
use load::Job;
use machines::MachineError;
use reactor::Address;
use serve::CounterSnapshot;
use systems::work::Clients;

use super::generators::{Cores, Generators, Request, Together};
use crate::fleet::{self, Answer, At, Order, ServeOrder};

/// How long a machine may take to start or stop a server.
const PATIENCE: Duration = Duration::from_secs(30);

/// Generators on other machines, for trials.
pub struct Fleet {
    generators: Mutex<Generators>,
    /// Where the systems are, as seen from the generators.
    towards: IpAddr,
    path: Option<Path>,
    cancel: Arc<AtomicBool>,
}

impl Fleet {
    /// These generators, for systems at this address, and the way there.
    pub fn new(
        generators: Generators,
        towards: IpAddr,
        path: Option<Path>,
        cancel: &Arc<AtomicBool>,
    ) -> Self {
        Self { generators: Mutex::new(generators), towards, path, cancel: Arc::clone(cancel) }
    }

    fn generators(&self) -> MutexGuard<'_, Generators> {
        self.generators.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an order to the first machine, and waits for its answer.
    fn first(&self, order: &Order) -> Result<Answer, TrialError> {
        let mut generators = self.generators();
        let answer = generators.reach(&self.cancel).and_then(|remotes| {
            let Some(first) = remotes.first_mut() else { anyhow::bail!("there is no generator") };
            fleet::order(first, order)?;
            match fleet::answer(first, PATIENCE)? {
                Some(answer) => Ok(answer),
                None => Err(first.error("it did not answer in time").into()),
            }
        });
        answer.map_err(|error| {
            generators.let_go();
            trial_error(&error)
        })
    }

    fn counts(&self, order: &Order) -> Result<CounterSnapshot, TrialError> {
        match self.first(order)? {
            Answer::Counted(counts) => Ok(counts),
            _ => Err(TrialError::failed(MACHINE, "a generator answered what was not asked")),
        }
    }
}

/// A lost machine is told from a job that cannot be done.
fn trial_error(error: &anyhow::Error) -> TrialError {
    let gone = error.downcast_ref::<MachineError>().is_some_and(|error| error.gone);
    let stage = if gone { MACHINE } else { "drive" };
    TrialError::failed(stage, format!("{error:#}"))
}

impl Generator for Fleet {
    fn drive(&self, job: &Job, cancel: &AtomicBool, watch: &load::Watch<'_>) -> Result<Driven, TrialError> {
        let unreachable = match &job.target.address {
            Address::Unix(_) => Some("a Unix socket".to_owned()),
            // No other machine than the one that the user has named is driven.
            Address::Tcp(address) => {
                let same =
                    address.ip() == self.towards || address.ip().is_loopback() && self.towards.is_loopback();
                (!same).then(|| address.to_string())
            }
        };
        if let Some(what) = unreachable {
            let why = format!(
                "the generators drive {} only, and not {what}: let the system listen at {{address}} and {{port}}",
                self.towards
            );
            return Err(TrialError::failed("drive", why));
        }
        let request = Request { job, wait: None, cores: Cores::All };
        let together =
            self.generators().drive(&request, cancel, watch).map_err(|error| trial_error(&error))?;
        match together {
            Some(together) if !cancel.load(Ordering::Relaxed) => Ok(driven(together, self.path)),
            _ => Err(TrialError::Interrupted),
        }
    }

    fn serve(&self, work: &Clients) -> Result<Box<dyn Serving + '_>, TrialError> {
        let order = Order::Serve(ServeOrder {
            at: At::Towards(self.towards),
            max_keepalive: work.max_keepalive,
            silent: work.silent,
        });
        match self.first(&order)? {
            Answer::Serves { address, threads } => Ok(Box::new(Served { fleet: self, address, threads })),
            _ => Err(TrialError::failed(MACHINE, "a generator answered what was not asked")),
        }
    }
}

/// What several generators did, as it is saved.
fn driven(together: Together, path: Option<Path>) -> Driven {
    let generated = |generator: &super::generators::Generator| Generated {
        machine: generator.machine.to_string(),
        successes: generator.tally.successes,
        connections: generator.connections as u64,
        busiest_core: generator.tally.busiest,
    };
    let elsewhere = Elsewhere {
        together: Saved {
            skew_s: together.skew.map_or(0.0, |skew| skew.distance_ns() as f64 / 1e9),
            generators: together.generators.iter().map(generated).collect(),
            path,
        },
        stolen_s: together.disturbed.stolen_s,
        throttles: together.disturbed.throttles,
        ports: together.ports,
    };
    Driven { tally: together.tally, elsewhere: Some(elsewhere) }
}

/// A server on the first machine.
struct Served<'a> {
    fleet: &'a Fleet,
    address: SocketAddr,
    threads: usize,
}

impl Serving for Served<'_> {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn counts(&self) -> Result<CounterSnapshot, TrialError> {
        self.fleet.counts(&Order::Counts)
    }

    fn stop(self: Box<Self>) -> Result<CounterSnapshot, TrialError> {
        self.fleet.counts(&Order::StopServing)
    }
}
