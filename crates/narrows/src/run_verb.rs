//! `narrows run`: goes from experiments to a plan, a session, findings and a report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use lab::experiment::grid::{Excluded, Overrides, Request};
use lab::experiment::{self, Form};
use lab::findings::{Findings, findings};
use lab::observation::{Observation, Outcome, Scenario};
use lab::plan::{self, Plan, Planned};
use lab::session::{self, Away, Executor};
use lab::store::{RunHeader, RunId, Store, StoreError};
use serde::{Deserialize, Serialize};
use systems::machine::Limit;
use systems::{Catalog, Home, InputError, is_reference};

use report::number;

use crate::built_in;
use crate::command::learn;
use crate::common::{self, AtomicFile, End, INTERRUPTED};
use crate::first_use;
use crate::fleet::bereft::Bereft;
use crate::lab_args::LabArgs;
use crate::report_verb;
use crate::stores;

mod announcement;
mod earlier;
mod interim;
mod progress;

/// `narrows run`
#[derive(Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Args {
    /// Names of experiments under experiments/; without one, all that are not marked `on_request`
    #[arg(value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    /// Run all experiments under experiments/
    #[arg(long, conflicts_with = "experiments")]
    all: bool,
    /// Run the short form of each experiment (the default)
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Run the complete grids of the published benchmarks; this can take hours
    #[arg(long)]
    full: bool,
    /// Run only these systems (the reference always takes part)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    systems: Vec<String>,
    /// Replace the values of a knob, as in `--set buffer=1460,64K`
    #[arg(long, value_name = "KNOB=VALUES")]
    set: Vec<String>,
    /// Trials of each scenario: a number; `auto`, which runs as many as fit into the budget; or `file`, which takes the
    /// number from the experiment's file
    #[arg(long, value_name = "N", value_parser = rounds, default_value = "auto")]
    rounds: Rounds,
    /// Run only as many rounds as fit into this time, such as 10m, and stop early when every comparison is decided.
    /// Without this, a quick run takes at most 10 rounds and 270s, and a full run 12h
    #[arg(long, value_name = "TIME", value_parser = common::duration)]
    budget: Option<Duration>,
    /// The seed that shuffles the order of trials; by default a new one, which is saved with the run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Continue an unfinished run: its number, `last` or `previous`. Its options were saved with it
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = ["experiments", "all", "quick", "full", "systems", "set", "rounds", "budget", "seed", "sut", "generators", "address"]
    )]
    #[serde(skip)]
    pub resume: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub lab: LabArgs,
}

/// The number of trials of each scenario.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Rounds {
    /// Add rounds as long as they fit into the budget.
    #[default]
    Auto,
    /// The number in the experiment's file.
    File,
    /// A fixed number.
    Fixed(u32),
}

fn rounds(text: &str) -> Result<Rounds, String> {
    match text.parse() {
        _ if text == "auto" => Ok(Rounds::Auto),
        _ if text == "file" => Ok(Rounds::File),
        Ok(rounds @ 1..=10_000) => Ok(Rounds::Fixed(rounds)),
        _ => Err("`auto`, `file`, or a number from 1 to 10000".to_owned()),
    }
}

/// The default limit for the trials of a quick run. The first rounds run even if they take longer. With everything
/// around the trials, a quick run stays within five minutes.
const QUICK_BUDGET: Duration = Duration::from_secs(270);

/// The default limit for the trials of a full run.
const FULL_BUDGET: Duration = Duration::from_secs(12 * 3600);

/// A run that is saved: a new one, or one that goes on.
pub struct Run {
    pub store: Store,
    /// Where the store is.
    pub path: PathBuf,
    pub id: RunId,
    /// The command that began it, and its plan.
    pub header: RunHeader,
    /// Whether progress is shown in plain lines.
    pub quiet: bool,
}

impl Run {
    /// Saves the plan of a new run, which the running command began.
    pub fn begin(
        store: Store,
        path: PathBuf,
        plan: Plan,
        executor: &dyn Executor,
        quiet: bool,
    ) -> anyhow::Result<Self> {
        let header = RunHeader {
            started_unix_s: since_epoch().as_secs_f64(),
            command: common::command_line(std::env::args().skip(1)),
            question: None,
            plan,
            environment: executor.environment(),
        };
        Ok(Self { id: store.begin(&header)?, store, path, header, quiet })
    }

    /// Whether it compares commits, whose clones are not saved with it.
    pub fn is_of_commits(&self) -> bool {
        let words = shlex::split(&self.header.command).unwrap_or_default();
        words.first().is_some_and(|verb| verb == "try")
            && words.iter().any(|word| word == "--git" || word.starts_with("--git="))
    }

    /// Checks that a catalog has every system of the plan.
    pub fn check_systems(&self, catalog: &Catalog) -> anyhow::Result<()> {
        let mut systems = self.header.plan.trials.iter().map(|trial| &trial.scenario.system);
        match systems.find_map(|system| catalog.get(system).err()) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Checks that the commands of the run, unless it has ended, start and answer as when it began. Returns false if the user
    /// interrupted.
    pub fn look_again(&self, executor: &mut dyn Executor) -> anyhow::Result<bool> {
        let ended = self.store.runs()?.iter().any(|run| run.id == self.id && run.finished);
        if ended { Ok(true) } else { learn::look_again(executor, &self.header.plan) }
    }

    /// The systems of the plan.
    pub fn systems(&self) -> BTreeSet<String> {
        self.header.plan.trials.iter().map(|trial| trial.scenario.system.clone()).collect()
    }
}

impl Args {
    /// The saved run that is to go on. None if a new one is asked for.
    ///
    /// # Errors
    /// There is no such run, or it cannot go on.
    pub fn unfinished(&self) -> anyhow::Result<Option<(Run, &LabArgs)>> {
        let Some(word) = &self.resume else { return Ok(None) };
        let path = self.lab.store.newest()?;
        let store = Store::open(&path)?;
        let id = store.resolve(word)?;
        let header = store.header(id)?;
        let run = Run { store, path, id, header, quiet: self.lab.quiet };
        if run.is_of_commits() {
            bail!(
                "run {id} cannot be continued, because the clones of its commits are not saved with it: `narrows {}` runs it again",
                run.header.command
            );
        }
        Ok(Some((run, &self.lab)))
    }
}

/// Runs experiments, saves every trial, and prints what was found.
pub fn run(args: &Args, files: Limit) -> End {
    let cancel = common::cancellation()?;
    let catalog = Catalog::load_all(&built_in::homes()?);
    let path = args.lab.store.of_experiments();
    let store = Store::open(&path)?;
    let mut executor = args.lab.lab(&catalog, files, &cancel)?;
    let executor = &mut *executor;
    let Some(plan) = plan(args, &catalog, executor)? else { return not_begun(executor) };
    let run = Run::begin(store, path, plan, executor, args.lab.quiet)?;
    let done = carry_out(executor, &run, &cancel)?;
    Ok(finish(&run, done, Screen::Answers)?.0)
}

/// Says why there is no first trial.
///
/// # Errors
/// A machine stays away.
pub fn not_begun(executor: &dyn Executor) -> End {
    if let Some(away) = executor.away() {
        bail!("{}; nothing was measured or saved", away.why);
    }
    common::say("interrupted before the first trial: nothing was measured or saved");
    Ok(ExitCode::from(INTERRUPTED))
}

/// Says that a saved run does not go on, because the user interrupted.
pub fn not_resumed(run: &Run) -> ExitCode {
    common::say(format_args!("interrupted before the next trial: run {} is as it was", run.id));
    ExitCode::from(INTERRUPTED)
}

/// Continues a saved run whose systems have manifests.
pub fn resume(run: &Run, lab: &LabArgs, files: Limit) -> End {
    let cancel = common::cancellation()?;
    let catalog = Catalog::load_all(&built_in::homes()?);
    run.check_systems(&catalog)?;
    let mut executor = lab.lab(&catalog, files, &cancel)?;
    if !lab.is_fake() {
        first_use::show_named(&catalog, &run.systems());
    }
    // A system that lacks something by now fails its trials. An interruption ends the run before its next trial.
    let _ = executor.probe(&run.systems());
    let done = carry_out(&mut *executor, run, &cancel)?;
    Ok(finish(run, done, Screen::Answers)?.0)
}

/// What stopped a run before its end.
pub enum Stopped {
    Interrupted,
    /// A machine stays away.
    Away(Away),
    /// A trial could not be saved.
    Store(StoreError),
}

/// Carries out what is missing of a run, and shows its progress. Says whether all was done, or why not.
pub fn carry_out(
    executor: &mut dyn Executor,
    run: &Run,
    cancel: &AtomicBool,
) -> anyhow::Result<Result<(), Stopped>> {
    let noise = earlier::noise(run);
    let Run { store, header: RunHeader { plan, .. }, quiet, .. } = run;
    let run = run.id;
    let pending = store.missing(run)?;
    announcement::announce(plan, pending.len(), run, noise);
    executor.prepare(plan, &pending, &mut |line| common::say(line));
    let mut progress = progress::RunProgress::new(plan, &pending, store.observations(run)?, *quiet);
    let done = session::carry_out(executor, store, run, cancel, &mut progress);
    progress.clear();
    Ok(match (done, executor.away()) {
        (Ok(true), _) => Ok(()),
        (Ok(false), None) => Err(Stopped::Interrupted),
        (Ok(false), Some(away)) => Err(Stopped::Away(away.clone())),
        (Err(error), _) => Err(Stopped::Store(error)),
    })
}

/// What is printed at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    /// A few lines for each experiment.
    Answers,
    /// The answer and a table for each.
    Tables,
    /// Nothing, because the caller prints a format of its own. Where the rest is goes to standard error.
    Nothing,
    /// Nothing at all: the run is one step of several.
    Step,
}

/// Plans a new run. `None` if the user interrupted.
fn plan(args: &Args, catalog: &Catalog, executor: &mut dyn Executor) -> anyhow::Result<Option<Plan>> {
    let form = if args.full { Form::Full } else { Form::Quick };
    let rounds = match args.rounds {
        Rounds::Auto | Rounds::File => None,
        Rounds::Fixed(rounds) => Some(rounds),
    };
    let overrides = Overrides { systems: args.systems.clone(), set: args.set.clone(), rounds };
    let mut requests: Vec<Request> = chosen(args, catalog.homes())?
        .into_iter()
        .map(|experiment| Request { experiment, form, overrides: overrides.clone() })
        .collect();
    for (folder, error) in catalog.broken() {
        common::say(format_args!("systems/{folder} is left out: {}", error.one_line()));
    }
    let needed = needed(&requests);
    if !args.lab.is_fake() {
        first_use::show_named(catalog, &needed);
    }
    let Ok(missing) = executor.probe(&needed) else { return Ok(None) };
    let seed = args.seed.unwrap_or_else(new_seed);
    let mut plan = plan::plan(&requests, catalog, &missing, seed)?;
    if args.experiments.is_empty() {
        let mute = without_comparison(&plan);
        if !mute.is_empty() {
            common::say(format_args!("nothing can be compared here, so it is left out: {}", mute.join(", ")));
            requests.retain(|request| !mute.contains(&request.experiment.name));
            plan = plan::plan(&requests, catalog, &missing, seed)?;
        }
    }
    if let Some(budget) = args.budget {
        let whole = plan.trials.len();
        plan = plan.within(budget.as_secs_f64());
        if plan.trials.len() < whole {
            common::say(format_args!(
                "the budget leaves {} of {whole} trials; a comparison needs three rounds",
                plan.trials.len()
            ));
        }
    }
    if args.rounds == Rounds::Auto {
        let default = if args.full { FULL_BUDGET } else { QUICK_BUDGET };
        let once = !args.full && args.budget.is_none();
        plan.grow_within(args.budget.unwrap_or(default).as_secs_f64(), once);
    }
    say_excluded(&plan, catalog);
    if plan.trials.is_empty() {
        bail!("there is nothing to run: no system that was asked for can run here; see `narrows systems`");
    }
    Ok(Some(plan))
}

/// Says which systems take no part, and why. Those whose manifests are broken have been named before.
fn say_excluded(plan: &Plan, catalog: &Catalog) {
    let excluded = plan.experiments.iter().flat_map(|planned| &planned.excluded);
    let excluded: BTreeMap<&str, &Excluded> =
        excluded.map(|excluded| (excluded.system.as_str(), excluded)).collect();
    let broken: Vec<&str> = catalog.broken().map(|(folder, _)| folder).collect();
    for (system, excluded) in excluded.into_iter().filter(|(system, _)| !broken.contains(system)) {
        let where_not = if excluded.partly { " at some points" } else { "" };
        common::say(format_args!("{system} takes no part{where_not}: {}", excluded.reason));
    }
}

/// The experiments in which a single scenario of a system runs, beside others that compare something.
fn without_comparison(plan: &Plan) -> Vec<String> {
    let compares = |planned: &&Planned| planned.scenarios.iter().filter(|s| !s.is_reference()).count() > 1;
    let (several, mute): (Vec<&Planned>, Vec<&Planned>) = plan.experiments.iter().partition(compares);
    let names = mute.into_iter().filter(|_| !several.is_empty()).map(|planned| planned.name.clone());
    names.collect()
}

/// The experiments that were named, or otherwise those that can be read and run without being named.
fn chosen(args: &Args, homes: &[Home]) -> Result<Vec<experiment::Experiment>, InputError> {
    if !args.experiments.is_empty() {
        return args.experiments.iter().map(|name| experiment::load(homes, name)).collect();
    }
    let all = experiment::list(homes);
    let (good, broken): (Vec<_>, Vec<_>) = all.into_iter().map(|(_, read)| read).partition(Result::is_ok);
    for error in broken.into_iter().filter_map(Result::err) {
        common::say(format_args!("left out: {}", error.one_line()));
    }
    Ok(good.into_iter().filter_map(Result::ok).filter(|e| args.all || !e.on_request).collect())
}

/// The names of the requested systems and of the references.
fn needed(requests: &[Request]) -> BTreeSet<String> {
    let named = requests.iter().flat_map(|request| request.experiment.systems.iter());
    let references = requests.iter().map(|request| request.experiment.workload.reference().to_owned());
    let asked = requests.iter().flat_map(|request| request.overrides.systems.clone());
    named.map(|name| name.get_ref().clone()).chain(references).chain(asked).collect()
}

/// Prints the answers, where the rest is, and how to resume the run if it is unfinished. Returns the findings too.
pub fn finish(run: &Run, done: Result<(), Stopped>, screen: Screen) -> anyhow::Result<(ExitCode, Findings)> {
    let of_commits = run.is_of_commits();
    let Run { store, path, id: run, .. } = run;
    let run = *run;
    let (header, observations) = match (store.header(run), store.observations(run)) {
        (Ok(header), Ok(observations)) => (header, observations),
        // If something stopped the run, report that error.
        (Err(error), _) | (_, Err(error)) => match done {
            Err(Stopped::Store(first)) => bail!(first),
            _ => bail!(error),
        },
    };
    let plan = &header.plan;
    let mut found = findings(plan, &observations);
    published::beside(&mut found);
    let (width, colour) = (common::width(), common::colour());
    let rest = where_the_rest_is(&found, run, &header, path);
    match screen {
        Screen::Answers => common::print(&(report::answers(&found, width, colour) + &rest))?,
        Screen::Tables => {
            let verdicts = report::verdicts(&found, width, colour);
            common::print(&(report::brief(&found, width, colour) + &rest + &verdicts))?;
        }
        Screen::Nothing => common::say(rest.trim()),
        Screen::Step => {}
    }
    let resume = || match of_commits {
        false => format!("`narrows run --resume {run}{}` does what is missing", stores::option(path)),
        true => format!("`narrows {}` runs it again", header.command),
    };
    let (kept, planned) = (observations.len(), plan.trials.len());
    let kept = || format!("{kept} of {planned} trials are kept: {}", resume());
    match done {
        Ok(()) => {}
        Err(Stopped::Interrupted) => {
            common::say(format_args!("interrupted: {}", resume()));
            return Ok((ExitCode::from(INTERRUPTED), found));
        }
        Err(Stopped::Store(error)) => bail!("{error}\n{}", kept()),
        Err(Stopped::Away(Away { why, without })) => {
            let why = format!("{why}\n{}", kept());
            bail!(Bereft { why, command: header.command, without });
        }
    }
    if anything_measured(plan, &observations) {
        return Ok((ExitCode::SUCCESS, found));
    }
    common::say(match screen {
        Screen::Answers => {
            "every trial of every system failed, so at most the reference was measured; the report says why"
        }
        _ => "every trial failed",
    });
    Ok((ExitCode::FAILURE, found))
}

fn is_search(plan: &Plan) -> bool {
    plan.experiments.iter().any(|planned| planned.search.is_some())
}

/// Writes the page with figures next to the store, and says how to see everything.
fn where_the_rest_is(found: &Findings, run: RunId, header: &RunHeader, path: &Path) -> String {
    let page = path.with_extension("html");
    let written =
        AtomicFile::create(&page).and_then(|file| file.write(&report_verb::page(found, run, header)));
    let figures = match written {
        Ok(()) => format!("; its figures are in {}", stores::shown_beside(&page)),
        // The trials are safe, and the page can be made later.
        Err(error) => {
            common::say(format_args!("{error:#}"));
            String::new()
        }
    };
    let store = stores::option(path);
    let failed: u32 = found.experiments.iter().flat_map(|e| &e.failures).map(|failure| failure.trials).sum();
    let failed = if failed > 0 {
        format!("{} failed.\n", number::several(failed.into(), "trial"))
    } else {
        String::new()
    };
    let what = match is_search(&header.plan) {
        true => "prints this again, and the tables with --details",
        false => "prints the tables, and all with --details",
    };
    format!(
        "\n{failed}run {run} is saved in {}{figures}\n`narrows report {run}{store}` {what}\n",
        stores::shown(path)
    )
}

/// Whether at least one trial of a requested system was measured. If the plan has only the reference, its trials count.
fn anything_measured(plan: &Plan, observations: &[Observation]) -> bool {
    let requested = |scenario: &Scenario| !is_reference(&scenario.system);
    let only_reference = !plan.trials.iter().any(|trial| requested(&trial.scenario));
    observations.iter().any(|seen| {
        matches!(seen.outcome, Outcome::Measured(_)) && (only_reference || requested(&seen.trial.scenario))
    })
}

/// A seed that differs from run to run. It is saved, so that a run can be repeated.
pub fn new_seed() -> u64 {
    since_epoch().as_nanos() as u64 % 1_000_000
}

pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
