//! Counters of the kernel for a whole program and all its threads (`perf_event_open`).
//!
//! A counter is opened for the calling thread, asleep and inherited; it wakes in a child when that becomes another
//! program. So it counts exactly the program, from its first instruction, and nothing of the harness.

use std::io;

use perf_event::Builder;
use perf_event::events::{Event, Hardware, Tracepoint};

/// A counter of what children of this thread do.
pub struct Counter(perf_event::Counter);

impl Counter {
    /// Instructions, the program's own and the kernel's for it.
    pub fn instructions() -> io::Result<Self> {
        Self::open(Hardware::INSTRUCTIONS)
    }

    /// System calls.
    pub fn system_calls() -> io::Result<Self> {
        let path = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id";
        let id = std::fs::read_to_string(path)?;
        Self::open(Tracepoint::with_id(id.trim().parse().map_err(io::Error::other)?))
    }

    fn open(event: impl Event) -> io::Result<Self> {
        let mut asleep = Builder::new(event);
        asleep.inherit(true).enable_on_exec(true).include_kernel().build().map(Self)
    }

    /// What was counted in children that have ended.
    pub fn read(mut self) -> Option<u64> {
        self.0.read().ok().filter(|count| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_child_and_not_us() {
        // Not every kernel lets us.
        let Ok(counter) = Counter::system_calls() else { return };
        for _ in 0..100_000 {
            std::thread::yield_now();
        }
        assert!(std::process::Command::new("true").status().unwrap().success());
        let calls = counter.read().unwrap();
        assert!((10..10_000).contains(&calls), "{calls}");
    }
}
