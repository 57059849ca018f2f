//! What the kernel does for processes, counted by the kernel (perf_event_open(2)): system calls, reads, and
//! instructions where the processor's counters can be used.
//!
//! Counting system calls slows every system call of the machine a little, so it is no part of what is timed. Counters that the
//! kernel refuses (perf_event_paranoid, no tracefs, a virtual processor without counters) are absent, not zero.

use std::io;

use perf_event::events::{Event, Hardware, Tracepoint};
use perf_event::{Builder, Counter};

use crate::proc;

/// The calls that take bytes out of a socket, as the kernel's tracepoints name them.
const READS: [&str; 5] = ["read", "readv", "recvfrom", "recvmsg", "recvmmsg"];

/// Calls of all kinds.
const ALL: &str = "raw_syscalls/sys_enter";

/// What was counted of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// System calls of all kinds.
    pub system_calls: Option<u64>,
    /// Calls of read(2), readv(2), recvfrom(2), recvmsg(2), recvmmsg(2), those without a byte among them.
    pub reads: Option<u64>,
    /// Instructions, user and kernel.
    pub instructions: Option<u64>,
}

/// Counts from its making to [`Calls::finish`].
#[derive(Debug)]
pub struct Calls {
    system_calls: Kind,
    reads: Vec<Kind>,
    instructions: Kind,
}

/// One event, counted for each thread that there was; `None` where the kernel refused.
type Kind = Option<Vec<Counter>>;

impl Calls {
    /// Counts for every thread of these processes, and for those that these start from now on.
    pub fn begin(processes: &[u32]) -> Self {
        let tasks: Vec<u32> = processes.iter().copied().flat_map(proc::tasks).collect();
        let traced = |name: &str| tracepoint(name).ok().and_then(|event| open(&tasks, &event));
        let reads = READS.iter().map(|name| traced(&format!("syscalls/sys_enter_{name}"))).collect();
        let mut calls =
            Self { system_calls: traced(ALL), reads, instructions: open(&tasks, &Hardware::INSTRUCTIONS) };
        let kinds = calls.reads.iter_mut().chain([&mut calls.system_calls, &mut calls.instructions]);
        for counter in kinds.flatten().flatten() {
            // A counter that cannot be enabled counts nothing, and is then absent.
            let _ = counter.enable();
        }
        calls
    }

    /// What was counted.
    pub fn finish(mut self) -> Counted {
        let reads: Option<u64> = self.reads.iter_mut().map(total).sum();
        Counted {
            system_calls: total(&mut self.system_calls).filter(|count| *count > 0),
            reads: reads.filter(|count| *count > 0),
            instructions: total(&mut self.instructions).filter(|count| *count > 0),
        }
    }
}

/// Whether the kernel's tracepoints can be read, without which no calls are counted.
///
/// # Errors
/// Why not: nothing is mounted there (`NotFound`), or it is not for this user (`PermissionDenied`).
pub fn tracing() -> io::Result<()> {
    tracepoint(ALL).map(drop)
}

/// By its name, where the kernel shows its tracing: mounted by itself, or below the older debugging one.
fn tracepoint(name: &str) -> io::Result<Tracepoint> {
    let id = |root: &str| std::fs::read_to_string(format!("{root}/events/{name}/id"));
    let id = id("/sys/kernel/tracing").or_else(|why| id("/sys/kernel/debug/tracing").map_err(|_| why))?;
    Ok(Tracepoint::with_id(id.trim().parse().map_err(io::Error::other)?))
}

fn open<E: Event + Clone>(tasks: &[u32], event: &E) -> Kind {
    let one = |task: &u32| {
        Builder::new(event.clone())
            .observe_pid(task.cast_signed())
            .any_cpu()
            .inherit(true)
            .include_kernel()
            .build()
    };
    let counters: Vec<Counter> = tasks.iter().filter_map(|task| one(task).ok()).collect();
    // A thread may have ended meanwhile; that all of them did is a refusal.
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
            // So that each byte is a read of its own, or nearly: at least one, whatever happens.
            std::thread::yield_now();
        }
        drop(input);
        // Its end can be seen, or it is gone: tests beside this one reap whatever ends.
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", child.id()));
        while stat().is_ok_and(|stat| !stat.contains(") Z ")) {
            std::thread::yield_now();
        }
        let counted = calls.finish();
        let _ = child.wait();
        // Not every kernel counts for us; one that does has seen a read of the bytes, one of their end, and what the program read
        // to start, if that was not over before.
        if let (Some(reads), Some(all)) = (counted.reads, counted.system_calls) {
            assert!(reads >= 1 && reads <= all, "{counted:?}");
        }
    }
}
