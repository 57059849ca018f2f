//! What needs the machine for itself: tests that compare times, and those that other work would make blind. One at a time,
//! however they are started: each holds [`alone`].

#[path = "../support/mod.rs"]
mod support;

mod calibration;
mod open_loop;
mod pools;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held while a test of this binary runs.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
