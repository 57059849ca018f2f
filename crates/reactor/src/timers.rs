//! A queue of values ordered by deadline. It has no clock: the caller passes the time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// Values with deadlines. Values with equal deadlines come out in the order in which they were added.
#[derive(Debug)]
pub struct Timers<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    next: u64,
}

#[derive(Debug)]
struct Entry<T> {
    due: Instant,
    order: u64,
    value: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl<T> Eq for Entry<T> {}
impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), next: 0 }
    }
}

impl<T> Timers<T> {
    /// Adds a value that is due at `due`.
    pub fn add(&mut self, due: Instant, value: T) {
        let order = self.next;
        self.next += 1;
        self.heap.push(Reverse(Entry { due, order, value }));
    }

    /// Removes and returns the earliest value that is due at `now`, if any.
    pub fn due(&mut self, now: Instant) -> Option<T> {
        if self.heap.peek()?.0.due > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.value)
    }

    /// The time from `now` until a value is due; `None` if the queue is empty.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        self.heap.peek().map(|Reverse(entry)| entry.due.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_returned_by_deadline_and_then_by_age() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timers = Timers::default();
        for (ms, name) in [(20, "late"), (10, "first"), (10, "second")] {
            timers.add(at(ms), name);
        }
        assert_eq!(timers.due(at(9)), None);
        assert_eq!(timers.wait(at(9)), Some(Duration::from_millis(1)));
        assert_eq!(
            [timers.due(at(10)), timers.due(at(10)), timers.due(at(10))],
            [Some("first"), Some("second"), None]
        );
        assert_eq!(timers.due(at(99)), Some("late"));
        assert_eq!(timers.wait(at(99)), None);
    }
}
