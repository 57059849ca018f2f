//! Systems under test: their work as values, their manifests and knobs, how they are built, started and stopped, and what they use.
//!
//! Knows processes, files, `/proc`, and how a server is reached; knows nothing of the traffic that work becomes, of statistics or
//! of reports.

// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice, clippy::arithmetic_side_effects))]

pub mod allotment;
pub mod alongside;
mod attach;
pub mod build;
pub mod calls;
pub mod catalog;
mod cgroup;
pub mod contact;
#[cfg(test)]
mod cost_tests;
pub mod debian;
mod descent;
pub mod error;
mod figure;
mod group;
pub mod homes;
pub mod input;
pub mod install;
pub mod keeper;
pub mod knob;
pub mod launch;
mod listening;
mod lock;
pub mod machine;
pub mod manifest;
pub mod network;
mod output;
pub mod parcel;
pub mod piped;
pub mod ports;
pub mod probe;
mod proc;
pub mod process;
mod ready;
mod reference;
pub mod relay;
pub mod sample;
pub mod scratch;
mod service;
mod stamp;
pub mod subprocess;
#[allow(unsafe_code, reason = "the one module for it")]
mod sys;
pub mod tcp;
pub mod template;
pub mod trace;
mod tree;
pub mod unread;
pub mod wait;
pub mod work;
mod workload;

pub use build::{Built, build};
pub use catalog::{Catalog, CatalogError};
pub use debian::Debian;
pub use error::{Stage, SystemError};
pub use figure::Figure;
pub use homes::{Home, Origin};
pub use input::{InputError, Source};
pub use keeper::Fleeting;
pub use knob::{Knob, Point, Value};
pub use launch::Launch;
pub use listening::Listening;
pub use machine::{Environment, Limit, Placement, raise_file_limit};
pub use manifest::{Draft, Manifest, Remedies};
pub use output::said;
pub use parcel::Parcel;
pub use ports::{free_port, free_port_at, port_free};
pub use probe::{Availability, Context, Missing, availability};
pub use process::{Exit, Running, Stopped};
pub use sample::{Sampler, Use};
pub use scratch::Scratch;
pub use service::Service;
pub use work::{Work, is_reference};
pub use workload::{Role, Workload};
