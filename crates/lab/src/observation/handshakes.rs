//! The handshakes of a trial.

use serde::{Deserialize, Serialize};

use super::Latency;

/// Handshakes of TLS, by kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Handshakes {
    /// With a new key exchange and the server's certificate.
    pub full: u64,
    /// The same, after the server asked for a key of another group.
    pub retried: u64,
    /// The server accepted a session.
    pub resumed: u64,
    /// Handshakes in which the generator offered a session.
    pub offered: u64,
    /// The time from the request for a connection to its readiness.
    pub opening_us: Latency,
}

impl Handshakes {
    /// All handshakes.
    pub fn all(&self) -> u64 {
        self.full + self.retried + self.resumed
    }

    /// Full handshakes, retried ones included. In each of them the server signs.
    pub fn signed(&self) -> u64 {
        self.full + self.retried
    }

    /// Sessions that were offered and not accepted.
    pub fn refused(&self) -> u64 {
        self.offered.saturating_sub(self.resumed)
    }

    /// Converts those of a generator. None if there was none.
    pub(super) fn of(found: &load::Handshakes) -> Option<Self> {
        let opening_us = Latency::from_times(found.times.as_deref()?);
        let [full, retried, resumed] = found.kinds;
        Some(Self { full, retried, resumed, offered: found.offered, opening_us })
    }
}
