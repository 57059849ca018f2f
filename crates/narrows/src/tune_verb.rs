//! `narrows tune`: searches for the best setting of a system's knobs, or of a command's.
//!
//! The knobs become an experiment whose base is the system at its defaults, or the command at the first value of each knob, and
//! `lab::search` chooses the trials. The run is saved and resumed like any other.

mod question;
mod target;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::bail;
use lab::store::Store;
use load::Slo;
use serde::{Deserialize, Serialize};
use systems::Service;
use systems::machine::Limit;

use crate::command::{self, CommandArgs};
use crate::common::{self, End, INTERRUPTED, Usage};
use crate::condition::FigureChoice;
use crate::first_use;
use crate::here;
use crate::lab_args::LabArgs;
use crate::runs::{self, Asked, Parts, Place, Run, Screen};
use target::Target;

/// What the knobs are in a search.
const KNOBS: &str = "A knob with the values to try: w=1,2,4, w=1..64*2, w=1..16+1, or `all` that a manifest names. {w} stands for \
                     the value in a command, whose first values are the base. Without it, all knobs of a system with all values";

/// `narrows tune`
#[derive(Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
#[command(
    before_help = "  narrows tune nginx --budget 2m\n  narrows tune './server -w {w} --port {port}' --knob w=1..16",
    mut_arg("knobs", |arg| arg.help(KNOBS)),
    mut_arg("timeout", |arg| arg.default_value("5s")),
    // They lead to servers that run already, and a search starts its own.
    mut_arg("unix", |arg| arg.hide(true)),
    mut_arg("connect_to", |arg| arg.hide(true))
)]
pub struct Args {
    /// The system whose knobs are to be set (see `narrows systems`), or a command such as './server -w {w} --port {port}'
    #[arg(value_name = "SYSTEM|COMMAND")]
    target: String,
    /// The figures to measure. The first decides. p50, p99, cpu, calls and instructions are measured at --rate, or else at half
    /// of what the base reaches [default: the first of the workload]
    #[arg(long = "figure", value_name = "FIGURES", value_delimiter = ',')]
    figures: Vec<FigureChoice>,
    /// The smallest difference worth having, as a share
    #[arg(long, value_name = "SHARE", default_value_t = lab::experiment::DEFAULT_THRESHOLD, value_parser = common::share)]
    threshold: f64,
    /// How long all trials may take together. A third of it is kept to prove the winner
    #[arg(long, value_name = "TIME", value_parser = common::duration, default_value = "5m")]
    budget: Duration,
    /// How long to measure in each trial [default: 1s, or longer if answers of a command take long]
    #[arg(short, long, value_parser = common::duration, value_name = "TIME")]
    duration: Option<Duration>,
    /// Drive for this long before each measurement [default: 500ms, or until the speed of a command stands still]
    #[arg(long, value_parser = common::duration, value_name = "TIME")]
    warmup: Option<Duration>,
    /// Prove the winner at the same time as the default, on the same cores, so that other work on the machine disturbs both alike. So it
    /// is only where nothing else is compared with them: the part of each of several knobs is proven one trial after the other
    #[arg(long, conflicts_with = "slo")]
    duet: bool,
    /// The seed of the search; by default a new one, which is saved with the run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    #[serde(flatten)]
    pub lab: LabArgs,
    /// The work to tune for [default: the first that the system does; `requests` for a command]
    #[arg(long, value_name = "WORKLOAD", help_heading = "What is sent")]
    workload: Option<String>,
    /// Hold any other knob at a value
    #[arg(long = "set", value_name = "NAME=VALUE", help_heading = "What is sent")]
    set: Vec<String>,
    /// The bytes of one upload: short for --set size=SIZE
    #[arg(long, value_name = "SIZE", help_heading = "What is sent")]
    size: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    command: CommandArgs,
    // A heading applies to all options that follow, so what has one stands last.
    #[command(flatten, next_help_heading = "Limits")]
    #[serde(flatten)]
    limits: Limits,
}

/// What a setting must keep to be advised.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Limits {
    /// Objectives that a setting must keep: p99<20ms,errors<0.1%. Without --figure, the highest rate at which they hold decides. Or the
    /// limits of goodput, which single answers must meet: first-event<200ms,whole<5s
    #[arg(long, value_name = "OBJECTIVES", value_parser = Slo::parse)]
    slo: Option<Slo>,
    /// The most memory that a setting may use: 500M, 2G
    #[arg(long, value_name = "SIZE", value_parser = some_memory)]
    memory: Option<u64>,
}

fn some_memory(text: &str) -> Result<u64, String> {
    let bytes = common::size(text)?;
    if bytes == 0 { Err("no setting runs without memory: write 500M or 2G".to_owned()) } else { Ok(bytes) }
}

/// Searches, saves every trial, and prints the advice.
pub fn run(args: &Args, asked: &Asked, files: Limit) -> End {
    let args = &args.with_upstream()?;
    args.lab.fleet.check_commands(&args.command)?;
    let cancel = common::cancellation()?;
    let target = Target::read(args)?;
    let question = args.question(&target)?;
    let mut executor = args.lab.lab(&target.catalog, files, &cancel)?;
    if !target.is_command {
        let system = BTreeSet::from([target.system.clone()]);
        first_use::show_named(&target.catalog, &system);
        let Ok(missing) = executor.probe(&system) else { return runs::not_begun(&*executor) };
        if let Some(reason) = missing.get(&target.system) {
            bail!("{} cannot run here: {reason}", target.system);
        }
    }
    command::warn_of_workers(&target.knobs, here::placement().system.len());
    let services = args.services(&target, &cancel)?;
    if let Some(scripted) = &target.scripted {
        executor.bring(Arc::clone(&scripted.script));
    }
    let Some(plan) = question.learnt(&mut *executor)? else { return runs::not_begun(&*executor) };
    let store = Store::open(&args.lab.store.of_commands())?;
    let run = Run::begin(store, plan, asked, &*executor, args.lab.quiet)?;
    let Some(run) = run else { return runs::not_begun(&*executor) };
    Ok(run.carry_out(Place { executor, services }, &cancel, Screen::Answers)?.0)
}

/// Continues a saved search.
pub fn resume(args: &Args, run: &Run, lab: &LabArgs, files: Limit) -> End {
    let args = &args.with_upstream()?;
    let cancel = common::cancellation()?;
    let target = Target::read(args)?;
    let services = args.services(&target, &cancel)?;
    let Target { catalog, is_command, scripted, .. } = target;
    let parts = Parts { catalog: &catalog, typed: is_command, scripted, services };
    let Some(place) = run.go_on(lab, parts, files, &cancel)? else { return Ok(ExitCode::from(INTERRUPTED)) };
    Ok(run.carry_out(place, &cancel, Screen::Answers)?.0)
}

impl Args {
    /// These with the URL of `--upstream` in their command.
    fn with_upstream(&self) -> Result<Self, Usage> {
        let mut target = self.target.clone();
        let command = self.command.clone().with_upstream(slice::from_mut(&mut target))?;
        Ok(Self { target, command, ..self.clone() })
    }

    /// Starts what runs beside a command.
    fn services(&self, target: &Target, cancel: &AtomicBool) -> anyhow::Result<Vec<Service>> {
        self.command.services(&target.dir, &here::placement(), cancel)
    }
}
