//! The options that say where trials happen and where they are saved. `run` and `tune` share them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use lab::session::{Bench, Executor, Fake};
use systems::machine::{Limit, Placement};
use systems::{Catalog, Source};

use crate::common;

/// Where trials happen, and where they are saved.
#[derive(clap::Args)]
pub struct LabArgs {
    /// Start no systems; take figures, noise and failures from this file
    #[arg(long, value_name = "FILE", hide = true)]
    fake: Option<PathBuf>,
    /// Print plain lines even on a terminal
    #[arg(long)]
    pub quiet: bool,
    #[command(flatten)]
    pub store: common::StoreArg,
}

/// An executor.
pub enum Lab {
    /// This machine.
    Bench(Box<Bench>),
    /// One that makes its figures up.
    Fake(Box<Fake>),
}

impl LabArgs {
    /// Whether the figures are made up, so that no system is started.
    pub fn is_fake(&self) -> bool {
        self.fake.is_some()
    }

    /// The executor that is asked for.
    ///
    /// # Errors
    /// The file of made-up figures is wrong, or the running program cannot be found.
    pub fn lab(&self, catalog: &Catalog, files: Limit, cancel: &Arc<AtomicBool>) -> anyhow::Result<Lab> {
        match &self.fake {
            Some(path) => Ok(Lab::Fake(Box::new(Fake::parse(&Source::read(path)?)?))),
            None => bench(catalog, files, cancel).map(Box::new).map(Lab::Bench),
        }
    }
}

impl Lab {
    /// What carries out trials.
    pub fn executor(&mut self) -> &mut dyn Executor {
        match self {
            Self::Bench(bench) => &mut **bench,
            Self::Fake(fake) => &mut **fake,
        }
    }

    /// This machine, if trials happen here.
    pub fn bench(&mut self) -> Option<&mut Bench> {
        match self {
            Self::Bench(bench) => Some(bench),
            Self::Fake(_) => None,
        }
    }
}

/// This machine, for the systems of a catalog.
///
/// # Errors
/// The running program cannot be found.
pub fn bench(catalog: &Catalog, files: Limit, cancel: &Arc<AtomicBool>) -> anyhow::Result<Bench> {
    let narrows = std::env::current_exe().context("cannot find the running program")?;
    Ok(Bench::new(catalog.clone(), narrows, placement(), files, Arc::clone(cancel)))
}

/// The cores of systems and of the generator.
pub fn placement() -> Placement {
    Placement::decide(&systems::machine::available_cores())
}
