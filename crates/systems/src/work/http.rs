//! The version of HTTP between the generator and a server. Pure.

use super::about::Purpose::Behaviour;
use super::about::{K, KnobReader, M, WorkloadKnob, choice, number};
use crate::knob::{Kind, Point};
use crate::workload::Workload;

/// The knob that says the version.
pub(crate) const KNOB: &str = "http";
/// The knob of the streams that are open on a connection. It means nothing with HTTP/1.1.
const STREAMS: &str = "streams";
/// The knobs of what the generator allows a server of HTTP/2. They mean nothing with HTTP/1.1 either.
const WINDOW: &str = "window";
const TABLE: &str = "hpack_table";
pub(crate) const HTTP1: &str = "1.1";
/// The value that says HTTP/2.
pub const HTTP2: &str = "2";
/// The most streams of a connection.
const MOST: i64 = 10_000;
/// What the generator allows a server unless a knob says otherwise.
const USUAL_WINDOW: i64 = (1 << 30) - 1;
const USUAL_TABLE: i64 = 4096;
/// The largest window that HTTP/2 has, and the largest table that the generator keeps.
const LARGEST_WINDOW: i64 = (1 << 31) - 1;
const LARGEST_TABLE: i64 = 64 * K;

/// Whether HTTP/2 is spoken.
pub(super) fn is_http2(knobs: &KnobReader) -> Result<bool, String> {
    knobs.is(KNOB, HTTP2)
}

/// The streams that are open on a connection of HTTP/2. `None` with HTTP/1.1.
pub(super) fn streams(knobs: &KnobReader) -> Result<Option<u64>, String> {
    if is_http2(knobs)? { knobs.number(STREAMS).map(Some) } else { Ok(None) }
}

/// What a knob of HTTP/2 says if it is not its default. `None` with HTTP/1.1.
fn changed(knobs: &KnobReader, name: &str, usual: i64) -> Result<Option<u64>, String> {
    let value = if is_http2(knobs)? { Some(knobs.number(name)?) } else { None };
    Ok(value.filter(|value| i64::try_from(*value) != Ok(usual)))
}

/// The window of each stream, if it is not the usual one.
pub(super) fn window(knobs: &KnobReader) -> Result<Option<u64>, String> {
    changed(knobs, WINDOW, USUAL_WINDOW)
}

/// The size of the table of HPACK, if it is not the usual one.
pub(super) fn table(knobs: &KnobReader) -> Result<Option<u64>, String> {
    changed(knobs, TABLE, USUAL_TABLE)
}

/// Whether a knob of HTTP/2 means nothing at this point, because HTTP/1.1 is spoken.
pub fn is_idle(knob: &str, point: &Point) -> bool {
    [STREAMS, WINDOW, TABLE].contains(&knob) && point.get(KNOB).is_none_or(|value| value.to_string() == HTTP1)
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

/// Defines the knobs of what the generator allows a server.
pub(super) fn of_allowance(workload: Workload) -> [WorkloadKnob; 2] {
    let about = "with HTTP/2, the bytes that a server may send on a stream before it is allowed more";
    let windows = [USUAL_WINDOW, 64 * K - 1, M, 16 * M];
    let window = number(workload, Kind::Size, 1..=LARGEST_WINDOW, &windows, about);
    let about = "with HTTP/2, the size of the table of HPACK that a server may use";
    let table = number(workload, Kind::Size, 0..=LARGEST_TABLE, &[USUAL_TABLE, 0, 64 * K], about);
    [(WINDOW, Behaviour, window), (TABLE, Behaviour, table)]
}
