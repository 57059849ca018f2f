//! What the kernel did for a system, counted in a short drive of its own.

use serde::{Deserialize, Serialize};
use systems::tcp::TcpEnds;
use systems::work::WorkUnit;

use crate::check::table;

table! {
    /// System calls of a server, and the operations that they served.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct KernelCounts {
        /// Operations that were verified while counting: uploads, frames or answers.
        pub operations: u64,
        /// Bytes that were sent to the server.
        pub bytes: u64,
        /// System calls of all kinds.
        pub system_calls: Option<u64>,
        /// Calls that read, including those that returned no byte.
        pub reads: Option<u64>,
        /// Instructions in user and kernel mode. None if the processor does not count them.
        pub instructions: Option<u64>,
        /// Bytes that the server sent. Runs of earlier versions did not count them.
        #[serde(default)]
        pub bytes_received: u64,
        /// The connections' own account, at both ends. None for a Unix socket, and if the kernel does not list them.
        #[serde(default)]
        pub tcp: Option<TcpEnds>,
        /// System calls that were counted by tracing, in another drive. None if the kernel's counters gave them.
        #[serde(default)]
        pub traced: Option<TracedCounts>,
        /// Whether the server waited for most of its connections with `EPOLLET` (epoll(7)). None if it waited with epoll for none of them.
        #[serde(default)]
        pub edge_triggered: Option<bool>,
    }

    /// System calls that were counted by tracing the server (ptrace), and what it did meanwhile.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct TracedCounts {
        /// Operations that were verified meanwhile.
        pub operations: u64,
        /// Bytes that were sent to the server meanwhile.
        pub bytes: u64,
        /// System calls of all kinds.
        pub system_calls: u64,
        /// Calls that read, including those that returned no byte.
        pub reads: u64,
    }
}

/// System calls of all kinds, however they were counted, and what the server did meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Calls {
    /// How many.
    pub count: u64,
    /// Operations that were verified meanwhile.
    pub operations: u64,
    /// Bytes that were sent to the server meanwhile.
    pub bytes: u64,
    /// Whether they were counted by tracing.
    pub traced: bool,
}

impl Calls {
    /// The calls for each payload byte or operation. None if there was none.
    pub fn per_operation(&self, unit: &WorkUnit) -> Option<f64> {
        let operations = if unit.bytes { self.bytes } else { self.operations };
        (operations > 0).then(|| self.count as f64 / operations as f64)
    }
}

impl KernelCounts {
    /// A count for each payload byte or operation. None if there was none.
    pub fn per_operation(&self, count: u64, unit: &WorkUnit) -> Option<f64> {
        self.kernels(count).per_operation(unit)
    }

    fn kernels(&self, count: u64) -> Calls {
        Calls { count, operations: self.operations, bytes: self.bytes, traced: false }
    }

    /// The system calls: those that the kernel's counters gave, or else those that were traced.
    pub fn calls(&self) -> Option<Calls> {
        let traced = |found: TracedCounts| Calls {
            count: found.system_calls,
            operations: found.operations,
            bytes: found.bytes,
            traced: true,
        };
        self.system_calls.map(|count| self.kernels(count)).or_else(|| self.traced.map(traced))
    }

    /// Bytes that a read returned on average, however reads were counted. None if the bytes are not known, as those of another program.
    pub fn bytes_per_read(&self) -> Option<f64> {
        let counted = self.reads.map(|reads| (self.bytes, reads));
        let (bytes, reads) = counted.or_else(|| self.traced.map(|traced| (traced.bytes, traced.reads)))?;
        (reads > 0 && bytes > 0).then(|| bytes as f64 / reads as f64)
    }
}
