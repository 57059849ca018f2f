//! The handshakes of a trial.

use load::rows::Form;
use serde::{Deserialize, Serialize};

use crate::Latency;
use crate::check::table;

table! {
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
}

impl Form<load::Handshakes> for Handshakes {
    fn of(found: &load::Handshakes) -> Self {
        let [full, retried, resumed] = found.kinds;
        Self { full, retried, resumed, offered: found.offered, opening_us: Form::of(&found.times) }
    }
}
