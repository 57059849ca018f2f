//! What a server counts over all its threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Shared counters. Each is exact; together they are read at slightly different moments.
#[derive(Debug, Default)]
pub struct Counts {
    requests: AtomicU64,
    responses: AtomicU64,
    connections: AtomicU64,
    open: AtomicU64,
    peak: AtomicU64,
    closes: AtomicU64,
    cpu_ns: AtomicU64,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Requests read in full.
    pub requests: u64,
    /// Answers handed to the kernel in full.
    pub responses: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Most connections open at once, but for those that took the place of others whose end was heard of a moment later.
    pub peak_connections: u64,
    /// Connections that the server was the first to close: they had carried their number of requests, or the request asked for it.
    pub closes: u64,
    /// CPU time of the serving threads, as they last looked.
    pub cpu: Duration,
}

impl Counts {
    pub(crate) fn read(&self) -> Snapshot {
        Snapshot {
            requests: self.requests.load(Relaxed),
            responses: self.responses.load(Relaxed),
            connections: self.connections.load(Relaxed),
            peak_connections: self.peak.load(Relaxed),
            closes: self.closes.load(Relaxed),
            cpu: Duration::from_nanos(self.cpu_ns.load(Relaxed)),
        }
    }

    /// A connection begins; whether there were never so many.
    pub(crate) fn opened(&self) -> bool {
        self.connections.fetch_add(1, Relaxed);
        let open = self.open.fetch_add(1, Relaxed) + 1;
        self.peak.fetch_max(open, Relaxed) < open
    }

    /// The last to begin took another's place: there were not so many.
    pub(crate) fn replaced(&self) {
        self.peak.fetch_sub(1, Relaxed);
    }

    pub(crate) fn closed(&self) {
        self.open.fetch_sub(1, Relaxed);
    }

    /// The server ends a connection that its peer has left open.
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
