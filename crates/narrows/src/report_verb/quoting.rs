//! `narrows report --readme` and `--badge`: the claim of a saved run in a file of its user, and whether it is still true.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use lab::compare::is_another_machine;
use lab::findings::{FigureView, findings};
use lab::quoted::Standing;
use lab::store::{RunHeader, RunId, RunSummary, Store};
use report::{Damaged, Quote};

use super::Saved;
use crate::common::{self, AtomicFile, End, Usage};
use crate::question::Question;
use crate::{given, stores};

/// The exit code if a claim is no longer true or cannot be judged, as of a condition of `--fail-if`.
const FAILED: u8 = 3;

/// The exit code if a later run leaves it open, as of a condition that is inconclusive.
const OPEN: u8 = 4;

/// Claims in files.
#[derive(clap::Args)]
#[command(next_help_heading = "Claims")]
pub struct QuoteArgs {
    /// Write the first claim of the run [default: last] into this Markdown file, between the lines `<!-- narrows:begin NAME -->` and
    /// `<!-- narrows:end NAME -->`: the sentence, a table, the machine and the command. NAME is that of the experiment, `try` for
    /// `narrows try`. The same run always gives the same bytes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "details", "output", "badge"])]
    readme: Option<PathBuf>,
    /// Take the block with this NAME, so that a file may quote several runs of one experiment
    #[arg(long, value_name = "NAME", requires = "readme", value_parser = block_name)]
    block: Option<String>,
    /// Change nothing, and say of each block of --readme whether a later finished run of the store asked the same. Exit code 0 if none
    /// did, or if it says the same; 3 if the claim is no longer true: the intervals have nothing in common, or the verdict is another
    /// one, or the run has no such ratio; 4 if that run is undecided
    #[arg(long, requires = "readme", conflicts_with = "run")]
    check: bool,
    /// Write the first claim of the run [default: last] as the JSON of an endpoint badge of shields.io
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "details", "output"])]
    badge: Option<PathBuf>,
}

fn block_name(name: &str) -> Result<String, String> {
    match report::is_name(name) {
        true => Ok(name.to_owned()),
        false => Err("a name has letters, digits, `.`, `_` and `-`".to_owned()),
    }
}

impl QuoteArgs {
    /// Does what the options say. None if none of them is given.
    pub fn run(&self, store: &Store, word: Option<&str>) -> Option<End> {
        let word = word.unwrap_or("last");
        match (&self.readme, &self.badge) {
            (Some(path), _) if self.check => Some(self.check(path, store)),
            (Some(path), _) => Some(self.write(path, store, word)),
            (None, Some(path)) => Some(badge(path, store, word)),
            (None, None) => None,
        }
    }

    fn write(&self, path: &Path, store: &Store, word: &str) -> End {
        let (id, saved) = finished(store, word)?;
        let views = first_views(&saved);
        if self.block.is_some() && views.len() > 1 {
            bail!(Usage(format!(
                "run {id} has {} experiments, and each has the block of its own name: leave out --block",
                views.len()
            )));
        }
        let before = text(path)?;
        let mut after = before.clone();
        let mut written = Vec::new();
        for e in &views {
            let name = self.block.as_deref().unwrap_or(&e.name);
            let placed = |damaged: Damaged| anyhow!("{}: {damaged}", path.display());
            if report::replaced(&after, name, "").map_err(placed)?.is_none() {
                continue;
            }
            let run = saved.shown_run();
            let block = report::block(e, &run, is_of_commits(&saved.header));
            let block = block.map_err(|why| anyhow!("run {id}: {why}"))?;
            if let Some(with_it) = report::replaced(&after, name, &block).map_err(placed)? {
                after = with_it;
                written.push(name);
            }
        }
        if written.is_empty() {
            let first = views.first().map_or("try", |e| &e.name);
            let [begin, end] = report::markers(self.block.as_deref().unwrap_or(first));
            bail!(
                "{} has no place for the claim of run {id}: put these two lines where it is to be\n{begin}\n{end}",
                path.display()
            );
        }
        if after != before {
            AtomicFile::create(path)?.write(&after)?;
        }
        common::say(format_args!("run {id} is quoted in {}: {}", path.display(), written.join(", ")));
        Ok(ExitCode::SUCCESS)
    }

    fn check(&self, path: &Path, store: &Store) -> End {
        let mut quotes =
            report::quotes(&text(path)?).map_err(|damaged| anyhow!("{}: {damaged}", path.display()))?;
        quotes.retain(|(name, _)| self.block.as_ref().is_none_or(|wanted| wanted == name));
        if quotes.is_empty() {
            let named = self.block.as_ref().map_or_else(String::new, |name| format!(" `{name}`"));
            bail!(
                "{} has no block{named}: `narrows report RUN --readme FILE` says how to put one there",
                path.display()
            );
        }
        let runs = later_first(store)?;
        let (mut failed, mut open) = (false, false);
        for (name, quote) in &quotes {
            let asked = Question::of_command(&quote.command).with_context(|| {
                format!("{}: the command of block `{name}` cannot be read", path.display())
            })?;
            let standing = later(store, &runs, quote, &asked);
            failed |= matches!(standing, Some((_, _, Standing::Fails(_) | Standing::Unjudged)));
            open |= matches!(standing, Some((_, _, Standing::Open(_))));
            let said = report::standing(&quote.claim, standing);
            let renew = match standing {
                Some((run, _, Standing::Holds(_) | Standing::Fails(_))) => {
                    let own = *name == quote.claim.scenario.experiment;
                    let block = if own { String::new() } else { format!(" --block {name}") };
                    let store = stores::option(store.path());
                    format!("; `narrows report {run}{store} --readme {}{block}` renews it", path.display())
                }
                Some((_, _, Standing::Open(_) | Standing::Unjudged)) => {
                    "; more rounds may decide it".to_owned()
                }
                None => String::new(),
            };
            common::print(format!("{}: {name}: {said}{renew}\n", path.display()))?;
        }
        Ok(match (failed, open) {
            (true, _) => ExitCode::from(FAILED),
            (false, true) => ExitCode::from(OPEN),
            (false, false) => ExitCode::SUCCESS,
        })
    }
}

fn badge(path: &Path, store: &Store, word: &str) -> End {
    let (id, saved) = finished(store, word)?;
    let views = first_views(&saved);
    let first = views.first().ok_or_else(|| anyhow!("run {id} has no experiment"))?;
    let json = report::badge(first).map_err(|why| anyhow!("run {id}: {why}"))?;
    AtomicFile::create(path)?.write(&json)?;
    Ok(ExitCode::SUCCESS)
}

/// A run that has ended. What is not finished may still say something else.
fn finished(store: &Store, word: &str) -> anyhow::Result<(RunId, Saved)> {
    let id = store.resolve(word)?;
    let saved = Saved::read(store, id)?;
    let known = later_first(store)?;
    if !known.iter().any(|run| run.id == id) {
        bail!(
            "run {id} is unfinished, so it may still say something else: `narrows run --resume {id}` continues it"
        );
    }
    Ok((id, saved))
}

/// The deciding figure of each experiment. One that only repeats another with other builds is left out.
fn first_views(saved: &Saved) -> Vec<FigureView<'_>> {
    let experiments = saved.found.experiments.iter().filter(|e| e.repeats.is_none());
    experiments.filter_map(|e| e.views().next()).collect()
}

/// The finished runs of a store, the last one first. Damaged ones are named.
fn later_first(store: &Store) -> anyhow::Result<Vec<RunSummary>> {
    let mut runs = Vec::new();
    for run in store.runs()? {
        match run {
            Ok(run) if run.finished => runs.push(run),
            Ok(_) => {}
            Err(damaged) => common::say(format_args!("left out: {damaged}")),
        }
    }
    runs.reverse();
    Ok(runs)
}

/// The last run that asked what a quoted one asked, on such a machine, if it began later. A run that cannot be read is named.
fn later(
    store: &Store,
    runs: &[RunSummary],
    quote: &Quote,
    asked: &Question,
) -> Option<(RunId, f64, Standing)> {
    let asked = asked.identity(true)?;
    let experiment = &quote.claim.scenario.experiment;
    let read = |run: &RunSummary| -> anyhow::Result<Option<Standing>> {
        let header = store.header(run.id)?;
        let same = Question::of(run.id, &header).ok().and_then(|question| question.identity(true));
        let is_here = !is_another_machine(&header.environment, &quote.machine);
        if same.as_ref() != Some(&asked)
            || !is_here
            || !header.plan.experiments.iter().any(|e| e.name == *experiment)
        {
            return Ok(None);
        }
        Ok(Some(quote.claim.beside(&findings(&header.plan, &store.observations(run.id)?))))
    };
    runs.iter().filter(|run| run.started_unix_s > quote.started_unix_s).find_map(|run| match read(run) {
        Ok(standing) => standing.map(|standing| (run.id, run.started_unix_s, standing)),
        Err(error) => {
            common::say(format_args!("run {} is left out: {error:#}", run.id));
            None
        }
    })
}

/// Whether the arms of a run are commits.
fn is_of_commits(header: &RunHeader) -> bool {
    Question::of(0, header).is_ok_and(|question| question.is_of_commits())
}

fn text(path: &Path) -> anyhow::Result<String> {
    let bytes = given::read(path)?;
    String::from_utf8(bytes).with_context(|| format!("{} is no text in UTF-8", path.display()))
}
