//! Runs a generator once, and measures what it did and what it cost.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::peer::{CLOSED, Peer, Task, Work, on_path};
use super::perf::Counter;
use super::{machine, output, under_test::Server};
use anyhow::Context;

/// The purpose of a run.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Time,
    /// Counting system calls costs time, so such a run is used for nothing else.
    SystemCalls,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Run {
    pub tool: &'static str,
    pub command: String,
    /// Requests that the server answered, or GiB that arrived.
    pub operations: f64,
    /// Wall time of the whole process; for streams, the time of the transfer as the tool reports it.
    pub seconds: f64,
    /// User and system time of the whole process, in seconds.
    pub cpu: f64,
    pub instructions: Option<u64>,
    pub system_calls: Option<u64>,
    pub peak_kib: u64,
    /// Why the run does not count.
    pub fault: Option<String>,
    /// Errors that the tool reports. The run still counts.
    pub complaint: Option<String>,
}

impl Run {
    /// What a process did that ran this generator with these words. The operations are for the caller to say.
    pub fn of(peer: &Peer, words: &[String], done: &Ended, folder: &Path) -> Self {
        Self {
            tool: peer.name,
            command: shown(peer.name, words, folder),
            seconds: done.wall,
            cpu: done.cpu,
            peak_kib: done.peak_kib,
            complaint: output::complaint(peer.name, &done.output),
            fault: done.fault.clone(),
            ..Self::default()
        }
    }

    pub fn cpu_per_operation(&self) -> f64 {
        self.good(self.cpu / self.operations)
    }

    pub fn instructions_per_operation(&self) -> f64 {
        self.good(self.instructions.map_or(f64::NAN, |count| count as f64 / self.operations))
    }

    pub fn rate(&self) -> f64 {
        self.good(self.operations / self.seconds)
    }

    pub fn calls_per_operation(&self) -> Option<f64> {
        Some(self.good(self.system_calls? as f64 / self.operations)).filter(|calls| calls.is_finite())
    }

    fn good(&self, figure: f64) -> f64 {
        if self.fault.is_none() { figure } else { f64::NAN }
    }
}

/// How much longer than requested a generator may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a generator once.
pub fn run(
    peer: &Peer,
    task: &Task,
    kind: Kind,
    server: &mut Server,
    cores: &[usize],
) -> anyhow::Result<Run> {
    match task.work {
        Work::Upload(size) if peer.name == "curl" => server.file(size)?,
        Work::Listed => server.list()?,
        _ => {}
    }
    let words = peer.command(task, server.ports, server.folder());
    let trace = server.folder().join("strace");
    let counter = match kind {
        Kind::Time => Counter::instructions().ok(),
        Kind::SystemCalls => Counter::system_calls().ok(),
    };
    let mut all = words.clone();
    if kind == Kind::SystemCalls && counter.is_none() {
        on_path("strace")
            .context("cannot count system calls: neither tracepoints nor strace are available")?;
        let strace = ["strace", "-f", "-c", "-o", &trace.to_string_lossy()].map(str::to_owned);
        all.splice(0..0, strace);
    }
    let before = server.settled()?;
    let done = spawn(&all, server, cores, task.seconds)?;
    let after = server.settled()?;
    let operations = (after.requests - before.requests) as f64;
    let mut run = Run { operations, ..Run::of(peer, &words, &done, server.folder()) };
    let count = counter.and_then(Counter::read);
    match kind {
        Kind::Time => run.instructions = count,
        Kind::SystemCalls => run.system_calls = count.or_else(|| output::strace_total(&trace)),
    }
    if matches!(task.work, Work::Upload(_) | Work::Frames(_)) {
        let told = output::told(peer.name, &done.output).unwrap_or((0.0, f64::NAN));
        let arrived = if peer.name == "iperf3" { told.0 } else { (after.bytes - before.bytes) as f64 };
        run.operations = arrived / f64::from(1 << 30);
        run.seconds = told.1;
    }
    if task.work == Work::Listed {
        // Both are Narrows. Reading the file is no part of a request's cost.
        run.cpu = output::cpu_in_window(&done.output).unwrap_or(f64::NAN);
    }
    if run.operations == 0.0 && run.fault.is_none() {
        run.fault = Some("nothing was completed".to_owned());
    }
    Ok(run)
}

/// A process that has ended.
pub struct Ended {
    pub output: String,
    pub wall: f64,
    pub cpu: f64,
    pub peak_kib: u64,
    pub fault: Option<String>,
}

/// Starts a program on these cores.
pub fn start(words: &[String], server: &Server, cores: &[usize]) -> anyhow::Result<Child> {
    let output = |name| File::create(server.folder().join(name));
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(output("stdout")?).stderr(output("stderr")?);
    // For AIPerf, which finds its tokenizer there.
    command.env("HF_HOME", server.folder()).env("HF_HUB_OFFLINE", "1");
    machine::pin(cores)?;
    let child = command.spawn();
    machine::pin(&[server.core])?;
    child.with_context(|| words[0].clone())
}

/// Runs a program on these cores until it ends.
pub fn spawn(words: &[String], server: &Server, cores: &[usize], seconds: f64) -> anyhow::Result<Ended> {
    let begin = Instant::now();
    let child = start(words, server, cores)?;
    let pid = child.id();
    let (over, peak) = (AtomicBool::new(false), AtomicU64::new(0));
    let deadline = begin + Duration::from_secs_f64(seconds) + PATIENCE;
    let wall = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                peak.fetch_max(machine::memory(pid, "VmHWM").unwrap_or(0), Ordering::Relaxed);
                if Instant::now() > deadline {
                    // SAFETY: this is our own child, and nobody has reaped it yet.
                    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
                }
                std::thread::park_timeout(Duration::from_millis(50));
            }
        });
        ended(pid);
        let wall = begin.elapsed().as_secs_f64();
        over.store(true, Ordering::Release);
        watch.thread().unpark();
        wall
    });
    let (status, usage) = reap(pid);
    let read = |name| {
        let bytes = std::fs::read(server.folder().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let fault = (status != 0).then(|| {
        let text = read("stderr");
        let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        format!("status {status}: {}", line.trim())
    });
    // A child's peak starts at the peak of the process that started it.
    let harness_peak = machine::memory(std::process::id(), "VmHWM").unwrap_or(0);
    let child_peak = usage.ru_maxrss as u64;
    Ok(Ended {
        output: read("stdout"),
        wall,
        cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        peak_kib: if child_peak > harness_peak { child_peak } else { peak.into_inner() },
        fault,
    })
}

/// Waits until a child has ended, without reaping it.
fn ended(pid: u32) {
    // SAFETY: the structure is plain data that the kernel writes.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        while libc::waitid(libc::P_PID, pid, &mut info, libc::WEXITED | libc::WNOWAIT) < 0
            && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
        {}
    }
}

fn reap(pid: u32) -> (i32, libc::rusage) {
    // SAFETY: both are plain data that the kernel writes; the child is ours and has ended.
    unsafe {
        let (mut status, mut usage) = (0, std::mem::zeroed());
        libc::wait4(pid as i32, &mut status, 0, &mut usage);
        let code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + status };
        (code, usage)
    }
}

/// The command as a user would type it, without the paths of this run.
pub fn shown(name: &str, words: &[String], folder: &Path) -> String {
    let name = match name {
        "narrows" | CLOSED => "narrows",
        name if words[0].ends_with(name) => name,
        _ => "bench",
    };
    let quote = |word: &String| {
        let word = if Path::new(word).starts_with(folder) { "FILE" } else { word };
        if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
    };
    std::iter::once(name.to_owned()).chain(words[1..].iter().map(quote)).collect::<Vec<_>>().join(" ")
}
