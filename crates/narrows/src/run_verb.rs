//! `narrows run`: goes from experiments to a plan, a session, findings and a report.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use lab::experiment::grid::{Excluded, Overrides, Request};
use lab::experiment::{self, Form};
use lab::plan::{self, MOST_ROUNDS, Plan, Planned};
use lab::session::Executor;
use lab::store::Store;
use serde::{Deserialize, Serialize};
use systems::machine::Limit;
use systems::{Catalog, Home, InputError};

use crate::built_in;
use crate::common::{self, End, INTERRUPTED};
use crate::first_use;
use crate::lab_args::LabArgs;
use crate::runs::{self, Asked, Parts, Place, Run, Screen};

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
        Ok(rounds @ 1..=MOST_ROUNDS) => Ok(Rounds::Fixed(rounds)),
        _ => Err(format!("`auto`, `file`, or a number from 1 to {MOST_ROUNDS}")),
    }
}

/// The default limit for the trials of a quick run. The first rounds run even if they take longer. With everything
/// around the trials, a quick run stays within five minutes.
const QUICK_BUDGET: Duration = Duration::from_secs(270);

/// The default limit for the trials of a full run.
const FULL_BUDGET: Duration = Duration::from_secs(12 * 3600);

/// Runs experiments, saves every trial, and prints what was found.
pub fn run(args: &Args, asked: &Asked, files: Limit) -> End {
    // As long as nothing has begun, a signal ends the program.
    let catalog = Catalog::load_all(&built_in::homes()?);
    let cancel = common::cancellation()?;
    let store = Store::open(&args.lab.store.of_experiments())?;
    let mut executor = args.lab.lab(&catalog, files, &cancel)?;
    let Some(plan) = plan(args, &catalog, &mut *executor)? else { return runs::not_begun(&*executor) };
    let run = Run::begin(store, plan, asked, &*executor, args.lab.quiet)?;
    let Some(run) = run else { return runs::not_begun(&*executor) };
    let place = Place { executor, services: Vec::new() };
    Ok(run.carry_out(place, &cancel, Screen::Answers)?.0)
}

/// Continues a saved run whose systems have manifests.
pub fn resume(run: &Run, lab: &LabArgs, files: Limit) -> End {
    let catalog = Catalog::load_all(&built_in::homes()?);
    let cancel = common::cancellation()?;
    let parts = Parts { catalog: &catalog, typed: false, scripted: None, services: Vec::new() };
    let Some(place) = run.go_on(lab, parts, files, &cancel)? else { return Ok(ExitCode::from(INTERRUPTED)) };
    Ok(run.carry_out(place, &cancel, Screen::Answers)?.0)
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
    let seed = args.seed.unwrap_or_else(common::new_seed);
    let mut plan = plan::plan(&requests, catalog, &missing, seed)?;
    if args.experiments.is_empty() {
        let mute = without_comparison(&plan);
        if !mute.is_empty() {
            common::say(format_args!("nothing can be compared here, so it is left out: {}", mute.join(", ")));
            requests.retain(|request| !mute.contains(&request.experiment.name));
            plan = plan::plan(&requests, catalog, &missing, seed)?;
        }
    }
    // A large plan takes a moment, and so does each further step.
    if common::is_interrupted() {
        return Ok(None);
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
        let mut known = BTreeSet::new();
        let new = args.experiments.iter().filter(|name| known.insert(*name));
        return new.map(|name| experiment::load(homes, name)).collect();
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
