//! `narrows report`: a saved run, printed again; without a run, the list of runs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use lab::findings::findings;
use lab::store::Store;

use crate::common::{self, End};

/// How a report is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Tables for the terminal.
    #[default]
    Text,
    /// Tables to paste into an issue or a README.
    Markdown,
    /// One object, with a schema version.
    Json,
    /// One line for each scenario.
    Csv,
}

/// `narrows report`
#[derive(clap::Args)]
pub struct Args {
    /// A run's number, `last` or `previous`; none: the list of runs
    run: Option<String>,
    /// How it is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write to this file
    #[arg(short, long, value_name = "FILE", requires = "run")]
    output: Option<PathBuf>,
    #[command(flatten)]
    store: common::StoreArg,
}

/// Prints a saved run, or the list of them.
pub fn run(args: &Args) -> End {
    let store = Store::read(&args.store.path)?;
    let text = match &args.run {
        Some(word) => {
            let run = store.resolve(word)?;
            let found = findings(&store.header(run)?.plan, &store.observations(run)?);
            match args.format {
                Format::Text => {
                    let colour = args.output.is_none() && common::colour();
                    report::text(&found, common::width(), colour)
                }
                Format::Markdown => report::markdown(&found),
                Format::Json => report::json(&found),
                Format::Csv => report::csv(&found),
            }
        }
        None => list(&store)?,
    };
    match &args.output {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => common::print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(store: &Store) -> anyhow::Result<String> {
    let mut text = String::from("run  trials     state        command\n");
    for run in store.runs()? {
        let state = if run.finished { "finished" } else { "unfinished" };
        text.push_str(&format!(
            "{:<4} {:<10} {state:<12} narrows {}\n",
            run.id,
            format!("{}/{}", run.done, run.planned),
            run.command
        ));
    }
    Ok(text)
}
