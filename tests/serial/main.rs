//! Tests that need the machine for themselves: they compare times or speeds, or other work would hide what they look for. `scripts/test`
//! runs one at a time, and nothing beside it.

#![allow(unsafe_code, reason = "the shared helpers send signals and set limits")]

#[path = "../support/mod.rs"]
mod support;

mod calibration;
mod open_loop;
mod pools;
mod tries;
mod tunes;
