//! The output of `narrows load`: text for people, JSON for programs.

use std::collections::BTreeMap;
use std::fmt::Write;

use load::rows::Form;
use load::target::Traffic;
use load::{Arrivals, Decoded, Ending, Goal, Job, Multiplexed, Tally, Times};
use measurement::Measurement;
use measurement::doubt::{Doubt, Evidence, TrialKind, doubts};
use reactor::Address;
use report::{Advice, advice_on_trial, number};
use serde::Serialize;
use stats::Percentile;
use systems::machine::Disturbance;
use tls::Kind;

use super::by_name::{self, ByName};
use super::generators;
use crate::fleet::generators::Combined;

/// The object of `--json`.
#[derive(Serialize)]
pub struct Json {
    /// Where connections led to: an address and its port, or the path of a Unix socket.
    address: String,
    #[serde(flatten)]
    counted: Counted,
    throughput_per_s: f64,
    /// The connections that were made in the whole drive, with the warm-up.
    connections_made: u64,
    /// Closed loop: the age in microseconds of the oldest request when the window closed, if it is longer than any answer
    /// took.
    oldest_us: Option<f64>,
    /// Whether the user ended the drive early.
    interrupted: bool,
    /// With --compressed: the bodies of verified answers.
    decoded: Option<Decoded>,
    /// The requests of a file by name, the most frequent first.
    requests: Vec<ByName>,
    generator: Generator,
    /// With --gen: each generator, in the order of the machines.
    generators: Vec<generators::Json>,
    /// With --gen: how far apart the windows were.
    windows: Option<generators::Windows>,
    warnings: Vec<Warning>,
}

/// Makes the part of the object that is printed as it was counted.
macro_rules! counted {
    ($(
        $doc:literal
        $(#[$attribute:meta])*
        $name:ident: $type:ty [$merge:ident, $loops:ident, $bound:ident]
        $(, saved as $saved:ident: $saved_as:ty)?
        $(, printed as $printed:ident: $printed_as:ty)?;
    )*) => {
        #[derive(Serialize)]
        struct Counted {
            $($(#[doc = $doc] $printed: $printed_as,)?)*
        }

        impl Counted {
            fn of(tally: &Tally) -> Self {
                Self { $($($printed: Form::of(&tally.$name),)?)* }
            }
        }
    };
}

load::rows!(counted);

/// A doubt about the result.
#[derive(Serialize)]
struct Warning {
    code: Doubt,
    #[serde(flatten)]
    advice: Advice,
}

/// Percentiles in microseconds. Null if there are too few samples.
#[derive(Serialize)]
struct Latency {
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    p99_9: Option<f64>,
    max: Option<f64>,
    /// Of the answered exchanges.
    mean: Option<f64>,
    /// Those of the fields above that are lower bounds, because exchanges were not answered.
    lower_bounds: Vec<&'static str>,
}

/// Handshakes by kind, and how long it took from the request for a connection to its readiness.
#[derive(Serialize)]
struct Handshakes {
    full: u64,
    retried: u64,
    resumed: u64,
    /// Those in which a session was offered.
    offered: u64,
    opening_us: Option<Latency>,
}

impl Form<load::Handshakes> for Handshakes {
    fn of(found: &load::Handshakes) -> Self {
        let [full, retried, resumed] = Kind::ALL.map(|kind| found.of(kind));
        Self { full, retried, resumed, offered: found.offered, opening_us: Form::of(&found.times) }
    }
}

#[derive(Serialize)]
struct Generator {
    cpu_s: f64,
    cpu_us_per_op: Option<f64>,
    busiest_core: f64,
    backend: String,
}

/// The fields of [`Latency`] that may be lower bounds.
fn percentiles(times: &Times) -> [(&'static str, Option<Percentile>); 5] {
    [
        ("p50", times.percentile(50.0)),
        ("p90", times.percentile(90.0)),
        ("p99", times.percentile(99.0)),
        ("p99_9", times.percentile(99.9)),
        ("max", times.max()),
    ]
}

pub(super) fn micros(nanos: Percentile) -> f64 {
    nanos.value() as f64 / 1000.0
}

pub(super) fn shown_percentile(percentile: Percentile) -> String {
    let least = if percentile.is_lower_bound() { ">" } else { "" };
    least.to_owned() + &number::micros(micros(percentile))
}

impl Form<Times> for Latency {
    fn of(times: &Times) -> Self {
        let found = percentiles(times);
        let [p50, p90, p99, p99_9, max] = found.map(|(_, percentile)| percentile.map(micros));
        let bounds =
            found.iter().filter(|(_, percentile)| percentile.is_some_and(Percentile::is_lower_bound));
        let answered = times.answered();
        Self {
            p50,
            p90,
            p99,
            p99_9,
            max,
            mean: (!answered.is_empty()).then(|| answered.mean() / 1000.0),
            lower_bounds: bounds.map(|(name, _)| *name).collect(),
        }
    }
}

/// A finished drive: its job, its tally, and the disturbances of the machine.
pub struct Driven<'a> {
    pub job: &'a Job,
    pub tally: &'a Tally,
    pub disturbed: Disturbance,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// The generators, if they are on other machines.
    pub together: Option<&'a Combined>,
}

impl Driven<'_> {
    /// The limits of good answers.
    fn goal(&self) -> Option<&Goal> {
        match &self.job.target.traffic {
            Traffic::Http(http) => http.goal.as_deref(),
            Traffic::Frames(_) => None,
        }
    }

    /// The bodies, if compressed answers were decoded.
    fn decoded(&self) -> Option<Decoded> {
        match &self.job.target.traffic {
            Traffic::Http(http) if http.decode => Some(self.tally.decoded),
            _ => None,
        }
    }
}

/// The evidence for doubts about the result.
fn evidence(driven: &Driven<'_>) -> Vec<Evidence> {
    let Driven { job, tally, disturbed, .. } = driven;
    let mut measured = Measurement::from_tally(tally);
    measured.concurrency = (job.connections * job.pipeline) as u64;
    measured.connections = job.connections as u64;
    (measured.stolen_s, measured.throttles) = (disturbed.stolen_s, disturbed.throttles);
    measured.held_s = disturbed.held_s;
    // Each source has ports of its own, and a Unix socket needs none.
    measured.ports = match job.target.address {
        Address::Unix(_) => 0,
        Address::Tcp(_) => match driven.together {
            Some(together) => together.ports,
            None => systems::machine::ports() * job.sources.len().max(1) as u64,
        },
    };
    measured.files = driven.together.map_or_else(systems::machine::file_limit, |together| together.files);
    let kind = TrialKind {
        pool_cap: None,
        announced_closes: false,
        // The line of the handshakes says how many were resumed.
        sessions: false,
        closed_loop: !job.arrivals.are_open(),
        ramp: match &job.arrivals {
            Arrivals::Open(schedule) => schedule.from != schedule.to,
            // The rate of recorded arrivals is what it was.
            Arrivals::Recorded(_) => true,
            Arrivals::Closed => false,
        },
        short_exchanges: matches!(job.target.traffic, Traffic::Http(_)) && job.ending == Ending::Cut,
    };
    doubts(&measured, &kind)
}

/// The result for programs.
pub fn json(driven: &Driven<'_>) -> Json {
    let tally = driven.tally;
    Json {
        address: driven.job.target.address.to_string(),
        counted: Counted::of(tally),
        throughput_per_s: tally.throughput(),
        connections_made: tally.total.connections,
        oldest_us: tally.oldest().map(|oldest| oldest as f64 / 1000.0),
        interrupted: driven.interrupted,
        decoded: driven.decoded(),
        requests: by_name::json(&driven.job.target, tally),
        generator: Generator {
            cpu_s: tally.cpu.as_secs_f64(),
            cpu_us_per_op: (tally.units > 0).then(|| tally.cpu.as_secs_f64() * 1e6 / tally.units as f64),
            busiest_core: tally.busiest,
            backend: tally.backend.to_string(),
        },
        generators: generators::Json::all(driven.together),
        windows: generators::Windows::of(driven.together),
        warnings: evidence(driven)
            .iter()
            .map(|seen| Warning { code: seen.doubt(), advice: advice_on_trial(seen) })
            .collect(),
    }
}

/// How many connections and threads there were, and how many connections were made if some were lost or carried one request.
fn size(driven: &Driven<'_>) -> String {
    let threads = driven.together.map_or_else(|| driven.job.workers(), |together| together.threads);
    let (kept, made) = (driven.job.connections as u64, driven.tally.total.connections);
    let made = if made == kept { String::new() } else { format!(" ({made} made)") };
    format!("{}{made}, {}", number::several(kept, "connection"), number::several(threads as u64, "thread"))
}

/// The result for people.
pub fn text(driven: &Driven<'_>, target: &str) -> String {
    let Driven { job, tally, .. } = driven;
    let mut out = String::new();
    let unit = match job.target.traffic {
        Traffic::Frames(_) => "frames",
        Traffic::Http(_) => "requests",
    };
    let seconds = tally.elapsed.as_secs_f64();
    let _ = writeln!(
        out,
        "{target}: {}, {} over {}{}",
        size(driven),
        number::seconds(seconds),
        tally.backend,
        if driven.interrupted { " (interrupted)" } else { "" }
    );
    let per_second = |bytes: u64| number::bytes_per_second(bytes as f64 / seconds.max(f64::MIN_POSITIVE));
    let _ = writeln!(
        out,
        "  {} ({unit}), {} verified; {} sent, {} received",
        number::per_second(tally.throughput()),
        tally.units,
        per_second(tally.bytes_sent),
        per_second(tally.bytes_received),
    );
    let open = job.arrivals.are_open();
    if unit == "requests" {
        times(&mut out, tally, open);
        missing_percentile(&mut out, tally.response.len());
    }
    if open {
        let _ = writeln!(
            out,
            "  offered {}; {} late (over {} ms), {} dropped",
            offered(job, tally),
            tally.late,
            Tally::LATE.as_millis(),
            tally.dropped
        );
    }
    streams(&mut out, tally, seconds);
    goodput(&mut out, driven);
    handshakes(&mut out, tally);
    multiplexed(&mut out, tally);
    if let Some(decoded) = driven.decoded() {
        bodies(&mut out, decoded);
    }
    counts(&mut out, tally, open);
    by_name::text(&mut out, &job.target, tally);
    let cpu_s = tally.cpu.as_secs_f64();
    let per_op = match tally.units {
        0 => String::new(),
        units => format!(", {} per operation", number::seconds(cpu_s / units as f64)),
    };
    let (cpu, busiest) = (number::seconds(cpu_s), number::percent(tally.busiest));
    let _ = writeln!(out, "  generator: {cpu} of CPU{per_op}, busiest core {busiest}");
    generators::text(&mut out, driven.together);
    for Advice { message, remedy } in evidence(driven).iter().map(advice_on_trial) {
        let _ = writeln!(out, "  warning: {message}. Remedy: {remedy}.");
    }
    out
}

/// What an open loop offers.
fn offered(job: &Job, tally: &Tally) -> String {
    match &job.arrivals {
        Arrivals::Open(schedule) if schedule.from == schedule.to => format!("{} per second", schedule.from),
        Arrivals::Open(schedule) => format!("{} to {} per second", schedule.from, schedule.to),
        Arrivals::Recorded(recording) => {
            let arrivals = number::several(tally.arrivals, "arrival");
            format!("{arrivals} at {} times the recorded speed", recording.speed())
        }
        Arrivals::Closed => String::new(),
    }
}

/// The usual width of the names of times.
const WIDTH: usize = 13;

fn latency(out: &mut String, (name, width): (&str, usize), times: &Times) {
    let shown = percentiles(times).map(|(name, percentile)| {
        let value = percentile.map_or("-".to_owned(), shown_percentile);
        format!("{} {value}", name.replace('_', "."))
    });
    let _ = writeln!(out, "  {name:<width$} {}", shown.join("  "));
}

/// Says why the first of the missing percentiles is missing.
fn missing_percentile(out: &mut String, answers: u64) {
    let too_few =
        |p: f64| stats::samples_needed(p).filter(|needed| answers < *needed).map(|needed| (p, needed));
    if let Some((p, needed)) = [50.0, 90.0, 99.0, 99.9].into_iter().find_map(too_few) {
        let _ = writeln!(out, "  {:<13} p{p} needs {needed} answers, and there were {answers}", "-");
    }
}

/// Prints all times.
fn times(out: &mut String, tally: &Tally, open: bool) {
    let of_loop = tally.times().filter(|(_, loops, _)| loops.has(open));
    let named = of_loop.map(|(name, _, times)| (name.trim_end_matches("_us").replace('_', " "), times));
    let named: Vec<(String, &Times)> = named.collect();
    let width = named.iter().map(|(name, _)| name.len()).fold(WIDTH, usize::max);
    for (name, times) in named {
        latency(out, (&name, width), times);
    }
}

/// Prints how many answers met the limits of good ones.
fn goodput(out: &mut String, driven: &Driven<'_>) {
    let tally = driven.tally;
    let (Some(good), Some(goal)) = (tally.good, driven.goal()) else { return };
    let ended = tally.successes + tally.failures() + tally.dropped;
    let share = number::percent(good as f64 / ended.max(1) as f64);
    let rate = number::per_second(good as f64 / tally.elapsed.as_secs_f64().max(f64::MIN_POSITIVE));
    let _ = writeln!(out, "  goodput {rate}: {good} of {ended} ({share}) met {goal}");
}

/// Prints how many answers were streams, and how their events came.
fn streams(out: &mut String, tally: &Tally, seconds: f64) {
    if tally.streams + tally.cut_streams + tally.events == 0 {
        return;
    }
    let cut = match tally.cut_streams {
        0 => String::new(),
        cut => format!(", {cut} cut by the end of the window"),
    };
    let rate = number::per_second(tally.events as f64 / seconds.max(f64::MIN_POSITIVE));
    let reads = match tally.event_reads {
        0 => String::new(),
        reads => format!(", {:.2} in a read", tally.events as f64 / reads as f64),
    };
    let tokens = match tally.tokens {
        0 => String::new(),
        tokens => format!(", {} tokens", tokens),
    };
    let _ = writeln!(
        out,
        "  streams: {} whole{cut}; {} events ({rate}){reads}{tokens}",
        tally.streams, tally.events
    );
}

/// Prints the handshakes by kind, and how long connections took to open.
fn handshakes(out: &mut String, tally: &Tally) {
    let found = &tally.handshakes;
    let Some(times) = &found.times else { return };
    latency(out, ("opening", WIDTH), times);
    let kinds = Kind::ALL.iter().filter(|kind| found.of(**kind) > 0);
    let kinds: Vec<String> = kinds.map(|kind| format!("{} {}", found.of(*kind), kind.name())).collect();
    let refused = found.offered.saturating_sub(found.of(Kind::Resumed));
    let sessions = match found.offered {
        0 => "no session was offered".to_owned(),
        offered => format!(
            "{} of {offered} offered sessions refused",
            number::percent(refused as f64 / offered as f64)
        ),
    };
    let _ = writeln!(out, "  handshakes: {}; {sessions}", kinds.join(", "));
}

/// Prints what connections of HTTP/2 carried at once.
fn multiplexed(out: &mut String, tally: &Tally) {
    let Some(found) = &tally.multiplexed else { return };
    let streams = match found.allowed {
        Some(allowed) => {
            format!("asked for {}, the peer allows {allowed}", number::several(found.asked, "stream"))
        }
        None => format!("{} of {} at once", found.reached, number::several(found.asked, "stream")),
    };
    let _ = write!(out, "  HTTP/2: {streams}");
    let counts = [(found.renewed, "renewed connection"), (found.cancelled, "cancelled request")];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        let _ = write!(out, ", {}", number::several(count, what));
    }
    let _ = writeln!(out);
}

/// Prints the sizes of bodies on the wire and decoded.
fn bodies(out: &mut String, found: Decoded) {
    let share = found.compressed as f64 / (found.answers.max(1) as f64);
    let (wire, decoded) = (number::bytes(found.sent_bytes as f64), number::bytes(found.decoded_bytes as f64));
    let _ = writeln!(
        out,
        "  bodies: {wire} on the wire, {decoded} decoded; {} of the answers compressed",
        number::percent(share)
    );
}

/// Prints the outcome of the exchanges, with failures by class.
fn counts(out: &mut String, tally: &Tally, open_loop: bool) {
    for (class, count) in tally.errors_by_name() {
        let example = load::ErrorClass::from_name(&class).and_then(|class| tally.first_errors.get(&class));
        let _ = writeln!(
            out,
            "  {count} errors: {class}, first {}",
            example.map_or_else(String::new, ToString::to_string)
        );
    }
    let oldest = tally.oldest().map_or_else(String::new, |oldest| {
        format!(", the oldest for {}", number::micros(oldest as f64 / 1e3))
    });
    // What an open loop does not see in the window, it awaits after it.
    let rest = if open_loop { "after the window" } else { "in flight" };
    let _ = writeln!(
        out,
        "  attempts {} = {} verified + {} errors + {} {rest}{oldest}",
        tally.attempts,
        tally.successes,
        tally.failures(),
        tally.in_flight
    );
}
