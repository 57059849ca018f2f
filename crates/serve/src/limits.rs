//! What one peer may take: time, memory and connections.

use std::time::Duration;

/// How much a peer may send unread, and how long a connection may stand still. What goes beyond is refused or closed, and the
/// other connections see nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most connections at once. Those that come then are closed unanswered.
    pub connections: u64,
    /// The longest body of a request in bytes. A longer one is refused with 413.
    pub body: u64,
    /// The longest time without a complete request, frame or answer. An answer with a longer
    /// silence is refused.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 65_536, body: 16 << 30, patience: Duration::from_secs(300) }
    }
}

/// The longest head of a request in bytes, far more than any client of a laboratory sends.
pub(crate) const HEAD: usize = 16 * 1024;
/// What a connection may have waiting to be sent before the server stops reading from it, in bytes.
pub(crate) const UNSENT: usize = 64 * 1024;
/// What all connections of a thread may hold together in bytes before `/echo` refuses more.
pub(crate) const HELD: usize = 256 * 1024 * 1024;
