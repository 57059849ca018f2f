//! What is said when systems run on another machine: the tasks for its bench, and what its bench wants meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use lab::ask::Ask;
use lab::observation::{Failure, Outcome, Scenario, Timing, Trial};
use lab::session::{Driven, Look, Speed, TrialError};
use load::Assignment;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serve::CounterSnapshot;
use systems::work::Clients;
use systems::{Manifest, Parcel};

/// What the bench of a machine is asked to do, one after the other. Each ends with a [`Done`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Be ready for trials.
    Open(Box<Opening>),
    /// Know this system, and replace one of the same name.
    Know(Box<Brought>),
    /// Unpack the files of a system.
    Unpack(Box<Parcel>),
    /// See [`lab::session::Executor::probe`].
    Probe(BTreeSet<String>),
    /// See [`lab::session::Executor::environment`].
    Describe,
    /// See [`lab::session::Executor::prepare`].
    Prepare { systems: BTreeSet<String>, connections: u64 },
    /// See [`lab::session::Executor::look`].
    Look { scenario: Box<Scenario>, ask: Box<Ask>, timing: Timing, speed: Speed },
    /// See [`lab::session::Executor::execute`]. The trial's ask is not part of its JSON.
    Execute { trial: Box<Trial>, ask: Option<Arc<Ask>> },
}

/// How long the bench of a machine may take until it is done, or wants something driven or served, in a task that runs and builds
/// nothing.
const PLAIN: Duration = Duration::from_secs(60);
/// The same where files come, perhaps through a slow pipe.
const BRINGING: Duration = Duration::from_secs(600);
/// The same where systems start, work and stop, besides the times of the task. A hook may take ten minutes.
const RUNNING: Duration = Duration::from_secs(3600);
/// The same where systems are built.
const BUILDING: Duration = Duration::from_secs(12 * 3600);

impl Task {
    /// How long the bench may take until it is done, or wants something driven or served. After that it is taken for hung, although its
    /// machine lives.
    pub fn patience(&self) -> Duration {
        let timing = match self {
            Self::Open(_) | Self::Know(_) | Self::Describe => return PLAIN,
            Self::Unpack(_) => return BRINGING,
            Self::Probe(_) | Self::Prepare { .. } => return BUILDING,
            Self::Look { timing, .. } => timing,
            Self::Execute { trial, .. } => &trial.timing,
        };
        let own = timing.warmup_s + timing.measure_s + timing.timeout_s;
        RUNNING.saturating_add(Duration::try_from_secs_f64(own).unwrap_or(Duration::MAX))
    }

    /// How long the bench may take to end it after Ctrl-C. A system may take a while to stop.
    pub fn farewell(&self) -> Duration {
        match self {
            Self::Open(_) | Self::Know(_) | Self::Unpack(_) | Self::Describe | Self::Probe(_) => {
                Duration::from_secs(2)
            }
            Self::Prepare { .. } | Self::Look { .. } | Self::Execute { .. } => Duration::from_secs(30),
        }
    }
}

/// What a bench needs to know.
#[derive(Clone, Serialize, Deserialize)]
pub struct Opening {
    /// Where systems listen. `None` for the address at which the machine was reached.
    pub address: Option<IpAddr>,
}

/// A system that the machine may not have.
#[derive(Serialize, Deserialize)]
pub struct Brought {
    /// The system.
    pub manifest: Manifest,
    /// Where its files are.
    pub files: Files,
}

/// Where the files of a system are on its machine.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// It has none. Its command runs in the agent's current folder.
    None,
    /// In the parcel with this hash.
    Parcel(String),
    /// Where its manifest says, because an agent built it there.
    There,
}

/// What a bench says of its task.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// A line for a person. The task goes on.
    Say(String),
    /// To [`Task::Open`]: where systems listen.
    Opened(IpAddr),
    /// To [`Task::Know`] and [`Task::Unpack`].
    Known,
    /// To [`Task::Know`]: its files are missing. The task is to be given again when they have come.
    Lacks,
    /// To [`Task::Probe`].
    Missing(Ended<BTreeMap<String, String>>),
    /// To [`Task::Describe`].
    Described(Value),
    /// To [`Task::Prepare`].
    Prepared,
    /// To [`Task::Look`].
    Looked(Ended<Option<Look>>),
    /// To [`Task::Execute`].
    Executed(Ended<Outcome>),
}

/// What a bench wants of the generators in the midst of its task. Each is answered by a [`Reply`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Want {
    /// Do this job.
    Drive(Box<Assignment>),
    /// Serve a client.
    Serve(Clients),
    /// Say what the server has counted so far.
    Counts,
    /// Stop the server, and say what it has counted.
    StopServing,
}

/// What the generators answer.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The window of the drive opens. The drive goes on.
    WindowOpened,
    /// The window of the drive has closed. The drive goes on.
    WindowClosed,
    /// To [`Want::Drive`].
    Driven(Ended<Box<Driven>>),
    /// To [`Want::Serve`]: where the server listens, and how many threads it has.
    Serves(Ended<(SocketAddr, usize)>),
    /// To [`Want::Counts`] and [`Want::StopServing`].
    Counted(Ended<CounterSnapshot>),
}

/// How something ended, as a value.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended<T> {
    /// With this.
    Well(T),
    /// It failed.
    Failed(Failure),
    /// The user interrupted.
    Interrupted,
}

impl<T> From<Result<T, TrialError>> for Ended<T> {
    fn from(result: Result<T, TrialError>) -> Self {
        match result {
            Ok(value) => Self::Well(value),
            Err(TrialError::Failed(failure)) => Self::Failed(failure),
            Err(TrialError::Interrupted) => Self::Interrupted,
        }
    }
}

impl<T> From<Ended<T>> for Result<T, TrialError> {
    fn from(ended: Ended<T>) -> Self {
        match ended {
            Ended::Well(value) => Ok(value),
            Ended::Failed(failure) => Err(TrialError::Failed(failure)),
            Ended::Interrupted => Err(TrialError::Interrupted),
        }
    }
}
