//! How a system is started for one trial: its command and its hooks, with the placeholders filled in.
//!
//! Knows manifests, and starts processes; what runs then is a [`Running`].

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::allotment;
use crate::attach::Theirs;
use crate::cgroup::MemoryLimit;
use crate::error::{Stage, SystemError};
use crate::group::Group;
use crate::knob::Point;
use crate::listening::Listening;
use crate::manifest::{Fill, Manifest, OfStart, Program, Start};
use crate::output::{KEPT, Tail};
use crate::ports;
use crate::process::{Processes, Running};
use crate::subprocess::{Exit, Waited, capture};
use crate::sys;
use crate::trace;
use crate::wait::{deadline_in, poll};
use crate::workload::Role;

/// What is needed to start a system.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The system.
    pub manifest: &'a Manifest,
    /// Its build folder, as [`crate::build::build`] returned it.
    pub out: &'a Path,
    /// The address of this machine at which servers listen.
    pub address: IpAddr,
    /// Where a server must listen; `None` for clients, and for servers that choose their port themselves.
    pub listening: Option<&'a Listening>,
    /// The path of a server's certificate, if it needs one. [`key_of`](crate::manifest::key_of) says where the key is.
    pub certificate: Option<&'a Path>,
    /// How a server is spoken to in TLS when it is asked whether it is ready; `None` for plain text.
    pub tls: Option<&'a tls::Dialing>,
    /// Whether it is spoken to in HTTP/2 then.
    pub http2: bool,
    /// The values of its knobs. Missing knobs have their defaults; knobs that it does not have are ignored.
    pub point: &'a Point,
    /// Whether its CPU time is sampled later.
    pub profiled: bool,
    /// The cores that it may use; an empty slice means all.
    pub cores: &'a [usize],
    /// The running binary.
    pub narrows: &'a Path,
    /// Is called with what a person should know while a system starts.
    pub tell: fn(&str),
}

/// How long a command of the hooks may take.
const HOOK_PATIENCE: Duration = Duration::from_secs(600);

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
                let theirs = Theirs::find(attached).map_err(|why| match attached.get.as_str() {
                    "" => wrong(why),
                    get => wrong(format!("{why}; start it with: {get}")),
                })?;
                return Ok(Running::new(self, Processes::Theirs(theirs), Tail::new(KEPT), None, None));
            }
        };
        if self.manifest.role == Role::Server && self.listening.is_none() && !start.finds_port {
            return Err(wrong("a server was started without a port".to_owned()));
        }
        if let Some(path) = self.listening.and_then(Listening::socket) {
            let _ = std::fs::remove_file(path); // A server cannot bind a path that exists.
        }
        let at = self.listening.and_then(|listening| listening.addresses().first().copied());
        if let Some(at) = at.filter(|at| !frees_up(*at)) {
            let (port, owner) = (at.port(), ports::owner(at));
            return Err(wrong(format!("port {port} is in use by {owner}: stop it, or choose another port")));
        }
        let mut command = self.command(start).map_err(wrong)?;
        let program = command.get_program().to_string_lossy().into_owned();
        self.limit_files(&mut command).map_err(wrong)?;
        let limit = allotment::memory(self.point).map(MemoryLimit::new).transpose();
        let limit = limit.map_err(|why| wrong(format!("memory: {why}")))?;
        if let Some(limit) = &limit {
            limit.confine(&mut command);
        }
        let mut group = Group::spawn(command, self.cores).map_err(|e| {
            let dir = start.dir.display();
            wrong(format!("cannot start `{program}` in {dir}: {e}; {}", self.manifest.remedies.program))
        })?;
        let tail = Tail::new(KEPT);
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
        let mut running = Running::new(self, Processes::Ours(group), tail, stdin, lines);
        running.limit = limit;
        Ok(running)
    }

    /// Gives the command the limit on open files that the point asks for.
    ///
    /// # Errors
    /// This machine does not allow it. Where trials run may be another machine than the one that checked the point.
    fn limit_files(&self, command: &mut Command) -> Result<(), String> {
        let Some(files) = allotment::files(self.point) else { return Ok(()) };
        let value = self.point.get(allotment::FILES).zip(allotment::knob(allotment::FILES));
        if let Some(why) = value.and_then(|(value, knob)| knob.beyond(value)) {
            return Err(format!("{} {files}: {why}", allotment::FILES));
        }
        sys::limit_files(command, files);
        trace::say(|| format!("limits the open files of {} to {files}", self.manifest.name));
        Ok(())
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
        let mut command = self.filled(&start.command)?;
        let profile_env = start.profile_env.iter().filter(|_| self.profiled);
        for (name, value) in start.env.iter().chain(profile_env) {
            command.env(name, self.fill().text(value)?);
        }
        self.manifest.set_environment(&mut command)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// The words of its environment and start command, with the knobs filled in. Paths and ports that are not given stay as they are. For a
    /// server that its user starts: its URL.
    ///
    /// # Errors
    /// A placeholder without a value.
    pub fn shown(&self) -> Result<Vec<String>, String> {
        let Program::Started(start) = &self.manifest.program else {
            return Ok(vec![self.manifest.program.command_line()]);
        };
        let fill = self.fill();
        let text = |text: &String| {
            crate::template::expand(text, |name| match name {
                "port" | "socket" if self.listening.is_none() => Some(format!("{{{name}}}")),
                "cert" | "key" if self.certificate.is_none() => Some(format!("{{{name}}}")),
                _ => fill.value(name),
            })
        };
        let env = start.env.iter().map(|(name, value)| Ok(format!("{name}={}", text(value)?)));
        env.chain(start.command.iter().map(text)).collect()
    }

    /// Runs a command of the hooks to its end.
    ///
    /// # Errors
    /// It did not exit with 0, or not within `HOOK_PATIENCE`.
    pub fn hook(&self, name: &str, command: &[String], cancel: &AtomicBool) -> Result<(), SystemError> {
        let wrong = |reason: String| {
            SystemError::new(Stage::Start, &self.manifest.name, format!("its {name} command {reason}"))
        };
        let mut command = self.filled(command).map_err(|why| wrong(format!("is wrong: {why}")))?;
        self.manifest.set_environment(&mut command).map_err(&wrong)?;
        trace::say(|| format!("the {name} command of {}:", self.manifest.name));
        let captured = capture(command, deadline_in(HOOK_PATIENCE), cancel);
        let captured = captured.map_err(|e| wrong(format!("cannot be started: {e}")))?;
        let why = match captured.waited {
            Waited::Exited(Exit::Code(0)) => return Ok(()),
            Waited::Exited(exit) => exit.to_string(),
            Waited::TimedOut => format!("did not end within {} s", HOOK_PATIENCE.as_secs()),
            Waited::Cancelled => "was interrupted".to_owned(),
        };
        Err(wrong(why).with_output(captured.output()))
    }

    fn fill(&self) -> Fill<'_> {
        let cores =
            if self.cores.is_empty() { crate::machine::available_cores().len() } else { self.cores.len() };
        Fill {
            manifest: self.manifest,
            narrows: self.narrows,
            out: self.out,
            cores,
            start: Some(OfStart {
                address: self.address,
                listening: self.listening,
                certificate: self.certificate,
                point: self.point,
            }),
        }
    }

    /// A command in the system's folder, with the placeholders filled in.
    fn filled(&self, words: &[String]) -> Result<Command, String> {
        let mut arguments = self.fill().command(words)?.into_iter();
        let mut command = Command::new(arguments.next().ok_or("the command is empty")?);
        let dir = match &self.manifest.program {
            Program::Started(start) => &start.dir,
            Program::Attached(_) => &self.manifest.dir,
        };
        command.args(arguments).current_dir(dir);
        Ok(command)
    }
}

/// Whether the port is free now or within a moment. A program that another thread is starting holds a copy of every
/// socket until its exec, including the one that tested whether the port is free.
fn frees_up(at: SocketAddr) -> bool {
    poll(deadline_in(Duration::from_millis(100)), || ports::port_free(at))
}
