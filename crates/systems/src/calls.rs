//! Counts a process's system calls, its reads and its instructions, with the kernel's counters (perf_event_open(2)).
//!
//! Counting slows every system call of the machine a little, so it happens outside the timed window. A counter that the
//! kernel refuses (perf_event_paranoid, no tracefs, a virtual processor without counters) is absent, not zero. Where the
//! kernel's counters give no system calls, [`trace`] counts them.

pub mod trace;
mod tracefs;

use std::io;

use perf_event::events::{Event, Hardware, Tracepoint};
use perf_event::{Builder, Counter};

use crate::proc;

/// The system calls that read from a socket, as the kernel's tracepoints name them, and their numbers.
const READS: [(&str, i64); 5] = [
    ("read", libc::SYS_read),
    ("readv", libc::SYS_readv),
    ("recvfrom", libc::SYS_recvfrom),
    ("recvmsg", libc::SYS_recvmsg),
    ("recvmmsg", libc::SYS_recvmmsg),
];

/// The tracepoint of all system calls.
const ALL: &str = "raw_syscalls/sys_enter";

/// The counts; `None` if the kernel refused the counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// System calls of all kinds.
    pub system_calls: Option<u64>,
    /// Calls of read(2), readv(2), recvfrom(2), recvmsg(2) and recvmmsg(2), including those that returned no bytes.
    pub reads: Option<u64>,
    /// Instructions, user and kernel.
    pub instructions: Option<u64>,
}

/// Counters that run from [`Calls::begin`] to [`Calls::finish`].
#[derive(Debug)]
pub struct Calls {
    system_calls: Kind,
    reads: Vec<Kind>,
    instructions: Kind,
}

/// One event's counters, one per thread; `None` if the kernel refused.
type Kind = Option<Vec<Counter>>;

impl Calls {
    /// Starts counting for every thread of these processes, and for every thread and process that they start later.
    pub fn begin(processes: &[u32]) -> Self {
        // The kernel refuses a counter for a zombie, but only after a grace period of RCU (synchronize_rcu) for each event.
        let lives = |task: &u32| proc::stat(*task).is_some_and(|stat| stat.lives());
        let tasks: Vec<u32> = processes.iter().copied().flat_map(proc::tasks).filter(lives).collect();
        let traced = |name: &str| tracepoint(name).ok().and_then(|event| open(&tasks, &event));
        let reads = READS.iter().map(|(name, _)| traced(&format!("syscalls/sys_enter_{name}"))).collect();
        let mut calls =
            Self { system_calls: traced(ALL), reads, instructions: open(&tasks, &Hardware::INSTRUCTIONS) };
        let kinds = calls.reads.iter_mut().chain([&mut calls.system_calls, &mut calls.instructions]);
        for counter in kinds.flatten().flatten() {
            // A counter that cannot be enabled stays at zero, and `finish` leaves it out.
            let _ = counter.enable();
        }
        calls
    }

    /// Stops counting and returns the counts.
    pub fn finish(mut self) -> CallCounts {
        let reads: Option<u64> = self.reads.iter_mut().map(total).sum();
        CallCounts {
            system_calls: total(&mut self.system_calls).filter(|count| *count > 0),
            reads: reads.filter(|count| *count > 0),
            instructions: total(&mut self.instructions).filter(|count| *count > 0),
        }
    }
}

/// Checks whether the kernel's tracepoints can be read. Without them the kernel does not count system calls.
///
/// # Errors
/// `NotFound` if tracefs is not mounted and this user may not mount it, `PermissionDenied` if this user may not read it.
pub fn tracing() -> io::Result<()> {
    tracepoint(ALL).map(drop)
}

fn tracepoint(name: &str) -> io::Result<Tracepoint> {
    tracefs::id(name).map(Tracepoint::with_id)
}

fn open<E: Event + Clone>(tasks: &[u32], event: &E) -> Kind {
    let counter = |task: &u32| {
        Builder::new(event.clone())
            .observe_pid(task.cast_signed())
            .any_cpu()
            .inherit(true)
            .include_kernel()
            .build()
    };
    let counters: Vec<Counter> = tasks.iter().filter_map(|task| counter(task).ok()).collect();
    // A single thread may have ended in the meantime. If no counter opens, the kernel refused.
    (!counters.is_empty()).then_some(counters)
}

fn total(kind: &mut Kind) -> Option<u64> {
    kind.as_mut().map(|counters| counters.iter_mut().filter_map(|counter| counter.read().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[test]
    fn counts_the_reads_of_another_process_and_not_our_own() {
        let mut child =
            Command::new("cat").process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let calls = Calls::begin(&[child.id()]);
        for _ in 0..20 {
            input.write_all(b"x").unwrap();
            // This way most bytes arrive in a read of their own. At least one read happens in any case.
            std::thread::yield_now();
        }
        drop(input);
        // Wait until it is a zombie or gone: tests that run in parallel may reap it.
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", child.id()));
        while stat().is_ok_and(|stat| !stat.contains(") Z ")) {
            std::thread::yield_now();
        }
        let counted = calls.finish();
        let _ = child.wait();
        // Not every kernel lets us count. If it does, it counted at least one read.
        if let (Some(reads), Some(all)) = (counted.reads, counted.system_calls) {
            assert!(reads >= 1 && reads <= all, "{counted:?}");
        }
    }
}
