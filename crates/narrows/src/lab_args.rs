//! The options that say where trials happen and where they are saved. `run` and `tune` share them, and `try` has some.

use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, anyhow};
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
    address: AddressArg,
    #[command(flatten)]
    pub store: common::StoreArg,
}

/// Where systems listen.
#[derive(clap::Args)]
pub struct AddressArg {
    /// Let systems listen at this address of this machine, which {address} stands for in commands [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", value_parser = own_address)]
    pub address: Option<IpAddr>,
}

/// The address in a saved command line.
fn address_of(command: &str) -> anyhow::Result<Option<IpAddr>> {
    const OPTION: &str = "--address";
    let words = shlex::split(command).unwrap_or_default();
    let apart = words.iter().position(|word| word == OPTION).and_then(|index| words.get(index + 1));
    let joined = || words.iter().find_map(|word| word.strip_prefix(OPTION)?.strip_prefix('='));
    let Some(address) = apart.map(String::as_str).or_else(joined) else { return Ok(None) };
    let wrong = |why| anyhow!("the run began with {OPTION} {address}: {why}");
    own_address(address).map(Some).map_err(wrong)
}

/// Reads an address at which systems can listen and be reached.
fn own_address(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr =
        text.parse().map_err(|_| "write an IP address, such as 127.0.0.2, 10.0.0.1 or ::1".to_owned())?;
    if address.is_unspecified() || address.is_multicast() {
        return Err("it is not the address of one machine: `ip address` lists those of this one".to_owned());
    }
    match TcpListener::bind((address, 0)) {
        Ok(_) => Ok(address),
        Err(error) => Err(format!(
            "nothing can listen there: {error}; `ip address` lists the addresses of this machine"
        )),
    }
}

/// An executor.
pub enum Lab {
    /// This machine.
    Bench(Box<Bench>),
    /// One that makes its figures up.
    Fake(Box<Fake>),
}

impl LabArgs {
    /// The executor that is asked for.
    ///
    /// # Errors
    /// The file of made-up figures is wrong, or the running program cannot be found.
    pub fn lab(&self, catalog: &Catalog, files: Limit, cancel: &Arc<AtomicBool>) -> anyhow::Result<Lab> {
        self.lab_at(self.address.address, catalog, files, cancel)
    }

    /// The executor of a saved run. Its systems listen where the command that began it says.
    ///
    /// # Errors
    /// Those of `lab`, and an address that this machine no longer has.
    pub fn lab_of(
        &self,
        command: &str,
        catalog: &Catalog,
        files: Limit,
        cancel: &Arc<AtomicBool>,
    ) -> anyhow::Result<Lab> {
        self.lab_at(address_of(command)?, catalog, files, cancel)
    }

    fn lab_at(
        &self,
        address: Option<IpAddr>,
        catalog: &Catalog,
        files: Limit,
        cancel: &Arc<AtomicBool>,
    ) -> anyhow::Result<Lab> {
        match &self.fake {
            Some(path) => Ok(Lab::Fake(Box::new(Fake::parse(&Source::read(path)?)?))),
            None => bench(address, catalog, files, cancel).map(Box::new).map(Lab::Bench),
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

/// This machine, for the systems of a catalog. They listen at `address`, or else at the usual one.
///
/// # Errors
/// The running program cannot be found.
pub fn bench(
    address: Option<IpAddr>,
    catalog: &Catalog,
    files: Limit,
    cancel: &Arc<AtomicBool>,
) -> anyhow::Result<Bench> {
    let narrows = std::env::current_exe().context("cannot find the running program")?;
    let mut bench = Bench::new(catalog.clone(), narrows, placement(), files, Arc::clone(cancel));
    if let Some(address) = address {
        bench.listen_at(address);
    }
    Ok(bench)
}

/// The cores of systems and of the generator.
pub fn placement() -> Placement {
    Placement::decide(&systems::machine::available_cores())
}
