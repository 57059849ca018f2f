//! How much memory messages take while they are read, counted by the allocator.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::frame::{MOST_MEMORY, memory};
use crate::message::Message;

/// What an allocator needs beside each piece, at most.
const BESIDE: usize = 16;

thread_local! {
    static TAKEN: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

/// Counts what each thread takes. Other tests run at the same time.
struct Counting;

fn count(more: usize, less: usize) {
    // Nothing is counted while a thread ends.
    let _ = TAKEN.try_with(|taken| {
        taken.set(taken.get().saturating_add(more).saturating_sub(less));
        MOST.with(|most| most.set(most.get().max(taken.get())));
    });
}

// SAFETY: each call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() + BESIDE, 0);
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        count(0, layout.size() + BESIDE);
        // SAFETY: as the caller says.
        unsafe { System.dealloc(piece, layout) }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as the caller says.
        unsafe { System.realloc(piece, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A message with as many of these values in a list as may be, and so many more.
pub(crate) fn full(value: &str, more: usize) -> Vec<u8> {
    let (start, end) = (r#"{"message":"says","what":["#, "0]}");
    let room = MOST_MEMORY - memory([start, end].concat().as_bytes());
    let each = format!("{value},");
    [start, &each.repeat(room / memory(each.as_bytes()) + more), end].concat().into_bytes()
}

#[test]
fn no_message_takes_more_memory_than_one_may() {
    let wide: Vec<String> = (0..30).map(|key| format!("\"{key}\":0")).collect();
    let wide = format!("{{{}}}", wide.join(","));
    let deep = "[".repeat(60) + "0" + &"]".repeat(60);
    let long = format!("\"{}\"", "x".repeat(1 << 20));
    for value in
        ["0", "[]", "[0]", "[1,1]", "{}", r#"{"":0}"#, r#"{"a":{"b":0}}"#, r#""a""#, &wide, &deep, &long]
    {
        let frame = full(value, 0);
        assert!(memory(&frame) <= MOST_MEMORY);
        let before = TAKEN.get();
        MOST.set(before);
        let message = Message::parse(&frame);
        let taken = MOST.get() - before + frame.len();
        assert!(message.is_some());
        let shown: String = value.chars().take(40).collect();
        println!("{:9} bytes of {shown} take {:3} MiB", frame.len(), taken >> 20);
        assert!(taken <= MOST_MEMORY, "{shown}: {taken}");
    }
}
