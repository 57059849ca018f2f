//! Counts system calls by tracing (ptrace(2)), as `strace -c -f` does. It is the last resort where the kernel's own
//! counters are closed: it slows every call to some microseconds, so that a busy server may do its work in fewer
//! calls than it does otherwise, and threads that wait for each other in more.
//!
//! One thread attaches to every thread of the processes (`PTRACE_SEIZE`), and with them come all that they start later.
//! Every tracee stops when it enters and when it leaves a system call. Signals are delivered unchanged.
//!
//! All requests must come from the thread that attached. It waits for stops only, never for the end of a process
//! (waitid(2) without `WEXITED`), and lets a tracee go before it ends (`PTRACE_EVENT_EXIT`). So tracees are reaped by their
//! parents as if they had not been traced. If this thread ends, the kernel lets all its tracees go.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::gettid;

use super::READS;
use crate::proc;
use crate::sys::{self, Ask, ptrace};
use crate::wait::deadline_in;

/// The system calls of some processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TracedCalls {
    /// System calls of all kinds.
    pub system_calls: u64,
    /// Calls that read, including those that returned no bytes.
    pub reads: u64,
}

/// Counts from [`Trace::begin`] to [`Trace::finish`].
#[derive(Debug)]
pub struct Trace {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<TracedCalls>>>,
}

impl Trace {
    /// Attaches to every thread of these processes. `None` if the kernel refuses even one of them (Yama, seccomp, another
    /// tracer), because a part of the calls says nothing.
    pub fn begin(processes: &[u32]) -> Option<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let (attached, begun) = sync_channel(1);
        let (processes, seen) = (processes.to_vec(), Arc::clone(&ended));
        let tracer = move || Tracer::default().trace(&processes, &attached, &seen);
        let thread = thread::Builder::new().name("tracer".to_owned()).spawn(tracer).ok()?;
        let trace = Self { ended, thread: Some(thread) };
        // If the thread sends nothing, the kernel refused it, or it hangs.
        begun.recv_timeout(LONGEST).ok().map(|()| trace)
    }

    /// Lets the processes go and returns the counts. `None` if the kernel does not say which calls they were (before 5.3).
    pub fn finish(mut self) -> Option<TracedCalls> {
        self.end()
    }

    fn end(&mut self) -> Option<TracedCalls> {
        let thread = self.thread.take()?;
        self.ended.store(true, Ordering::Release);
        // The thread waits for stops that may never come. A single signal could arrive just before it waits.
        let deadline = deadline_in(LONGEST);
        while !thread.is_finished() {
            if Instant::now() >= deadline {
                // It hangs in the kernel. Its tracees are let go when it ends, which nobody waits for.
                return None;
            }
            sys::interrupt_call(&thread);
            thread::sleep(Duration::from_millis(1));
        }
        thread.join().ok().flatten()
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.end();
    }
}

/// How long tracees may take to stop, so that they can be let go. One that takes longer hangs in the kernel.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the thread may take to attach to its tracees, and to let them go.
const LONGEST: Duration = Duration::from_secs(5);

/// Why a tracee stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// It enters or leaves a system call.
    Call,
    /// A signal is about to be delivered.
    Signal(i32),
    /// All threads of its process are stopped, for example by SIGSTOP.
    Stopped,
    /// It is about to end.
    End,
    /// It was interrupted, has begun, or has made another one.
    Other,
}

impl Stop {
    /// From the status that waitid(2) returns: a signal, and above it the number of an event.
    fn from_status(status: i32) -> Self {
        let (signal, event) = (status & 0xff, status >> 8);
        match (event, signal) {
            (0, CALL) => Self::Call,
            (0, signal) => Self::Signal(signal),
            (libc::PTRACE_EVENT_EXIT, _) => Self::End,
            (libc::PTRACE_EVENT_STOP, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => {
                Self::Stopped
            }
            _ => Self::Other,
        }
    }

    /// The signal that the tracee gets when it goes on.
    fn signal(self) -> i32 {
        if let Self::Signal(signal) = self { signal } else { 0 }
    }
}

/// The signal of a stop for a system call, with `PTRACE_O_TRACESYSGOOD`.
const CALL: i32 = libc::SIGTRAP | 0x80;

/// What a wait brought.
enum Event {
    Stop(i32, Stop),
    Interrupted,
    /// There is no tracee any more.
    NoneLeft,
}

/// Traces. Must stay in the thread that attached.
#[derive(Default)]
struct Tracer {
    tracees: HashSet<i32>,
    counts: TracedCalls,
    /// The kernel does not say which calls stopped a tracee.
    blind: bool,
}

impl Tracer {
    /// Attaches, says so, and traces until `ended` is set or no tracee is left.
    fn trace(
        mut self,
        processes: &[u32],
        attached: &SyncSender<()>,
        ended: &AtomicBool,
    ) -> Option<TracedCalls> {
        self.attach(processes).ok()?;
        attached.send(()).ok()?;
        while !ended.load(Ordering::Acquire) {
            match wait() {
                Event::Stop(task, stop) => self.go_on(task, stop),
                Event::Interrupted => {}
                Event::NoneLeft => break,
            }
        }
        self.let_go();
        (!self.blind).then_some(self.counts)
    }

    /// Attaches to every thread, also to those that start meanwhile, and has each stop.
    fn attach(&mut self, processes: &[u32]) -> io::Result<()> {
        loop {
            let tasks = processes.iter().copied().flat_map(proc::tasks).map(u32::cast_signed);
            let new: Vec<i32> = tasks.filter(|task| !self.tracees.contains(task)).collect();
            let mut found = false;
            for task in new {
                match ptrace(task, Ask::Seize) {
                    Ok(()) => found = self.tracees.insert(task),
                    // It has ended, or it came with the thread that started it.
                    Err(_) if !lives(task) || traced_by_us(task) => {}
                    Err(error) => return Err(error),
                }
            }
            if !found {
                break;
            }
        }
        if self.tracees.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.interrupt();
        Ok(())
    }

    /// Has every tracee stop. Forgets those that are not there any more.
    fn interrupt(&mut self) {
        self.tracees.retain(|task| ptrace(*task, Ask::Interrupt).is_ok());
    }

    /// Counts a call, and lets the tracee run to its next stop. A request fails only if the tracee was killed meanwhile.
    fn go_on(&mut self, task: i32, stop: Stop) {
        self.tracees.insert(task);
        let _ = match stop {
            Stop::End => {
                self.tracees.remove(&task);
                ptrace(task, Ask::Detach(0))
            }
            Stop::Stopped => ptrace(task, Ask::Listen),
            Stop::Call | Stop::Signal(_) | Stop::Other => {
                if stop == Stop::Call {
                    self.count(task);
                }
                ptrace(task, Ask::GoOn(stop.signal()))
            }
        };
    }

    fn count(&mut self, task: i32) {
        match entered(task) {
            Ok(Some(number)) => {
                self.counts.system_calls = self.counts.system_calls.saturating_add(1);
                let read = u64::from(READS.iter().any(|(_, read)| *read == number));
                self.counts.reads = self.counts.reads.saturating_add(read);
            }
            Ok(None) => {}
            Err(error) => self.blind |= error.raw_os_error() != Some(libc::ESRCH),
        }
    }

    /// Stops every tracee and lets it go. Those that do not stop are let go when this thread ends.
    fn let_go(&mut self) {
        self.interrupt();
        let deadline = deadline_in(PATIENCE);
        while !self.tracees.is_empty() && Instant::now() < deadline {
            match wait() {
                Event::Stop(task, stop) => {
                    let _ = ptrace(task, Ask::Detach(stop.signal()));
                    self.tracees.remove(&task);
                }
                Event::Interrupted => {}
                Event::NoneLeft => break,
            }
        }
    }
}

/// Waits for the stop of a tracee of this thread. It does not reap processes.
fn wait() -> Event {
    match sys::wait_for_stop() {
        Ok((task, status)) => Event::Stop(task, Stop::from_status(status)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Event::Interrupted,
        Err(_) => Event::NoneLeft,
    }
}

/// Whether a task has not ended. One that nobody has waited for yet cannot be traced, and makes no calls.
fn lives(task: i32) -> bool {
    proc::stat(task.cast_unsigned()).is_some_and(|stat| stat.lives())
}

/// Whether this thread traces a task already.
fn traced_by_us(task: i32) -> bool {
    let me = gettid();
    let status = std::fs::read_to_string(format!("/proc/{task}/status")).unwrap_or_default();
    status.lines().any(|line| {
        line.strip_prefix("TracerPid:").is_some_and(|tracer| tracer.trim() == me.as_raw_nonzero().to_string())
    })
}

/// What the kernel says of a tracee that enters a system call.
const ENTERS: u8 = 1;
/// The bit of an architecture (audit(7)) whose words have 64 bits.
const WIDE: u32 = 0x8000_0000;

/// The number of the system call that a stopped tracee enters. `None` if it leaves one. A call of a program with words of
/// 32 bits has the number -1, because its numbers mean something else.
fn entered(task: i32) -> io::Result<Option<i64>> {
    // struct ptrace_syscall_info: what it is (1 byte, and 3 unused), the architecture (4), two pointers (8 each), and of an
    // entry the number (8) and the arguments.
    let info = sys::syscall_info(task)?;
    let architecture = u32::from_ne_bytes([info[4], info[5], info[6], info[7]]);
    let number = i64::from_ne_bytes(info[24..32].try_into().unwrap_or_default());
    Ok((info[0] == ENTERS).then_some(if architecture & WIDE == 0 { -1 } else { number }))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A program that prints a line when it is ready, and does its work after it has read one.
    fn start(program: &str, args: &[&str]) -> Child {
        let mut command = Command::new(program);
        let mut child = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        line(&mut child);
        child
    }

    fn line(child: &mut Child) -> String {
        let mut line = String::new();
        // One byte at a time, so that nothing after the line is lost.
        BufReader::with_capacity(1, child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line
    }

    fn tell(child: &mut Child) {
        child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// The counts of a program from its first line to its second. Ends it.
    fn counted(program: &str, args: &[&str]) -> Option<TracedCalls> {
        let mut child = start(program, args);
        let trace = Trace::begin(&[child.id()]);
        tell(&mut child);
        assert_eq!(line(&mut child), "done\n");
        let counts = trace.and_then(Trace::finish);
        // It goes on untraced.
        tell(&mut child);
        assert_eq!(child.wait().unwrap().code(), Some(7));
        counts
    }

    /// Whether this user may trace. Without it there is nothing to count.
    fn may_trace() -> bool {
        let mut child = start("sh", &["-c", "echo; read line"]);
        let may = Trace::begin(&[child.id()]).is_some();
        tell(&mut child);
        child.wait().unwrap();
        may
    }

    #[test]
    fn statuses_are_told_apart() {
        for (status, stop) in [
            (libc::SIGTRAP | 0x80, Stop::Call),
            (libc::SIGTRAP, Stop::Signal(libc::SIGTRAP)),
            (libc::SIGURG, Stop::Signal(libc::SIGURG)),
            (libc::SIGSTOP | libc::PTRACE_EVENT_STOP << 8, Stop::Stopped),
            (libc::SIGTRAP | libc::PTRACE_EVENT_STOP << 8, Stop::Other),
            (libc::SIGTRAP | libc::PTRACE_EVENT_CLONE << 8, Stop::Other),
            (libc::SIGTRAP | libc::PTRACE_EVENT_EXIT << 8, Stop::End),
        ] {
            assert_eq!(Stop::from_status(status), stop, "{status:#x}");
        }
        assert_eq!((Stop::Signal(11).signal(), Stop::Call.signal()), (11, 0));
    }

    #[test]
    fn a_process_that_the_kernel_does_not_stop_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let [source, program] = ["a.c", "a"].map(|name| folder.path().join(name));
        // A process does not stop before the child that it has made with vfork(2) ends.
        let text = "#include <unistd.h>\nint main(void) { char byte; \
                    if (vfork() == 0) { write(1, \"ready\\n\", 6); read(0, &byte, 1); _exit(0); } return 7; }\n";
        std::fs::write(&source, text).unwrap();
        assert!(Command::new("cc").args(["-w", "-o"]).args([&program, &source]).status().unwrap().success());
        let mut child = start(program.to_str().unwrap(), &[]);
        let counts = Trace::begin(&[child.id()]).and_then(Trace::finish);
        assert_eq!(counts.unwrap_or_default(), TracedCalls::default());
        assert_eq!(child.try_wait().unwrap(), None, "it still waits for its child");
        tell(&mut child);
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }

    #[test]
    fn the_calls_of_a_program_and_of_its_children_are_counted() {
        // Each dd reads ten times from the device, and once or more from files of the linker.
        let copy = "dd if=/dev/zero of=/dev/null bs=1 count=10 2>/dev/null";
        let script = format!("echo ready; read line; {copy}; {copy} & wait; echo done; read line; exit 7");
        let Some(counts) = counted("sh", &["-c", &script]) else { return assert!(!may_trace()) };
        assert!(counts.reads >= 20 && counts.system_calls >= counts.reads + 20, "{counts:?}");
    }

    #[test]
    fn children_that_have_ended_are_no_obstacle() {
        // The shell becomes a program that does not wait for the shell's child, which ends only after that.
        let until_cat = "until read name < /proc/$$/comm && test \"$name\" = cat; do sleep 0.01; done";
        let mut child = start("sh", &["-c", &format!("({until_cat}) & echo; exec cat")]);
        let processes = || {
            let children = proc::with_descendants(&[child.id()]);
            let ended = |pid: &u32| proc::stat(*pid).is_some_and(|stat| !stat.lives());
            children.iter().any(ended).then_some(children)
        };
        let late = Instant::now() + Duration::from_secs(20);
        let mut found = None;
        while found.is_none() && Instant::now() < late {
            found = processes();
            thread::yield_now();
        }
        let processes = found.expect("a child that has ended");
        let traced = Trace::begin(&processes);
        assert!(traced.is_some() || !may_trace());
        tell(&mut child);
        assert_eq!(line(&mut child), "go\n");
        let counts = traced.and_then(Trace::finish);
        // It has written the line. Its next read may not have begun.
        assert!(counts.is_none_or(|counts| counts.system_calls >= 1), "{counts:?}");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn threads_that_run_and_threads_that_start_are_counted() {
        let script = "
import os, sys, threading
def work():
    for _ in range(50): os.pread(zero, 1, 0); os.read(zero, 1)
def wait(): go.wait(); work()
zero, go = os.open('/dev/zero', os.O_RDONLY), threading.Event()
old = [threading.Thread(target=wait) for _ in range(3)]
for thread in old: thread.start()
print('ready', flush=True)
os.read(0, 3)
go.set()
new = [threading.Thread(target=work) for _ in range(3)]
for thread in new: thread.start()
for thread in old + new: thread.join()
print('done', flush=True)
os.read(0, 3)
sys.exit(7)";
        if Command::new("python3").arg("--version").output().is_err() {
            return;
        }
        let Some(counts) = counted("python3", &["-c", script]) else { return assert!(!may_trace()) };
        assert!((300..400).contains(&counts.reads) && counts.system_calls >= 600, "{counts:?}");
    }

    #[test]
    fn signals_are_delivered_and_stops_are_kept() {
        // It sends itself a signal that it handles, and one that stops it until another continues it.
        let script = "trap 'got=1' URG; echo ready; read line; kill -URG $$; \
                      (while sleep 0.05; do kill -CONT $$ || exit; done) & more=$!; kill -STOP $$; kill $more; \
                      test \"$got\" = 1 && echo done; read line; exit 7";
        if counted("bash", &["-c", script]).is_none() {
            assert!(!may_trace());
        }
    }

    #[test]
    fn a_program_that_dies_while_it_is_traced_is_reaped_by_its_parent() {
        for (signal, script) in [
            (None, "echo; read line; exit 3"),
            (Some(libc::SIGKILL), "echo; read line; kill -KILL $$"),
            (Some(libc::SIGTERM), "echo; read line; kill -TERM $$"),
        ] {
            let mut child = start("sh", &["-c", script]);
            let trace = Trace::begin(&[child.id()]);
            tell(&mut child);
            // Its output ends with it.
            line(&mut child);
            let counts = trace.and_then(Trace::finish);
            let status = child.wait().unwrap();
            assert_eq!((status.signal(), status.code()), (signal, signal.is_none().then_some(3)), "{script}");
            assert!(counts.is_none_or(|counts| counts.system_calls > 0), "{script}");
        }
    }

    #[test]
    fn an_idle_program_can_be_let_go_and_one_that_is_gone_is_not_traced() {
        let mut child = start("sh", &["-c", "echo; read line; exit 7"]);
        drop(Trace::begin(&[child.id()]));
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        assert!(status.contains("TracerPid:\t0\n"), "{status}");
        tell(&mut child);
        assert_eq!(child.wait().unwrap().code(), Some(7));
        assert!(Trace::begin(&[child.id()]).is_none());
        assert!(Trace::begin(&[]).is_none());
        // A process cannot trace itself.
        assert!(Trace::begin(&[std::process::id()]).is_none());
    }
}
