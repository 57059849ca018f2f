//! Doubts about one trial: what makes its numbers untrustworthy, with the figures and the remedy.
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

/// A doubt, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind.
    pub code: Doubt,
    /// What was seen, with its figures.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// What a trial was meant to be, beside what it measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Setting {
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

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::GeneratorBound => {
                "give the generator more cores or threads, or the machine quiet (`narrows doctor`): the figure is a lower bound"
            }
            Self::BehindSchedule => {
                "a lower rate, or more connections; the target or the generator is too slow for this one"
            }
            Self::HiddenQueueing => {
                "look at the accept queue and at connection times; fewer connections show the true latency"
            }
            Self::FailFast => "mend the errors first: their share and this rate say nothing together",
            Self::ErrorsOnSchedule => {
                "raise the server's limit of requests per connection, or use a client that heeds its close"
            }
            Self::TooShort => "a longer window (-d, measure_s), or less work per operation",
            Self::UnsteadyWindow => {
                "a longer window, more rounds; stop other work on the machine (`narrows doctor`)"
            }
            Self::WarmUpUnfinished => "a longer warm-up (--warmup, warmup_s)",
            Self::Bimodal => {
                "read the percentiles on both sides of the gap; look for a cache, a timer or a queue behind the slower peak"
            }
            Self::CoresShared => {
                "use a machine with two cores or more (`narrows doctor`); pin a server of your own (`taskset`)"
            }
            Self::PoolCapExceeded => {
                "this pool size is no hard limit: compare the client at its true number of connections"
            }
            Self::LimitNear => {
                "fewer connections, a wider net.ipv4.ip_local_port_range, or a higher limit of open files"
            }
            Self::StolenTime => "a machine of your own, or more rounds",
            Self::Throttled => "better cooling, fewer cores at work, or pauses between runs",
        }
    }
}

/// Every doubt about a trial, in the order of the enum.
pub fn doubts(m: &Measurement, setting: &Setting) -> Vec<Finding> {
    let found = |code: Doubt, message: Option<String>| {
        message.map(|message| Finding { code, message, remedy: code.remedy().to_owned() })
    };
    let steady = setting.short_exchanges && !setting.ramp;
    let each = [
        found(Doubt::GeneratorBound, generator_bound(m)),
        found(Doubt::BehindSchedule, behind_schedule(m)),
        found(Doubt::HiddenQueueing, hidden_queueing(m, setting)),
        found(Doubt::FailFast, fail_fast(m, setting)),
        found(Doubt::ErrorsOnSchedule, errors_on_schedule(m)),
        found(Doubt::TooShort, too_short(m, setting)),
        found(Doubt::UnsteadyWindow, steady.then(|| shape::unsteady(&m.tenths)).flatten()),
        found(Doubt::WarmUpUnfinished, steady.then(|| shape::rising(&m.tenths)).flatten()),
        found(
            Doubt::Bimodal,
            setting.short_exchanges.then(|| shape::bimodal(&m.service_us.buckets)).flatten(),
        ),
        found(Doubt::CoresShared, cores_shared(m)),
        found(Doubt::PoolCapExceeded, pool_cap_exceeded(m, setting)),
        found(Doubt::LimitNear, limit_near(m)),
        found(Doubt::StolenTime, stolen_time(m)),
        found(Doubt::Throttled, throttled(m)),
    ];
    each.into_iter().flatten().collect()
}

fn errors(m: &Measurement) -> u64 {
    m.errors.values().sum()
}

fn error_share(m: &Measurement) -> f64 {
    errors(m) as f64 / m.ended().max(1) as f64
}

fn generator_bound(m: &Measurement) -> Option<String> {
    let busy = m.generator.busiest_core;
    (busy > GENERATOR_BUSY)
        .then(|| format!("the generator's busiest core worked {:.0} % of the time", busy * 100.0))
}

fn behind_schedule(m: &Measurement) -> Option<String> {
    let arrivals = (m.attempts + m.dropped).max(1);
    let share = (m.late + m.dropped) as f64 / arrivals as f64;
    (share > LATE).then(|| {
        format!(
            "of {arrivals} arrivals {} were sent late and {} not at all ({:.1} %)",
            m.late,
            m.dropped,
            share * 100.0
        )
    })
}

/// Little's law: with N always under way, N / throughput is how long each truly takes from one to the next.
fn hidden_queueing(m: &Measurement, setting: &Setting) -> Option<String> {
    if !setting.closed_loop || !setting.short_exchanges || m.successes == 0 || m.latency().count == 0 {
        return None;
    }
    let ended = m.ended();
    let cycle_us = m.concurrency as f64 * m.elapsed_s * 1e6 / ended as f64;
    let shown = m.latency().mean;
    // What began before the window and ended in it, and the reverse, blur this by one cycle.
    let long_enough = m.elapsed_s * 1e6 > 3.0 * cycle_us;
    (long_enough && cycle_us > QUEUEING * shown).then(|| {
        format!(
            "{} under way at {:.0} a second take {:.1} ms each, but the latency shown is {:.1} ms",
            m.concurrency,
            ended as f64 / m.elapsed_s,
            cycle_us / 1e3,
            shown / 1e3
        )
    })
}

fn fail_fast(m: &Measurement, setting: &Setting) -> Option<String> {
    // The shorter of what is known of successes: failing must be quicker than either.
    let succeeding = if m.service_us.count > 0 { m.service_us.mean } else { m.response_us.mean };
    let failing = failing_us(m, setting)?;
    (m.successes > 0 && error_share(m) > ERRORS && failing < QUICKER * succeeding).then(|| {
        format!(
            "{:.1} % failed, in {:.2} ms on average, while successes took {:.2} ms: {:.1} attempts for each success",
            error_share(m) * 100.0,
            failing / 1e3,
            succeeding / 1e3,
            m.attempts as f64 / m.successes as f64
        )
    })
}

/// How long failures took: as it was told, or in a closed loop what successes leave over of all callers' time.
fn failing_us(m: &Measurement, setting: &Setting) -> Option<f64> {
    if m.mean_error_us > 0.0 {
        return Some(m.mean_error_us);
    }
    let closed = setting.closed_loop && setting.short_exchanges && m.concurrency > 0;
    let all_us = m.concurrency as f64 * m.elapsed_s * 1e6;
    let left_us = all_us - m.latency().mean * m.successes as f64;
    (closed && error_share(m) > EXPLODING).then(|| left_us.max(0.0) / errors(m) as f64)
}

/// Failures at multiples of one number, more of them than chance puts there; others may have other causes.
fn errors_on_schedule(m: &Measurement) -> Option<String> {
    let total: u64 = m.error_ordinals.values().sum();
    let on = |every: u64| -> u64 {
        let there = m.error_ordinals.iter().filter(|(ordinal, _)| *ordinal % every == 0);
        there.map(|(_, count)| count).sum()
    };
    let common = m.error_ordinals.keys().fold(0, |known, ordinal| gcd(known, *ordinal));
    let candidates = m.error_ordinals.keys().copied().chain([common]).filter(|every| *every >= 10);
    let (count, every) = candidates.map(|every| (on(every), every)).max()?;
    // Three by chance on multiples of ten or more is one in a thousand.
    (count >= 3 && chance_ln(total, count, every) <= 1.001 * THOUSANDTH.ln()).then(|| {
        let of = if count == total { format!("all {total}") } else { format!("{count} of {total}") };
        format!("{of} failures on open connections came with request {every}, {}, … of one", 2 * every)
    })
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
pub(crate) fn nothing_ended(m: &Measurement) -> Option<String> {
    let nothing = m.attempts > 0 && m.ended() == 0 && m.elapsed_s > 0.0;
    nothing.then(|| format!("none of {} operations ended in {:.2} s", m.attempts, m.elapsed_s))
}

fn too_short(m: &Measurement, setting: &Setting) -> Option<String> {
    if m.successes == 0 {
        return nothing_ended(m);
    }
    if !setting.short_exchanges {
        return None;
    }
    let mean_s = m.service_us.mean.max(m.response_us.mean) / 1e6;
    if m.successes < FEWEST {
        return Some(format!("only {} operations ended in {:.2} s", m.successes, m.elapsed_s));
    }
    (m.elapsed_s < LATENCIES * mean_s).then(|| {
        format!("the window of {:.2} s is {:.1} mean latencies long", m.elapsed_s, m.elapsed_s / mean_s)
    })
}

fn cores_shared(m: &Measurement) -> Option<String> {
    let (system, generator) = (&m.system.cores, &m.generator.cores);
    // Nothing is known of a system that was not started here.
    if system.is_empty() && generator.is_empty() && m.system == crate::observation::SystemUse::default() {
        return None;
    }
    let apart =
        !system.is_empty() && !generator.is_empty() && system.iter().all(|core| !generator.contains(core));
    (!apart).then(|| "system and generator had no cores of their own".to_owned())
}

fn pool_cap_exceeded(m: &Measurement, setting: &Setting) -> Option<String> {
    let (cap, seen) = (setting.pool_cap?, m.server.as_ref()?.peak_connections);
    (seen > cap).then(|| format!("the server saw {seen} connections at once where the pool may have {cap}"))
}

fn limit_near(m: &Measurement) -> Option<String> {
    let near = |limit: u64| limit > 0 && m.connections as f64 > NEAR * limit as f64;
    match (near(m.ports), near(m.files)) {
        (true, _) => Some(format!("{} connections to one address of {} ports", m.connections, m.ports)),
        (_, true) => Some(format!("{} connections of {} open files", m.connections, m.files)),
        _ => None,
    }
}

fn stolen_time(m: &Measurement) -> Option<String> {
    let share = m.stolen_s / m.elapsed_s;
    // A window that never opened has no share of anything.
    (m.elapsed_s > 0.0 && share > STOLEN)
        .then(|| format!("{:.1} % of a core's time went to other machines on the host", share * 100.0))
}

fn throttled(m: &Measurement) -> Option<String> {
    (m.throttles > 0).then(|| format!("the processor slowed itself down for heat {} times", m.throttles))
}

#[cfg(test)]
mod tests;
