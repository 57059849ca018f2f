//! What `narrows load --gen` says of each generator, and of their windows.

use std::fmt::Write;

use report::number;
use serde::Serialize;

use crate::fleet;
use crate::fleet::generators::{Combined, Generator};

/// The first option that makes no sense with generators on other machines.
pub fn contradiction(args: &super::Args) -> Option<&'static str> {
    if args.generators.is_empty() {
        return None;
    }
    args.requests.any().then_some("--requests cannot be used with --gen yet: the generators send one request")
}

/// A generator on another machine.
#[derive(Serialize)]
pub struct Json {
    machine: String,
    completed: u64,
    throughput_per_s: f64,
    cpu_s: f64,
    busiest_core: f64,
    backend: String,
    /// How far its clock is ahead of the clock here.
    clock_ahead_us: f64,
    /// The true value differs from that by this at most.
    clock_error_us: f64,
    round_trip_us: f64,
}

impl Json {
    /// All generators; none if this machine is the generator.
    pub fn all(together: Option<&Combined>) -> Vec<Self> {
        together.iter().flat_map(|together| &together.generators).map(Self::of).collect()
    }

    fn of(generator: &Generator) -> Self {
        let Generator { machine, tally, clock, .. } = generator;
        Self {
            machine: machine.to_string(),
            completed: tally.successes,
            throughput_per_s: tally.throughput(),
            cpu_s: tally.cpu.as_secs_f64(),
            busiest_core: tally.busiest,
            backend: tally.backend.to_string(),
            clock_ahead_us: clock.ahead_ns as f64 / 1e3,
            clock_error_us: clock.error_ns as f64 / 1e3,
            round_trip_us: clock.round_trip_ns as f64 / 1e3,
        }
    }
}

/// How far apart the windows of several generators were.
#[derive(Serialize)]
pub struct Windows {
    /// From the first opening to the last.
    opened_within_us: f64,
    /// The same of their ends. Null if windows end when their work is done.
    closed_within_us: Option<f64>,
    /// How much two clocks may differ from what is known of them.
    clock_error_us: f64,
    /// The largest of these distances with the error, as a share of the window.
    share: f64,
    /// Whether that is more than 1 %, so that the sums are doubtful.
    doubtful: bool,
}

impl Windows {
    /// `None` if this machine is the generator, or if a window never opened.
    pub fn of(together: Option<&Combined>) -> Option<Self> {
        let skew = together?.skew?;
        let micros = |nanos: u64| nanos as f64 / 1e3;
        Some(Self {
            opened_within_us: micros(skew.opened_ns),
            closed_within_us: skew.closed_ns.map(micros),
            clock_error_us: micros(skew.error_ns),
            share: skew.share,
            doubtful: skew.is_large(),
        })
    }
}

/// Prints a line for each generator, and how far apart their windows were.
pub fn text(out: &mut String, together: Option<&Combined>) {
    let Some(together) = together else { return };
    for Generator { machine, tally, clock, .. } in &together.generators {
        let _ = writeln!(
            out,
            "  {machine}: {}, {} verified; {} of CPU, busiest core {}; clock known to ±{}",
            number::per_second(tally.throughput()),
            tally.units,
            number::seconds(tally.cpu.as_secs_f64()),
            number::percent(tally.busiest),
            fleet::shown_clock(clock),
        );
    }
    let Some(skew) = together.skew else { return };
    let micros = |nanos: u64| number::micros(nanos as f64 / 1e3);
    let closed =
        skew.closed_ns.map_or_else(String::new, |closed| format!(", closed within {}", micros(closed)));
    let _ = writeln!(
        out,
        "  windows: opened within {}{closed} of each other, as far as the clocks are known (±{})",
        micros(skew.opened_ns),
        micros(skew.error_ns)
    );
    if skew.is_large() {
        let _ = writeln!(
            out,
            "  warning: the windows were apart by {} of their length. Remedy: use a longer -d, or machines with less other \
             work.",
            number::percent(skew.share)
        );
    }
}
