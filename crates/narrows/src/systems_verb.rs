//! `narrows systems`: lists what runs here and what is missing, installs what Debian provides, and checks whether a
//! system keeps the contract.

mod check;
mod install;
mod list;

use anyhow::Context as _;
use systems::Catalog;
use systems::probe::Context;

use crate::built_in;
use crate::common::{self, End};
use crate::first_use;
use install::Asked;

/// `narrows systems`
#[derive(clap::Args)]
pub struct Args {
    /// Check whether these systems keep docs/contracts.md: starting, answers, counts, stopping, every knob
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    check: Vec<String>,
    /// Install the missing Debian packages of these systems, or of all, as root or with sudo. Those of another release of Debian
    /// are unpacked in the cache, as any user
    #[arg(long, value_name = "NAMES", value_delimiter = ',', num_args = 0.., conflicts_with_all = ["check", "json"])]
    install: Option<Vec<String>>,
    /// Also list or install the systems of weaker homes: inside a project, those of the user and those that came with narrows
    #[arg(long, conflicts_with = "check")]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists systems, checks them, or installs what they need.
pub fn run(args: &Args) -> End {
    let narrows = std::env::current_exe().context("cannot find the running program")?;
    let catalog = Catalog::load_all(&built_in::homes()?);
    let cancel = common::cancellation()?;
    let context = Context { narrows: &narrows, cancel: &cancel };
    if let Some(names) = &args.install {
        let chosen = match names.as_slice() {
            [] => list::chosen(&catalog, args.all),
            names => names.iter().map(|name| catalog.get(name)).collect::<Result<_, _>>()?,
        };
        first_use::show(&catalog, chosen.iter().copied());
        let asked = if names.is_empty() { Asked::Usual(install::usual(&catalog)) } else { Asked::Named };
        install::install(&chosen, context, &asked)
    } else if args.check.is_empty() {
        let chosen = list::chosen(&catalog, args.all);
        first_use::show(&catalog, chosen.iter().copied());
        list::list(&chosen, &catalog, context, args.json)
    } else {
        let named = args.check.iter().filter_map(|name| catalog.get(name).ok());
        first_use::show(&catalog, named);
        check::check(args, &catalog, context, &cancel)
    }
}
