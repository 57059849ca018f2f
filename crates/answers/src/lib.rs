//! What a right answer is: checks of statuses, heads and bodies, and the codings in which bodies are compressed.
//!
//! Pure: an answer is bytes, and a verdict is a value. Knows nothing of requests, connections or time.

// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice, clippy::arithmetic_side_effects))]

mod capture;
mod check;
mod coding;
#[cfg(test)]
mod cost_tests;
mod found;
mod head;
mod json;
mod number;
mod parse;
mod statuses;

pub use capture::{Capture, cookies};
pub use check::{Answer, Check, Streamed, Subject};
pub use coding::{ACCEPTED, Broken, Coding, Encodings, accept, decode};
pub use found::{Actual, Excerpt};
pub use head::Head;
pub use parse::CheckError;
pub use statuses::Statuses;
