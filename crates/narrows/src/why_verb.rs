//! `narrows why`: tests the reasons of a saved comparison of commands.

use std::time::Duration;

use lab::store::Store;
use systems::machine::Limit;

use crate::common::{self, End};
use crate::question::Question;
use crate::report_verb::Saved;
use crate::runs::Asked;
use crate::stores::StoreArg;
use crate::try_verb;

/// `narrows why`
#[derive(clap::Args)]
pub struct Args {
    /// The number of a run of `narrows try`, `last` or `previous`
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
    let question = Question::of(id, &store.header(id)?)?;
    let tried = question.into_try().ok_or_else(|| {
        common::Usage(format!(
            "run {id} is not of commands: `narrows why` tests runs of `narrows try`, and not those of commits, files or searches"
        ))
    })?;
    let saved = Saved::read(&store, id)?;
    drop(store);
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let asked = Asked { command: common::command_line(words), question: None, at_once: false };
    try_verb::why::test(&saved, tried.for_why(args.budget, args.quiet, args.store.clone()), &asked, files)
}
