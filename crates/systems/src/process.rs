//! A running system: starts it for one trial (or attaches to it), waits until it is ready, talks to it, and stops it.
//!
//! Knows manifests and processes; knows nothing of the traffic. A stopped system leaves no processes behind.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::attach::Theirs;
use crate::calls::Calls;
use crate::error::{Stage, SystemError};
pub use crate::group::Exit;
use crate::group::{Group, Waited};
use crate::knob::Point;
use crate::manifest::{Fill, Manifest, Program, Start};
use crate::output::{LONGEST_LINE, Line, SHOWN, Tail};
use crate::ports::{self, Holder};
use crate::ready;
use crate::sample::{Sampler, Whose};
use crate::wait::poll;
use crate::workload::Role;

/// What is needed to start a system.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The system.
    pub manifest: &'a Manifest,
    /// Its build folder, as [`crate::build::build`] returned it.
    pub out: &'a Path,
    /// The port on which a server must listen; `None` for clients.
    pub port: Option<u16>,
    /// The values of its knobs. Missing knobs have their defaults; knobs that it does not have are ignored.
    pub point: &'a Point,
    /// The cores that it may use; an empty slice means all.
    pub cores: &'a [usize],
    /// The running binary.
    pub narrows: &'a Path,
}

/// A system that was started or found running. Dropping it kills what was started.
pub struct Running {
    held: Held,
    tail: Tail,
    stdin: Option<ChildStdin>,
    lines: Option<Receiver<Line>>,
    system: String,
    http: Option<String>,
    grace: Duration,
    port: Option<u16>,
}

/// A system's processes.
enum Held {
    /// Narrows started them and stops them.
    Ours(Group),
    /// The user started them; they are only watched.
    Theirs(Theirs),
}

impl Held {
    fn exited(&self) -> Option<Exit> {
        match self {
            Self::Ours(group) => group.exited(),
            Self::Theirs(theirs) => (!theirs.alive()).then_some(Exit::Gone),
        }
    }
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

impl Launch<'_> {
    /// Starts the program, or finds the one that the user started. It is not ready yet.
    ///
    /// Call this from a thread that outlives the system: when that thread ends, the kernel kills the program, so that
    /// it does not survive a crash of Narrows.
    pub fn start(&self) -> Result<Running, SystemError> {
        let wrong = |reason: String| SystemError::new(Stage::Start, &self.manifest.name, reason);
        let start = match &self.manifest.program {
            Program::Started(start) => start,
            Program::Attached(attached) => {
                let theirs = Theirs::find(attached)
                    .map_err(|why| wrong(format!("{why}; start it with: {}", attached.get)))?;
                return Ok(self.running(Held::Theirs(theirs), Tail::new(SHOWN), None, None));
            }
        };
        if self.manifest.role == Role::Server && self.port.is_none() {
            return Err(wrong("a server was started without a port".to_owned()));
        }
        if let Some(port) = self.port.filter(|port| !frees_up(*port)) {
            let owner = ports::owner(port);
            return Err(wrong(format!("port {port} is in use by {owner}: stop it, or choose another port")));
        }
        let command = self.command(start).map_err(wrong)?;
        let program = command.get_program().to_string_lossy().into_owned();
        let mut group = Group::spawn(command, self.cores).map_err(|e| {
            let dir = self.manifest.dir.display();
            wrong(format!(
                "cannot start `{program}` in {dir}: {e}; check start.command and whether it is installed"
            ))
        })?;
        let tail = Tail::new(SHOWN);
        if let Some(stream) = group.child().stderr.take() {
            tail.drain(stream);
        }
        let stdout = group.child().stdout.take();
        let lines = match (self.manifest.role, stdout) {
            (Role::Client, Some(stream)) => Some(tail.lines(stream)),
            (Role::Server, Some(stream)) => {
                tail.drain(stream);
                None
            }
            (_, None) => None,
        };
        let stdin = group.child().stdin.take();
        Ok(self.running(Held::Ours(group), tail, stdin, lines))
    }

    fn running(
        &self,
        held: Held,
        tail: Tail,
        stdin: Option<ChildStdin>,
        lines: Option<Receiver<Line>>,
    ) -> Running {
        Running {
            held,
            tail,
            stdin,
            lines,
            system: self.manifest.name.clone(),
            http: self.manifest.ready.http.clone(),
            grace: self.manifest.grace,
            port: self.port.filter(|_| self.manifest.role == Role::Server),
        }
    }

    /// The arguments of its start command and its environment, with the placeholders filled in; empty for a server that
    /// the user starts.
    pub fn words(&self) -> Result<Vec<String>, SystemError> {
        let Program::Started(start) = &self.manifest.program else { return Ok(Vec::new()) };
        let command =
            self.command(start).map_err(|why| SystemError::new(Stage::Start, &self.manifest.name, why))?;
        let environment = command.get_envs().map(|(name, value)| {
            format!("{}={}", name.to_string_lossy(), value.unwrap_or_default().to_string_lossy())
        });
        Ok(command.get_args().map(|word| word.to_string_lossy().into_owned()).chain(environment).collect())
    }

    fn command(&self, start: &Start) -> Result<Command, String> {
        let cores =
            if self.cores.is_empty() { crate::machine::available_cores().len() } else { self.cores.len() };
        let fill = Fill {
            manifest: self.manifest,
            narrows: self.narrows,
            out: self.out,
            cores,
            start: Some((self.port, self.point)),
        };
        let mut arguments = fill.command(&start.command)?.into_iter();
        let mut command = Command::new(arguments.next().ok_or("start.command is empty")?);
        command.args(arguments).current_dir(&self.manifest.dir);
        for (name, value) in &start.env {
            command.env(name, fill.text(value)?);
        }
        self.manifest.set_environment(&mut command)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("system", &self.system)
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}

impl Running {
    /// The id of its first process.
    pub fn pid(&self) -> u32 {
        match &self.held {
            Held::Ours(group) => group.id(),
            Held::Theirs(theirs) => theirs.pid(),
        }
    }

    /// Whether its first process still runs.
    pub fn alive(&self) -> bool {
        self.held.exited().is_none()
    }

    /// Starts sampling the resources that its processes use.
    pub fn sampler(&self) -> Sampler {
        Sampler::start(self.whose())
    }

    /// Starts counting its processes' system calls and instructions.
    pub fn calls(&self) -> Calls {
        Calls::begin(&self.whose().members())
    }

    fn whose(&self) -> Whose {
        match &self.held {
            Held::Ours(group) => Whose::Group(group.id()),
            Held::Theirs(theirs) => Whose::Theirs(theirs.clone()),
        }
    }

    /// The end of its output so far, standard output and standard error mixed.
    pub fn tail(&self) -> String {
        self.tail.text()
    }

    /// Waits until a server serves: it accepts a connection or answers 200, as its manifest says, and the socket
    /// belongs to it. For a client this returns at once, because a client announces in a line that it is ready.
    pub fn wait_ready(&self, deadline: Instant, cancel: &AtomicBool) -> Result<(), SystemError> {
        let Some(port) = self.port else { return Ok(()) };
        let mut last = String::from("nothing listened");
        let over = || cancel.load(Ordering::Relaxed) || !self.alive();
        let mut holder = None;
        poll(deadline, || {
            match ready::ask(port, self.http.as_deref(), deadline, &over) {
                Ok(()) => holder = self.settled_holder(port),
                Err(why) => last = why,
            }
            holder.is_some() || over()
        });
        if let Some(exit) = self.held.exited() {
            return Err(self.died(Stage::Ready, exit));
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(self.wrong(Stage::Ready, "interrupted"));
        }
        let reason = match holder {
            Some(Holder::Stranger) => format!(
                "port {port} is served by {}, not by the process group that was started: a system must listen \
                 itself and must not daemonize",
                ports::owner(port)
            ),
            Some(_) => return Ok(()),
            None => {
                let path = self.http.as_ref();
                let what = path.map_or("no connection".to_owned(), |path| format!("no 200 to GET {path}"));
                format!("not ready in time: {what} on 127.0.0.1:{port}: {last}; see ready.timeout_s")
            }
        };
        Err(self.wrong(Stage::Ready, &reason))
    }

    /// Who holds the port that just answered. `None` means that the socket changed hands meanwhile: ask again.
    fn settled_holder(&self, port: u16) -> Option<Holder> {
        match &self.held {
            Held::Ours(group) => Some(ports::holder(port, group.id())).filter(|h| *h != Holder::Unsettled),
            // The system was found by its port, so the port is its own.
            Held::Theirs(_) => Some(Holder::Group),
        }
    }

    /// Sends a driver one line. A driver that does not read it within 5 s is an error.
    pub fn write_line(&mut self, line: &str) -> Result<(), SystemError> {
        let Some(stdin) = &mut self.stdin else {
            return Err(self.wrong(Stage::System, "its standard input is closed"));
        };
        let text = format!("{line}\n");
        let written =
            nonblocking(stdin).and_then(|()| write_within(stdin, text.as_bytes(), Duration::from_secs(5)));
        written.map_err(|e| match self.held.exited() {
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
            Ok(Ok(line)) => Ok(Some(line)),
            Ok(Err(())) => {
                Err(self.wrong(Stage::System, &format!("printed a line longer than {LONGEST_LINE} bytes")))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                // The pipe closes a moment before the exit is visible.
                let soon = Instant::now() + Duration::from_millis(200);
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
            Held::Ours(group) => match group.wait(deadline, cancel) {
                Waited::Exited(exit) => Some(exit),
                Waited::TimedOut | Waited::Cancelled => None,
            },
            Held::Theirs(_) => {
                poll(deadline, || self.held.exited().is_some() || cancel.load(Ordering::Relaxed));
                self.held.exited()
            }
        }
    }

    /// Returns an error with the end of its output if it has died. For use while it is driven.
    pub fn check_alive(&self) -> Result<(), SystemError> {
        self.held.exited().map_or(Ok(()), |exit| Err(self.died(Stage::System, exit)))
    }

    /// Sends SIGTERM to the group, waits for the grace period, sends SIGKILL to what is left, and reaps all. A server
    /// that the user started keeps running.
    pub fn stop(mut self) -> Stopped {
        // Drop the receiver: a full queue of lines that nobody reads would block the program.
        self.lines = None;
        let Held::Ours(group) = &mut self.held else {
            return Stopped { exit: None, killed: false, strays: Vec::new(), tail: String::new() };
        };
        let ended = group.stop(self.grace);
        Stopped {
            exit: group.exited(),
            killed: ended.killed,
            strays: ended.strays,
            tail: self.tail.settled(),
        }
    }

    fn died(&self, stage: Stage, exit: Exit) -> SystemError {
        let when = if stage == Stage::Ready { " before it was ready" } else { "" };
        let output = self.tail.settled();
        SystemError::new(stage, &self.system, format!("its program {exit}{when}")).with_output(output)
    }

    fn wrong(&self, stage: Stage, reason: &str) -> SystemError {
        SystemError::new(stage, &self.system, reason).with_output(self.tail())
    }
}

/// Whether the port is free now or within a moment. A program that another thread is starting holds a copy of every
/// socket until its exec, including the one that tested whether the port is free.
fn frees_up(port: u16) -> bool {
    poll(Instant::now() + Duration::from_millis(100), || ports::port_free(port))
}

fn nonblocking(stdin: &ChildStdin) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let fd = stdin.as_raw_fd();
    // SAFETY: plain system calls on a descriptor that `stdin` keeps open.
    let answer = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn write_within(stdin: &mut ChildStdin, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
    let mut outcome = Ok(());
    let done = poll(Instant::now() + patience, || {
        while !bytes.is_empty() {
            match stdin.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
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
        nonblocking(&stdin).unwrap();
        write_within(&mut stdin, b"fits", Duration::ZERO).unwrap();
        let error = write_within(&mut stdin, &vec![0; 1 << 20], Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        group.kill();
        let error = write_within(&mut stdin, b"more", Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
