//! Doubts about one trial: what makes its numbers untrustworthy, with the figures. `report` has the sentence and the remedy.
//!
//! Pure, over a [`Measurement`]: the lab asks after each trial, `narrows load` after its only one. What only several
//! trials together can show (too few of them, spread) is for `findings`.

mod shape;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use shape::HALVES;

use crate::observation::Measurement;

/// The kinds of doubt about a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The generator's busiest core had hardly time left, or the figure cannot be told from the reference's.
    GeneratorBound,
    /// An open loop could not keep its schedule.
    BehindSchedule,
    /// Requests waited where the latency does not show it (Little's law).
    HiddenQueueing,
    /// Failing was much quicker than succeeding, so that errors made room for more attempts.
    FailFast,
    /// Connections fail at multiples of one number of requests.
    ErrorsOnSchedule,
    /// The window was short against what happened in it.
    TooShort,
    /// The halves of the window differ, or its tenths scatter more than their mean.
    UnsteadyWindow,
    /// The beginning of the window was slower than its rest.
    WarmUpUnfinished,
    /// Latencies have two peaks: a mean or a median describes neither.
    Bimodal,
    /// System and generator did not have cores of their own.
    CoresShared,
    /// A client opened more connections than its pool may have.
    PoolCapExceeded,
    /// Ports or files were nearly used up.
    LimitNear,
    /// The hypervisor gave processor time to others.
    StolenTime,
    /// The processor slowed itself down for heat.
    Throttled,
}

/// What was seen that makes a trial doubtful, with its figures. Shares are of 1.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Evidence {
    /// How much of the time the generator's busiest core worked.
    GeneratorBusy {
        /// A share.
        share: f64,
    },
    /// As fast as the reference, as far as several rounds can tell.
    AsTheReference {
        /// The speed as a share of the reference's.
        share: f64,
        /// Its interval's lower end.
        low: f64,
        /// Its interval's upper end.
        high: f64,
        /// In so many rounds.
        rounds: u32,
    },
    /// Arrivals of an open loop that were not sent when they were due.
    Behind {
        /// All of them.
        arrivals: u64,
        /// Those that were sent late.
        late: u64,
        /// Those that were given up.
        dropped: u64,
    },
    /// More are under way than the latency shown has room for.
    Queueing {
        /// How many are under way at once.
        under_way: u64,
        /// How many end in a second.
        per_s: f64,
        /// What each truly takes, microseconds.
        cycle_us: f64,
        /// The latency shown, microseconds.
        shown_us: f64,
    },
    /// Failures are quicker than successes.
    QuickFailures {
        /// The share of operations that failed.
        share: f64,
        /// How long a failure took on average, microseconds.
        failing_us: f64,
        /// How long a success took on average, microseconds.
        succeeding_us: f64,
        /// Attempts for each success.
        attempts: f64,
    },
    /// Failures that came with multiples of one number of requests on a connection.
    FailuresEvery {
        /// That number.
        requests: u64,
        /// Those that came with it.
        count: u64,
        /// All of those on open connections.
        of: u64,
    },
    /// No operation ended.
    NothingEnded {
        /// Operations that were under way.
        attempts: u64,
        /// Seconds.
        window_s: f64,
    },
    /// Few operations ended.
    FewEnded {
        /// So many.
        successes: u64,
        /// Seconds.
        window_s: f64,
    },
    /// The window is short against the latency.
    FewLatencies {
        /// Seconds.
        window_s: f64,
        /// How many mean latencies it is long.
        latencies: f64,
    },
    /// Tenths of the window scatter.
    Scatter {
        /// The standard deviation, in times their mean.
        times: f64,
    },
    /// The second half of the window differs from the first.
    Halves {
        /// By this share of the first half's operations; below 0 there were fewer.
        change: f64,
    },
    /// The window's first tenth was slow.
    SlowBeginning {
        /// Its operations as a share of the usual ones.
        share: f64,
    },
    /// Latencies have two peaks, the quicker one first.
    TwoPeaks {
        /// The share of operations, and where they peak in microseconds.
        quick: (f64, f64),
        /// The same of the slower ones.
        slow: (f64, f64),
    },
    /// System and generator ran on the same cores.
    CoresShared,
    /// More connections than the pool may have.
    Connections {
        /// What the server saw at once.
        seen: u64,
        /// What the pool may have.
        cap: u64,
    },
    /// Ports were nearly used up.
    Ports {
        /// Connections to one address.
        connections: u64,
        /// Of so many ports.
        of: u64,
    },
    /// Open files were nearly used up.
    Files {
        /// Connections.
        connections: u64,
        /// Of so many open files.
        of: u64,
    },
    /// Other machines on the host had processor time.
    Stolen {
        /// As a share of one core.
        share: f64,
    },
    /// The processor slowed itself down.
    Throttled {
        /// So many times.
        times: u64,
    },
}

impl Evidence {
    /// The kind of doubt that it raises.
    pub fn doubt(&self) -> Doubt {
        match self {
            Self::GeneratorBusy { .. } | Self::AsTheReference { .. } => Doubt::GeneratorBound,
            Self::Behind { .. } => Doubt::BehindSchedule,
            Self::Queueing { .. } => Doubt::HiddenQueueing,
            Self::QuickFailures { .. } => Doubt::FailFast,
            Self::FailuresEvery { .. } => Doubt::ErrorsOnSchedule,
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

/// What a trial was meant to be, beside what it measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TrialKind {
    /// Connections that a client's pool may have at most.
    pub pool_cap: Option<u64>,
    /// Whether exchanges gate each other: a closed loop.
    pub closed_loop: bool,
    /// Whether exchanges are many and short, so that latencies and tenths of the window say something.
    pub short_exchanges: bool,
    /// Whether the schedule's rate changes in the window, and with it all that is counted.
    pub ramp: bool,
}

/// The busy share of a core from which the generator may be what was measured.
pub const GENERATOR_BUSY: f64 = 0.9;
/// Late sends and dropped arrivals beyond this share mean that the schedule was not kept.
const LATE: f64 = 0.01;
/// Time per cycle against time shown, from which requests wait out of sight.
const QUEUEING: f64 = 1.5;
/// Errors below this share of operations change no picture.
const ERRORS: f64 = 0.01;
/// Failures this much quicker than successes inflate the number of attempts.
pub const QUICKER: f64 = 0.5;
/// Where nobody told how long failures took, the time that successes leave over tells it once failures are this share: below,
/// the edges of the window blur it.
const EXPLODING: f64 = 0.2;
/// Operations that a window needs before its rate means much.
pub const FEWEST: u64 = 20;
/// A window shorter than so many mean latencies measures its own edges.
const LATENCIES: f64 = 10.0;
/// Stolen time beyond this share of one core.
const STOLEN: f64 = 0.02;
/// The used share of ports or files that is near their end.
const NEAR: f64 = 0.8;

impl Doubt {
    /// Whether a trial with this doubt is shown and never ranked.
    pub fn disqualifies(self) -> bool {
        matches!(self, Self::GeneratorBound | Self::BehindSchedule | Self::FailFast | Self::PoolCapExceeded)
    }
}

/// Every doubt about a trial, in the order of the enum [`Doubt`].
pub fn doubts(m: &Measurement, kind: &TrialKind) -> Vec<Evidence> {
    let short = kind.short_exchanges;
    let steady = short && !kind.ramp;
    let each = [
        generator_bound(m),
        behind_schedule(m),
        hidden_queueing(m, kind),
        fail_fast(m, kind),
        errors_on_schedule(m),
        too_short(m, kind),
        steady.then(|| shape::unsteady(&m.tenths)).flatten(),
        steady.then(|| shape::rising(&m.tenths)).flatten(),
        short.then(|| shape::bimodal(&m.service_us.buckets)).flatten(),
        cores_shared(m),
        pool_cap_exceeded(m, kind),
        limit_near(m),
        stolen_time(m),
        throttled(m),
    ];
    each.into_iter().flatten().collect()
}

fn errors(m: &Measurement) -> u64 {
    m.errors.values().sum()
}

fn error_share(m: &Measurement) -> f64 {
    errors(m) as f64 / m.ended().max(1) as f64
}

fn generator_bound(m: &Measurement) -> Option<Evidence> {
    let share = m.generator.busiest_core;
    (share > GENERATOR_BUSY).then_some(Evidence::GeneratorBusy { share })
}

fn behind_schedule(m: &Measurement) -> Option<Evidence> {
    let arrivals = (m.attempts + m.dropped).max(1);
    let share = (m.late + m.dropped) as f64 / arrivals as f64;
    (share > LATE).then_some(Evidence::Behind { arrivals, late: m.late, dropped: m.dropped })
}

/// Little's law: with N always under way, N / throughput is how long each truly takes from one to the next.
fn hidden_queueing(m: &Measurement, kind: &TrialKind) -> Option<Evidence> {
    if !kind.closed_loop || !kind.short_exchanges || m.successes == 0 || m.latency().count == 0 {
        return None;
    }
    let ended = m.ended();
    let cycle_us = m.concurrency as f64 * m.elapsed_s * 1e6 / ended as f64;
    let shown_us = m.latency().mean;
    // What began before the window and ended in it, and the reverse, blur this by one cycle.
    let long_enough = m.elapsed_s * 1e6 > 3.0 * cycle_us;
    let per_s = ended as f64 / m.elapsed_s;
    (long_enough && cycle_us > QUEUEING * shown_us).then_some(Evidence::Queueing {
        under_way: m.concurrency,
        per_s,
        cycle_us,
        shown_us,
    })
}

fn fail_fast(m: &Measurement, kind: &TrialKind) -> Option<Evidence> {
    // The shorter of what is known of successes: failing must be quicker than either.
    let succeeding_us = if m.service_us.count > 0 { m.service_us.mean } else { m.response_us.mean };
    let (failing_us, share) = (failing_us(m, kind)?, error_share(m));
    (m.successes > 0 && share > ERRORS && failing_us < QUICKER * succeeding_us).then(|| {
        let attempts = m.attempts as f64 / m.successes as f64;
        Evidence::QuickFailures { share, failing_us, succeeding_us, attempts }
    })
}

/// How long failures took: as it was told, or in a closed loop what successes leave over of all callers' time.
fn failing_us(m: &Measurement, kind: &TrialKind) -> Option<f64> {
    if m.mean_error_us > 0.0 {
        return Some(m.mean_error_us);
    }
    let closed = kind.closed_loop && kind.short_exchanges && m.concurrency > 0;
    let all_us = m.concurrency as f64 * m.elapsed_s * 1e6;
    let left_us = all_us - m.latency().mean * m.successes as f64;
    (closed && error_share(m) > EXPLODING).then(|| left_us.max(0.0) / errors(m) as f64)
}

/// Failures at multiples of one number, more of them than chance puts there; others may have other causes.
fn errors_on_schedule(m: &Measurement) -> Option<Evidence> {
    let total: u64 = m.error_ordinals.values().sum();
    let on = |every: u64| -> u64 {
        let there = m.error_ordinals.iter().filter(|(ordinal, _)| *ordinal % every == 0);
        there.map(|(_, count)| count).sum()
    };
    let common = m.error_ordinals.keys().fold(0, |known, ordinal| gcd(known, *ordinal));
    let candidates = m.error_ordinals.keys().copied().chain([common]).filter(|every| *every >= 10);
    let (count, every) = candidates.map(|every| (on(every), every)).max()?;
    // Three by chance on multiples of ten or more is one in a thousand.
    (count >= 3 && chance_ln(total, count, every) <= 1.001 * THOUSANDTH.ln())
        .then_some(Evidence::FailuresEvery { requests: every, count, of: total })
}

/// One in a thousand.
const THOUSANDTH: f64 = 0.001;

/// How likely `count` of `total` failures lie on multiples of `every` by chance, at most, as a logarithm: the binomial's tail,
/// with the entropy bound of its coefficient.
fn chance_ln(total: u64, count: u64, every: u64) -> f64 {
    let share = count as f64 / total as f64;
    let part = |share: f64| if share > 0.0 { -share * share.ln() } else { 0.0 };
    total as f64 * (part(share) + part(1.0 - share)) - count as f64 * (every as f64).ln()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Of a window in which operations were under way and none ended.
pub(crate) fn nothing_ended(m: &Measurement) -> Option<Evidence> {
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

fn cores_shared(m: &Measurement) -> Option<Evidence> {
    let (system, generator) = (&m.system.cores, &m.generator.cores);
    // Nothing is known of a system that was not started here.
    if system.is_empty() && generator.is_empty() && m.system == crate::observation::SystemUse::default() {
        return None;
    }
    let apart =
        !system.is_empty() && !generator.is_empty() && system.iter().all(|core| !generator.contains(core));
    (!apart).then_some(Evidence::CoresShared)
}

fn pool_cap_exceeded(m: &Measurement, kind: &TrialKind) -> Option<Evidence> {
    let (cap, seen) = (kind.pool_cap?, m.server.as_ref()?.peak_connections);
    (seen > cap).then_some(Evidence::Connections { seen, cap })
}

fn limit_near(m: &Measurement) -> Option<Evidence> {
    let near = |limit: u64| limit > 0 && m.connections as f64 > NEAR * limit as f64;
    match (near(m.ports), near(m.files)) {
        (true, _) => Some(Evidence::Ports { connections: m.connections, of: m.ports }),
        (_, true) => Some(Evidence::Files { connections: m.connections, of: m.files }),
        _ => None,
    }
}

fn stolen_time(m: &Measurement) -> Option<Evidence> {
    let share = m.stolen_s / m.elapsed_s;
    // A window that never opened has no share of anything.
    (m.elapsed_s > 0.0 && share > STOLEN).then_some(Evidence::Stolen { share })
}

fn throttled(m: &Measurement) -> Option<Evidence> {
    (m.throttles > 0).then_some(Evidence::Throttled { times: m.throttles })
}

#[cfg(test)]
mod tests;
