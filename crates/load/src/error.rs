//! What can keep a drive from beginning or ending at all. Failing exchanges are counted instead: see [`crate::fault`].

use std::net::SocketAddr;

/// Why nothing could be driven.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The target makes no sense.
    #[error("target {target:?}: {why}")]
    Target {
        /// As it was written.
        target: String,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// The host has no address.
    #[error("host {host:?}: {why}")]
    Resolve {
        /// As it was written.
        host: String,
        /// What the resolver said.
        why: String,
    },
    /// Not this machine.
    #[error("{address} is not this machine; load goes to loopback unless --allow-remote is given")]
    Remote {
        /// The address that was found.
        address: SocketAddr,
    },
    /// The request cannot be written.
    #[error(transparent)]
    Request(#[from] wire::http::EncodeError),
    /// The frames cannot be written.
    #[error(transparent)]
    Frame(#[from] wire::frames::FrameError),
    /// More connections than files.
    #[error(
        "{connections} connections need {needed} open files, and the limit is {limit}; \
         raise it with `ulimit -n {needed}` (as root: `ulimit -Hn {needed}` first), or ask for fewer"
    )]
    Files {
        /// Asked for.
        connections: usize,
        /// Files that takes.
        needed: u64,
        /// The limit in force.
        limit: u64,
    },
    /// The kernel's interface failed.
    #[error("the I/O loop failed: {0}")]
    Io(#[from] std::io::Error),
    /// A thread of the generator panicked, which is a defect of Narrows.
    #[error("a generator thread ended abnormally")]
    Thread,
}

impl LoadError {
    /// Whether the target or what is to be sent makes no sense, whatever the machine and the network do.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Target { .. } | Self::Request(_) | Self::Frame(_))
    }
}
