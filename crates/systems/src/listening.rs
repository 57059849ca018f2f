//! Where a server listens: a port of this machine, or a Unix socket. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Listening {
    /// A port of 127.0.0.1 or of ::1. Which of them shows when the server is ready.
    Port(u16),
    /// This address and port.
    Address(SocketAddr),
    /// The path of a Unix socket.
    Socket(PathBuf),
}

impl Listening {
    /// The address at which servers listen unless they are told otherwise.
    pub const USUAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// The usual address of a port.
    pub fn usual(port: u16) -> SocketAddr {
        (Self::USUAL, port).into()
    }

    /// A port of the address at which servers are told to listen. At the usual one a server may take ::1 instead.
    pub fn at(address: IpAddr, port: u16) -> Self {
        if address == Self::USUAL { Self::Port(port) } else { Self::Address((address, port).into()) }
    }

    /// The port.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Port(port) => Some(*port),
            Self::Address(address) => Some(address.port()),
            Self::Socket(_) => None,
        }
    }

    /// The addresses at which it may be, the usual one first.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        match self {
            Self::Port(port) => {
                vec![Self::usual(*port), (Ipv6Addr::LOCALHOST, *port).into()]
            }
            Self::Address(address) => vec![*address],
            Self::Socket(_) => Vec::new(),
        }
    }

    /// The path of the socket.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            Self::Port(_) | Self::Address(_) => None,
            Self::Socket(path) => Some(path),
        }
    }
}
