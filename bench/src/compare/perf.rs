//! Kernel counters for a whole program and all its threads (`perf_event_open`).
//!
//! A counter is opened for the calling thread, disabled and inherited. It is enabled in a child when the child executes
//! another program. So it counts exactly that program from its first instruction, and nothing of the harness.

use std::io;

use perf_event::Builder;
use perf_event::events::{Event, Hardware, Tracepoint};

/// A counter of events in the children of this thread.
pub struct Counter(perf_event::Counter);

impl Counter {
    /// Counts instructions, in user space and in the kernel.
    pub fn instructions() -> io::Result<Self> {
        Self::open(Hardware::INSTRUCTIONS)
    }

    /// Counts system calls.
    pub fn system_calls() -> io::Result<Self> {
        let path = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id";
        let id = std::fs::read_to_string(path)?;
        Self::open(Tracepoint::with_id(id.trim().parse().map_err(io::Error::other)?))
    }

    fn open(event: impl Event) -> io::Result<Self> {
        let mut builder = Builder::new(event);
        builder.inherit(true).enable_on_exec(true).include_kernel().build().map(Self)
    }

    /// The count of children that have ended.
    pub fn read(mut self) -> Option<u64> {
        self.0.read().ok().filter(|count| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_child_and_not_us() {
        // Not every kernel allows it.
        let Ok(counter) = Counter::system_calls() else { return };
        for _ in 0..100_000 {
            std::thread::yield_now();
        }
        assert!(std::process::Command::new("true").status().unwrap().success());
        let calls = counter.read().unwrap();
        assert!((10..10_000).contains(&calls), "{calls}");
    }
}
