//! Errors that keep a drive from starting or finishing. Failed exchanges are counted instead: see [`crate::fault`].

use std::net::SocketAddr;

/// Why a drive failed as a whole.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The target is malformed.
    #[error("target {target:?}: {why}")]
    Target {
        /// The target as the user wrote it.
        target: String,
        /// What is wrong, and what is expected.
        why: String,
    },
    /// The host has no address.
    #[error("host {host:?}: {why}")]
    Resolve {
        /// The host as the user wrote it.
        host: String,
        /// What the resolver said.
        why: String,
    },
    /// The target is not on this machine.
    #[error("{address} is not this machine; load goes to loopback unless --allow-remote is given")]
    Remote {
        /// The address that was found.
        address: SocketAddr,
    },
    /// No connection could be made from the beginning. A refusal later is a failed exchange.
    #[error("nothing listens at {address}: {why}")]
    NothingListens {
        /// The address.
        address: reactor::Address,
        /// What the kernel said.
        why: std::io::Error,
    },
    /// The request cannot be written.
    #[error(transparent)]
    Request(#[from] wire::http::EncodeError),
    /// No TLS connection can be made from what was asked for.
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
    /// The frames cannot be written.
    #[error(transparent)]
    Frame(#[from] wire::frames::FrameError),
    /// The connections need more files than the process may open.
    #[error(
        "{connections} connections need {needed} open files, and the limit is {limit}; \
         raise it with `ulimit -n {needed}` (as root: `ulimit -Hn {needed}` first), or ask for fewer"
    )]
    Files {
        /// Connections requested.
        connections: usize,
        /// Files that they need.
        needed: u64,
        /// The current limit.
        limit: u64,
    },
    /// Several generators cannot share so little.
    #[error(
        "{count} {what} cannot be shared by {generators} generators: ask for more, or name fewer generators"
    )]
    Few {
        /// What there is too little of.
        what: &'static str,
        /// How many there are.
        count: u64,
        /// How many generators there are.
        generators: usize,
    },
    /// The reactor failed as a whole.
    #[error("the I/O loop failed: {0}")]
    Io(std::io::Error),
    /// A generator thread panicked, which is a bug in Narrows.
    #[error("a generator thread ended abnormally")]
    Thread,
}

// By hand: a derived `From` makes it the source as well, and then it is printed twice.
impl From<std::io::Error> for LoadError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl LoadError {
    /// Whether the user's input is wrong: the target, or what is to be sent.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Target { .. } | Self::Request(_) | Self::Frame(_) | Self::Tls(_) | Self::Few { .. }
        )
    }
}
