//! `narrows why`: tests the reasons of a saved comparison. The faster one is given each suspected cause alone, as further arms of the
//! same rounds.

mod case;
mod suspect;
mod verdicts;

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use lab::store::{RunId, Store};
use systems::Catalog;
use systems::machine::Limit;

use crate::built_in;
use crate::common::{self, End, Usage};
use crate::fleet_args::FleetArgs;
use crate::question::Question;
use crate::report_verb::Saved;
use crate::runs::{Asked, Parts};
use crate::stores::{self, StoreArg};
use crate::try_verb;

use case::{Case, How};
use suspect::Cause;

/// `narrows why`
#[derive(clap::Args)]
pub struct Args {
    /// The number of a run of `narrows try` or `narrows run`, `last` or `previous`
    #[arg(default_value = "last")]
    run: String,
    /// Run as many rounds as fit into this time
    #[arg(long, value_name = "TIME", value_parser = common::duration)]
    budget: Option<Duration>,
    /// Test these causes only, separated by commas. Each takes up to three arms of every round
    #[arg(long, value_name = "CAUSE", value_enum, value_delimiter = ',')]
    cause: Vec<Cause>,
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
    check_question(id, &question)?;
    let case = Case::of(&saved, &args.cause)?;
    let fleet = question.fleet().clone();
    let asked = Asked { command: args.command(id, &path), question: None, at_once: true };
    let how =
        How { store: &path, budget: args.budget, quiet: args.quiet, fleet: &fleet, files, asked: &asked };
    match &question {
        Question::Try(tried) => try_verb::again(tried, &asked, files, |parts| case.test(&how, parts)),
        Question::Run(_) | Question::Tune(_) => {
            let catalog = Catalog::load_all(&built_in::homes()?);
            case.test(&how, Parts { catalog: &catalog, typed: false, scripted: None, services: Vec::new() })
        }
    }
}

impl Args {
    /// The command that tests the same again. What `last` means changes with this run.
    fn command(&self, run: RunId, store: &Path) -> String {
        let budget =
            self.budget.map_or_else(String::new, |time| format!(" --budget {}s", time.as_secs_f64()));
        let cause = self
            .cause
            .iter()
            .filter_map(|cause| Some(format!(" --cause {}", cause.to_possible_value()?.get_name())));
        format!("why {run}{budget}{}{}", cause.collect::<String>(), stores::option(store))
    }
}

/// # Errors
/// The run is of several comparisons, or of none.
fn check_question(run: RunId, question: &Question) -> Result<(), Usage> {
    let wrong = match question {
        Question::Tune(_) => "is a search: compare two of its settings with `narrows try`",
        Question::Try(tried) if tried.is_bisection() => {
            "is a step of a bisection: compare its two commits with `narrows try --git`"
        }
        Question::Run(asked) if asked.lab.is_fake() => "has made-up figures: run its experiment",
        Question::Try(_) | Question::Run(_) => return Ok(()),
    };
    Err(Usage(format!("run {run} {wrong}, and ask why of that run")))
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
