//! Where processes spend their time: which functions run or wait, and who called them, in user space and in
//! the kernel.
//!
//! A [`Profiler`] samples the stacks of processes with the kernel's clock (perf_event_open(2)) and gives a
//! [`Profile`], which is plain data. [`formats`] writes it for other tools. A [`Waiter`] takes the stacks
//! with which threads leave their CPU, and the time until they get one again, and gives [`Waits`]: how long
//! threads were off the CPU, where, and what they waited for. The crate knows processes, `/proc`, and the
//! files of programs; it knows nothing of systems, trials, traffic, statistics or reports, and no other crate
//! of ours.
//!
//! Three things limit what either can say:
//!
//! - The kernel walks stacks by their frame pointers. C and C++ have them with `-fno-omit-frame-pointer`,
//!   Rust has them with `-C force-frame-pointers`, and Go always has them. Without them a stack has one frame
//!   in user space, the function that ran; [`Profile::shallow`] counts such samples. If only the function
//!   that ran has no frame, its caller is missing: compilers often leave out the frames of functions that
//!   call no other, and distributions build libc without frame pointers. On x86-64 such callers are found
//!   nevertheless if the file says how (`.eh_frame`) and they are within the first 2 KiB of the stack, or
//!   1 KiB where a thread leaves its CPU.
//! - Code that is made while a program runs has names only if its runtime writes them to `/tmp/perf-PID.map`:
//!   Node with `--perf-basic-prof`, Python from 3.12 with `-X perf` (if it was built with frame pointers),
//!   the BEAM with `+JPperf true`. A JVM is asked for it, which JDK 17 and later can; its stacks have callers only
//!   with `-XX:+PreserveFramePointer`.
//! - A timer's interrupt waits where the kernel has interrupts disabled. Such time appears where they are
//!   enabled again.

// What is sampled was written by others: their files and their names may not make this crate panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice, clippy::arithmetic_side_effects))]

mod cfi;
#[cfg(test)]
mod cost_tests;
pub mod formats;
mod jvm;
mod kernel;
mod maps;
mod names;
pub mod packed;
mod perf_map;
mod profile;
mod profiler;
mod reading;
mod refused;
mod resolve;
mod ring;
mod stacks;
mod switches;
mod symbols;
mod tasks;
mod unwind;
mod wait;
mod waiter;
mod waits;

pub use kernel::KernelTime;
pub use profile::{Frame, FunctionTime, Kind, Profile, Stack, Unlike};
pub use profiler::{Options, Profiler};
pub use refused::Refused;
pub use symbols::Symbols;
pub use wait::Wait;
pub use waiter::Waiter;
pub use waits::{WaitStack, WaitTime, Waits};
