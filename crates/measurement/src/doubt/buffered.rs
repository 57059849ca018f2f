//! Streams that were held back.

use super::Evidence;
use crate::Measurement;

/// Every stream had several events, and all of them came in one read. Their gaps cannot be measured, and a mean gap would look
/// best of all. Who sends all events without a pause does the same.
pub(super) fn buffered(m: &Measurement) -> Option<Evidence> {
    let several = m.streams > 0 && m.events >= m.streams.saturating_mul(2);
    (several && m.gap_us.is_none()).then(|| Evidence::OneRead {
        events: m.events,
        reads: m.event_reads,
        streams: m.streams,
        first_us: m.first_event_us.as_ref().map_or(0.0, |first| first.mean),
        whole_us: m.latency().mean,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Latency;

    #[test]
    fn streams_are_held_back_if_none_has_a_second_read() {
        let of = |streams: u64, events: u64, reads: u64, gap_us: Option<Latency>| {
            buffered(&Measurement { streams, events, event_reads: reads, gap_us, ..Measurement::default() })
        };
        let found = of(10, 200, 10, None);
        assert!(
            matches!(found, Some(Evidence::OneRead { events: 200, reads: 10, streams: 10, .. })),
            "{found:?}"
        );
        assert_eq!(of(10, 200, 200, Some(Latency::default())), None);
        assert_eq!(of(10, 10, 10, None), None, "one event each");
        assert_eq!(of(0, 0, 0, None), None);
    }
}
