//! The names of the workloads, and the two sides of the wire. Pure. [`crate::work`] describes each workload.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of work that a trial does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// The generator posts bodies of a given size. The server answers with the number of bytes that it read.
    Upload,
    /// The generator streams length-prefixed frames. The receiver answers with its count.
    Frames,
    /// The generator sends HTTP requests, on kept connections or one per connection.
    Requests,
    /// The generator asks for streams of server-sent events, one at a time on each connection.
    Streams,
    /// The generator asks for streamed answers in OpenAI's interface for chats.
    Chats,
    /// The system is a client with a pool. Narrows is the server.
    Clients,
}

impl Workload {
    /// All workloads, in the order of the documentation.
    pub const ALL: [Self; 6] =
        [Self::Upload, Self::Frames, Self::Requests, Self::Streams, Self::Chats, Self::Clients];
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
