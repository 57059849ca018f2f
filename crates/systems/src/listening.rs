//! Where a server listens: a port of 127.0.0.1, or a Unix socket. Pure.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Listening {
    /// A port of 127.0.0.1.
    Port(u16),
    /// The path of a Unix socket.
    Socket(PathBuf),
}

impl Listening {
    /// The port.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Port(port) => Some(*port),
            Self::Socket(_) => None,
        }
    }

    /// The path of the socket.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            Self::Port(_) => None,
            Self::Socket(path) => Some(path),
        }
    }
}
