//! Tells a connection that takes another's place from one more. Pure: it is told the times.
//!
//! A client that gives a connection up (a timeout) makes another at once, and the server may hear of the new one before
//! the end of the old: for some microseconds both are open, though the client kept to its number.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The end of a connection whose place was taken is heard of within this, also where the client has to wait for its core.
const MOMENT: Duration = Duration::from_millis(25);

/// Connections that have just raised the highest number of connections.
#[derive(Debug, Default)]
pub(crate) struct Raised(VecDeque<Instant>);

impl Raised {
    /// There were never so many.
    pub(crate) fn note(&mut self, now: Instant) {
        self.forget(now);
        self.0.push_back(now);
    }

    /// A peer ended a connection that it had begun at `since`; whether one of those had taken its place. What began only just
    /// now was nobody's predecessor: many short connections at once are many.
    pub(crate) fn took_the_place(&mut self, since: Instant, now: Instant) -> bool {
        self.forget(now);
        now.duration_since(since) > MOMENT && self.0.pop_back().is_some()
    }

    fn forget(&mut self, now: Instant) {
        while self.0.front().is_some_and(|at| now.duration_since(*at) > MOMENT) {
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
        let mut raised = Raised::default();
        raised.note(at(100));
        raised.note(at(101));
        // As young as the others: all of them were there at once.
        assert!(!raised.took_the_place(at(80), at(102)));
        assert!(raised.took_the_place(at(0), at(102)));
        assert!(raised.took_the_place(at(0), at(103)));
        assert!(!raised.took_the_place(at(0), at(103)), "each takes one place");
        raised.note(at(200));
        assert!(!raised.took_the_place(at(0), at(226)), "too late: both were there");
    }
}
