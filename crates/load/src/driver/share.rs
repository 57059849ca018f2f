//! One thread's share of a job.

use std::time::Duration;

use super::Ending;
use crate::pacer::{ArrivalSchedule, Arrivals, Pacer, Stop};

/// The part of a job that one thread does.
pub(crate) struct Share {
    /// The thread's number.
    pub number: usize,
    pub reports: Option<Duration>,
    pub connections: usize,
    pub callers: usize,
    pub pipeline: usize,
    pub pool: bool,
    pub arrivals: Arrivals,
    /// By which fraction of a gap this thread's schedule is shifted.
    pub offset: f64,
    pub warmup: Duration,
    pub stop: Stop,
    pub ending: Ending,
    pub timeout: Duration,
    pub idle_timeout: Option<Duration>,
    pub drain: Duration,
}

impl Share {
    /// The pacer of the warm-up, which runs at the window's initial rate.
    pub(super) fn warmup_pacer(&self) -> Pacer {
        let arrivals = match &self.arrivals {
            Arrivals::Open(schedule) => Arrivals::Open(ArrivalSchedule { to: schedule.from, ..*schedule }),
            other => other.clone(),
        };
        Pacer::new(arrivals, Stop::After(self.warmup), self.offset)
    }
}
