//! This machine as a place for trials.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use lab::session::Bench;
use systems::Catalog;
use systems::machine::{Limit, Placement};

use crate::common;

/// This machine, for the systems of a catalog.
///
/// # Errors
/// The running program cannot be found.
pub fn bench(catalog: &Catalog, files: Limit, cancel: &Arc<AtomicBool>) -> anyhow::Result<Bench> {
    let narrows = std::env::current_exe().context("cannot find the running program")?;
    let bench = Bench::new(catalog.clone(), narrows, placement(), files, Arc::clone(cancel));
    Ok(bench.telling(|line| common::say(line)))
}

/// The cores of systems and of the generator.
pub fn placement() -> Placement {
    Placement::decide(&systems::machine::available_cores())
}
