//! The ring of receive buffers from which the kernel picks (`IORING_REGISTER_PBUF_RING`).

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

pub(super) struct Buffers {
    group: u16,
    ring: Map,
    memory: Map,
    size: u32,
    count: u16,
    tail: u16,
}

impl Buffers {
    /// Registers `count` buffers of `size` bytes as a group; `count` is a power of two.
    pub(super) fn register(uring: &IoUring, group: u16, size: u32, count: u16) -> io::Result<Self> {
        assert!(count.is_power_of_two(), "the kernel requires a power of two");
        let ring = Map::new(usize::from(count) * size_of::<BufRingEntry>())?;
        let memory = Map::new(size as usize * usize::from(count))?;
        // SAFETY: the ring's memory is page-aligned, large enough for `count` entries, and lives as long as
        // `Buffers`, which outlives the io_uring (field order in `Uring`).
        unsafe { uring.submitter().register_buf_ring_with_flags(ring.start as u64, count, group, 0)? };
        let mut buffers = Self { group, ring, memory, size, count, tail: 0 };
        for buffer in 0..count {
            buffers.recycle(buffer);
        }
        Ok(buffers)
    }

    /// The kernel's number for the group.
    pub(super) fn group(&self) -> u16 {
        self.group
    }

    pub(super) fn start(&self, buffer: u16) -> *const u8 {
        // SAFETY: the kernel hands out only buffer numbers that `recycle` gave it, all below `count`.
        unsafe { self.memory.start.add(usize::from(buffer) * self.size as usize) }
    }

    pub(super) fn recycle(&mut self, buffer: u16) {
        let address = self.start(buffer) as u64;
        let entries = self.ring.start.cast::<BufRingEntry>();
        // SAFETY: the index is below `count`, and the kernel reads an entry only after the tail has passed it. The
        // tail is in the first entry's reserved field, which `set_*` does not touch.
        unsafe {
            let entry = &mut *entries.add(usize::from(self.tail & (self.count - 1)));
            entry.set_addr(address);
            entry.set_len(self.size);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(entries).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

/// Page-aligned anonymous memory. The kernel provides each page when it is first touched.
struct Map {
    start: *mut u8,
    len: usize,
}

impl Map {
    fn new(len: usize) -> io::Result<Self> {
        // SAFETY: an anonymous private mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: start.cast(), len })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: our own mapping, unmapped once.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}
