//! Doubts about trials whose generators were on other machines: whether their windows were one, and whether the network between
//! them and the system was the limit.

use super::{Evidence, TrialKind};
use crate::Measurement;

/// The largest share of the window by which windows may be apart.
pub const SKEW: f64 = 0.01;
/// The network may be the limit if it carried more than this share of what it can.
const FULL: f64 = 0.9;
/// The way is most of the time to an answer above this share of it.
const WAY: f64 = 0.7;
/// TCP waits for what it has lost if more than this share of its segments is sent again. At 1 % and 1 ms, a connection carries at
/// most 18 MB/s (Mathis et al., "The macroscopic behavior of the TCP congestion avoidance algorithm", 1997).
const LOST: f64 = 0.01;
/// Other programs on the machine may have sent fewer segments than this again.
const FEWEST_LOST: u64 = 100;
/// The payload of a full segment on Ethernet, in bytes.
const SEGMENT: u64 = 1448;
/// A generator had another share of the work if it did less than this share of the mean for each connection.
const EQUAL: f64 = 0.7;

/// The evidence if the windows of the generators were apart.
pub(super) fn skewed(m: &Measurement) -> Option<Evidence> {
    let share = m.together.as_ref()?.skew_s? / m.elapsed_s;
    (m.elapsed_s > 0.0 && share > SKEW).then_some(Evidence::Skewed { share })
}

/// The evidence if the network was the limit.
pub(super) fn path_bound(m: &Measurement, kind: &TrialKind) -> Option<Evidence> {
    let path = m.together.as_ref()?.path?;
    if let Some(bytes_per_s) = path.bytes_per_s
        && m.elapsed_s > 0.0
    {
        let share = m.bytes_sent.max(m.bytes_received) as f64 / m.elapsed_s / bytes_per_s;
        if share > FULL {
            return Some(Evidence::LinkFull { share, bytes_per_s });
        }
    }
    let segments = (m.bytes_received / SEGMENT).max(m.successes).max(1);
    let share = m.retransmits as f64 / segments as f64;
    if share > LOST && m.retransmits >= FEWEST_LOST {
        return Some(Evidence::Lossy { share, segments: m.retransmits });
    }
    // Failed attempts have bytes, too.
    let each = |bytes: u64| bytes as f64 / m.attempts.max(1) as f64;
    let (way_us, round_trip_us) =
        (path.way_us(each(m.bytes_sent), each(m.bytes_received)), path.round_trip_us);
    let share = way_us / m.latency().mean;
    let waits = kind.closed_loop && kind.short_exchanges && m.successes > 0;
    (waits && share > WAY).then_some(Evidence::RoundTrips { share, way_us, round_trip_us })
}

/// The evidence if generators did unequal parts in a closed loop.
pub(super) fn unequal(m: &Measurement, kind: &TrialKind) -> Option<Evidence> {
    let generators = &m.together.as_ref()?.generators;
    let each = |successes: u64, connections: u64| successes as f64 / connections.max(1) as f64;
    let connections = generators.iter().map(|generator| generator.connections).sum();
    let mean = each(generators.iter().map(|generator| generator.successes).sum(), connections);
    let slowest = generators
        .iter()
        .min_by(|a, b| each(a.successes, a.connections).total_cmp(&each(b.successes, b.connections)))?;
    let share = each(slowest.successes, slowest.connections) / mean;
    let unequal = generators.len() > 1 && kind.closed_loop && kind.short_exchanges && mean > 0.0;
    (unequal && share < EQUAL).then(|| Evidence::Unequal { machine: slowest.machine.clone(), share })
}
