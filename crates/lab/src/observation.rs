//! The raw measurement of one trial. The store keeps observations, and findings are computed from them.
//!
//! Everything here is data with a stable JSON form, which is the store's format. No effects and no estimates.

mod check;
mod handshakes;
mod latency;
mod max_rate;
mod server;
mod stage;
mod timing;
mod together;

use std::collections::BTreeMap;
use std::sync::Arc;

use load::Slo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systems::tcp::TcpEnds;
use systems::work::WorkUnit;
use systems::{Point, Value, Work, Workload, is_reference};

pub use handshakes::Handshakes;
pub use latency::{Latency, micros_of};
pub use max_rate::MaxRate;
pub use server::ServerCounts;
pub use stage::Stage;
pub(crate) use timing::LONGEST_TRIAL_S;
pub use timing::Timing;
pub use together::{BULKS, Generated, Path, Together};

use crate::ask::Ask;

/// A system under a workload at one point of its knobs.
// The work is resolved from the point when a scenario is made, so that no scenario has invalid knobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "ScenarioFields", into = "ScenarioFields")]
#[schemars(with = "ScenarioFields")]
pub struct Scenario {
    /// The experiment that asked for it.
    pub experiment: String,
    /// The system's name.
    pub system: String,
    /// All knobs that the experiment sets for this system, including the workload's.
    pub point: Point,
    /// The work that the workload's knobs describe.
    work: Work,
}

/// A system under a workload at one point of its knobs.
// The stored form of a scenario.
#[derive(JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "Scenario")]
struct ScenarioFields {
    /// The experiment that asked for it.
    experiment: String,
    /// The system's name.
    system: String,
    /// The workload.
    workload: Workload,
    /// All knobs that the experiment sets for this system, including the workload's.
    point: Point,
}

impl TryFrom<ScenarioFields> for Scenario {
    type Error = String;

    fn try_from(fields: ScenarioFields) -> Result<Self, String> {
        Self::new(fields.experiment, fields.system, fields.workload, fields.point)
    }
}

impl From<Scenario> for ScenarioFields {
    fn from(scenario: Scenario) -> Self {
        let workload = scenario.workload();
        let Scenario { experiment, system, point, .. } = scenario;
        Self { experiment, system, workload, point }
    }
}

impl Scenario {
    /// Makes a scenario.
    ///
    /// # Errors
    /// The value of a workload's knob that is not allowed.
    pub fn new(
        experiment: impl Into<String>,
        system: impl Into<String>,
        workload: Workload,
        point: Point,
    ) -> Result<Self, String> {
        let work = workload.work(&point)?;
        Ok(Self { experiment: experiment.into(), system: system.into(), point, work })
    }

    /// The work of its trials.
    pub fn work(&self) -> &Work {
        &self.work
    }

    /// The workload.
    pub fn workload(&self) -> Workload {
        self.work.workload()
    }

    /// Whether its system is Narrows' own endpoint.
    pub fn is_reference(&self) -> bool {
        is_reference(&self.system)
    }

    /// The same scenario with another value of a knob. `None` if the knob cannot have that value.
    pub fn with(&self, knob: &str, value: &Value) -> Option<Self> {
        let mut point = self.point.clone();
        point.insert(knob.to_owned(), value.clone());
        Self::new(self.experiment.clone(), self.system.clone(), self.workload(), point).ok()
    }

    /// The reference's scenario that it is compared with.
    pub fn reference(&self) -> Self {
        let system = self.workload().reference().to_owned();
        Self { system, point: projection(self.workload(), &self.point), ..self.clone() }
    }
}

/// Reduces a point to the workload's own knobs. This is the point of its reference.
pub fn projection(workload: Workload, point: &Point) -> Point {
    let knobs = point.iter().filter(|(knob, _)| workload.knob(knob).is_some());
    knobs.map(|(knob, value)| (knob.clone(), value.clone())).collect()
}

/// One timed execution of a scenario, as planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The position in the plan, from 0. It is the key of the observation within the run.
    pub index: u32,
    /// The round, from 0.
    pub round: u32,
    /// The scenario that is executed.
    pub scenario: Scenario,
    /// The durations and the timeout.
    pub timing: Timing,
    /// The objective under which the trial searches the highest rate. None if its work says the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Slo>,
    /// What is sent, if it is not what docs/contracts.md says. All trials of an experiment share it, so it is saved once, with the
    /// experiment, and not with each trial. A plan that is read gives it to its trials again.
    #[serde(skip)]
    pub ask: Option<Arc<Ask>>,
    /// Whether this is the yardstick's second trial in the round. The difference between the two is noise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub twin: bool,
    /// Whether the kernel's work for the system is counted after the window.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted: bool,
}

impl Trial {
    /// A trial that belongs to no plan.
    pub fn alone(scenario: Scenario, timing: Timing) -> Self {
        Self { index: 0, round: 0, scenario, timing, objective: None, ask: None, twin: false, counted: false }
    }
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The trial ran to its end.
    Measured(Box<Measurement>),
    /// It did not. Other trials are not affected.
    Failed(Failure),
}

/// A trial and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The trial that was executed.
    pub trial: Trial,
    /// When it began, in seconds since the Unix epoch.
    pub began_unix_s: f64,
    /// How long it took in seconds, including start, warm-up and stop.
    pub took_s: f64,
    /// How it ended.
    pub outcome: Outcome,
}

/// Why a trial has no measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The stage that failed.
    pub stage: Stage,
    /// What was wrong, and what to do about it.
    pub reason: String,
    /// The end of the system's output. Empty if there was none.
    pub output: String,
}

/// The raw figures of a finished trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The true length of the measured window in seconds.
    pub elapsed_s: f64,
    /// Operations that were under way in the window: `successes` + all `errors` + `in_flight`.
    pub attempts: u64,
    /// Operations that ended in the window and were verified.
    pub successes: u64,
    /// Operations that failed in the window, by error class (docs/contracts.md).
    pub errors: BTreeMap<String, u64>,
    /// Operations that were still under way when the window closed.
    pub in_flight: u64,
    /// Closed loop: how long these and waiting callers had waited by then, as `[microseconds, count]`, ascending. Empty if it
    /// was not measured.
    #[serde(default)]
    pub in_flight_us: Vec<(u64, u64)>,
    /// Closed loop: what the operations at the edges of the window add to those that ended in it: the parts of those under way
    /// that were done when it closed, less the parts that were done before it opened. None if their ages were not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<f64>,
    /// Open loop: operations that were sent more than a millisecond after they were due.
    pub late: u64,
    /// Open loop: arrivals that were due in the window. 0 if they were not counted.
    #[serde(default)]
    pub arrivals: u64,
    /// Open loop: arrivals that could not be sent.
    pub dropped: u64,
    /// Uploads whose body was sent although `100 Continue` had not come. Runs of earlier versions did not count them.
    #[serde(default)]
    pub no_continue: u64,
    /// For `frames`: frames that the receiver's count verified. Otherwise equal to `successes`.
    pub units: u64,
    /// Payload bytes of verified operations: bodies or frames.
    pub payload_bytes: u64,
    /// All bytes that the generator sent in the window.
    pub bytes_sent: u64,
    /// All bytes that the generator received in the window.
    pub bytes_received: u64,
    /// The time from the actual send to the checked answer.
    pub service_us: Latency,
    /// The time from the intended send to the checked answer. For a client, from before the request entered its pool.
    pub response_us: Latency,
    /// How long the successes of a client waited for a connection of the pool. Empty if its driver cannot tell.
    pub pool_wait_us: Latency,
    /// The first example of each error class: what was seen, when, and on which connection.
    pub first_errors: BTreeMap<String, String>,
    /// The mean duration of failed operations, microseconds, from their send; for a client, from before they entered
    /// its pool. 0 if none failed or the client's driver cannot tell.
    pub mean_error_us: f64,
    /// How many failed operations were the n-th on their connection, by n.
    pub error_ordinals: BTreeMap<u64, u64>,
    /// Successes in each tenth of the window; for a client, the server's answers. Empty if they were not counted.
    pub tenths: Vec<u64>,
    /// The handshakes of TLS that ended in the window. None for plain text, and in runs of earlier versions.
    #[serde(default)]
    pub handshakes: Option<Handshakes>,
    /// The configured number of connections or callers.
    pub concurrency: u64,
    /// Concurrent connections: as configured, or for a client the most that the server saw. 0 if they were not counted.
    pub connections: u64,
    /// How often the processor throttled itself because of heat in the window.
    pub throttles: u64,
    /// CPU time that the hypervisor gave to others in the window, in seconds, over all cores.
    pub stolen_s: f64,
    /// Sockets in TIME_WAIT when the window closed, on the whole machine.
    pub time_wait: u64,
    /// The number of ports from which connections to one address can come. 0 if unknown.
    pub ports: u64,
    /// The limit of open files: Narrows' own, or the system's if it is lower. 0 if unknown.
    pub files: u64,
    /// TCP segments that the machine retransmitted in the window.
    pub retransmits: u64,
    /// The highest rate at which the trial's objective held. None if it has no objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<MaxRate>,
    /// How several generators worked together. None if the generator was on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
    /// What the kernel did for the system, counted in a short drive of its own after the window of the first round.
    /// None for clients, and if the kernel gives no counts.
    pub counted: Option<KernelCounts>,
    /// What the system used.
    pub system: SystemUse,
    /// What the generator used.
    pub generator: GeneratorUse,
    /// The counts of Narrows' own server, for `clients`.
    pub server: Option<ServerCounts>,
}

/// The measurements among the observations, each with the name of its system.
pub(crate) fn measurements<'a>(
    observations: &[&'a Observation],
) -> impl Iterator<Item = (&'a str, &'a Measurement)> {
    let outcomes = observations.iter().map(|o| (o.trial.scenario.system.as_str(), &o.outcome));
    outcomes.filter_map(|(system, outcome)| match outcome {
        Outcome::Measured(m) => Some((system, m.as_ref())),
        Outcome::Failed(_) => None,
    })
}

/// What the system under test used during the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemUse {
    /// CPU seconds of all of its processes, user and kernel.
    pub cpu_s: f64,
    /// The largest proportional set size that was seen, bytes.
    pub peak_pss_bytes: u64,
    /// The proportional set size over time: milliseconds since the window opened, and bytes. Empty if it was not
    /// sampled.
    #[serde(deserialize_with = "latency::without_spare_capacity")]
    pub pss_course: Vec<(u64, u64)>,
    /// The largest resident set size since its start (VmHWM), bytes.
    pub peak_rss_bytes: u64,
    /// Voluntary and involuntary context switches.
    pub context_switches: u64,
    /// The largest growth of the kernel's TCP socket memory, bytes, on the whole machine.
    pub socket_memory_bytes: u64,
    /// The cores that it was pinned to. Empty if it was not pinned.
    pub cores: Vec<usize>,
    /// How its work differs from docs/contracts.md, as its manifest declares. Empty if it does not.
    pub unequal: String,
    /// Its version, as `build.version` or `needs` reported it.
    pub version: String,
    /// Seconds in which its threads could run and waited for a core, added up. None if the kernel does not say, and in
    /// runs of earlier versions, as below.
    #[serde(default)]
    pub waited_s: Option<f64>,
    /// Seconds that threads which compile its code while it runs, as those of a JVM, were on a core. None if it has no such thread.
    #[serde(default)]
    pub compiled_s: Option<f64>,
    /// Page faults, minor and major.
    #[serde(default)]
    pub page_faults: Option<u64>,
    /// The share of its cores' time that softirqs took, whatever caused them. Cores that it shares count too.
    #[serde(default)]
    pub softirq_share: Option<f64>,
    /// Seconds from its start until it was ready. None if its user started it.
    #[serde(default)]
    pub ready_s: Option<f64>,
    /// The proportional set size when it was ready and had answered the check of equal work, bytes. None if its user started
    /// it.
    #[serde(default)]
    pub rest_pss_bytes: Option<u64>,
}

/// Compilers that take more than this share of a system's CPU time have not finished. Those of a Spring server on one core took 15 to
/// 33 % for 28 s, during which it went from 1,300/s to 19,000/s. Then they took 0 to 5 %, and it answered 33,000/s.
pub const COMPILING: f64 = 0.1;

impl SystemUse {
    /// The share of its CPU time that compilers took which work while it runs. None if it has none.
    pub fn compiling_share(&self) -> Option<f64> {
        self.compiled_s.filter(|_| self.cpu_s > 0.0).map(|compiled_s| compiled_s / self.cpu_s)
    }
}

/// System calls of a server, and the operations that they served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCounts {
    /// Operations that were verified while counting: uploads, frames or answers.
    pub operations: u64,
    /// Bytes that were sent to the server.
    pub bytes: u64,
    /// System calls of all kinds.
    pub system_calls: Option<u64>,
    /// Calls that read, including those that returned no byte.
    pub reads: Option<u64>,
    /// Instructions in user and kernel mode. None if the processor does not count them.
    pub instructions: Option<u64>,
    /// Bytes that the server sent. Runs of earlier versions did not count them.
    #[serde(default)]
    pub bytes_received: u64,
    /// The connections' own account, at both ends. None for a Unix socket, and if the kernel does not list them.
    #[serde(default)]
    pub tcp: Option<TcpEnds>,
    /// System calls that were counted by tracing, in another drive. None if the kernel's counters gave them.
    #[serde(default)]
    pub traced: Option<TracedCounts>,
}

/// System calls that were counted by tracing the server (ptrace), and what it did meanwhile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedCounts {
    /// Operations that were verified meanwhile.
    pub operations: u64,
    /// Bytes that were sent to the server meanwhile.
    pub bytes: u64,
    /// System calls of all kinds.
    pub system_calls: u64,
    /// Calls that read, including those that returned no byte.
    pub reads: u64,
}

/// System calls of all kinds, however they were counted, and what the server did meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Calls {
    /// How many.
    pub count: u64,
    /// Operations that were verified meanwhile.
    pub operations: u64,
    /// Bytes that were sent to the server meanwhile.
    pub bytes: u64,
    /// Whether they were counted by tracing.
    pub traced: bool,
}

impl Calls {
    /// The calls for each payload byte or operation. None if there was none.
    pub fn per_operation(&self, unit: &WorkUnit) -> Option<f64> {
        let operations = if unit.bytes { self.bytes } else { self.operations };
        (operations > 0).then(|| self.count as f64 / operations as f64)
    }
}

impl KernelCounts {
    /// A count for each payload byte or operation. None if there was none.
    pub fn per_operation(&self, count: u64, unit: &WorkUnit) -> Option<f64> {
        self.kernels(count).per_operation(unit)
    }

    fn kernels(&self, count: u64) -> Calls {
        Calls { count, operations: self.operations, bytes: self.bytes, traced: false }
    }

    /// The system calls: those that the kernel's counters gave, or else those that were traced.
    pub fn calls(&self) -> Option<Calls> {
        let traced = |found: TracedCounts| Calls {
            count: found.system_calls,
            operations: found.operations,
            bytes: found.bytes,
            traced: true,
        };
        self.system_calls.map(|count| self.kernels(count)).or_else(|| self.traced.map(traced))
    }

    /// Bytes that a read returned on average, however reads were counted.
    pub fn bytes_per_read(&self) -> Option<f64> {
        let counted = self.reads.map(|reads| (self.bytes, reads));
        let (bytes, reads) = counted.or_else(|| self.traced.map(|traced| (traced.bytes, traced.reads)))?;
        (reads > 0).then(|| bytes as f64 / reads as f64)
    }
}

/// What the generator used during the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorUse {
    /// CPU seconds of the generator's threads.
    pub cpu_s: f64,
    /// The share of the window in which its busiest core worked, 0 to 1.
    pub busiest_core: f64,
    /// The cores that it was pinned to. Empty if it was not pinned.
    pub cores: Vec<usize>,
    /// `io_uring` or `epoll`.
    pub backend: String,
}

impl Measurement {
    /// Verified work, counted in this unit.
    pub fn worth(&self, unit: &WorkUnit) -> f64 {
        (if unit.bytes { self.payload_bytes } else { self.units }) as f64
    }

    /// The operations that the window had time for: those that ended in it, and the parts of those at its edges.
    pub fn done(&self) -> f64 {
        (self.successes as f64 + self.edges.unwrap_or(0.0)).max(0.0)
    }

    /// The arrivals of an open loop that were due in the window.
    pub fn due(&self) -> u64 {
        // Runs of earlier versions, and client drivers, do not count them.
        if self.arrivals > 0 { self.arrivals } else { self.attempts.saturating_add(self.dropped) }
    }

    /// Handshakes of TLS in which the server signed. None ended where none was counted.
    pub fn full_handshakes(&self) -> u64 {
        self.handshakes.as_ref().map_or(0, Handshakes::signed)
    }

    /// Operations that ended, verified or not.
    pub fn ended(&self) -> u64 {
        self.successes + self.errors.values().sum::<u64>()
    }

    /// Times from the intended send, or from the actual send if there was no schedule.
    pub fn latency(&self) -> &Latency {
        if self.response_us.count > 0 || !self.response_us.unanswered.is_empty() {
            &self.response_us
        } else {
            &self.service_us
        }
    }

    /// Converts the tally of a generator. Fields that describe the system stay empty.
    pub fn from_tally(tally: &load::Tally) -> Self {
        let failures = tally.failures();
        let failing_us = tally.failing.as_secs_f64() * 1e6;
        let examples = tally.first_errors.iter();
        Self {
            elapsed_s: tally.elapsed.as_secs_f64(),
            attempts: tally.attempts,
            successes: tally.successes,
            errors: tally.errors_by_name(),
            in_flight: tally.in_flight,
            in_flight_us: micros_of(&tally.open_ages),
            edges: tally.edges(),
            late: tally.late,
            arrivals: tally.arrivals,
            dropped: tally.dropped,
            no_continue: tally.no_continue,
            units: tally.units,
            payload_bytes: tally.payload_bytes,
            bytes_sent: tally.bytes_sent,
            bytes_received: tally.bytes_received,
            service_us: Latency::from_times(&tally.service),
            response_us: Latency::from_times(&tally.response),
            first_errors: examples.map(|(class, text)| (class.name().to_owned(), text.to_string())).collect(),
            mean_error_us: if failures > 0 { failing_us / failures as f64 } else { 0.0 },
            error_ordinals: tally.ordinals.clone(),
            handshakes: Handshakes::of(&tally.handshakes),
            tenths: if tally.tenths.iter().any(|count| *count > 0) {
                tally.tenths.to_vec()
            } else {
                Vec::new()
            },
            generator: GeneratorUse {
                cpu_s: tally.cpu.as_secs_f64(),
                busiest_core: tally.busiest,
                cores: Vec::new(),
                backend: tally.backend.to_owned(),
            },
            ..Self::default()
        }
    }
}
