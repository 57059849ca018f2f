//! The generators of trials, if they are on other machines.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lab::observation::Stage;
use lab::session::{Driven, Elsewhere, Generator, Serving, TrialError};
use load::Job;
use machines::{Machine, MachineError};
use measurement::{Generated, Path, Together};
use reactor::Address;
use serve::CounterSnapshot;
use systems::work::Clients;

use super::generators::{Combined, Cores, Generators, Request};
use crate::fleet::{self, AgentReply, At, Order, ServeOrder};

/// How long a machine may take to start or stop a server.
const PATIENCE: Duration = Duration::from_secs(30);

/// Generators on other machines, for trials.
pub struct Fleet {
    generators: Mutex<Generators>,
    way: Link,
    lost: LastLost,
    cancel: Arc<AtomicBool>,
}

/// The name of the generator that was lost last. `Reconnecting` reads it.
pub type LastLost = Arc<Mutex<Option<String>>>;

/// The way from the generators to the systems.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// Where the systems are, as seen from the generators.
    pub towards: IpAddr,
    /// Whether the systems run on this machine, with whose cores a generator called `local` drives.
    pub here: bool,
    /// What the network between them can do.
    pub path: Option<Path>,
}

impl Fleet {
    /// These generators, and their way to the systems.
    pub fn new(generators: Generators, way: Link, cancel: &Arc<AtomicBool>) -> Self {
        let (generators, lost) = (Mutex::new(generators), LastLost::default());
        Self { generators, way, lost, cancel: Arc::clone(cancel) }
    }

    /// Where the name of a generator is kept that was lost.
    pub fn lost(&self) -> LastLost {
        Arc::clone(&self.lost)
    }

    /// A lost machine is told from a job that cannot be done.
    fn trial_error(&self, error: &anyhow::Error) -> TrialError {
        let gone = error.downcast_ref::<MachineError>().filter(|error| error.gone);
        let stage = if gone.is_some() { Stage::Machine } else { Stage::Drive };
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = gone.map(|error| error.machine.clone());
        TrialError::failed(stage, format!("{error:#}"))
    }

    fn generators(&self) -> MutexGuard<'_, Generators> {
        self.generators.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an order to the first machine, and waits for its answer.
    fn first(&self, order: &Order) -> Result<AgentReply, TrialError> {
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
            self.trial_error(&error)
        })
    }

    fn counts(&self, order: &Order) -> Result<CounterSnapshot, TrialError> {
        match self.first(order)? {
            AgentReply::Counted(counts) => Ok(counts),
            _ => Err(TrialError::failed(Stage::Machine, "a generator answered what was not asked")),
        }
    }
}

impl Generator for Fleet {
    fn drive(&self, job: &Job, cancel: &AtomicBool, watch: &load::Watch<'_>) -> Result<Driven, TrialError> {
        let towards = self.way.towards;
        let unreachable = match &job.target.address {
            Address::Unix(_) => Some("a Unix socket".to_owned()),
            // No other machine than the one that the user has named is driven.
            Address::Tcp(address) => {
                let same = address.ip() == towards || address.ip().is_loopback() && towards.is_loopback();
                (!same).then(|| address.to_string())
            }
        };
        if let Some(what) = unreachable {
            let why = format!(
                "the generators drive {towards} only, and not {what}: let the system listen at {{address}} and {{port}}"
            );
            return Err(TrialError::failed(Stage::Drive, why));
        }
        let request = Request { job, wait: None, cores: Cores::All };
        let together =
            self.generators().drive(&request, cancel, watch).map_err(|error| self.trial_error(&error))?;
        match together {
            Some(together) if !cancel.load(Ordering::Relaxed) => Ok(driven(together, &self.way)),
            _ => Err(TrialError::Interrupted),
        }
    }

    fn serve(&self, work: &Clients) -> Result<Box<dyn Serving + '_>, TrialError> {
        let order = Order::Serve(ServeOrder {
            at: At::Towards(self.way.towards),
            max_keepalive: work.max_keepalive,
            silent: work.silent,
        });
        match self.first(&order)? {
            AgentReply::Serves { address, threads } => Ok(Box::new(Served { fleet: self, address, threads })),
            _ => Err(TrialError::failed(Stage::Machine, "a generator answered what was not asked")),
        }
    }
}

/// What several generators did, as it is saved.
fn driven(together: Combined, way: &Link) -> Driven {
    let is_local = |generator: &super::generators::Generator| generator.machine == Machine::Local;
    let shares_cores = way.here && together.generators.iter().any(is_local);
    let generated = |generator: &super::generators::Generator| Generated {
        machine: generator.machine.to_string(),
        successes: generator.tally.successes,
        connections: generator.connections as u64,
        busiest_core: generator.tally.busiest,
    };
    let elsewhere = Elsewhere {
        together: Together {
            skew_s: together.skew.map(|skew| skew.distance_ns() as f64 / 1e9),
            shares_cores,
            generators: together.generators.iter().map(generated).collect(),
            path: way.path,
        },
        stolen_s: together.disturbed.stolen_s,
        throttles: together.disturbed.throttles,
        ports: together.ports,
    };
    Driven { tally: together.tally, elsewhere: Some(elsewhere), metered: None }
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
