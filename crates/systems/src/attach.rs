//! Servers that the user started: found by their listening socket, measured, and left running.
//!
//! Reads `/proc` only. It starts and signals nothing.

use std::net::SocketAddr;
use std::path::Path;

use crate::listening::Listening;
use crate::manifest::Attached;
use crate::ports;
use crate::proc;

/// The processes of a server that the user started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Theirs {
    /// The processes that held the listening socket when it was found; never empty.
    pids: Vec<u32>,
}

impl Theirs {
    /// Finds the processes that listen. The error says what was found instead.
    pub(crate) fn find(attached: &Attached) -> Result<Self, String> {
        match (&attached.listening, &attached.host) {
            (Listening::Socket(path), _) => Self::at_socket(path),
            (Listening::Address(address), Some(_)) => Self::at(&[*address], &address.to_string()),
            (at, _) => Self::at(&at.addresses(), attached.url.rsplit('/').next().unwrap_or_default()),
        }
    }

    /// Finds the processes that listen on the Unix socket of this path.
    fn at_socket(path: &Path) -> Result<Self, String> {
        let pids = ports::listeners_at(path);
        if !pids.is_empty() {
            return Ok(Self { pids });
        }
        let shown = path.display();
        Err(match std::fs::metadata(path) {
            Err(why) => format!("nothing listens on {shown}: {why}"),
            Ok(_) => format!(
                "no process of this user listens on {shown}: start its server, or run narrows as the server's user"
            ),
        })
    }

    /// Finds the processes that listen at the first of these addresses at which any do. Messages show the addresses like this.
    pub(crate) fn at(addresses: &[SocketAddr], shown: &str) -> Result<Self, String> {
        let pids = addresses.iter().map(|at| ports::listeners(*at)).find(|pids| !pids.is_empty());
        if let Some(pids) = pids {
            return Ok(Self { pids });
        }
        Err(match addresses.iter().all(|at| ports::is_unheld(*at)) {
            true => format!("nothing listens on {shown}"),
            false => format!(
                "{shown} is held by another user's process, which cannot be measured: run narrows as that user"
            ),
        })
    }

    /// The first of the listening processes.
    pub(crate) fn pid(&self) -> u32 {
        self.pids.first().copied().unwrap_or_default()
    }

    /// The name used in messages and as the version: "iodash_http (process 17)".
    pub(crate) fn name(&self) -> String {
        format!("{} (process {})", proc::name(self.pid()), self.pid())
    }

    /// Whether any of the listening processes still runs.
    pub(crate) fn alive(&self) -> bool {
        self.pids.iter().any(|pid| proc::stat(*pid).is_some_and(|stat| stat.lives()))
    }

    /// The listening processes and their current descendants.
    pub(crate) fn members(&self) -> Vec<u32> {
        proc::with_descendants(&self.pids)
    }
}
