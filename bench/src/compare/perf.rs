//! Counters of the kernel for a whole program and all its threads (`perf_event_open`).
//!
//! A counter is opened for the calling thread, asleep and inherited; it wakes in a child when that becomes another
//! program. So it counts exactly the program, from its first instruction, and nothing of the harness.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

/// `struct perf_event_attr` in its first published size.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_kind: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
}

const HARDWARE: u32 = 0;
const TRACEPOINT: u32 = 2;
const INSTRUCTIONS: u64 = 1;
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const CLOSE_ON_EXEC: u64 = 1 << 3;

/// A counter of what children of this thread do.
pub struct Counter(File);

impl Counter {
    /// Instructions, the program's own and the kernel's for it.
    pub fn instructions() -> io::Result<Self> {
        Self::open(HARDWARE, INSTRUCTIONS)
    }

    /// System calls.
    pub fn system_calls() -> io::Result<Self> {
        let path = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id";
        let id = std::fs::read_to_string(path)?;
        Self::open(TRACEPOINT, id.trim().parse().map_err(io::Error::other)?)
    }

    fn open(kind: u32, config: u64) -> io::Result<Self> {
        let attributes = Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            config,
            flags: DISABLED | INHERIT | ENABLE_ON_EXEC,
            ..Attributes::default()
        };
        // SAFETY: the structure has the size that it names; the descriptor that comes back is owned by the file.
        unsafe {
            let fd = libc::syscall(libc::SYS_perf_event_open, &attributes, 0, -1, -1, CLOSE_ON_EXEC);
            if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(File::from_raw_fd(fd as i32))) }
        }
    }

    /// What was counted in children that have ended.
    pub fn read(mut self) -> Option<u64> {
        let mut value = [0; 8];
        self.0.read_exact(&mut value).ok()?;
        Some(u64::from_ne_bytes(value)).filter(|count| *count > 0)
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
