//! What one trial measured, raw: the unit that the store keeps and that findings are computed from.
//!
//! Everything here is data with a stable JSON form (the store's format). No effects, no estimates.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use systems::work::Unit;
use systems::{Point, Value, Work, Workload};

/// What is measured: a system under a workload at one point of all knobs.
// Its words are resolved when it is made, so that what cannot be work is no scenario.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "Words", into = "Words")]
#[schemars(with = "Words")]
pub struct Scenario {
    /// The experiment that asked for it.
    pub experiment: String,
    /// The system's name.
    pub system: String,
    /// Every knob the experiment sets for this system, workload knobs among them.
    pub point: Point,
    /// What the workload's knobs come to.
    work: Work,
}

/// What is measured: a system under a workload at one point of all knobs.
#[derive(JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "Scenario")]
struct Words {
    /// The experiment that asked for it.
    experiment: String,
    /// The system's name.
    system: String,
    /// The workload.
    workload: Workload,
    /// Every knob the experiment sets for this system, workload knobs among them.
    point: Point,
}

impl TryFrom<Words> for Scenario {
    type Error = String;

    fn try_from(words: Words) -> Result<Self, String> {
        Self::new(words.experiment, words.system, words.workload, words.point)
    }
}

impl From<Scenario> for Words {
    fn from(scenario: Scenario) -> Self {
        let workload = scenario.workload();
        let Scenario { experiment, system, point, .. } = scenario;
        Self { experiment, system, workload, point }
    }
}

impl Scenario {
    /// A system under a workload at a point.
    ///
    /// # Errors
    /// A knob of the workload has a value that it cannot have.
    pub fn new(
        experiment: impl Into<String>,
        system: impl Into<String>,
        workload: Workload,
        point: Point,
    ) -> Result<Self, String> {
        let work = workload.work(&point)?;
        Ok(Self { experiment: experiment.into(), system: system.into(), point, work })
    }

    /// What its trials do.
    pub fn work(&self) -> &Work {
        &self.work
    }

    /// The workload.
    pub fn workload(&self) -> Workload {
        self.work.workload()
    }

    /// The same at another value of a knob; `None` where the knob cannot have it.
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

/// A point reduced to the workload's own knobs: where the reference stands for it.
pub fn projection(workload: Workload, point: &Point) -> Point {
    let own = point.iter().filter(|(knob, _)| workload.knob(knob).is_some());
    own.map(|(knob, value)| (knob.clone(), value.clone())).collect()
}

/// One timed execution of a scenario, as the plan orders it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Position in the plan, from 0; the key of its observation within the run.
    pub index: u32,
    /// The round it belongs to, from 0.
    pub round: u32,
    /// What is executed.
    pub scenario: Scenario,
    /// How long, and with which patience.
    pub timing: Timing,
    /// The reference once more in the same round: what differs between the two is noise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub twin: bool,
}

/// How long a trial looks. Durations in seconds.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Timing {
    /// Not measured; lets connections, caches and compilers settle.
    pub warmup_s: f64,
    /// The measured window.
    pub measure_s: f64,
    /// Patience for one operation.
    pub timeout_s: f64,
}

// PartialEq only: floats inside; equality of trials is used by tests and resume, never for ordering.
impl Eq for Timing {}

/// The end of a trial: it was measured, or why not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The trial ran to its end.
    Measured(Box<Measurement>),
    /// It did not; other trials are unaffected.
    Failed(Failure),
}

/// One stored observation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// What was executed.
    pub trial: Trial,
    /// Seconds since the Unix epoch when it began.
    pub began_unix_s: f64,
    /// Seconds that it took, with start, warm-up and end.
    pub took_s: f64,
    /// What came of it.
    pub outcome: Outcome,
}

/// Why a trial has no measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Where in the trial: `build`, `start`, `ready`, `equal_work`, `drive`, `system` (died), `counts`.
    pub stage: String,
    /// What was wrong and what to do, in a sentence.
    pub reason: String,
    /// The end of the system's output, if it said anything.
    pub output: String,
}

/// The raw figures of a finished trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// True length of the measured window in seconds.
    pub elapsed_s: f64,
    /// Operations under way in the window: `successes` + all `errors` + `in_flight`.
    pub attempts: u64,
    /// Operations that ended in the window and were verified.
    pub successes: u64,
    /// Operations that ended otherwise, by class (docs/contracts.md).
    pub errors: BTreeMap<String, u64>,
    /// Operations still under way as the window closed.
    pub in_flight: u64,
    /// Open loop: operations sent more than a millisecond after their time.
    pub late: u64,
    /// Open loop: arrivals that nobody could send.
    pub dropped: u64,
    /// For `frames`: frames verified by the receiver's count; else equal to `successes`.
    pub units: u64,
    /// Payload bytes of verified operations: bodies, frames.
    pub payload_bytes: u64,
    /// Bytes the generator sent and received in the window, all of them.
    pub bytes_sent: u64,
    /// See `bytes_sent`.
    pub bytes_received: u64,
    /// From the actual send to the checked answer.
    pub service_us: Latency,
    /// From the intended send to the checked answer; of a client, from before its pool.
    pub response_us: Latency,
    /// Of a client whose driver can tell: what its successes waited for a connection of the pool.
    pub pool_wait_us: Latency,
    /// The first example of each error class: what was seen, when, on which connection.
    pub first_errors: BTreeMap<String, String>,
    /// Mean time that failed operations took, microseconds: from their sending, of a client from before its pool; 0 without any,
    /// and where a client's driver cannot tell.
    pub mean_error_us: f64,
    /// How many operations connections had carried when one failed, the failed one included: ordinal to count.
    pub error_ordinals: BTreeMap<u64, u64>,
    /// Successes in each tenth of the window, of a client the server's answers; empty where nobody looked.
    pub tenths: Vec<u64>,
    /// Connections or callers at work, as configured.
    pub concurrency: u64,
    /// Connections at once: as configured, of a client as the server saw them; 0 where nobody looked.
    pub connections: u64,
    /// How often the processor throttled itself for heat in the window.
    pub throttles: u64,
    /// Seconds of processor time that the hypervisor gave to others, over all cores.
    pub stolen_s: f64,
    /// Sockets in TIME_WAIT as the window closed, whole machine.
    pub time_wait: u64,
    /// Ports that connections to one address can come from; 0 where nobody looked.
    pub ports: u64,
    /// The limit of open files; 0 where nobody looked.
    pub files: u64,
    /// Segments that the machine's TCP sent again in the window.
    pub retransmits: u64,
    /// What the kernel did for the system, counted in a short drive of its own after the first round's window; nothing of a
    /// client, and nothing where the kernel counts for nobody.
    pub counted: Option<Counted>,
    /// What the system used.
    pub system: SystemUse,
    /// What the generator used.
    pub generator: GeneratorUse,
    /// The counts of Narrows' own server, for `clients`.
    pub server: Option<ServerCounts>,
    /// Lines for the reader: raised limits, retries by the client, and the like.
    pub notes: Vec<String>,
}

/// The measured ones, each with the name of its system.
pub(crate) fn measurements<'a>(
    observations: &[&'a Observation],
) -> impl Iterator<Item = (&'a str, &'a Measurement)> {
    let each = observations.iter().map(|o| (o.trial.scenario.system.as_str(), &o.outcome));
    each.filter_map(|(system, outcome)| match outcome {
        Outcome::Measured(m) => Some((system, m.as_ref())),
        Outcome::Failed(_) => None,
    })
}

/// A latency distribution in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many samples; never more or fewer than the successes it describes.
    pub count: u64,
    /// Exact extremes and mean, for tables that need no percentiles.
    pub min: f64,
    /// See `min`.
    pub mean: f64,
    /// See `min`.
    pub max: f64,
    /// The samples as `[microseconds, count]`, ascending, three significant digits.
    #[serde(deserialize_with = "no_longer_than_needed")]
    pub buckets: Vec<(u64, u64)>,
}

/// A long run holds millions of pairs in memory, of which a vector that has grown keeps room for up to twice as many.
fn no_longer_than_needed<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(u64, u64)>, D::Error> {
    let mut pairs = Vec::deserialize(from)?;
    pairs.shrink_to_fit();
    Ok(pairs)
}

/// What the system under test used during the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemUse {
    /// CPU seconds, user and kernel, all of its processes.
    pub cpu_s: f64,
    /// Highest proportional set size seen, bytes.
    pub peak_pss_bytes: u64,
    /// That size as it went: milliseconds since the window opened, bytes; empty where nobody looked.
    #[serde(deserialize_with = "no_longer_than_needed")]
    pub pss_course: Vec<(u64, u64)>,
    /// Highest resident size since its start (VmHWM), bytes.
    pub peak_rss_bytes: u64,
    /// Voluntary and involuntary context switches.
    pub context_switches: u64,
    /// Growth of the kernel's TCP socket memory at its highest, bytes (whole machine).
    pub socket_memory_bytes: u64,
    /// The cores it was pinned to; empty when it was not.
    pub cores: Vec<usize>,
    /// How its work differs from docs/contracts.md, as its manifest says; empty where it does not.
    pub unequal: String,
    /// Its version as `build.version` or `needs` reported it.
    pub version: String,
}

/// Calls of a server into the kernel, and what they were for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Operations that were verified while counting: uploads, frames, answers.
    pub operations: u64,
    /// Bytes that were sent to it.
    pub bytes: u64,
    /// System calls of all kinds.
    pub system_calls: Option<u64>,
    /// Calls that read, those without a byte among them.
    pub reads: Option<u64>,
    /// Instructions, user and kernel, where the processor counts them.
    pub instructions: Option<u64>,
}

/// What the generator used during the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorUse {
    /// CPU seconds of the generator's threads.
    pub cpu_s: f64,
    /// The share of the window in which its busiest core worked, 0..=1.
    pub busiest_core: f64,
    /// The cores it was pinned to; empty when it was not.
    pub cores: Vec<usize>,
    /// `io_uring` or `epoll`.
    pub backend: String,
}

/// What Narrows' own server counted over a client's whole life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerCounts {
    /// Requests read in full.
    pub requests: u64,
    /// Answers written.
    pub responses: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Most connections open at once.
    pub peak_connections: u64,
    /// Connections that the server was the first to close.
    pub closes: u64,
    /// The client's whole life: attempts, successes and errors, as the driver reported them.
    pub client_attempts: u64,
    /// See `client_attempts`.
    pub client_successes: u64,
    /// See `client_attempts`.
    pub client_errors: BTreeMap<String, u64>,
}

impl ServerCounts {
    /// Whether every success was answered, every answer was to a request that was read, and every request was an attempt
    /// (docs/contracts.md, "A client driver").
    pub fn agree(&self) -> bool {
        self.client_successes <= self.responses
            && self.responses <= self.requests
            && self.requests <= self.client_attempts
    }
}

impl Latency {
    /// Takes a histogram of nanoseconds apart.
    pub fn from_nanos(histogram: &hdrhistogram::Histogram<u64>) -> Self {
        let mut buckets: Vec<(u64, u64)> = Vec::new();
        for value in histogram.iter_recorded() {
            let micros = (value.value_iterated_to() + 500) / 1000;
            match buckets.last_mut() {
                Some((last, count)) if *last == micros => *count += value.count_at_value(),
                _ => buckets.push((micros, value.count_at_value())),
            }
        }
        let any = !histogram.is_empty();
        let micros = |nanos: u64| if any { nanos as f64 / 1000.0 } else { 0.0 };
        Self {
            count: histogram.len(),
            min: micros(histogram.min()),
            mean: if any { histogram.mean() / 1000.0 } else { 0.0 },
            max: micros(histogram.max()),
            buckets,
        }
    }

    /// Puts it together again, in nanoseconds, to three significant digits.
    pub fn to_nanos(&self) -> hdrhistogram::Histogram<u64> {
        // Empty, and of the same shape as those of the generator.
        let mut histogram = load::Tally::default().service;
        for (micros, count) in &self.buckets {
            histogram.saturating_record_n((micros * 1000).max(1), *count);
        }
        histogram
    }

    /// What a client driver reports: `(microseconds, count)`, whose extremes and mean are as exact as the buckets.
    pub fn from_buckets(mut buckets: Vec<(u64, u64)>) -> Self {
        buckets.sort_unstable();
        let count: u64 = buckets.iter().map(|(_, count)| count).sum();
        let sum: f64 = buckets.iter().map(|(micros, count)| *micros as f64 * *count as f64).sum();
        let edge = |bucket: Option<&(u64, u64)>| bucket.map_or(0.0, |(micros, _)| *micros as f64);
        Self {
            count,
            min: edge(buckets.first()),
            mean: if count > 0 { sum / count as f64 } else { 0.0 },
            max: edge(buckets.last()),
            buckets,
        }
    }
}

impl Measurement {
    /// Verified work, as this unit counts it.
    pub fn worth(&self, unit: &Unit) -> f64 {
        (if unit.bytes { self.payload_bytes } else { self.units }) as f64
    }

    /// Operations that ended, verified or not.
    pub fn ended(&self) -> u64 {
        self.successes + self.errors.values().sum::<u64>()
    }

    /// Times from the intended send; where nobody kept a schedule, those from the actual send.
    pub fn latency(&self) -> &Latency {
        if self.response_us.count > 0 { &self.response_us } else { &self.service_us }
    }

    /// What a generator counted, without what only the lab knows of the system.
    pub fn of(tally: &load::Tally) -> Self {
        let failures = tally.failures();
        let failing_us = tally.failing.as_secs_f64() * 1e6;
        let examples = tally.first_errors.iter();
        Self {
            elapsed_s: tally.elapsed.as_secs_f64(),
            attempts: tally.attempts,
            successes: tally.successes,
            errors: tally.errors_by_name(),
            in_flight: tally.in_flight,
            late: tally.late,
            dropped: tally.dropped,
            units: tally.units,
            payload_bytes: tally.payload_bytes,
            bytes_sent: tally.bytes_sent,
            bytes_received: tally.bytes_received,
            service_us: Latency::from_nanos(&tally.service),
            response_us: Latency::from_nanos(&tally.response),
            first_errors: examples.map(|(class, text)| (class.name().to_owned(), text.to_string())).collect(),
            mean_error_us: if failures > 0 { failing_us / failures as f64 } else { 0.0 },
            error_ordinals: tally.ordinals.clone(),
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
