//! Tests that need the machine for themselves: they compare times or speeds, or other work would hide what they look for. They
//! run one at a time, however they are started, because each holds [`alone`].

#![allow(unsafe_code, reason = "the shared helpers send signals and set limits")]

#[path = "../support/mod.rs"]
mod support;

mod calibration;
mod open_loop;
mod pools;
mod tries;
mod tunes;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lock that each test of this binary holds.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
