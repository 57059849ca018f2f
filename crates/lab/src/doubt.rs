//! Doubts about one trial: why its numbers may be untrustworthy, with the figures that show it. `report` has the
//! sentence and the remedy.
//!
//! A doubt is computed from one [`Measurement`]: of a trial in the lab, or of `narrows load`. `findings` warns of
//! problems that only several trials together can show, such as their spread.

pub mod elsewhere;
mod generator;
mod machine;
mod resuming;
mod schedule;
mod shape;
mod waiting;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use generator::more_generators;
pub use shape::HALVES;

use crate::experiment::Figure;
use crate::observation::Measurement;

/// The kinds of doubt about a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The generator's busiest core was almost fully busy, or the figure cannot be told from the reference's.
    GeneratorBound,
    /// The network between the generators and the system was the limit.
    PathBound,
    /// The windows of several generators were apart.
    WindowsApart,
    /// One of several generators did less than its part.
    GeneratorsUnequal,
    /// An open loop could not keep its schedule.
    BehindSchedule,
    /// When the window closed, callers had waited longer than any answer took, and for at least a tenth of the window.
    Starved,
    /// Requests waited in a place that the latency does not include (Little's law).
    HiddenQueueing,
    /// Failures were much quicker than successes, so errors made room for more attempts.
    FailFast,
    /// Connections fail at multiples of one number of requests.
    ErrorsOnSchedule,
    /// Uploads waited in vain for `100 Continue`, so their times are the generator's patience.
    NoContinue,
    /// The server refused sessions that were offered, or gave none, where connections were to be resumed.
    NotResumed,
    /// The window was too short for the operations in it.
    TooShort,
    /// The halves of the window differ, or the standard deviation of its tenths exceeds their mean.
    UnsteadyWindow,
    /// The beginning of the window was slower than the rest.
    WarmUpUnfinished,
    /// Latencies have two peaks. Neither the mean nor the median describes them.
    Bimodal,
    /// The system and the generator ran on the same cores.
    CoresShared,
    /// A client opened more connections than its pool may have.
    PoolCapExceeded,
    /// Ports or files were nearly used up.
    LimitNear,
    /// The hypervisor gave processor time to other machines.
    StolenTime,
    /// The processor throttled itself because of heat.
    Throttled,
}

/// The figures that raise a doubt. Shares are from 0 to 1.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Evidence {
    /// The generator's busiest core was almost fully busy.
    GeneratorBusy {
        /// The share of the window in which it worked.
        share: f64,
    },
    /// The busiest cores of generators on other machines were almost fully busy.
    GeneratorsBusy {
        /// How many generators had such a core.
        busy: u64,
        /// How many generators there were.
        of: u64,
        /// The share of the window in which the busiest core worked.
        share: f64,
        /// How many more generators would do.
        more: u64,
    },
    /// The objective did not hold at a higher rate, at which the generator's busiest core was almost fully busy.
    FailedBusy {
        /// That rate, per second.
        per_s: f64,
        /// The share of the window in which it worked.
        share: f64,
        /// How many more generators would do for this rate. None if the generator was on the machine of the system.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        more: Option<u64>,
    },
    /// The objective held at the highest rate that is tried.
    NoRateFailed {
        /// That rate, per second.
        per_s: f64,
    },
    /// The rounds cannot tell the scenario from the reference.
    AsTheReference {
        /// The speed as a share of the reference's.
        share: f64,
        /// The lower end of its interval.
        low: f64,
        /// The upper end of its interval.
        high: f64,
        /// The number of rounds.
        rounds: u32,
    },
    /// The network carried almost as much as it can.
    LinkFull {
        /// The share of that.
        share: f64,
        /// What it can carry in each direction, in bytes per second.
        bytes_per_s: f64,
    },
    /// The network lost packets, and TCP waited for them.
    Lossy {
        /// The segments that the system's machine sent again, as a share of those that the answers fill.
        share: f64,
        /// Their number.
        segments: u64,
    },
    /// Most of the time to an answer was spent on the way.
    RoundTrips {
        /// The share of the mean time.
        share: f64,
        /// What the way takes for the bytes of an exchange, microseconds.
        way_us: f64,
        /// The shortest time to an answer of Narrows' own server, microseconds.
        round_trip_us: f64,
    },
    /// The windows of several generators were apart.
    Skewed {
        /// By this share of their length.
        share: f64,
    },
    /// A generator did less than its part.
    Unequal {
        /// Its machine.
        machine: String,
        /// The operations of each of its connections, as a share of the mean.
        share: f64,
    },
    /// Arrivals of an open loop were not sent when they were due.
    Behind {
        /// All arrivals.
        arrivals: u64,
        /// Arrivals that were sent late.
        late: u64,
        /// Arrivals that were dropped.
        dropped: u64,
    },
    /// Callers that had waited longer than any answer took when the window closed.
    Starved {
        /// How many.
        count: u64,
        /// All callers that waited then.
        of: u64,
        /// The age of the oldest, microseconds.
        oldest_us: f64,
        /// The longest time to an answer, microseconds.
        longest_us: f64,
    },
    /// More operations are under way than the latency explains.
    Queueing {
        /// Operations under way at once.
        under_way: u64,
        /// Operations that end per second.
        per_s: f64,
        /// The true time of an operation, microseconds.
        cycle_us: f64,
        /// The measured latency, microseconds.
        shown_us: f64,
    },
    /// Failures are quicker than successes.
    QuickFailures {
        /// The share of operations that failed.
        share: f64,
        /// The mean duration of a failure, microseconds.
        failing_us: f64,
        /// The mean duration of a success, microseconds.
        succeeding_us: f64,
        /// Attempts per success.
        attempts: f64,
    },
    /// Failures occur at multiples of one number of requests on a connection.
    FailuresEvery {
        /// That number of requests.
        requests: u64,
        /// Failures at its multiples.
        count: u64,
        /// All failures on open connections.
        of: u64,
    },
    /// `100 Continue` did not come.
    NoContinue {
        /// Uploads whose body was sent without it.
        count: u64,
        /// All uploads.
        of: u64,
        /// How long each of them waited, in seconds.
        waited_s: f64,
    },
    /// Sessions that were offered and not accepted.
    SessionsRefused {
        /// How many.
        refused: u64,
        /// All sessions that were offered.
        of: u64,
    },
    /// Connections that had no session to offer.
    NoSessions {
        /// How many.
        without: u64,
        /// All connections.
        of: u64,
    },
    /// No operation ended.
    NothingEnded {
        /// Operations that were under way.
        attempts: u64,
        /// The length of the window in seconds.
        window_s: f64,
    },
    /// Few operations ended.
    FewEnded {
        /// Operations that succeeded.
        successes: u64,
        /// The length of the window in seconds.
        window_s: f64,
    },
    /// The window is only a few latencies long.
    FewLatencies {
        /// The length of the window in seconds.
        window_s: f64,
        /// The length of the window in mean latencies.
        latencies: f64,
    },
    /// The tenths of the window vary widely.
    Scatter {
        /// Their standard deviation, divided by their mean.
        times: f64,
    },
    /// The second half of the window differs from the first.
    Halves {
        /// The change, as a share of the first half's operations. It is negative if there were fewer.
        change: f64,
    },
    /// The first tenth of the window was slow.
    SlowBeginning {
        /// Its operations as a share of a usual tenth's.
        share: f64,
    },
    /// Latencies have two peaks.
    TwoPeaks {
        /// The quicker peak: its share of operations, and its latency in microseconds.
        quick: (f64, f64),
        /// The slower peak, in the same form.
        slow: (f64, f64),
    },
    /// The system and the generator ran on the same cores.
    CoresShared,
    /// There were more connections than the pool may have.
    Connections {
        /// The most that the server saw at once.
        seen: u64,
        /// The most that the pool may have.
        cap: u64,
    },
    /// Ports were nearly used up.
    Ports {
        /// Connections to one address.
        connections: u64,
        /// All ports.
        of: u64,
    },
    /// Open files were nearly used up.
    Files {
        /// Connections.
        connections: u64,
        /// The limit of open files.
        of: u64,
    },
    /// The hypervisor gave processor time to other machines.
    Stolen {
        /// That time, as a share of one core.
        share: f64,
    },
    /// The processor throttled itself.
    Throttled {
        /// How many times.
        times: u64,
    },
}

impl Evidence {
    /// The doubt that it raises.
    pub fn doubt(&self) -> Doubt {
        match self {
            Self::GeneratorBusy { .. }
            | Self::GeneratorsBusy { .. }
            | Self::FailedBusy { .. }
            | Self::NoRateFailed { .. }
            | Self::AsTheReference { .. } => Doubt::GeneratorBound,
            Self::LinkFull { .. } | Self::Lossy { .. } | Self::RoundTrips { .. } => Doubt::PathBound,
            Self::Skewed { .. } => Doubt::WindowsApart,
            Self::Unequal { .. } => Doubt::GeneratorsUnequal,
            Self::Behind { .. } => Doubt::BehindSchedule,
            Self::Starved { .. } => Doubt::Starved,
            Self::Queueing { .. } => Doubt::HiddenQueueing,
            Self::QuickFailures { .. } => Doubt::FailFast,
            Self::FailuresEvery { .. } => Doubt::ErrorsOnSchedule,
            Self::NoContinue { .. } => Doubt::NoContinue,
            Self::SessionsRefused { .. } | Self::NoSessions { .. } => Doubt::NotResumed,
            Self::NothingEnded { .. } | Self::FewEnded { .. } | Self::FewLatencies { .. } => Doubt::TooShort,
            Self::Scatter { .. } | Self::Halves { .. } => Doubt::UnsteadyWindow,
            Self::SlowBeginning { .. } => Doubt::WarmUpUnfinished,
            Self::TwoPeaks { .. } => Doubt::Bimodal,
            Self::CoresShared => Doubt::CoresShared,
            Self::Connections { .. } => Doubt::PoolCapExceeded,
            Self::Ports { .. } | Self::Files { .. } => Doubt::LimitNear,
            Self::Stolen { .. } => Doubt::StolenTime,
            Self::Throttled { .. } => Doubt::Throttled,
        }
    }
}

/// The kind of a trial, which decides which doubts can arise.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TrialKind {
    /// The most connections that a client's pool may have.
    pub pool_cap: Option<u64>,
    /// Whether Narrows' server closes a client's connections, and says so in the last answer.
    pub announced_closes: bool,
    /// Whether an exchange begins only after the last one has ended.
    pub closed_loop: bool,
    /// Whether exchanges are so many and short that latencies and tenths of the window are meaningful.
    pub short_exchanges: bool,
    /// Whether connections offer the sessions of those before them.
    pub sessions: bool,
    /// Whether the scheduled rate changes during the window.
    pub ramp: bool,
}

/// The generator may be the bottleneck if its busiest core worked more than this share of the window.
pub const GENERATOR_BUSY: f64 = 0.9;
/// Errors up to this share of operations do not distort the figures.
const ERRORS: f64 = 0.01;
/// Failures inflate the number of attempts if they take less than this share of a success's time.
pub const QUICKER: f64 = 0.5;
/// The duration of failures can be derived from the duration of successes if more than this share of operations failed.
/// With fewer failures, the edges of the window make it too inexact.
const MANY_ERRORS: f64 = 0.2;
/// The fewest operations that give a window a meaningful rate.
pub const FEWEST: u64 = 20;
/// The fewest mean latencies that make up a window. In a shorter one its edges dominate.
const LATENCIES: f64 = 10.0;

impl Doubt {
    /// Whether a trial with this doubt is shown but not ranked.
    pub fn disqualifies(self) -> bool {
        matches!(
            self,
            Self::GeneratorBound
                | Self::PathBound
                | Self::BehindSchedule
                | Self::FailFast
                | Self::NoContinue
                | Self::PoolCapExceeded
        )
    }
}

impl Evidence {
    /// Whether it is about this figure. What an operation costs a system does not depend on whether the generator could
    /// have sent more, or sent in time; but where arrivals were dropped, the system had more to do than it could.
    pub fn concerns(&self, figure: Figure) -> bool {
        match self {
            Self::FailedBusy { .. } | Self::NoRateFailed { .. } => figure == Figure::MaxRate,
            Self::Behind { arrivals, dropped, .. } if figure.is_cost() => {
                *dropped as f64 / (*arrivals).max(1) as f64 > schedule::LATE
            }
            other => !matches!(other.doubt(), Doubt::GeneratorBound | Doubt::PathBound) || !figure.is_cost(),
        }
    }
}

/// Every doubt about a trial, in the order of the enum [`Doubt`].
pub fn doubts(m: &Measurement, kind: &TrialKind) -> Vec<Evidence> {
    let short = kind.short_exchanges;
    let steady = short && !kind.ramp;
    let found = [
        generator::bound(m),
        elsewhere::path_bound(m, kind),
        elsewhere::skewed(m),
        elsewhere::unequal(m, kind),
        schedule::behind(m),
        waiting::starved(m, kind).or_else(|| waiting::hidden_queueing(m, kind)),
        fail_fast(m, kind),
        schedule::errors_on_schedule(m),
        no_continue(m),
        resuming::not_resumed(m, kind),
        too_short(m, kind),
        steady.then(|| shape::unsteady(&m.tenths)).flatten(),
        steady.then(|| shape::rising(&m.tenths)).flatten(),
        short.then(|| shape::bimodal(&m.service_us.buckets)).flatten(),
        machine::cores_shared(m),
        machine::pool_cap_exceeded(m, kind),
        machine::limit_near(m),
        machine::stolen_time(m),
        machine::throttled(m),
    ];
    found.into_iter().flatten().collect()
}

fn errors(m: &Measurement) -> u64 {
    m.errors.values().sum()
}

/// Failed operations as a share of those that ended.
pub(crate) fn error_share(m: &Measurement) -> f64 {
    errors(m) as f64 / m.ended().max(1) as f64
}

/// The classes of failures with which a client loses the request on a connection that is closed.
const LOST: [&str; 2] = ["closed_early", "reset"];

/// The failures in the window that the server's own setting explains: requests that were lost with connections whose close
/// it had announced. There may be at most one for each close. The counts of the client's whole life are compared, because
/// the server's closes are known only for that.
pub fn explained(m: &Measurement, kind: &TrialKind) -> u64 {
    let lost =
        |errors: &BTreeMap<String, u64>| LOST.iter().filter_map(|class| errors.get(*class)).sum::<u64>();
    let Some(server) = m.server.as_ref().filter(|_| kind.announced_closes) else { return 0 };
    let in_window = lost(&m.errors);
    if in_window.max(lost(&server.client_errors)) <= server.closes { in_window } else { 0 }
}

fn fail_fast(m: &Measurement, kind: &TrialKind) -> Option<Evidence> {
    let succeeding_us = if m.service_us.count > 0 { m.service_us.mean } else { m.response_us.mean };
    let (failing_us, share) = (failing_us(m, kind)?, error_share(m));
    let unexplained = errors(m) - explained(m, kind);
    let many = unexplained as f64 / m.ended().max(1) as f64 > ERRORS;
    (m.successes > 0 && many && failing_us < QUICKER * succeeding_us).then(|| {
        let attempts = m.attempts as f64 / m.successes as f64;
        Evidence::QuickFailures { share, failing_us, succeeding_us, attempts }
    })
}

/// The mean duration of failures: as reported, or in a closed loop from the callers' time that successes leave over.
fn failing_us(m: &Measurement, kind: &TrialKind) -> Option<f64> {
    if m.mean_error_us > 0.0 {
        return Some(m.mean_error_us);
    }
    let closed = kind.closed_loop && kind.short_exchanges && m.concurrency > 0;
    let all_us = m.concurrency as f64 * m.elapsed_s * 1e6;
    let left_us = all_us - m.latency().mean * m.successes as f64;
    (closed && error_share(m) > MANY_ERRORS).then(|| left_us.max(0.0) / errors(m) as f64)
}

/// The evidence if a trial has no figure, whatever it measures.
pub(crate) fn no_figure(m: &Measurement) -> Option<Evidence> {
    no_continue(m).or_else(|| nothing_ended(m))
}

/// Times of uploads and rates contain the time that the generator waited in vain.
fn no_continue(m: &Measurement) -> Option<Evidence> {
    (m.no_continue > 0).then(|| Evidence::NoContinue {
        count: m.no_continue,
        of: m.attempts,
        waited_s: load::Tally::CONTINUE.as_secs_f64(),
    })
}

/// The evidence if operations were under way in the window and none ended.
fn nothing_ended(m: &Measurement) -> Option<Evidence> {
    let nothing = m.attempts > 0 && m.ended() == 0 && m.elapsed_s > 0.0;
    nothing.then_some(Evidence::NothingEnded { attempts: m.attempts, window_s: m.elapsed_s })
}

fn too_short(m: &Measurement, kind: &TrialKind) -> Option<Evidence> {
    if m.successes == 0 {
        return nothing_ended(m);
    }
    if !kind.short_exchanges {
        return None;
    }
    let mean_s = m.service_us.mean.max(m.response_us.mean) / 1e6;
    if m.successes < FEWEST {
        return Some(Evidence::FewEnded { successes: m.successes, window_s: m.elapsed_s });
    }
    (m.elapsed_s < LATENCIES * mean_s)
        .then(|| Evidence::FewLatencies { window_s: m.elapsed_s, latencies: m.elapsed_s / mean_s })
}

#[cfg(test)]
mod tests;
