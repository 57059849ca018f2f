//! The counters of a server, shared by all its threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Shared counters. Each is exact, but a snapshot reads them at slightly different moments.
#[derive(Debug, Default)]
pub struct Counters {
    requests: AtomicU64,
    responses: AtomicU64,
    connections: AtomicU64,
    open: AtomicU64,
    sockets: AtomicU64,
    peak: AtomicU64,
    closes: AtomicU64,
    cpu_ns: AtomicU64,
}

/// The values of the counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterSnapshot {
    /// Requests read completely.
    pub requests: u64,
    /// Answers passed to the kernel completely.
    pub responses: u64,
    /// Connections accepted.
    pub connections: u64,
    /// The most connections open at once. A connection that replaced another, whose end was seen a moment later, does not
    /// count twice.
    pub peak_connections: u64,
    /// Connections that the server closed first, after their maximum number of requests or because a request asked for it.
    pub closes: u64,
    /// CPU time of the serving threads, as of their last turn.
    pub cpu: Duration,
}

impl Counters {
    pub(crate) fn read(&self) -> CounterSnapshot {
        CounterSnapshot {
            requests: self.requests.load(Relaxed),
            responses: self.responses.load(Relaxed),
            connections: self.connections.load(Relaxed),
            peak_connections: self.peak.load(Relaxed),
            closes: self.closes.load(Relaxed),
            cpu: Duration::from_nanos(self.cpu_ns.load(Relaxed)),
        }
    }

    /// Counts a new connection. Returns whether it raised the peak.
    pub(crate) fn opened(&self) -> bool {
        self.connections.fetch_add(1, Relaxed);
        let open = self.open.fetch_add(1, Relaxed) + 1;
        self.peak.fetch_max(open, Relaxed) < open
    }
    /// Counts a socket that is taken, unless so many are. Several threads may ask at once.
    pub(crate) fn seated(&self, most: u64) -> bool {
        let room = self.sockets.fetch_add(1, Relaxed) < most;
        if !room {
            self.left();
        }
        room
    }

    /// Counts a socket that is given back.
    pub(crate) fn left(&self) {
        self.sockets.fetch_sub(1, Relaxed);
    }

    /// Lowers the peak by one: the connection that raised it replaced another.
    pub(crate) fn replaced(&self) {
        self.peak.fetch_sub(1, Relaxed);
    }

    pub(crate) fn closed(&self) {
        self.open.fetch_sub(1, Relaxed);
    }

    /// Counts a connection that the server closes first.
    pub(crate) fn hung_up(&self) {
        self.closes.fetch_add(1, Relaxed);
    }

    pub(crate) fn requested(&self, count: u64) {
        self.requests.fetch_add(count, Relaxed);
    }

    pub(crate) fn responded(&self, count: u64) {
        self.responses.fetch_add(count, Relaxed);
    }

    pub(crate) fn worked(&self, cpu: Duration) {
        self.cpu_ns.fetch_add(cpu.as_nanos() as u64, Relaxed);
    }
}
