//! When a server that was started is ready: it serves where it was told, and the socket is its own.
//!
//! Asks over connections and reads `/proc`.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Held, Running};
use crate::attach::Theirs;
use crate::contact::{Access, Contact};
use crate::error::{Stage, SystemError};
use crate::listening::Listening;
use crate::manifest::ADDRESS;
use crate::ports::{self, Holder};
use crate::ready;
use crate::trace;
use crate::wait::poll;

/// How long the ports of a server that chooses them, and the addresses of its port, must stay the same.
const SETTLED: Duration = Duration::from_millis(100);

impl Running {
    /// Waits until a server serves: it accepts a connection or answers 200, as its manifest says, and the socket
    /// belongs to it. For a client this returns at once, because a client announces in a line that it is ready.
    #[expect(
        clippy::indexing_slicing,
        reason = "what listens has an address, and none is skipped unless there are two"
    )]
    pub fn wait_ready(&mut self, deadline: Instant, cancel: &AtomicBool) -> Result<(), SystemError> {
        if self.finds_port {
            self.listening = Some(Listening::at(self.address, self.find_port(deadline, cancel)?));
        }
        let addresses = match &self.listening {
            None => return Ok(()),
            Some(Listening::Socket(path)) => return self.wait_for_socket(path, deadline, cancel),
            Some(at @ (Listening::Port(_) | Listening::Address(_))) => at.addresses(),
        };
        let mut last = String::from("nothing listened");
        let over = || cancel.load(Ordering::Relaxed) || !self.alive();
        let (mut holder, mut found, mut second) = (None, None, None);
        poll(deadline, || {
            let skipped = usize::from(addresses.len() > 1 && self.only_at_v6(addresses[0].port()));
            let asked = &addresses[skipped..];
            match ready::ask(asked, self.tls.as_ref(), self.http.as_deref(), deadline, &over) {
                // A server may open its second address a moment before the usual one.
                Ok(address) if address != addresses[0] && !settled(&mut second) => {
                    last = format!("only {address} serves, since a moment ago");
                }
                Ok(address) => (holder, found) = (self.settled_holder(address), Some(address)),
                Err(why) => trace::not_ready(&mut last, why),
            }
            holder.is_some() || over()
        });
        if let Some(address) = found {
            trace::ready(address, holder == Some(Holder::Group));
            self.listening = Some(Listening::Address(address));
        }
        if let Some(exit) = self.held.exited() {
            return Err(self.died(Stage::Ready, exit));
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(self.wrong(Stage::Ready, "interrupted"));
        }
        match (holder, found) {
            (Some(Holder::Stranger), Some(at)) if self.outside => {
                let theirs = Theirs::at(&[at], &format!("port {}", at.port()));
                self.measured = Some(theirs.map_err(|why| self.wrong(Stage::Ready, &why))?);
                Ok(())
            }
            (Some(Holder::Stranger), Some(at)) => {
                let reason = format!(
                    "port {} is served by {}, not by the process group that was started: a system must listen \
                     itself and must not daemonize; ready.outside = true measures that process",
                    at.port(),
                    ports::owner(at)
                );
                Err(self.wrong(Stage::Ready, &reason))
            }
            (Some(_), _) => Ok(()),
            (None, _) => Err(self.wrong(Stage::Ready, &self.not_ready(&addresses, &last))),
        }
    }

    /// Why a server was not ready in time. `last` is what happened at the last attempt.
    fn not_ready(&self, addresses: &[SocketAddr], last: &str) -> String {
        let what =
            self.http.as_ref().map_or("no connection".to_owned(), |path| format!("no 200 to GET {path}"));
        let at: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let elsewhere = match self.elsewhere(addresses) {
            Some(other) => format!("; it listens at {other}: use {{{ADDRESS}}} in start.command"),
            None => String::new(),
        };
        format!("not ready in time: {what} on {}: {last}{elsewhere}; see ready.timeout_s", at.join(" or "))
    }

    /// Whether it was started and has a socket that accepts connections at this address and port.
    pub fn accepts_at(&self, at: SocketAddr) -> bool {
        matches!(&self.held, Held::Ours(group) if ports::holder(at, group.id()) == Holder::Group)
    }

    /// Where it listens on its port, if none of these addresses leads there.
    fn elsewhere(&self, addresses: &[SocketAddr]) -> Option<SocketAddr> {
        let Held::Ours(group) = &self.held else { return None };
        let port = addresses.first().filter(|_| !addresses.iter().any(|at| self.accepts_at(*at)))?.port();
        ports::at_of_group(group.id()).into_iter().find(|at| at.port() == port)
    }

    /// Waits until a Unix socket accepts a connection.
    fn wait_for_socket(
        &self,
        path: &Path,
        deadline: Instant,
        cancel: &AtomicBool,
    ) -> Result<(), SystemError> {
        let over = || cancel.load(Ordering::Relaxed) || !self.alive();
        let mut last = String::new();
        let access = Access::plain(&Listening::Socket(path.to_owned()));
        let mut ready = false;
        poll(deadline, || {
            match Contact::open(&access, ready::patience(deadline)) {
                Ok(_) => ready = true,
                Err(error) => trace::not_ready(&mut last, error.to_string()),
            }
            ready || over()
        });
        match self.held.exited() {
            Some(exit) => Err(self.died(Stage::Ready, exit)),
            None if ready => Ok(()),
            None => {
                let path = path.display();
                let reason =
                    format!("not ready in time: no connection on {path}: {last}; see ready.timeout_s");
                Err(self.wrong(Stage::Ready, &reason))
            }
        }
    }

    /// Waits until its processes listen on a port.
    fn find_port(&self, deadline: Instant, cancel: &AtomicBool) -> Result<u16, SystemError> {
        let Held::Ours(group) = &self.held else { return Err(self.wrong(Stage::Ready, "it has no port")) };
        // A server may open a port for its metrics a moment before its own.
        let (mut found, mut since) = (BTreeSet::new(), Instant::now());
        poll(deadline, || {
            let now = ports::of_group(group.id());
            if now != found {
                (found, since) = (now, Instant::now());
            }
            let settled = !found.is_empty() && since.elapsed() >= SETTLED;
            settled || cancel.load(Ordering::Relaxed) || !self.alive()
        });
        if let Some(exit) = self.held.exited() {
            return Err(self.died(Stage::Ready, exit));
        }
        let mut ports = found.iter();
        match (ports.next(), ports.next()) {
            (Some(port), None) => Ok(*port),
            (None, _) => {
                Err(self.wrong(Stage::Ready, "its processes listen on no TCP port; see ready.timeout_s"))
            }
            (Some(_), Some(_)) => {
                let all: Vec<String> = found.iter().map(u16::to_string).collect();
                let reason = format!(
                    "its processes listen on several ports, {}: tell it one with {{port}} in its command",
                    all.join(" and ")
                );
                Err(self.wrong(Stage::Ready, &reason))
            }
        }
    }

    /// Whether it was started and listens on this port of `::1` alone.
    fn only_at_v6(&self, port: u16) -> bool {
        matches!(&self.held, Held::Ours(group) if ports::only_at_v6(port, group.id()))
    }

    /// Who holds the socket that just answered. `None` means that the socket changed hands meanwhile: ask again.
    fn settled_holder(&self, at: SocketAddr) -> Option<Holder> {
        match &self.held {
            Held::Ours(group) => Some(ports::holder(at, group.id())).filter(|h| *h != Holder::Unsettled),
            // The system was found by its port, so the port is its own.
            Held::Theirs(_) => Some(Holder::Group),
        }
    }
}

/// Whether something has stayed the same long enough since the first call.
fn settled(since: &mut Option<Instant>) -> bool {
    since.get_or_insert_with(Instant::now).elapsed() >= SETTLED
}
