//! The version of HTTP between the generator and a server. Pure.

use super::about::Purpose::Behaviour;
use super::about::{KnobReader, WorkloadKnob, choice, number};
use crate::knob::{Kind, Point};
use crate::workload::Workload;

/// The knob that says the version.
pub(crate) const KNOB: &str = "http";
/// The knob of the streams that are open on a connection. It means nothing with HTTP/1.1.
const STREAMS: &str = "streams";
pub(crate) const HTTP1: &str = "1.1";
/// The value that says HTTP/2.
pub const HTTP2: &str = "2";
/// The most streams of a connection.
const MOST: i64 = 10_000;

/// Whether HTTP/2 is spoken.
pub(super) fn is_http2(knobs: &KnobReader) -> Result<bool, String> {
    knobs.is(KNOB, HTTP2)
}

/// The streams that are open on a connection of HTTP/2. `None` with HTTP/1.1.
pub(super) fn streams(knobs: &KnobReader) -> Result<Option<u64>, String> {
    if is_http2(knobs)? { knobs.number(STREAMS).map(Some) } else { Ok(None) }
}

/// Whether a knob of HTTP/2 means nothing at this point, because HTTP/1.1 is spoken.
pub fn is_idle(knob: &str, point: &Point) -> bool {
    knob == STREAMS && point.get(KNOB).is_none_or(|value| value.to_string() == HTTP1)
}

/// Defines the knob of the version.
pub(super) fn version(workload: Workload) -> WorkloadKnob {
    let about = "the version of HTTP; 2 is spoken without asking first, or as h2 of ALPN in TLS";
    (KNOB, Behaviour, choice(workload, &[HTTP1, HTTP2], about))
}

/// Defines the knob of the streams.
pub(super) fn of_streams(workload: Workload) -> WorkloadKnob {
    let about = "with HTTP/2, requests in flight per connection: its streams";
    (STREAMS, Behaviour, number(workload, Kind::Integer, 1..=MOST, &[1, 10, 100], about))
}
