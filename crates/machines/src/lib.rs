//! Other machines: how each is reached, and what is said over the pipe to it.
//!
//! A [`Machine`] is a command that gives a pipe. At its other end runs `narrows agent`. Both sides send frames, of which each has
//! one [`Message`]. A machine without Narrows receives it through the pipe. Nodes of a Slurm cluster come from `salloc`. The messages
//! of a verb are opaque here. Knows `systems` (process groups); knows nothing of traffic, systems under test or statistics, and has
//! no clock of its own: whoever makes a [`Link`] says which clock it reads.

// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice, clippy::arithmetic_side_effects))]

mod address;
pub mod clock;
mod error;
mod frame;
mod link;
#[cfg(test)]
mod memory_tests;
mod message;
mod program;
mod remote;
mod silence;
mod slurm;

pub use address::{AddressError, Machine, names, parse_list};
pub use clock::{Offset, Round};
pub use error::MachineError;
pub use frame::{FrameError, LONGEST, read as read_frame, write as write_frame};
pub use link::{Clock, Link, Lost, Speaker};
pub use message::{Hello, Message, PROTOCOL};
pub use program::CACHE;
pub use remote::{Caller, Remote, clean};
pub use slurm::{Granted, Node, Request};
