//! The laboratory: experiment -> plan -> session -> store -> findings.
//!
//! Only [`session`] affects systems, and only [`store`] writes to the disk. [`experiment`] reads experiment files. Everything
//! else here is pure.

pub mod ask;
mod climb;
pub mod compare;
pub mod doubt;
pub mod experiment;
mod figures;
pub mod findings;
pub mod observation;
pub mod plan;
pub mod rounds;
pub mod search;
pub mod session;
#[cfg(test)]
mod simulation;
pub mod store;
