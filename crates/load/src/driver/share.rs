//! One thread's share of a job.

use std::sync::Arc;
use std::time::Duration;

use reactor::Time;

use super::Ending;
use crate::pacer::{ArrivalSchedule, Arrivals, Pacer, Stop};
use crate::{Goal, Rendezvous};

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
    /// The limits of the times of good answers.
    pub goal: Option<Arc<Goal>>,
    pub drain: Duration,
    /// When the window opens, if other generators wait for it too.
    pub rendezvous: Option<Rendezvous>,
}

impl Share {
    /// The pacer of the warm-up, which runs at the window's initial rate.
    pub(super) fn warmup_pacer(&self) -> Pacer {
        let arrivals = match &self.arrivals {
            Arrivals::Open(schedule) => Arrivals::Open(ArrivalSchedule { to: schedule.from, ..*schedule }),
            other => other.clone(),
        };
        let length = if self.warms_up_until_it_meets() { Duration::MAX } else { self.warmup };
        Pacer::new(arrivals, Stop::After(length), self.offset)
    }

    /// Whether the traffic of the warm-up continues until the instant of the rendezvous.
    pub(super) fn warms_up_until_it_meets(&self) -> bool {
        self.rendezvous.is_some() && self.ending == Ending::Cut
    }

    /// When the window may open; [`Time::NEVER`] while that is not known, and `None` if nothing but the warm-up decides.
    pub(super) fn meets_at(&self) -> Option<Time> {
        self.rendezvous.as_ref().map(Rendezvous::time)
    }
}
