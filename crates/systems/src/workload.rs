//! The workloads by name, and the two sides of the wire. Pure; what is known of each is in [`crate::work`].

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of work a trial does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// POST bodies of a size; the server answers with the number of bytes it read.
    Upload,
    /// Streams of length-prefixed frames; the receiver answers with its count.
    Frames,
    /// HTTP requests, keep-alive or one per connection.
    Requests,
    /// The system is a client with a pool; Narrows is the server.
    Clients,
}

impl Workload {
    /// All of them, in the order of the documents.
    pub const ALL: [Self; 4] = [Self::Upload, Self::Frames, Self::Requests, Self::Clients];
}

/// Which side of the wire a system is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Narrows drives it.
    Server,
    /// It drives Narrows.
    Client,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Client => "client",
        })
    }
}
