//! The options that say where trials happen and where they are saved. `run`, `try` and `tune` share them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lab::session::{Executor, Fake};
use serde::{Deserialize, Serialize};
use systems::machine::Limit;
use systems::{Catalog, Source};

use crate::fleet_args::FleetArgs;
use crate::stores::StoreArg;

/// Where trials happen, and where they are saved.
#[derive(Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct LabArgs {
    /// Start no systems; take figures, noise and failures from this file
    #[arg(long, value_name = "FILE", hide = true)]
    fake: Option<PathBuf>,
    /// Print plain lines even on a terminal
    #[arg(long)]
    pub quiet: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub store: StoreArg,
    // What has a heading of its own in the help stands last.
    #[command(flatten)]
    #[serde(flatten)]
    pub fleet: FleetArgs,
}

impl LabArgs {
    /// The same, on other machines.
    pub fn on(&self, fleet: &FleetArgs) -> Self {
        Self { fleet: fleet.clone(), ..self.clone() }
    }

    /// Whether the figures are made up, so that no system is started.
    pub fn is_fake(&self) -> bool {
        self.fake.is_some()
    }

    /// The executor that is asked for.
    ///
    /// # Errors
    /// The file of made-up figures is wrong, or the running program cannot be found.
    pub fn lab(
        &self,
        catalog: &Catalog,
        files: Limit,
        cancel: &Arc<AtomicBool>,
    ) -> anyhow::Result<Box<dyn Executor>> {
        match &self.fake {
            Some(path) => Ok(Box::new(Fake::parse(&Source::read(path)?)?)),
            None => self.fleet.lab(catalog, files, cancel),
        }
    }
}
