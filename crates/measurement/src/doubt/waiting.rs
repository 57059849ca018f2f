//! Doubts about times that the latencies of a closed loop do not show.

use super::{Evidence, TrialKind};
use crate::Measurement;

/// Requests wait outside the measured latency if the time per cycle exceeds it by this factor.
const QUEUEING: f64 = 1.5;
/// Requests that were open when the window closed are starved if they had waited for this share of it, or longer. A shorter
/// wait may be a disturbance of the machine.
const STARVED: f64 = 0.1;
/// The parts of streams have the kernel's times, so the time until the generator's loop takes the end of one is in no latency. Less
/// than this may be such time, microseconds.
const UNSEEN_US: f64 = 1_000.0;

/// Percentiles contain only answered requests. A server that answers the same callers again and again looks quick, while others wait.
pub(super) fn starved(m: &Measurement, kind: &TrialKind) -> Option<Evidence> {
    let (longest_us, oldest_us) = (m.latency().max, m.in_flight_us.last()?.0 as f64);
    let starved = m.in_flight_us.iter().filter(|(age, _)| *age as f64 > longest_us);
    let count = starved.map(|(_, count)| count).sum();
    let of = m.in_flight_us.iter().map(|(_, count)| count).sum();
    (kind.closed_loop && longest_us > 0.0 && oldest_us > longest_us.max(STARVED * m.elapsed_s * 1e6))
        .then_some(Evidence::Starved { count, of, oldest_us, longest_us })
}

/// Little's law: if N operations are always under way, each takes N / throughput.
pub(super) fn hidden_queueing(m: &Measurement, kind: &TrialKind) -> Option<Evidence> {
    if !kind.closed_loop || !kind.short_exchanges || m.successes == 0 || m.latency().count == 0 {
        return None;
    }
    let ended = m.ended();
    let under_way = m.under_way();
    let cycle_us = under_way as f64 * m.elapsed_s * 1e6 / ended as f64;
    let shown_us = m.latency().mean;
    // Operations that cross the edges of the window make this inexact by one cycle.
    let long_enough = m.elapsed_s * 1e6 > 3.0 * cycle_us;
    let per_s = ended as f64 / m.elapsed_s;
    if m.events > 0 && cycle_us - shown_us < UNSEEN_US {
        return None;
    }
    (long_enough && cycle_us > QUEUEING * shown_us).then_some(Evidence::Queueing {
        under_way,
        per_s,
        cycle_us,
        shown_us,
    })
}
