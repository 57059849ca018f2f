//! Distinguishes a connection that replaces another from an additional one. Pure: the caller passes the times.
//!
//! A client that gives up a connection (after a timeout) opens another at once. The server may see the new connection
//! before the end of the old one. For some microseconds both are open, although the client kept to its limit.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The server sees the end of a replaced connection within this time, even if the client has to wait for its core.
const MOMENT: Duration = Duration::from_millis(25);

/// When connections raised the peak, as far back as [`MOMENT`].
#[derive(Debug, Default)]
pub(crate) struct RecentPeaks(VecDeque<Instant>);

impl RecentPeaks {
    /// Records that a connection raised the peak.
    pub(crate) fn note(&mut self, now: Instant) {
        self.forget(now);
        self.0.push_back(now);
    }

    /// Whether one of the recent connections replaced this one, which its peer opened at `since` and has now ended. A
    /// connection that is itself recent was not replaced: many short connections at once do count.
    pub(crate) fn was_replaced(&mut self, since: Instant, now: Instant) -> bool {
        self.forget(now);
        now.duration_since(since) > MOMENT && self.0.pop_back().is_some()
    }

    fn forget(&mut self, now: Instant) {
        while self.0.front().is_some_and(|raised| now.duration_since(*raised) > MOMENT) {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_old_connection_a_moment_after_a_new_one_is_a_replacement() {
        let begin = Instant::now();
        let at = |ms: u64| begin + Duration::from_millis(ms);
        let mut peaks = RecentPeaks::default();
        peaks.note(at(100));
        peaks.note(at(101));
        // It is as recent as the others: all of them were open at once.
        assert!(!peaks.was_replaced(at(80), at(102)));
        assert!(peaks.was_replaced(at(0), at(102)));
        assert!(peaks.was_replaced(at(0), at(103)));
        assert!(!peaks.was_replaced(at(0), at(103)), "each replaces only one");
        peaks.note(at(200));
        assert!(!peaks.was_replaced(at(0), at(226)), "too late: both were open");
    }
}
