//! What bounds the counts of right answers and of what they brought: units, bytes of bodies, streams and their events.

use super::*;
use crate::tally::Decoded;

/// The bytes of a TLS connection that may have arrived before the window, in a record that ends in it.
const RECORD: u64 = 1 << 20;

/// The bytes of the body of each request, and those that each right answer must have at least.
pub(super) fn bodies(scope: &Scope<'_>) -> (u64, u64) {
    let Some(http) = scope.http().filter(|http| http.list.is_none()) else { return (0, 0) };
    (http.body.len().unwrap_or(0), http.expect.body_length().unwrap_or(0))
}

/// The bytes that each success counts as its payload, if all have equally many.
fn payload_of_each(http: &Http) -> Option<u64> {
    let sent = http.body.len().filter(|length| *length > 0 || !http.http2);
    sent.or(http.expect.body_length()).filter(|_| http.list.is_none())
}

/// Bodies of answers of which the beginnings may have arrived before the window.
fn arrived(scope: &Scope<'_>, http: &Http) -> u64 {
    scope.tally.bytes_received.saturating_add(scope.edge().saturating_mul(http.max_answer))
}

pub(crate) fn units(value: &u64, scope: &Scope<'_>) -> Fit {
    let Tally { successes, bytes_sent, .. } = scope.tally;
    let Traffic::Frames(frames) = &scope.job.target.traffic else {
        return exactly(*value, *successes, "`successes`, each of which is one");
    };
    if frames.count.is_none() {
        at_least(*value, *successes, "`successes`, each of which has a frame")?;
    }
    let each = frames.size.saturating_add(frames.prefix.len() as u64).max(1);
    at_most(*value, bytes_sent / each, "`bytes_sent` and the size of a frame")
}

pub(crate) fn payload(value: &u64, scope: &Scope<'_>) -> Fit {
    let Tally { units, successes, .. } = scope.tally;
    let http = match &scope.job.target.traffic {
        Traffic::Http(http) => http,
        Traffic::Frames(frames) => {
            return exactly(*value, units.saturating_mul(frames.size), "`units` and the size of a frame");
        }
    };
    if let Some(each) = payload_of_each(http) {
        return exactly(*value, successes.saturating_mul(each), "`successes` and the bodies of the job");
    }
    if http.list.is_some() {
        return Ok(());
    }
    at_most(*value, successes.saturating_mul(http.max_answer), "`successes` and the longest answer")?;
    at_most(*value, arrived(scope, http), "`bytes_received`")
}

pub(crate) fn streams(value: &u64, scope: &Scope<'_>) -> Fit {
    let Tally { successes, events, in_flight, .. } = scope.tally;
    at_most(*value, *successes, "`successes`")?;
    // Each event belongs to a stream. That stream ended rightly, failed, is open, or began anew on another connection.
    let others = scope.failures.saturating_add(*in_flight).saturating_add(scope.renewed());
    let least = u64::from(*events > 0 && others == 0);
    at_least(*value, least, "`events` without errors or exchanges in flight")
}

pub(crate) fn cut_streams(value: &u64, scope: &Scope<'_>) -> Fit {
    let cut = !scope.open && !scope.finishes;
    at_most(*value, if cut { scope.tally.in_flight } else { 0 }, "`in_flight` where the window is cut")
}

pub(crate) fn events(value: &u64, scope: &Scope<'_>) -> Fit {
    let Tally { event_reads, bytes_received, attempts, .. } = scope.tally;
    at_least(*value, *event_reads, "`event_reads`")?;
    if *event_reads == 0 {
        return exactly(*value, 0, "`event_reads`");
    }
    // Each has a byte, or is the rest of a stream that ends with its connection.
    let before = if scope.finishes { 0 } else { (scope.job.connections as u64).saturating_mul(RECORD) };
    let most = bytes_received.saturating_add(*attempts).saturating_add(before);
    at_most(*value, most, "`bytes_received`")
}

pub(crate) fn event_reads(value: &u64, scope: &Scope<'_>) -> Fit {
    at_most(*value, scope.tally.events, "`events`")?;
    at_most(*value, scope.exchanges(), "the length of the drive")
}

pub(crate) fn good(value: &Option<u64>, scope: &Scope<'_>) -> Fit {
    let asked = scope.http().is_some_and(|http| http.goal.is_some());
    // A drive that did not begin has none.
    present(value.is_some(), asked && !scope.tally.backend.is_empty(), "the job")?;
    at_most(value.unwrap_or(0), scope.tally.successes, "`successes`")
}

pub(crate) fn tokens(value: &u64, scope: &Scope<'_>) -> Fit {
    at_most(*value, scope.tally.streams.saturating_mul(u64::from(u32::MAX)), "`streams`")
}

/// Without a fixed length all of them are in one tenth.
pub(crate) fn tenths(value: &[u64; 10], scope: &Scope<'_>) -> Fit {
    part("a sum", exactly(sum(value), scope.tally.successes, "`successes`"))
}

pub(crate) fn decoded(value: &Decoded, scope: &Scope<'_>) -> Fit {
    let Decoded { answers, compressed, sent_bytes, decoded_bytes } = value;
    let http = match scope.http() {
        Some(http) => http,
        None => return part("answers", exactly(*answers, 0, "the frames of the job")),
    };
    // A body may be decoded whose answer fails then.
    let ended = scope.failures.saturating_add(scope.tally.successes);
    part("answers", at_most(*answers, ended, "`successes` and `errors`"))?;
    let least = if http.decode { scope.tally.successes } else { 0 };
    part("answers", at_least(*answers, least, "`successes`, which are decoded"))?;
    let most = if http.decode { *answers } else { 0 };
    part("compressed", at_most(*compressed, most, "the decoded answers of the job"))?;
    part("wire_bytes", at_most(*sent_bytes, arrived(scope, http), "`bytes_received`"))?;
    let longest = answers.saturating_mul(http.max_answer);
    part("wire_bytes", at_most(*sent_bytes, longest, "the longest answer of the job"))?;
    part("decoded_bytes", at_most(*decoded_bytes, longest, "the longest answer of the job"))?;
    if *compressed > 0 {
        return Ok(());
    }
    part("decoded_bytes", exactly(*decoded_bytes, *sent_bytes, "`wire_bytes` without compression"))
}
