//! Doubts about one trial: why its numbers may be untrustworthy, with the figures that show it. `report` has the
//! sentence and the remedy.
//!
//! A doubt is computed from one [`Measurement`]: of a trial in the lab, or of `narrows load`. `findings` warns of
//! problems that only several trials together can show, such as their spread.

mod buffered;
pub mod elsewhere;
mod evidence;
mod generator;
mod machine;
mod resuming;
mod schedule;
mod shape;
mod waiting;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use evidence::Evidence;
pub use generator::more_generators;
pub use shape::HALVES;

use crate::Measurement;

/// The kinds of doubt about a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The peer allowed fewer requests at once on a connection than were asked for.
    FewerStreams,
    /// Streams came in one read each, or in fewer reads than from the base: the system or a proxy held them back.
    Buffered,
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
    /// A limit of CPU time stopped the system or the generator.
    Held,
    /// The generator's loop stood still for a noticeable part of the window.
    GeneratorPaused,
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
        fewer_streams(m),
        buffered::buffered(m),
        too_short(m, kind),
        steady.then(|| shape::unsteady(&m.tenths)).flatten(),
        steady.then(|| shape::rising(&m.tenths)).flatten(),
        short.then(|| shape::bimodal(&m.service_us.buckets)).flatten(),
        machine::cores_shared(m),
        machine::pool_cap_exceeded(m, kind),
        machine::limit_near(m),
        machine::stolen_time(m),
        machine::throttled(m),
        machine::held(m),
        machine::generator_paused(m),
    ];
    found.into_iter().flatten().collect()
}

fn errors(m: &Measurement) -> u64 {
    m.errors.values().sum()
}

/// Failed operations as a share of those that ended.
pub fn error_share(m: &Measurement) -> f64 {
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
    let all_us = m.under_way() as f64 * m.elapsed_s * 1e6;
    let left_us = all_us - m.latency().mean * m.successes as f64;
    (closed && error_share(m) > MANY_ERRORS).then(|| left_us.max(0.0) / errors(m) as f64)
}

/// The evidence if a trial has no figure, whatever it measures.
pub fn no_figure(m: &Measurement) -> Option<Evidence> {
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

/// A connection carried fewer requests at once than were asked for, because the peer allows no more.
fn fewer_streams(m: &Measurement) -> Option<Evidence> {
    let found = m.multiplexed?;
    found.allowed.map(|allowed| Evidence::FewerStreams { asked: found.asked, allowed })
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
