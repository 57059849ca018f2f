//! `narrows why`: tests the reasons of a saved comparison. The faster one is given each suspected cause alone, as further arms of the
//! same rounds.

mod case;
mod suspect;
mod verdicts;

use std::time::Duration;

use lab::store::{RunId, Store};
use systems::Catalog;
use systems::machine::Limit;

use crate::built_in;
use crate::common::{self, End, Usage};
use crate::fleet_args::FleetArgs;
use crate::question::Question;
use crate::report_verb::Saved;
use crate::runs::{Asked, Parts};
use crate::stores::StoreArg;
use crate::try_verb;

use case::{Case, Place};

/// `narrows why`
#[derive(clap::Args)]
pub struct Args {
    /// The number of a run of `narrows try` or `narrows run`, `last` or `previous`
    #[arg(default_value = "last")]
    run: String,
    /// Run as many rounds as fit into this time
    #[arg(long, value_name = "TIME", value_parser = common::duration)]
    budget: Option<Duration>,
    /// Print plain lines even on a terminal
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    store: StoreArg,
}

/// Tests the reasons, and prints which are proven and which excluded.
pub fn run(args: &Args, files: Limit) -> End {
    let path = args.store.newest()?;
    let store = Store::read(&path)?;
    let id = store.resolve(&args.run)?;
    let saved = Saved::read(&store, id)?;
    drop(store);
    let mut question = Question::of(id, saved.header())?;
    check_place(id, question.fleet())?;
    let case = Case::of(&saved)?;
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let asked = Asked { command: common::command_line(words), question: None, at_once: true };
    let place = Place { store: &path, budget: args.budget, quiet: args.quiet, files, asked: &asked };
    match &question {
        Question::Run(_) => {
            let catalog = Catalog::load_all(&built_in::homes()?);
            case.test(&place, Parts { catalog: &catalog, typed: false, scripted: None, services: Vec::new() })
        }
        Question::Try(tried) => try_verb::again(tried, &asked, files, |parts| case.test(&place, parts)),
        Question::Tune(_) => Err(Usage(format!(
            "run {id} is a search: compare two of its settings with `narrows try`, and ask why of that run"
        ))
        .into()),
    }
}

/// # Errors
/// The run was on other machines, where nothing can be preloaded.
fn check_place(run: RunId, fleet: &FleetArgs) -> Result<(), Usage> {
    match fleet.is_here() {
        true => Ok(()),
        false => Err(Usage(format!(
            "run {run} was on other machines, and reasons are tested on this one only: compare the same here, without --sut and \
             --gen"
        ))),
    }
}
