//! The laboratory: experiment -> plan -> session -> store -> findings.
//!
//! Only [`session`] affects systems, and only [`store`] writes to the disk. [`experiment`] reads experiment files. Everything else
//! here is pure.

// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]

pub mod ask;
mod climb;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]
pub mod compare;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]
pub mod condition;
#[cfg(test)]
mod cost_tests;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]
pub mod duet;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]
pub mod experiment;
mod figures;
pub mod findings;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]
pub mod history;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]
pub mod ledger;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]
pub mod mediation;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]
pub mod meter;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]
pub mod observation;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]
pub mod plan;
pub mod profiles;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]
pub mod quoted;
pub mod rounds;
pub mod search;
pub mod session;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]
mod setup;
#[cfg(test)]
mod simulation;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]
pub mod store;
