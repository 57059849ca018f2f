//! `narrows try`: compares commands, settings of a command, commits of a repository, or servers that run already, without a file.
//!
//! The arms become systems and the knobs an experiment, as if they had been written in files. The first arm at its first
//! point is the base: it takes the place of the reference, and runs twice in some rounds.

mod bisect;
mod commits;
mod duet;
mod ledger;
mod question;
mod save;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, bail};
use lab::condition::Condition;
use lab::findings::{Estimate, Findings};
use lab::plan::{MOST_ROUNDS, Plan};
use lab::rounds;
use lab::store::Store;
use load::Slo;
use report::Judgement;
use revisions::Trouble;
use serde::{Deserialize, Serialize};
use systems::machine::Limit;
use systems::{Catalog, Service, Workload};

use crate::command::arms::{self, Arms, Typed};
use crate::command::pace::{self, Tempo};
use crate::command::{self, CommandArgs, learn, size};
use crate::common::{self, End, INTERRUPTED, Usage};
use crate::condition::{self, FigureChoice, Inconclusive};
use crate::driver_args::DriverArgs;
use crate::here;
use crate::lab_args::LabArgs;
use crate::report_verb::Format;
use crate::runs::{self, Asked, Parts, Place, Run, Screen};
use commits::{Clones, CommitArgs, Commits};
use ledger::Attempt;

/// `narrows try`
#[derive(Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Args {
    /// Commands to compare, such as './server --port {port}', or URLs of servers that run already. The first is the base. A command
    /// with {cert} and {key} speaks TLS with this certificate and key
    #[arg(value_name = "COMMAND|URL", required = true)]
    arms: Vec<String>,
    /// The names of the arms in the output, in order
    #[arg(long = "names", value_name = "NAMES", value_delimiter = ',')]
    names: Vec<String>,
    /// What to compare, the deciding figure first. p50, p99, cpu, calls and instructions are measured at --rate, or else at
    /// half of what the slowest arm reaches [default: rate; p50 with --rate; max-rate or goodput with --slo]
    #[arg(long = "figure", value_name = "FIGURES", value_delimiter = ',')]
    figures: Vec<FigureChoice>,
    /// The objective of max-rate: it is the highest rate at which p99<20ms,errors<0.1% holds. Or the limits of goodput:
    /// first-event<200ms,gap.p99<50ms,whole<5s
    #[arg(long, value_name = "OBJECTIVES", value_parser = Slo::parse)]
    slo: Option<Slo>,
    /// The smallest difference worth having, as a share
    #[arg(long, value_name = "SHARE", default_value_t = lab::experiment::DEFAULT_THRESHOLD, value_parser = common::share)]
    threshold: f64,
    /// How long to measure in each trial [default: 1s, or longer if answers take long]
    #[arg(short, long, value_parser = common::duration, value_name = "TIME")]
    duration: Option<Duration>,
    /// Drive for this long before each measurement [default: 500ms, or until the speed stands still]
    #[arg(long, value_parser = common::duration, value_name = "TIME", conflicts_with = "cold")]
    warmup: Option<Duration>,
    /// Measure what a fresh process does: each window begins with the first requests, without a warm-up
    #[arg(long)]
    cold: bool,
    /// Run as many rounds as fit into this time [default: 60s, or up to 4m for six rounds]
    #[arg(long, value_name = "TIME", value_parser = common::duration, conflicts_with = "rounds")]
    budget: Option<Duration>,
    /// Run exactly this many rounds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_ROUNDS)))]
    rounds: Option<u32>,
    /// The seed that shuffles the order of trials; by default a new one, which is saved with the run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Measure each arm at the same time as the base, on the same cores, so that other work on the machine disturbs both alike. Rates
    /// are those of shared cores, and the ratio is the one under mutual contention. This is the default with --git, --fail-if
    /// and --ledger where the servers have one core, for ratios of rate, cpu, calls, instructions and memory, without --rate, --cold, --prepare,
    /// --conclude and --service
    #[arg(long, conflicts_with_all = ["unequal", "slo"])]
    duet: bool,
    /// Measure each arm alone, one after the other, also where --duet is the default
    #[arg(long, conflicts_with = "duet")]
    no_duet: bool,
    /// Measure arms whose answers differ, without comparing them
    #[arg(long)]
    unequal: bool,
    /// Exit with code 3 if an arm or a value certainly meets this condition, or if its server fails or answers wrongly. Exit with code 4
    /// if the condition is inconclusive. With --budget, rounds go on until each is certainly met or excluded. A plain number is a ratio to the base:
    /// `rate<0.97`, `cpu>1.03`. A value with its unit limits the figure of each row: `p99>20ms`, `rate<10k/s`, `memory>500MB`
    #[arg(long, value_name = "CONDITION", value_delimiter = ',')]
    fail_if: Vec<String>,
    /// What becomes of a condition that is neither certainly met nor excluded, instead of exit code 4
    #[arg(long, value_enum, value_name = "END", requires = "fail_if")]
    inconclusive: Option<Inconclusive>,
    /// Try one candidate of a session, and keep the attempt in this file. At most one session in twenty accepts a
    /// candidate that is not better, however many it tries: each attempt is tested at a level of its own, and one that
    /// passes is measured again in fresh rounds. Their number is fixed by --rounds, or by what is expected to fit into
    /// --budget
    #[arg(long, value_name = "FILE", conflicts_with_all = ["unequal", "fail_if", "bisect", "save", "dry_run"])]
    ledger: Option<PathBuf>,
    /// Write the arms and the comparison to narrows/systems/ and narrows/experiments/, for `narrows run`
    #[arg(long, value_name = "NAME")]
    save: Option<String>,
    /// Print every command with its point, and start nothing
    #[arg(long)]
    dry_run: bool,
    /// What is printed at the end: the screen, or a format of `narrows report`
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    #[serde(flatten)]
    pub lab: LabArgs,
    // What has a heading of its own in the help stands last.
    #[command(flatten)]
    #[serde(flatten)]
    command: CommandArgs,
    #[command(flatten)]
    #[serde(flatten)]
    driver: DriverArgs,
    #[command(flatten)]
    #[serde(flatten)]
    commits: CommitArgs,
}

/// Compares the arms, and prints the answer.
pub fn run(args: &Args, asked: &Asked, files: Limit) -> End {
    let args = &args.with_upstream()?;
    let comparison = Comparison::read(args, asked, files)?;
    if !args.is_of_commits() {
        args.check_candidate(args.arms.len())?;
        return comparison.answer_or_try(Attempt::of(args, &[])?, None);
    }
    match comparison.of_commits() {
        Err(error) if matches!(error.downcast_ref(), Some(Trouble::Interrupted)) => {
            common::say("interrupted before the first trial");
            Ok(ExitCode::from(INTERRUPTED))
        }
        Err(error) if args.commits.bisect && !error.is::<Usage>() => {
            // The code 1 would say that a worse commit was found.
            common::exit(Err(error));
            Ok(ExitCode::from(bisect::UNTOLD))
        }
        end => end,
    }
}

/// Continues a saved comparison of commands or running servers.
pub fn resume(args: &Args, asked: &Asked, run: &Run, lab: &LabArgs, files: Limit) -> End {
    let args = &args.with_upstream()?;
    let comparison = Comparison::read(args, asked, files)?;
    if run.header.plan.conditions.len() != comparison.conditions.len() {
        bail!(
            "run {} began with a version that did not save the conditions of --fail-if: run `narrows {}` again",
            run.id,
            run.header.command
        );
    }
    let (_, catalog) = comparison.arms(None)?;
    let place = run.go_on(lab, comparison.parts(&catalog)?, files, &comparison.cancel)?;
    let Some(place) = place else { return Ok(ExitCode::from(INTERRUPTED)) };
    Ok(comparison.carried_out(place, run, comparison.screen())?.code)
}

/// Makes the systems of a saved comparison again, its commits too, for another run.
///
/// # Errors
/// They cannot be made again, or that of the other run.
pub fn again(args: &Args, asked: &Asked, files: Limit, run: impl FnOnce(Parts<'_>) -> End) -> End {
    let args = &args.with_upstream()?;
    let comparison = Comparison::read(args, asked, files)?;
    if !args.is_of_commits() {
        let (_, catalog) = comparison.arms(None)?;
        return run(comparison.parts(&catalog)?);
    }
    let repository = commits::repository(&comparison.dir, &comparison.cancel)?;
    let revisions = repository.resolve(&args.commits.git)?;
    // The clones stay as they are as long as this value lives.
    let mut clones = Clones::new(&repository, None);
    let commits = Commits::prepare(args, &mut clones, &revisions)?;
    let (_, catalog) = comparison.arms(Some(&commits))?;
    run(comparison.parts(&catalog)?)
}

impl Args {
    /// Says that answers are streams of several events, if no figure is about how they arrive.
    fn tell_of_streams(&self, events: Option<u64>) {
        let of_streams = |choice: &FigureChoice| choice.figure(Workload::Requests).is_of_streams();
        if let Some(events) = events
            && !self.figures().iter().any(of_streams)
        {
            common::say(format_args!(
                "the answers are streams of {events} events: --figure first-event,gap,longest-gap says how they arrive"
            ));
        }
    }

    /// These with the URL of `--upstream` in their commands.
    fn with_upstream(&self) -> Result<Self, Usage> {
        let mut arms = self.arms.clone();
        let command = self.command.clone().with_upstream(&mut arms)?;
        Ok(Self { arms, command, ..self.clone() })
    }
}

/// A checked question, and where it is answered.
struct Comparison<'a> {
    args: &'a Args,
    asked: &'a Asked,
    workload: Workload,
    conditions: Vec<Condition>,
    /// The current folder.
    dir: PathBuf,
    files: Limit,
    cancel: Arc<AtomicBool>,
}

/// How a comparison ended.
struct Concluded {
    code: ExitCode,
    /// None if it was interrupted or nothing was measured.
    found: Option<Findings>,
}

impl From<ExitCode> for Concluded {
    fn from(code: ExitCode) -> Self {
        Self { code, found: None }
    }
}

impl<'a> Comparison<'a> {
    fn read(args: &'a Args, asked: &'a Asked, files: Limit) -> anyhow::Result<Self> {
        args.lab.fleet.check_commands(&args.command)?;
        let cancel = common::cancellation()?;
        let workload = args.command.workload(&args.arms);
        let conditions = args.conditions(workload)?;
        let dir = std::env::current_dir().context("cannot find the current folder")?;
        Ok(Self { args, asked, workload, conditions, dir, files, cancel })
    }

    /// The arms, and a catalog that has them.
    fn arms(&self, commits: Option<&Commits>) -> anyhow::Result<(Arms, Catalog)> {
        let Self { args, workload, dir, .. } = self;
        let typed =
            Typed { args: &args.command, texts: &args.arms, names: &args.names, workload: *workload, dir };
        let arms = arms::read(typed, commits.map(|commits| commits.places(&args.names)))?;
        let mut catalog = Catalog::new(dir);
        let insert = if arms.there { Catalog::insert_there } else { Catalog::insert };
        arms.systems.iter().for_each(|system| insert(&mut catalog, system.clone()));
        Ok((arms, catalog))
    }

    /// What another run of the same systems needs of the question.
    fn parts<'c>(&self, catalog: &'c Catalog) -> anyhow::Result<Parts<'c>> {
        let (scripted, services) = (self.args.command.script()?, self.services()?);
        Ok(Parts { catalog, typed: true, scripted, services })
    }

    fn services(&self) -> anyhow::Result<Vec<Service>> {
        self.args.command.services(&self.dir, &here::placement(), &self.cancel)
    }

    /// Compares commits, or searches among them.
    fn of_commits(&self) -> End {
        let repository = commits::repository(&self.dir, &self.cancel)?;
        let revisions = repository.resolve(&self.args.commits.git)?;
        self.args.check_commits(&revisions)?;
        if !self.args.commits.bisect {
            self.args.check_candidate(revisions.len())?;
        }
        if self.args.dry_run {
            let commits = Commits::named(revisions, &self.dir);
            return Ok(self.answer(Some(&commits), self.screen())?.code);
        }
        let ends = match self.args.commits.bisect {
            true => Some(bisect::check(&repository, &revisions)?),
            false => None,
        };
        let attempt = Attempt::of(self.args, &revisions)?;
        let workshop = self.args.lab.fleet.workshop(self.files, &self.cancel)?;
        let mut clones = Clones::new(&repository, workshop);
        if let Some(ends) = ends {
            return bisect::search(self, &repository, ends, clones);
        }
        let commits = Commits::prepare(self.args, &mut clones, &revisions)?;
        self.answer_or_try(attempt, Some(&commits))
    }

    /// Answers, or makes the attempt of a ledger.
    fn answer_or_try(&self, attempt: Option<Attempt>, commits: Option<&Commits>) -> End {
        match attempt {
            Some(attempt) => attempt.measure(self, commits),
            None => Ok(self.answer(commits, self.screen())?.code),
        }
    }

    /// Makes the plan, carries it out, and prints what it shows.
    fn answer(&self, commits: Option<&Commits>, screen: Screen) -> anyhow::Result<Concluded> {
        self.answer_in(1, commits, screen)
    }

    /// The same with so many times the rounds.
    fn answer_in(&self, times: u32, commits: Option<&Commits>, screen: Screen) -> anyhow::Result<Concluded> {
        match self.begin(times, commits)? {
            Ok((place, run)) => self.carried_out(place, &run, screen),
            Err(code) => Ok(code.into()),
        }
    }

    /// Begins the run, in which nothing is measured yet; or gives the exit code if there is none.
    fn begin(&self, times: u32, commits: Option<&Commits>) -> anyhow::Result<Result<(Place, Run), ExitCode>> {
        let Self { args, workload, cancel, .. } = self;
        let (arms, catalog) = self.arms(commits)?;
        let scripted = args.command.script()?;
        let ask = args.asked(args.command.ask(*workload, &args.arms, scripted.as_ref(), args.unequal)?)?;
        let usual = Tempo { rate: None, timing: args.timing() };
        let first = args.plan(&catalog, &arms, ask.clone(), usual)?;
        size::check(&catalog, &first)?;
        if args.dry_run {
            return Ok(Err(dry_run(&catalog, &first, args.lab.fleet.address)?));
        }
        args.check_candidate(
            first.experiments.iter().map(|planned| planned.scenarios.len()).max().unwrap_or(0),
        )?;
        args.save
            .as_deref()
            .map_or(Ok(()), |name| save::check(name, &arms, ask.as_ref(), &args.command.tls))?;
        args.check_budget(&first)?;
        args.warn(&arms, here::placement().system.len());
        let services = self.services()?;
        let mut executor = args.lab.lab(&catalog, self.files, cancel)?;
        if let Some(scripted) = scripted {
            executor.bring(scripted.script);
        }
        let learnt = learn::learn(
            &mut *executor,
            &first,
            ask,
            pace::look(args.timing()),
            args.needs_paces(*workload),
        )?;
        let Some(learnt) = learnt else { return Ok(Err(runs::not_begun(&*executor)?)) };
        args.tell_of_streams(learnt.events);
        let plan = rounds::several_times(args.grown(&catalog, &arms, learnt)?, times);
        let store = Store::open(&args.lab.store.of_commands())?;
        if common::is_interrupted() {
            return Ok(Err(runs::not_begun(&*executor)?));
        }
        if let Some(name) = &args.save {
            let experiments = save::save(name, &arms, &plan, &args.command.tls)?.join(" ");
            common::say(format_args!("saved: `NARROWS_HOME=narrows narrows run {experiments}` repeats it"));
        }
        match Run::begin(store, plan, self.asked, &*executor, args.lab.quiet)? {
            Some(run) => Ok(Ok((Place { executor, services }, run))),
            None => Ok(Err(runs::not_begun(&*executor)?)),
        }
    }

    /// Carries out what is missing of a run, and prints what it shows.
    fn carried_out(&self, place: Place, run: &Run, screen: Screen) -> anyhow::Result<Concluded> {
        let (code, saved) = run.carry_out(place, &self.cancel, screen)?;
        let Some(saved) = saved else { return Ok(code.into()) };
        let mut judgement = Judgement::of_run(&saved.found);
        if self.args.inconclusive == Some(Inconclusive::Fail) {
            judgement.fail_inconclusive();
        }
        if screen == Screen::Nothing {
            common::print(saved.shown(self.args.format, &judgement, run.store.path())?)?;
        }
        if code != ExitCode::SUCCESS {
            return Ok(code.into());
        }
        Ok(self.conclude(saved.found, &judgement))
    }

    /// The exit code for what was found.
    fn conclude(&self, found: Findings, judgement: &Judgement) -> Concluded {
        if is_unanswered(&found) {
            return ExitCode::FAILURE.into();
        }
        let code = match found.gates.is_empty() {
            true => ExitCode::SUCCESS,
            false => condition::conclude(&judgement.cases, self.args.inconclusive, self.args.remedy()),
        };
        Concluded { code, found: Some(found) }
    }

    /// What is printed at the end.
    fn screen(&self) -> Screen {
        if self.args.format == Format::Text { Screen::Tables } else { Screen::Nothing }
    }
}

/// Whether an arm gave no right answer, which is said.
fn is_unanswered(found: &Findings) -> bool {
    let wrong = |row: &&Estimate| row.trials > 0 && row.successes == 0;
    let row = found.views().flat_map(|e| e.estimates).find(wrong);
    if let Some(row) = row {
        common::say(format_args!("{} gave no right answer in any trial", row.scenario.system));
    }
    row.is_some()
}

/// Prints the command of every point.
fn dry_run(catalog: &Catalog, plan: &Plan, address: Option<IpAddr>) -> End {
    for planned in &plan.experiments {
        for scenario in &planned.scenarios {
            if common::is_interrupted() {
                return Ok(ExitCode::from(INTERRUPTED));
            }
            // All lines together may be much longer than one.
            let command = arms::shown(catalog.get(&scenario.system)?, &scenario.point, address)?;
            common::print(format!("{}: {command}\n", planned.label(scenario)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// Whether it compares commits.
    pub fn is_of_commits(&self) -> bool {
        !self.commits.git.is_empty()
    }

    /// Whether it searches among commits. Each step of the search is a run of its own.
    pub fn is_bisection(&self) -> bool {
        self.commits.bisect
    }

    /// What may decide a condition that is inconclusive.
    fn remedy(&self) -> &'static str {
        match (self.budget, self.rounds) {
            (Some(_), _) => "a longer --budget may decide it",
            (None, Some(_)) => "--budget 5m, instead of --rounds, goes on until it is decided",
            (None, None) => "--budget 5m goes on until it is decided",
        }
    }

    /// Says what would make the figures mean something else than the user thinks.
    fn warn(&self, arms: &Arms, cores: usize) {
        if self.arms.iter().any(|arm| arms::is_url(arm)) {
            common::say(
                "nothing is restarted: a server that runs already keeps what earlier trials left in it",
            );
        }
        command::warn_of_workers(&arms.knobs, cores);
    }
}
