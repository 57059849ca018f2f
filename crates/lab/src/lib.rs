//! The laboratory: experiment -> plan -> session -> store -> findings.
//!
//! Only [`session`] has effects on systems and only [`store`] on the disk; everything else here is pure.

pub mod compare;
pub mod doubt;
pub mod experiment;
pub mod findings;
pub mod observation;
pub mod plan;
pub mod rounds;
pub mod session;
#[cfg(test)]
mod simulation;
pub mod store;
