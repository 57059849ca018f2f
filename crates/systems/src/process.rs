//! A running system: waits until it is ready, talks to it, and stops it. It was started for one trial, or found running.
//!
//! Knows manifests and processes; knows nothing of the traffic. A stopped system leaves no processes behind.

mod readiness;

use std::fmt;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionbio;

use crate::attach::Theirs;
use crate::calls::Calls;
use crate::calls::trace::Trace;
use crate::cgroup::MemoryLimit;
use crate::error::{Stage, SystemError};
pub use crate::group::Exit;
use crate::group::{Ended, Group, Waited};
use crate::launch::Launch;
use crate::listening::Listening;
use crate::manifest::{Program, Remedies};
use crate::output::{LONGEST_LINE, Line, Tail};
use crate::proc;
use crate::sample::{self, Sampler, Whose};
use crate::tcp;
use crate::trace;
use crate::wait::{deadline_in, poll};
use crate::workload::Role;

/// A system that was started or found running. Dropping it stops what was started.
pub struct Running {
    held: Processes,
    /// When it was started or found.
    began: Instant,
    tail: Tail,
    stdin: Option<ChildStdin>,
    lines: Option<Receiver<Line>>,
    system: String,
    http: Option<String>,
    tls: Option<tls::Dialing>,
    http2: bool,
    grace: Duration,
    /// The address at which servers listen.
    address: IpAddr,
    /// Where a server listens; `None` as long as it is not known, and for clients.
    listening: Option<Listening>,
    finds_port: bool,
    /// Whether the socket may belong to another process.
    outside: bool,
    /// Whether it gets more time to be ready while it is busy.
    more_if_busy: bool,
    remedies: Remedies,
    tell: fn(&str),
    /// Whether a command runs after it has stopped, which may end what it has started elsewhere.
    concluded: bool,
    /// The processes to measure, if they are not those that were started.
    measured: Option<Theirs>,
    /// Its limit on memory. It is removed after the processes have ended.
    pub(crate) limit: Option<MemoryLimit>,
}

/// A system's processes.
pub(crate) enum Processes {
    /// Narrows started them and stops them.
    Ours(Group),
    /// The user started them; they are only watched.
    Theirs(Theirs),
}

/// How a system ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// How its first process ended; `None` if not even SIGKILL ended it.
    pub exit: Option<Exit>,
    /// It did not end within its grace period after SIGTERM.
    pub killed: bool,
    /// The names of descendants that had left its process group and had to be killed.
    pub strays: Vec<String>,
    /// The end of its output.
    pub tail: String,
}

/// How long a process that does not descend from the command may take to end after it.
const FAREWELL: Duration = Duration::from_millis(500);

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("system", &self.system)
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}

impl Running {
    pub(crate) fn new(
        launch: &Launch<'_>,
        held: Processes,
        tail: Tail,
        stdin: Option<ChildStdin>,
        lines: Option<Receiver<Line>>,
    ) -> Self {
        let manifest = launch.manifest;
        Self {
            held,
            began: Instant::now(),
            tail,
            stdin,
            lines,
            system: manifest.name.clone(),
            http: manifest.ready.http.clone(),
            tls: launch.tls.cloned(),
            http2: launch.http2,
            grace: manifest.grace,
            address: launch.address,
            listening: launch.listening.filter(|_| manifest.role == Role::Server).cloned(),
            finds_port: matches!(&manifest.program, Program::Started(start) if start.finds_port),
            outside: manifest.ready.outside,
            more_if_busy: manifest.ready.more_if_busy,
            remedies: manifest.remedies.clone(),
            tell: launch.tell,
            concluded: matches!(&manifest.program, Program::Started(start) if start.hooks.conclude.is_some()),
            measured: None,
            limit: None,
        }
    }

    /// The id of its first process.
    pub fn pid(&self) -> u32 {
        match &self.held {
            Processes::Ours(group) => group.id(),
            Processes::Theirs(theirs) => theirs.pid(),
        }
    }

    /// Where it listens. Known when a server is ready; `None` for clients.
    pub fn listening(&self) -> Option<&Listening> {
        self.listening.as_ref()
    }

    /// The address at which it listens, if it is ready, is no client and listens on no Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.listening.as_ref()? {
            Listening::Address(address) => Some(*address),
            Listening::Port(_) | Listening::Socket(_) => None,
        }
    }

    /// Whether it still runs. A server may go on in the background after its first process has exited with 0.
    pub fn alive(&self) -> bool {
        self.ended().is_none()
    }

    fn ended(&self) -> Option<Exit> {
        let group = match &self.held {
            Processes::Theirs(theirs) => return (!theirs.alive()).then_some(Exit::Gone),
            // A driver is over when its first process is.
            Processes::Ours(group) if self.lines.is_some() => return group.exited(),
            Processes::Ours(group) => group,
        };
        match (group.finished()?, &self.measured) {
            // What it has started elsewhere is measured.
            (Exit::Code(0), Some(theirs)) => (!theirs.alive()).then_some(Exit::Gone),
            (Exit::Code(0), None) if self.outside => None,
            (exit, _) => Some(exit),
        }
    }

    /// How long ago it was started. `None` if its user started it.
    pub fn age(&self) -> Option<Duration> {
        self.is_ours().then(|| self.began.elapsed())
    }

    /// The sum of its processes' proportional set sizes now, in bytes. `None` if its user started it: what it holds then may be
    /// from any time.
    pub fn memory(&self) -> Option<u64> {
        self.is_ours().then(|| sample::total_pss(&self.whose().members()))
    }

    fn is_ours(&self) -> bool {
        matches!(self.held, Processes::Ours(_))
    }

    /// Starts sampling the resources that its processes use.
    pub fn sampler(&self) -> Sampler {
        Sampler::start(self.whose())
    }

    /// Starts counting its processes' system calls and instructions.
    pub fn calls(&self) -> Calls {
        Calls::begin(&self.whose().members())
    }

    /// Lists its processes at any time, from any thread.
    pub fn members(&self) -> impl Fn() -> Vec<u32> + Send + Sync + use<> {
        let whose = self.whose();
        move || whose.members()
    }

    /// Starts counting its processes' system calls by tracing them. `None` if the kernel refuses. Processes that Narrows
    /// did not start are not traced, because a call that tracing interrupts could disturb their other work.
    pub fn trace(&self) -> Option<Trace> {
        match self.whose() {
            ours @ Whose::Ours(_) => Trace::begin(&ours.members()),
            Whose::Theirs(_) => None,
        }
    }

    /// Starts watching a server's TCP connections that open from now on. `None` if it has no port, or if the kernel does
    /// not list its sockets.
    pub fn connections(&self) -> Option<tcp::Watch> {
        tcp::Watch::begin(self.address()?.port())
    }

    /// Says later, from any thread, whether its processes wait with `EPOLLET` (epoll(7)) for the connections that they have accepted since
    /// now: for most of them. `None` if they wait with epoll for none of those.
    pub fn waits_edge_triggered(&self) -> impl Fn() -> Option<bool> + Send + Sync + use<> {
        let members = self.members();
        let known = proc::epolled(members());
        move || {
            let now = proc::epolled(members()).into_iter();
            let edges: Vec<bool> =
                now.filter(|(socket, _)| !known.contains_key(socket)).map(|(_, edge)| edge).collect();
            let with = edges.iter().filter(|edge| **edge).count();
            (!edges.is_empty()).then_some(with > edges.len() / 2)
        }
    }

    fn whose(&self) -> Whose {
        if let Some(theirs) = &self.measured {
            return Whose::Theirs(theirs.clone());
        }
        match &self.held {
            Processes::Ours(group) => Whose::Ours(*group.tree()),
            Processes::Theirs(theirs) => Whose::Theirs(theirs.clone()),
        }
    }

    /// The end of its output so far, standard output and standard error mixed.
    pub fn tail(&self) -> String {
        self.tail.end()
    }

    /// Sends a driver one line. A driver that does not read it within 5 s is an error.
    pub fn write_line(&mut self, line: &str) -> Result<(), SystemError> {
        let Some(stdin) = &mut self.stdin else {
            return Err(self.wrong(Stage::System, "its standard input is closed"));
        };
        trace::say(|| format!("wrote to its standard input: {line:.200}"));
        let text = format!("{line}\n");
        let written = ioctl_fionbio(&*stdin, true)
            .map_err(io::Error::from)
            .and_then(|()| write_within(stdin, text.as_bytes(), Duration::from_secs(5)));
        written.map_err(|e| match self.ended() {
            Some(exit) => self.died(Stage::System, exit),
            None => self.wrong(Stage::System, &format!("it does not read its standard input: {e}")),
        })
    }

    /// Closes the program's standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// The next line of a driver's standard output, or `None` if none arrived in time. It is an error if the driver has
    /// ended, or if the line is longer than 4 MiB. Servers deliver no lines.
    pub fn line(&self, timeout: Duration) -> Result<Option<String>, SystemError> {
        let Some(lines) = &self.lines else {
            return Err(self.wrong(Stage::System, "a server's output is kept, not delivered as lines"));
        };
        match lines.recv_timeout(timeout) {
            Ok(Ok(line)) => {
                trace::say(|| format!("it printed: {line:.200}"));
                Ok(Some(line))
            }
            Ok(Err(())) => {
                Err(self.wrong(Stage::System, &format!("printed a line longer than {LONGEST_LINE} bytes")))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                // The pipe closes a moment before the exit is visible.
                let soon = deadline_in(Duration::from_millis(200));
                match self.wait_exit(soon, &AtomicBool::new(false)) {
                    Some(exit) => Err(self.died(Stage::System, exit)),
                    None => Err(self.wrong(Stage::System, "it closed its standard output")),
                }
            }
        }
    }

    /// Waits until its first process ends, the deadline passes or `cancel` is set. Returns how it ended.
    pub fn wait_exit(&self, deadline: Instant, cancel: &AtomicBool) -> Option<Exit> {
        match &self.held {
            Processes::Ours(group) => match group.wait(deadline, cancel) {
                Waited::Exited(exit) => Some(exit),
                Waited::TimedOut | Waited::Cancelled => None,
            },
            Processes::Theirs(_) => {
                poll(deadline, || self.ended().is_some() || cancel.load(Ordering::Relaxed));
                self.ended()
            }
        }
    }

    /// Returns an error with the end of its output if it has died. For use while it is driven.
    pub fn check_alive(&self) -> Result<(), SystemError> {
        self.ended().map_or(Ok(()), |exit| Err(self.died(Stage::System, exit)))
    }

    /// Sends SIGTERM to its processes, waits for the grace period, sends SIGKILL to what is left, and reaps all. A server
    /// that the user started keeps running.
    pub fn stop(mut self) -> Stopped {
        let ended = self.end();
        let Processes::Ours(group) = &self.held else {
            return Stopped { exit: None, killed: false, strays: Vec::new(), tail: String::new() };
        };
        Stopped {
            exit: group.exited(),
            killed: ended.killed,
            strays: ended.strays,
            tail: self.tail.settled_end(),
        }
    }

    fn end(&mut self) -> Ended {
        // Drop the receiver: a full queue of lines that nobody reads would block the program.
        self.lines = None;
        let Processes::Ours(group) = &mut self.held else { return Ended::default() };
        let ended = group.stop(self.grace);
        // A container may need a moment more than the command that asked for its end.
        let left = self.measured.take().filter(|theirs| !poll(deadline_in(FAREWELL), || !theirs.alive()));
        if let Some(left) = left.filter(|_| !self.concluded) {
            let (name, left) = (&self.system, left.name());
            (self.tell)(&format!(
                "{name}: {left} still runs, because it does not descend from the command: end it with --conclude"
            ));
        }
        ended
    }

    fn died(&self, stage: Stage, exit: Exit) -> SystemError {
        let when = if stage == Stage::Ready { " before it was ready" } else { "" };
        let output = self.tail.settled_end();
        let why = match exit {
            Exit::Signal(libc::SIGKILL) => self.limited().to_owned(),
            Exit::Code(0) if stage == Stage::Ready => self.gone(),
            _ => String::new(),
        };
        SystemError::new(stage, &self.system, format!("its program {exit}{when}{why}")).with_output(output)
    }

    fn wrong(&self, stage: Stage, reason: &str) -> SystemError {
        // With too little memory a program may be killed, or only become too slow.
        let limited = if stage == Stage::Ready { self.limited() } else { "" };
        SystemError::new(stage, &self.system, format!("{reason}{limited}")).with_output(self.tail())
    }

    /// What to add to an error if the system has a limit on its memory.
    fn limited(&self) -> &'static str {
        if self.limit.is_some() { "; its limit on memory may be too low" } else { "" }
    }
}

impl Drop for Running {
    /// A program that has started others elsewhere, such as a container, ends them only if it is asked to end.
    fn drop(&mut self) {
        self.end();
    }
}

fn write_within(stdin: &mut ChildStdin, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
    let mut outcome = Ok(());
    let done = poll(deadline_in(patience), || {
        while !bytes.is_empty() {
            match stdin.write(bytes) {
                Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return false,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    outcome = Err(e);
                    return true;
                }
            }
        }
        true
    });
    if done { outcome } else { Err(io::Error::new(io::ErrorKind::TimedOut, "the pipe stayed full")) }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_program_that_does_not_read_does_not_block_narrows() {
        let mut command = Command::new("sleep");
        let mut group = Group::spawn(
            {
                command.arg("600").stdin(Stdio::piped());
                command
            },
            &[],
        )
        .unwrap();
        let mut stdin = group.child().stdin.take().unwrap();
        ioctl_fionbio(&stdin, true).unwrap();
        write_within(&mut stdin, b"fits", Duration::ZERO).unwrap();
        let error = write_within(&mut stdin, &vec![0; 1 << 20], Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        group.kill();
        let error = write_within(&mut stdin, b"more", Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
