//! The four workloads. Pure.

use std::fmt;
use std::str::FromStr;

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

    /// The word used in manifests, experiments and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Frames => "frames",
            Self::Requests => "requests",
            Self::Clients => "clients",
        }
    }

    /// The system that is Narrows itself in this workload: in every round, at every point of the workload's own knobs.
    pub fn reference(self) -> &'static str {
        match self.role() {
            Role::Server => "reference",
            Role::Client => "reference-client",
        }
    }

    /// Which side of the wire a system of this workload is on.
    pub fn role(self) -> Role {
        match self {
            Self::Clients => Role::Client,
            _ => Role::Server,
        }
    }
}

/// Whether a system is Narrows itself.
pub fn is_reference(system: &str) -> bool {
    Workload::ALL.into_iter().any(|workload| workload.reference() == system)
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

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Workload {
    type Err = ();
    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|w| w.name() == word).ok_or(())
    }
}
