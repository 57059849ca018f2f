//! A ring of receive buffers from which the kernel picks.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

/// The memory is never freed: a floor ends with its process, and its ring may outlive this value.
pub struct Buffers {
    entries: *mut BufRingEntry,
    memory: *mut u8,
    size: u32,
    count: u16,
    tail: u16,
}

impl Buffers {
    /// Registers `count` buffers of `size` bytes as group 0; `count` is a power of two.
    pub fn register(ring: &IoUring, size: u32, count: u16) -> io::Result<Self> {
        let entries = pages(usize::from(count) * size_of::<BufRingEntry>()).cast();
        let memory = pages(usize::from(count) * size as usize);
        // SAFETY: page-aligned, large enough for `count` entries, and never freed.
        unsafe { ring.submitter().register_buf_ring_with_flags(entries as u64, count, 0, 0)? };
        let mut buffers = Self { entries, memory, size, count, tail: 0 };
        (0..count).for_each(|buffer| buffers.recycle(buffer));
        Ok(buffers)
    }

    /// Gives a buffer to the kernel.
    pub fn recycle(&mut self, buffer: u16) {
        // SAFETY: the index is below `count`, and the kernel reads an entry only after the tail has passed it. The
        // tail is in the first entry's reserved field, which the setters do not touch.
        unsafe {
            let entry = &mut *self.entries.add(usize::from(self.tail & (self.count - 1)));
            entry.set_addr(self.memory.add(usize::from(buffer) * self.size as usize) as u64);
            entry.set_len(self.size);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(self.entries).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

fn pages(len: usize) -> *mut u8 {
    let Ok(layout) = Layout::from_size_align(len.max(1), 4096) else { unreachable!("a small constant") };
    // SAFETY: the size is not zero.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        handle_alloc_error(layout);
    }
    start
}
