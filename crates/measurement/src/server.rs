//! The counts of Narrows' own server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::check::table;

table! {
    /// What Narrows' own server counted over a client's whole life.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ServerCounts {
        /// Requests that were read completely.
        pub requests: u64,
        /// Answers that were written.
        pub responses: u64,
        /// Connections that were accepted.
        pub connections: u64,
        /// The most connections that were open at once.
        pub peak_connections: u64,
        /// Connections that the server was the first to close.
        pub closes: u64,
        /// Attempts over the client's whole life, as the driver reported them.
        pub client_attempts: u64,
        /// Successes over the client's whole life.
        pub client_successes: u64,
        /// Errors over the client's whole life, by class.
        pub client_errors: BTreeMap<String, u64>,
    }
}

impl ServerCounts {
    /// Whether there are no more successes than answers, answers than requests, and requests than attempts
    /// (docs/contracts.md, "A client driver").
    pub fn agree(&self) -> bool {
        self.client_successes <= self.responses
            && self.responses <= self.requests
            && self.requests <= self.client_attempts
    }
}
