//! `narrows tune`: searches for the best setting of a system's knobs.
//!
//! The knobs become an experiment whose base is the system at its defaults, and `lab::search` chooses the trials. The run is
//! saved and resumed like any other.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use lab::experiment::grid::{Overrides, Request};
use lab::experiment::{DEFAULT_THRESHOLD, Experiment, Form, Subject};
use lab::observation::Timing;
use lab::plan::{self, Plan};
use lab::search::{self, FEWEST_TRIALS};
use lab::session::{Bench, Executor, Fake};
use lab::store::{RunHeader, Store};
use systems::machine::{Limit, Placement};
use systems::{Catalog, Knob, Manifest, Source, Value, Workload};

use crate::built_in;
use crate::common::{self, End, INTERRUPTED, Usage};
use crate::run_verb::{self, Screen};

/// `narrows tune`
#[derive(clap::Args)]
pub struct Args {
    /// The system whose knobs are to be set
    #[arg(value_name = "SYSTEM")]
    system: String,
    /// A knob with the values to try: workers=1,2,4 or workers=all. Without one, all knobs of the system with all values
    #[arg(short = 'k', long = "knob", value_name = "NAME=VALUES")]
    knobs: Vec<String>,
    /// The work to tune for [default: the first that the system does]
    #[arg(long, value_name = "WORKLOAD")]
    workload: Option<String>,
    /// How long all trials may take together. A third of it is kept to prove the winner
    #[arg(long, value_name = "TIME", value_parser = common::duration, default_value = "5m")]
    budget: Duration,
    /// How long to measure in each trial
    #[arg(short, long, value_parser = common::duration, value_name = "TIME", default_value = "1s")]
    duration: Duration,
    /// Drive for this long before each measurement
    #[arg(long, value_parser = common::duration, value_name = "TIME", default_value = "500ms")]
    warmup: Duration,
    /// The seed of the search; by default a new one, which is saved with the run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Start no systems; take figures, noise and failures from this file
    #[arg(long, value_name = "FILE", hide = true)]
    fake: Option<PathBuf>,
    /// Print plain lines even on a terminal
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    store: common::StoreArg,
}

/// The longest that an exchange may take, seconds.
const TIMEOUT_S: f64 = 30.0;

/// A knob and the values to try, its default first.
type Tried<'a> = (&'a str, Vec<Value>);

/// Searches, saves every trial, and prints the advice.
pub fn run(args: &Args, files: Limit) -> End {
    let cancel = common::cancellation()?;
    let narrows = std::env::current_exe().context("cannot find the running program")?;
    let catalog = Catalog::load_all(&built_in::homes()?);
    let manifest = catalog.get(&args.system)?;
    let workload = args.workload(manifest)?;
    let knobs = args.knobs(manifest, workload)?;
    let mut executor: Box<dyn Executor> = match &args.fake {
        Some(path) => Box::new(Fake::parse(&Source::read(path)?)?),
        None => {
            let placement = Placement::decide(&systems::machine::available_cores());
            Box::new(Bench::new(catalog.clone(), narrows, placement, files, Arc::clone(&cancel)))
        }
    };
    let Ok(missing) = executor.probe(&BTreeSet::from([args.system.clone()])) else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    if let Some(reason) = missing.get(&args.system) {
        bail!("{} cannot run here: {reason}", args.system);
    }
    let plan = args.plan(&catalog, workload, &knobs)?;
    let store = Store::open(&args.store.path)?;
    let header = RunHeader {
        started_unix_s: run_verb::since_epoch().as_secs_f64(),
        command: common::command_line(std::env::args().skip(1)),
        plan: plan.clone(),
        environment: executor.environment(),
    };
    let run = store.begin(&header)?;
    let done = run_verb::carry_out(&mut *executor, &store, run, &plan, &cancel, args.quiet)?;
    Ok(run_verb::finish(&store, run, done, &args.store.path, Screen::Answers)?.0)
}

impl Args {
    /// The workload that is asked for, or the first that the system does.
    fn workload(&self, manifest: &Manifest) -> anyhow::Result<Workload> {
        let Some(asked) = &self.workload else {
            return manifest.workloads.first().copied().context("the system does no work");
        };
        let found = manifest.workloads.iter().find(|workload| workload.name() == asked);
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = manifest.workloads.iter().map(|workload| workload.name()).collect();
            Usage(format!("{} does not do `{asked}`: it does {}", self.system, known.join(", "))).into()
        })
    }

    /// The knobs to search, with their values.
    fn knobs<'a>(&'a self, manifest: &'a Manifest, workload: Workload) -> anyhow::Result<Vec<Tried<'a>>> {
        let own = || manifest.knobs_in(workload).filter(|(name, _)| workload.knob(name).is_none());
        let mut tried: Vec<Tried> = Vec::new();
        for text in &self.knobs {
            let (name, values) =
                text.split_once('=').map_or((text.as_str(), "all"), |(name, v)| (name.trim(), v));
            let Some((name, knob)) = own().find(|(known, _)| *known == name) else {
                let known: Vec<&str> = own().map(|(name, _)| name).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                bail!(Usage(format!("--knob {text}: {} has no knob `{name}`; it has: {known}", self.system)));
            };
            if tried.iter().any(|(other, _)| *other == name) {
                bail!(Usage(format!("--knob {name} is given twice: name all of its values at once")));
            }
            let values = read(knob, values).map_err(|why| Usage(format!("--knob {text}: {why}")))?;
            tried.push((name, values));
        }
        if self.knobs.is_empty() {
            // A knob that sets the amount of work is no setting: less work is always faster.
            let settings = own().filter(|(_, knob)| !knob.amount);
            tried = settings.map(|(name, knob)| (name, with_default(knob, knob.values.clone()))).collect();
        }
        tried.retain(|(_, values)| values.len() > 1);
        if tried.is_empty() {
            bail!(Usage(format!(
                "{} has no knob with two values: give one with --knob NAME=VALUES",
                self.system
            )));
        }
        Ok(tried)
    }

    /// The plan: the system at its defaults is the base, and the search begins.
    fn plan(&self, catalog: &Catalog, workload: Workload, knobs: &[Tried]) -> anyhow::Result<Plan> {
        let subject = Subject {
            name: "tune".to_owned(),
            title: format!("The best setting of {}", self.system),
            about: String::new(),
            workload,
            figure: workload.about().figures[0],
            also: Vec::new(),
            published: Vec::new(),
            threshold: DEFAULT_THRESHOLD,
        };
        let (warmup_s, measure_s) = (self.warmup.as_secs_f64(), self.duration.as_secs_f64());
        let timing = Timing { warmup_s, measure_s, timeout_s: TIMEOUT_S };
        // One block for each knob names all values, and not all settings.
        let blocks: Vec<Vec<Tried>> = knobs.iter().map(|knob| vec![knob.clone()]).collect();
        let mut experiment = Experiment::new(subject, &[&self.system], 1, timing, &blocks)?;
        experiment.base = Some(self.system.clone());
        let request = Request { experiment, form: Form::Quick, overrides: Overrides::default() };
        let seed = self.seed.unwrap_or_else(run_verb::new_seed);
        let mut plan = plan::plan(&[request], catalog, &Default::default(), seed)?;
        let each_s = plan.estimate_s() / plan.trials.len().max(1) as f64;
        let budget_s = self.budget.as_secs_f64();
        let trials = (budget_s / each_s.max(1e-3)) as usize;
        if trials < FEWEST_TRIALS {
            let least = (each_s * FEWEST_TRIALS as f64).ceil();
            bail!(Usage(format!("--budget is too short for {FEWEST_TRIALS} trials: give at least {least}s")));
        }
        plan.budget_s = Some(budget_s);
        if !search::begin(&mut plan, trials) {
            bail!("{} cannot be tuned: its knobs have no default among their values", self.system);
        }
        Ok(plan)
    }
}

/// Reads the values of a knob as a person writes them.
fn read(knob: &Knob, text: &str) -> Result<Vec<Value>, String> {
    let values = match text.trim() {
        "all" => knob.values.clone(),
        text => text.split(',').map(|value| knob.parse(value)).collect::<Result<_, _>>()?,
    };
    Ok(with_default(knob, values))
}

/// Different values, the default first.
fn with_default(knob: &Knob, values: Vec<Value>) -> Vec<Value> {
    let mut all = vec![knob.default.clone()];
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}
