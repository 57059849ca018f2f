//! Where the generators of one job meet before their windows open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use reactor::Time;

/// An instant at which the measured window opens, instead of when the warm-up has taken its time. It may become known while
/// the warm-up goes on, and until then the warm-up continues. Clones share it.
///
/// Without a warm-up, kept connections are made and nothing is sent before that instant.
#[derive(Debug, Clone)]
pub struct Rendezvous(Arc<State>);

#[derive(Debug)]
struct State {
    /// Nanoseconds of the monotonic clock.
    at: AtomicU64,
    ready: AtomicUsize,
}

impl Default for Rendezvous {
    fn default() -> Self {
        Self(Arc::new(State { at: AtomicU64::new(Time::NEVER.nanos()), ready: AtomicUsize::new(0) }))
    }
}

impl Rendezvous {
    /// Names the instant.
    pub fn open_at(&self, time: Time) {
        self.0.at.store(time.nanos(), Ordering::Release);
    }

    /// How many threads have warmed up and have their connections, cannot get a single one, or have waited for them as long as
    /// the timeout.
    pub fn ready(&self) -> usize {
        self.0.ready.load(Ordering::Acquire)
    }

    /// For a generator that is another program: counts so many threads as ready, and waits for the instant, or until `over`.
    pub fn meet(&self, threads: usize, over: impl Fn() -> bool) {
        const GLANCE: Duration = Duration::from_millis(1);
        self.0.ready.fetch_add(threads, Ordering::AcqRel);
        while Time::now() < self.time() && !over() {
            std::thread::sleep(GLANCE);
        }
    }

    /// The instant; [`Time::NEVER`] while it is not known.
    pub(crate) fn time(&self) -> Time {
        Time::from_nanos(self.0.at.load(Ordering::Acquire))
    }

    /// Counts a thread that is ready.
    pub(crate) fn arrive(&self) {
        self.0.ready.fetch_add(1, Ordering::AcqRel);
    }
}
