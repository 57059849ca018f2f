//! Shared by the tests of the program: starting it, waiting for its end, servers, and the search for processes that it
//! left.

// Each test binary uses only a part of this.
#![allow(dead_code, unused_imports, unsafe_code)]

pub mod browser;
pub mod fake;
pub mod home;
pub mod made_up;
pub mod nginx;
pub mod peer;
pub mod schema;
mod skipped;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

pub use skipped::{has, say_skipped, skip};

/// The deadline of every wait. Only a hang exceeds it, even on a busy machine that has to build all systems.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The program's path.
pub const NARROWS: &str = env!("CARGO_BIN_EXE_narrows");

/// The environment variable that marks all processes that a test starts, and their descendants.
const MARK: &str = "NARROWS_TEST_MARK";

/// A mark that no other test has.
pub fn new_mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The folder for what is kept between runs, of all tests that do not need one of their own.
const STATE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/state");

/// A command that runs the program with these arguments, with a terminal's environment but without a terminal.
pub fn narrows<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(NARROWS);
    command.args(arguments);
    plain(&mut command);
    command
}

/// Removes the variables of the user's environment that could change the output, and the terminal.
pub fn plain(command: &mut Command) {
    for name in ["NARROWS_HOME", "NO_COLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "COLUMNS"] {
        command.env_remove(name);
    }
    // The user's own systems must not change the output.
    command.env("TERM", "xterm-256color").env("XDG_DATA_HOME", "/nonexistent");
    command.env("XDG_STATE_HOME", STATE);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
}

/// How the program ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Asserts the exit code. Shows the output if it differs.
    pub fn code(self, expected: i32) -> Self {
        assert_eq!(self.status.code(), Some(expected), "{self:#?}");
        self
    }

    /// Standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("not JSON: {e}: {self:#?}"))
    }

    /// Asserts that standard error contains each of these, wherever lines are broken.
    pub fn says(self, words: &[&str]) -> Self {
        let said = squeezed(&self.stderr);
        for word in words {
            assert!(said.contains(&squeezed(word)), "{word:?} is not in: {said}");
        }
        self
    }
}

/// Text without the line breaks and frames that a renderer adds.
pub fn squeezed(text: &str) -> String {
    let without = text.replace(['│', '╰', '─', '▶', '×', '·', '\n'], " ");
    without.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A full pipe, and how many bytes are in it. Who writes to it waits until somebody reads.
pub fn full_pipe() -> (PipeReader, PipeWriter, usize) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    // SAFETY: a plain system call on a file that is open.
    let size = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_GETPIPE_SZ) };
    let size = usize::try_from(size).expect("the size of a pipe");
    writer.write_all(&vec![b'\n'; size]).expect("it has room for them");
    (reader, writer, size)
}

/// A child that is killed when the test ends.
pub struct Guarded {
    child: Child,
    stdout: Option<Receiver<String>>,
    stderr: Option<Receiver<String>>,
}

impl Guarded {
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let stdout = child.stdout.take().map(drain);
        let stderr = child.stderr.take().map(drain);
        Self { child, stdout, stderr }
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process number")
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: a plain system call. The child has not been reaped, so the id is still its own.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    /// Whether it has a handler for the signal.
    pub fn heeds(&self, signal: i32) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
        caught & (1 << (signal - 1)) != 0
    }

    pub fn running(&mut self) -> bool {
        self.child.try_wait().expect("its state").is_none()
    }

    /// Waits for its end.
    pub fn end(self) -> Ended {
        self.end_with_peak().0
    }

    /// Waits for its end. Returns also the most memory that it was seen to use, in bytes.
    pub fn end_with_peak(mut self) -> (Ended, u64) {
        let (mut status, mut peak) = (None, 0);
        let ended = until(|| {
            // A process that has just begun may still show the memory of the one that started it, so the last counts.
            peak = Some(peak_memory(self.pid())).filter(|peak| *peak > 0).unwrap_or(peak);
            status = self.child.try_wait().expect("its state");
            status.is_some()
        });
        if !ended {
            self.kill();
        }
        let [stdout, stderr] = [&self.stdout, &self.stderr].map(|pipe| {
            pipe.as_ref().and_then(|pipe| pipe.recv_timeout(Duration::from_secs(20)).ok()).unwrap_or_default()
        });
        let status = status.unwrap_or_else(|| panic!("it did not end; it said {stdout} and {stderr}"));
        (Ended { status, stdout, stderr }, peak)
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.kill();
    }
}

fn drain(mut pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// The most memory that a process has used so far, in bytes; 0 if it has ended.
pub fn peak_memory(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ended {
    Guarded::spawn(command).end()
}

/// Runs `narrows load` with these arguments.
pub fn load(words: &[&str]) -> Ended {
    run(&mut narrows([&["load"], words].concat()))
}

/// Runs `narrows load --json` with these arguments. Returns the exit code and the JSON, after a check that its attempts
/// add up.
pub fn load_json(words: &[&str]) -> (i32, Value) {
    let ended = load(&[words, &["--json"]].concat());
    let json = ended.json();
    assert_adds_up(&json);
    (ended.status.code().expect("an exit code"), json)
}

/// Asserts that the attempts are the sum of completed, failed and open ones.
pub fn assert_adds_up(json: &Value) {
    let number = |name: &str| json[name].as_u64().unwrap_or_else(|| panic!("{name} in {json}"));
    let errors: u64 = json["errors"].as_object().expect("errors").values().filter_map(Value::as_u64).sum();
    assert_eq!(number("attempts"), number("completed") + errors + number("in_flight"), "{json}");
}

/// The path of a server that is installed. Packages put servers into a folder in which only root looks for programs. If it is
/// not installed, the test is skipped: see [`skip`].
pub fn installed(server: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    folders.push(Path::new("/usr/sbin").to_owned());
    let found = folders.iter().map(|folder| folder.join(server)).find(|path| path.exists());
    if found.is_none() {
        skip(server, "it is not installed");
    }
    found
}

/// Calls `done` until it returns true or the deadline passes. Returns what it returned last.
pub fn until(mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if done() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// `narrows serve` on free ports.
pub struct Served {
    child: Guarded,
    lines: Receiver<String>,
    /// `http://127.0.0.1:PORT`, or `https://…` with `--tls`, or `http://[::1]:PORT` with `--host ::1`
    pub http: String,
    /// `frames://127.0.0.1:PORT`
    pub frames: String,
}

impl Served {
    pub fn start(words: &[&str]) -> Self {
        Self::spawn(&mut narrows([&["serve", "--port", "0", "--frames", "0"], words].concat()))
    }

    /// Starts any command that executes `narrows serve` with both ports.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the server starts");
        let stderr = BufReader::new(child.stderr.take().expect("its standard error"));
        let child = Guarded { child, stdout: None, stderr: None };
        let (sender, lines) = channel();
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let [http, frames] = ["http", "frames"].map(|scheme| {
            let line = lines.recv_timeout(PATIENCE).expect("the server says where it serves");
            let address = line.strip_prefix("serving ").unwrap_or_else(|| panic!("{line}")).to_owned();
            assert!(address.replace("https", "http").starts_with(&format!("{scheme}://")), "{line}");
            address
        });
        Self { child, lines, http, frames }
    }

    pub fn pid(&self) -> i32 {
        self.child.pid()
    }

    pub fn running(&mut self) -> bool {
        self.child.running()
    }

    /// Stops it and returns its final counts: requests, answers, connections, most connections at once.
    pub fn counts(self) -> [u64; 4] {
        self.child.signal(libc::SIGTERM);
        let line = self.lines.recv_timeout(PATIENCE).expect("the server's counts");
        assert!(self.child.end().status.success());
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        numbers.try_into().unwrap_or_else(|_| panic!("{line}"))
    }
}

/// The kernel interfaces that can be tested here: always epoll, and io_uring unless something forbids it.
pub fn backends() -> Vec<&'static str> {
    let Some(why) = no_uring() else { return vec!["uring", "epoll"] };
    // Installing something would not change that, so it is never a failure.
    say_skipped("--reactor uring", &why);
    vec!["epoll"]
}

/// Why io_uring cannot be tested here.
fn no_uring() -> Option<String> {
    // SAFETY: without parameters the call can only fail, with EINVAL or EFAULT if io_uring may be used.
    unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, std::ptr::null_mut::<u8>()) };
    let why = std::io::Error::last_os_error();
    if matches!(why.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) {
        return Some(format!("the kernel refuses it: {why}"));
    }
    // A ring locks one of them and releases it some time after its end. All programs of a user share the limit, which
    // does not apply to root.
    const MEBIBYTES: u64 = 64;
    let locked = limit(libc::RLIMIT_MEMLOCK).rlim_cur;
    // SAFETY: a plain system call without arguments.
    let root = unsafe { libc::geteuid() } == 0;
    let few =
        "may be locked in memory by all programs of this user, too few for tests side by side (ulimit -l)";
    (!root && locked < MEBIBYTES << 20).then(|| format!("{} MiB {few}", locked >> 20))
}

/// A limit of this process.
pub fn limit(resource: libc::__rlimit_resource_t) -> libc::rlimit {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` outlives the call.
    unsafe { libc::getrlimit(resource, &raw mut limit) };
    limit
}

/// The name in `load --json` of an interface of `--reactor`.
pub fn backend_name(io: &str) -> &str {
    if io == "uring" { "io_uring" } else { io }
}

/// Marks a command and its descendants.
pub fn mark<'a>(command: &'a mut Command, mark: &str) -> &'a mut Command {
    command.env(MARK, mark)
}

/// Asserts that no process with the mark is running. Waits for those that were just killed.
pub fn assert_nothing_left(mark: &str) {
    let mut left = Vec::new();
    let gone = until(|| {
        left = carrying(mark);
        left.is_empty()
    });
    assert!(gone, "left behind: {left:?}");
}

/// The processes with the mark, and their command lines.
pub fn carrying(mark: &str) -> Vec<(u32, String)> {
    let wanted = format!("{MARK}={mark}");
    let pids = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let marked = pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    });
    marked.map(|pid| (pid, command_line(pid))).collect()
}

fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// The root folder of the checkout.
pub fn checkout() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
