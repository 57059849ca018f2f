//! When a server that was started is ready: it serves where it was told, and the socket is its own.
//!
//! Asks over connections and reads `/proc`.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Processes, Running};
use crate::attach::Theirs;
use crate::contact::{Access, Contact};
use crate::error::{Stage, SystemError};
use crate::listening::Listening;
use crate::ports::{self, Holder};
use crate::proc;
use crate::ready::{self, Asking};
use crate::sample;
use crate::trace;
use crate::wait::{deadline_in, poll};

/// How long a program may be busy before it listens, unless a time was given.
const BUILDING: Duration = Duration::from_secs(300);
/// How often it is asked whether it is still busy.
const GLANCE: Duration = Duration::from_secs(2);
/// A program that uses less than this part of a core is idle.
const IDLE: u32 = 50;
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
        let asking = Asking { tls: self.tls.as_ref(), http2: self.http2, path: self.http.as_deref() };
        let (mut holder, mut found, mut second) = (None, None, None);
        self.wait_while_busy(deadline, |deadline| {
            let skipped = usize::from(addresses.len() > 1 && self.only_at_v6(addresses[0].port()));
            let asked = &addresses[skipped..];
            match ready::ask(asked, asking, deadline, &over) {
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
            trace::ready(address, holder == Some(Holder::Own));
            self.listening = Some(Listening::Address(address));
        }
        if let Some(exit) = self.ended() {
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
                    "port {} is served by {}, which does not descend from the program that was started; {}",
                    at.port(),
                    ports::owner(at),
                    self.remedies.outside
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
            Some(other) => format!("; it listens at {other}: {}", self.remedies.address),
            None => String::new(),
        };
        let daemons = self.daemons();
        format!(
            "not ready in time: {what} on {}: {last}{elsewhere}{daemons}; {}",
            at.join(" or "),
            self.remedies.time
        )
    }

    /// Asks again until `done`, or until its time is over. `done` is told until when it may take. Unless a time was given, a program
    /// that is busy gets more, because `go run` and the like compile it first.
    fn wait_while_busy(&self, deadline: Instant, mut done: impl FnMut(Instant) -> bool) {
        let (began, mut told) = (Instant::now(), !self.more_if_busy);
        let latest = if self.more_if_busy { deadline_in(BUILDING).max(deadline) } else { deadline };
        let mut until = deadline.checked_sub(GLANCE).unwrap_or(deadline);
        loop {
            let (since, used) = (Instant::now(), self.used());
            if poll(until, || done(until)) {
                return;
            }
            if until >= deadline {
                let idle = self.used().saturating_sub(used).saturating_mul(IDLE) < since.elapsed();
                if idle || until >= latest {
                    return;
                }
                if !std::mem::replace(&mut told, true) {
                    let (name, seconds, busy) = (&self.system, began.elapsed().as_secs(), self.at_work());
                    let most = BUILDING.as_secs() / 60;
                    (self.tell)(&format!(
                        "{name}: nothing listens after {seconds} s, but it is busy ({busy}): waiting for up to {most} minutes. To \
                         build only once, build it with --setup and start what was built"
                    ));
                }
            }
            // A shorter glance would find a busy program idle: CPU time is counted in ticks of some milliseconds.
            until = deadline_in(GLANCE).max(deadline).min(latest);
        }
    }

    /// The CPU time of its processes so far.
    fn used(&self) -> Duration {
        match &self.held {
            Processes::Ours(group) => sample::cpu_time(&group.tree().members()),
            Processes::Theirs(_) => Duration::ZERO,
        }
    }

    /// The programs that run: "go, compile".
    fn at_work(&self) -> String {
        let Processes::Ours(group) = &self.held else { return String::new() };
        let mut names: Vec<String> = group.tree().living().into_iter().map(proc::name).collect();
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names.truncate(4);
        names.join(", ")
    }

    /// What to add to an error if its first process has exited and others have not: "; its first process exited with code 0
    /// and left nginx (process 17) in the background".
    fn daemons(&self) -> String {
        let Processes::Ours(group) = &self.held else { return String::new() };
        let (Some(exit), living) = (group.exited(), group.tree().living()) else { return String::new() };
        let Some(pid) = living.first() else { return String::new() };
        let name = proc::name(*pid);
        let keep = foreground(&name).map_or("; keep it in the foreground".to_owned(), |how| {
            format!("; {how} keeps it in the foreground")
        });
        format!("; its first process {exit} and left {name} (process {pid}) in the background{keep}")
    }

    /// What to add to an error if its program exited with 0 before it was ready, and left nothing.
    pub(super) fn gone(&self) -> String {
        let addresses = self.listening.as_ref().map(Listening::addresses).unwrap_or_default();
        match addresses.into_iter().find(|at| !ports::listeners(*at).is_empty()) {
            Some(at) => format!(
                ": port {} is served by {}, which does not descend from it; {}",
                at.port(),
                ports::owner(at),
                self.remedies.outside
            ),
            None => " and left nothing in the background: it must run as long as it serves".to_owned(),
        }
    }

    /// Whether it was started and has a socket that accepts connections at this address and port.
    pub fn accepts_at(&self, at: SocketAddr) -> bool {
        matches!(&self.held, Processes::Ours(group) if ports::holder(at, group.tree()) == Holder::Own)
    }

    /// Where it listens on its port, if none of these addresses leads there.
    fn elsewhere(&self, addresses: &[SocketAddr]) -> Option<SocketAddr> {
        let Processes::Ours(group) = &self.held else { return None };
        let port = addresses.first().filter(|_| !addresses.iter().any(|at| self.accepts_at(*at)))?.port();
        ports::at_of_tree(group.tree()).into_iter().find(|at| at.port() == port)
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
        self.wait_while_busy(deadline, |deadline| {
            match Contact::open(&access, ready::patience(deadline)) {
                Ok(_) => ready = true,
                Err(error) => trace::not_ready(&mut last, error.to_string()),
            }
            ready || over()
        });
        match self.ended() {
            Some(exit) => Err(self.died(Stage::Ready, exit)),
            None if ready => Ok(()),
            None => {
                let path = path.display();
                let remedy = &self.remedies.time;
                let reason = format!("not ready in time: no connection on {path}: {last}; {remedy}");
                Err(self.wrong(Stage::Ready, &reason))
            }
        }
    }

    /// Waits until its processes listen on a port.
    fn find_port(&self, deadline: Instant, cancel: &AtomicBool) -> Result<u16, SystemError> {
        let Processes::Ours(group) = &self.held else {
            return Err(self.wrong(Stage::Ready, "it has no port"));
        };
        // A server may open a port for its metrics a moment before its own.
        let (mut found, mut since) = (BTreeSet::new(), Instant::now());
        self.wait_while_busy(deadline, |_| {
            let now = ports::of_tree(group.tree());
            if now != found {
                (found, since) = (now, Instant::now());
            }
            let settled = !found.is_empty() && since.elapsed() >= SETTLED;
            settled || cancel.load(Ordering::Relaxed) || !self.alive()
        });
        if let Some(exit) = self.ended() {
            return Err(self.died(Stage::Ready, exit));
        }
        let mut ports = found.iter();
        match (ports.next(), ports.next()) {
            (Some(port), None) => Ok(*port),
            (None, _) => {
                let (daemons, remedy) = (self.daemons(), &self.remedies.time);
                let reason = format!("its processes listen on no TCP port{daemons}; {remedy}");
                Err(self.wrong(Stage::Ready, &reason))
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
        matches!(&self.held, Processes::Ours(group) if ports::only_at_v6(port, group.tree()))
    }

    /// Who holds the socket that just answered. `None` means that this is not known yet: ask again.
    fn settled_holder(&self, at: SocketAddr) -> Option<Holder> {
        match &self.held {
            Processes::Ours(group) => {
                Some(ports::holder(at, group.tree())).filter(|h| *h != Holder::Unsettled)
            }
            // The system was found by its port, so the port is its own.
            Processes::Theirs(_) => Some(Holder::Own),
        }
    }
}

/// The option that keeps a well-known server in the foreground.
fn foreground(name: &str) -> Option<&'static str> {
    match name {
        "nginx" => Some("-g 'daemon off;'"),
        "redis-server" | "valkey-server" => Some("--daemonize no"),
        "apache2" | "httpd" => Some("-DFOREGROUND"),
        _ if name.starts_with("php-fpm") => Some("-F"),
        _ => None,
    }
}

/// Whether something has stayed the same long enough since the first call.
fn settled(since: &mut Option<Instant>) -> bool {
    since.get_or_insert_with(Instant::now).elapsed() >= SETTLED
}
