//! Servers that their users started: found by the socket that listens, watched, and left running.
//!
//! Reads `/proc` only; nothing here signals or starts anything.

use crate::manifest::Attached;
use crate::ports;
use crate::proc;

/// The processes of a server that its user started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Theirs {
    /// Those that hold the listening socket when it was found; never empty.
    pids: Vec<u32>,
}

impl Theirs {
    /// Finds who listens; the error says what there is instead.
    pub(crate) fn find(attached: &Attached) -> Result<Self, String> {
        let port = attached.port;
        let pids = ports::listeners(port);
        if !pids.is_empty() {
            return Ok(Self { pids });
        }
        Err(match ports::port_free(port) {
            true => format!("nothing listens on 127.0.0.1:{port}"),
            false => format!(
                "127.0.0.1:{port} is held by a process of another user, which cannot be measured: run narrows as that user"
            ),
        })
    }

    /// The first of them.
    pub(crate) fn pid(&self) -> u32 {
        self.pids.first().copied().unwrap_or_default()
    }

    /// For messages and as its version: "iodash_http (process 17)".
    pub(crate) fn name(&self) -> String {
        format!("{} (process {})", proc::name(self.pid()), self.pid())
    }

    /// Whether any of them still runs.
    pub(crate) fn alive(&self) -> bool {
        self.pids.iter().any(|pid| proc::stat(*pid).is_some_and(|stat| stat.lives()))
    }

    /// All of its processes now: those that listen, and their descendants.
    pub(crate) fn members(&self) -> Vec<u32> {
        proc::with_descendants(&self.pids)
    }
}
