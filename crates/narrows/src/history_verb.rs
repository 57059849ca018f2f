//! `narrows history`: the ratios that all runs of a question have found, and where they changed.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use lab::findings::findings;
use lab::history::{Occasion, history};
use lab::store::{RunId, Store, StoreError};
use serde_json::Value;

use crate::common::{self, AtomicFile, End};
use crate::question::Question;
use crate::stores::StoreArg;

/// The most runs of a question that are read, the last ones. More take long to read, and to search for changes.
const MOST_RUNS: usize = 300;

/// The format of a history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table for the terminal.
    #[default]
    Text,
    /// One JSON object, with a schema version.
    Json,
    /// A line for each run and scenario, with raw numbers.
    Csv,
    /// The CSV that Apache Otava reads: time, commit, run, and a metric for each scenario.
    Otava,
}

/// `narrows history`
#[derive(clap::Args)]
pub struct Args {
    /// A run that asked the question: its number, `last` or `previous`. Or the name of an experiment, for the last run that has it
    #[arg(value_name = "RUN|EXPERIMENT", default_value = "last")]
    word: String,
    /// The format of the history
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write a page with a picture of each history to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArg,
}

/// Prints the history of a question.
pub fn run(args: &Args) -> End {
    let store = Store::read(&args.store.newest()?)?;
    let (run, experiment) = match store.resolve(&args.word) {
        Ok(run) => (run, None),
        Err(unknown @ StoreError::NoRun { .. }) => match last_with(&store, &args.word)? {
            Some(run) => (run, Some(&args.word)),
            None => bail!("{unknown}; and no run has an experiment of this name"),
        },
        Err(error) => return Err(error.into()),
    };
    let asked = Question::of(run, &store.header(run)?)?.identity(false);
    let mut all = history(&occasions(&store, asked.as_ref())?);
    all.retain(|series| experiment.is_none_or(|name| *name == series.experiment));
    if all.is_empty() {
        bail!(
            "no finished run that asks what run {run} asked has a ratio to its base or to the reference: a history needs runs of \
             several commands, or of an experiment, with three rounds or more"
        );
    }
    let text = match args.format {
        Format::Text => report::history_text(&all, common::width(), common::colour()),
        Format::Json => report::history_json(&all),
        Format::Csv => report::history_csv(&all),
        Format::Otava => report::history_otava(&all),
    };
    if let Some(path) = &args.html {
        AtomicFile::create(path)?.write(report::history_html(&all))?;
    }
    common::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The last run with an experiment of this name. What cannot be read has none.
fn last_with(store: &Store, name: &str) -> anyhow::Result<Option<RunId>> {
    let has = |run: &RunId| {
        store.header(*run).is_ok_and(|header| header.plan.experiments.iter().any(|e| e.name == name))
    };
    Ok(store.before(None)?.into_iter().find(has))
}

/// The last finished runs that asked the same, the oldest first. Those that cannot be read are named and left out.
fn occasions(store: &Store, asked: Option<&Value>) -> anyhow::Result<Vec<Occasion>> {
    let mut occasions = Vec::new();
    for run in store.runs()?.into_iter().rev() {
        let read = run.and_then(|run| if run.finished { occasion(store, run.id, asked) } else { Ok(None) });
        match read {
            Ok(found) => occasions.extend(found),
            Err(damaged) => common::say(format_args!("left out: {damaged}")),
        }
        if occasions.len() == MOST_RUNS {
            common::say(format_args!("only the last {MOST_RUNS} runs are read"));
            break;
        }
    }
    occasions.reverse();
    Ok(occasions)
}

/// What a run found. None if it asked something else.
fn occasion(store: &Store, run: RunId, asked: Option<&Value>) -> Result<Option<Occasion>, StoreError> {
    let header = store.header(run)?;
    let Some(question) = Question::of(run, &header).ok().filter(|it| it.identity(false).as_ref() == asked)
    else {
        return Ok(None);
    };
    Ok(Some(Occasion {
        run,
        started_unix_s: header.started_unix_s,
        of_commits: question.is_of_commits(),
        findings: findings(&header.plan, &store.observations(run)?),
    }))
}
