//! A thread's share of a job.

use std::time::Duration;

use super::Ending;
use crate::pacer::{Arrivals, Pacer, Schedule, Stop};

/// What one thread does.
pub(crate) struct Share {
    /// Of the thread.
    pub number: usize,
    pub reports: Option<Duration>,
    pub connections: usize,
    pub callers: usize,
    pub pipeline: usize,
    pub pool: bool,
    pub arrivals: Arrivals,
    /// Which part of a gap this thread's schedule is shifted by.
    pub offset: f64,
    pub warmup: Duration,
    pub stop: Stop,
    pub ending: Ending,
    pub timeout: Duration,
    pub drain: Duration,
}

impl Share {
    /// The warm-up runs at the rate that the window begins with.
    pub(super) fn warmup_pacer(&self) -> Pacer {
        let arrivals = match self.arrivals {
            Arrivals::Closed => Arrivals::Closed,
            Arrivals::Open(schedule) => Arrivals::Open(Schedule { to: schedule.from, ..schedule }),
        };
        Pacer::new(arrivals, Stop::After(self.warmup), self.offset)
    }

    pub(super) fn stop_reached(&self, elapsed: Duration) -> bool {
        matches!(self.stop, Stop::After(length) if elapsed >= length)
    }
}
