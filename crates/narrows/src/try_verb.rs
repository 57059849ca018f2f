//! `narrows try`: compares commands, settings of a command, commits of a repository, or servers that run already, without a file.
//!
//! The arms become systems and the knobs an experiment, as if they had been written in files. The first arm at its first
//! point is the base: it takes the place of the reference, and runs twice in each round.

mod arms;
mod bisect;
mod commits;
mod gate;
mod knobs;
mod learn;
mod question;
mod save;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use lab::ask::Ask;
use lab::findings::Findings;
use lab::plan::Plan;
use lab::session::{Bench, Executor};
use lab::store::{RunHeader, Store};
use report::{Case, Judgement};
use revisions::Trouble;
use systems::input::Source;
use systems::machine::{Limit, Placement};
use systems::{Catalog, Service, Workload};

use crate::common::{self, End, INTERRUPTED, Usage};
use crate::condition::{Condition, FAILED, FigureChoice, say_failed};
use crate::report_verb::{Format, Saved};
use crate::run_verb::{self, Screen};
use crate::tls_args::TlsArgs;
use crate::traffic::TrafficArgs;
use arms::Arms;
use commits::{Clones, CommitArgs, Commits};

/// `narrows try`
#[derive(clap::Args)]
pub struct Args {
    /// Commands to compare, such as './server --port {port}', or URLs of servers that run already. The first is the base. A command
    /// with {cert} and {key} speaks TLS with this certificate and key
    #[arg(value_name = "COMMAND|URL", required = true)]
    arms: Vec<String>,
    /// A knob with its values: w=1,2,4 or w=1..64*2 or w=1..16+1. {w} stands for the value in commands and in --env. The
    /// knobs `cores` and `memory` need no placeholder
    #[arg(short = 'k', long = "knob", value_name = "NAME=VALUES")]
    knobs: Vec<String>,
    /// The same in hyperfine's form: -L w 1,2,4
    #[arg(short = 'L', long = "parameter-list", num_args = 2, value_names = ["NAME", "VALUES"])]
    parameter_lists: Vec<String>,
    /// Set a variable in the environment of every arm; the value may contain {w}
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// The names of the arms in the output, in order
    #[arg(long = "names", value_name = "NAMES", value_delimiter = ',')]
    names: Vec<String>,
    /// Give commands to `sh -c` instead of splitting them into words
    #[arg(long)]
    shell: bool,
    /// Run this command once for each point, before its first trial
    #[arg(long, value_name = "COMMAND")]
    setup: Option<String>,
    /// Run this command before each trial
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<String>,
    /// Run this command after each trial
    #[arg(long, value_name = "COMMAND")]
    conclude: Option<String>,
    /// Start this command before all trials and keep it running beside all arms: a database, an upstream
    #[arg(long = "service", value_name = "COMMAND")]
    services: Vec<String>,
    /// How long a command may take until it listens
    #[arg(long, value_name = "TIME", value_parser = common::duration, default_value = "10s")]
    ready: Duration,
    /// Measure the process that holds the port even if it is outside the command's process group, as with a container
    #[arg(long)]
    attach: bool,
    /// The path to request [default: that of the URL, or /]
    #[arg(long = "path", value_name = "PATH")]
    request_path: Option<String>,
    /// Send length-prefixed frames instead of requests
    #[arg(long)]
    frames: bool,
    /// What to compare, the deciding figure first. p50, p99, cpu, calls and instructions are measured at --rate, or else at
    /// half of what the slowest arm reaches
    #[arg(long = "figure", value_name = "FIGURES", value_delimiter = ',', default_value = "rate")]
    figures: Vec<FigureChoice>,
    /// The smallest difference worth having, as a share
    #[arg(long, value_name = "SHARE", default_value_t = lab::experiment::DEFAULT_THRESHOLD, value_parser = share)]
    threshold: f64,
    /// How long to measure in each trial
    #[arg(short, long, value_parser = common::duration, value_name = "TIME", default_value = "1s")]
    duration: Duration,
    /// Drive for this long before each measurement
    #[arg(long, value_parser = common::duration, value_name = "TIME", default_value = "500ms")]
    warmup: Duration,
    /// Run as many rounds as fit into this time [default: 60s, and at least six rounds]
    #[arg(long, value_name = "TIME", value_parser = common::duration, conflicts_with = "rounds")]
    budget: Option<Duration>,
    /// Run exactly this many rounds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// The seed that shuffles the order of trials; by default a new one, which is saved with the run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Measure arms whose answers differ, without comparing them
    #[arg(long)]
    unequal: bool,
    /// Exit with code 3 if an arm or a value certainly meets this condition beside the base, such as `rate<0.97` or
    /// `cpu>1.03`, or if it cannot be judged
    #[arg(long, value_name = "CONDITION", value_delimiter = ',')]
    fail_if: Vec<String>,
    /// Write the arms and the comparison to narrows/systems/ and narrows/experiments/, for `narrows run`
    #[arg(long, value_name = "NAME")]
    save: Option<String>,
    /// Print every command with its point, and start nothing
    #[arg(long)]
    dry_run: bool,
    /// Print plain lines even on a terminal
    #[arg(long)]
    quiet: bool,
    /// What is printed at the end: the screen, or a format of `narrows report`
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    store: common::StoreArg,
    // What has a heading of its own in the help stands last.
    #[command(flatten)]
    traffic: TrafficArgs,
    #[command(flatten)]
    commits: CommitArgs,
    #[command(flatten)]
    tls: TlsArgs,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "write a share above 0 and at most 1, such as 0.05 for 5 %".to_owned())
}

/// Compares the arms, and prints the answer.
pub fn run(args: &Args, files: Limit) -> End {
    let cancel = common::cancellation()?;
    let workload = args.workload();
    let conditions = args.conditions(workload)?;
    let dir = std::env::current_dir().context("cannot find the current folder")?;
    let question = Question { args, workload, conditions, dir, files, cancel };
    if args.commits.git.is_empty() {
        return Ok(question.answer(None, question.screen())?.code);
    }
    match question.of_commits() {
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

/// A checked command line, and where it is carried out.
struct Question<'a> {
    args: &'a Args,
    workload: Workload,
    conditions: Vec<Condition>,
    /// The current folder.
    dir: PathBuf,
    files: Limit,
    cancel: Arc<AtomicBool>,
}

/// How a comparison ended.
struct Answer {
    code: ExitCode,
    /// None if it was interrupted or nothing was measured.
    found: Option<Findings>,
}

impl From<ExitCode> for Answer {
    fn from(code: ExitCode) -> Self {
        Self { code, found: None }
    }
}

impl Question<'_> {
    /// Compares commits, or searches among them.
    fn of_commits(&self) -> End {
        let repository = commits::repository(&self.dir, &self.cancel)?;
        let revisions = repository.resolve(&self.args.commits.git)?;
        self.args.check_commits(&revisions)?;
        if self.args.dry_run {
            let commits = Commits::named(revisions, &self.dir);
            return Ok(self.answer(Some(&commits), self.screen())?.code);
        }
        // What is wrong with the store is known before anything is built.
        self.args.place_of_store()?;
        if self.args.commits.bisect {
            return bisect::search(self, &repository, &revisions);
        }
        let mut clones = Clones::new(&repository);
        let commits = Commits::prepare(self.args, &mut clones, &revisions)?;
        Ok(self.answer(Some(&commits), self.screen())?.code)
    }

    /// Makes the plan, carries it out, and prints what it shows.
    fn answer(&self, commits: Option<&Commits>, screen: Screen) -> anyhow::Result<Answer> {
        let Self { args, workload, dir, cancel, .. } = self;
        let arms = arms::read(args, *workload, dir, commits)?;
        let mut catalog = Catalog::new(dir);
        arms.systems.iter().for_each(|system| catalog.insert(system.clone()));
        let ask = args.ask(*workload)?;
        let first = args.plan(&catalog, &arms, ask.clone(), None)?;
        if args.dry_run {
            return Ok(dry_run(&catalog, &first)?.into());
        }
        args.save.as_deref().map_or(Ok(()), |name| save::check(name, &arms, &args.tls))?;
        let narrows = std::env::current_exe().context("cannot find the running program")?;
        let placement = Placement::decide(&systems::machine::available_cores());
        args.warn(&arms, placement.system.len());
        let services = services(args, dir, &placement, cancel)?;
        let mut bench = Bench::new(catalog.clone(), narrows, placement, self.files, Arc::clone(cancel));
        let learnt = learn::learn(&mut bench, &first, ask, args.look(), args.saturated(*workload))?;
        let Some(learnt) = learnt else { return Ok(ExitCode::from(INTERRUPTED).into()) };
        let plan = args.grown(&catalog, &arms, learnt)?;
        let path = args.place_of_store()?;
        let store = Store::open(&path)?;
        if let Some(name) = &args.save {
            let experiments = save::save(name, &arms, &plan, &args.tls)?.join(" ");
            common::say(format_args!("saved: `NARROWS_HOME=narrows narrows run {experiments}` repeats it"));
        }
        let header = RunHeader {
            started_unix_s: run_verb::since_epoch().as_secs_f64(),
            command: common::command_line(std::env::args().skip(1)),
            plan: plan.clone(),
            environment: bench.environment(),
        };
        let run = store.begin(&header)?;
        let done = run_verb::carry_out(&mut bench, &store, run, &plan, cancel, args.quiet)?;
        if services.iter().any(|service| !service.runs()) {
            common::say("warning: a service ended during the run, so later trials lacked it");
        }
        drop(services);
        let (code, found) = run_verb::finish(&store, run, done, &path, screen)?;
        let cases = gate::judged(&self.conditions, &found);
        if screen == Screen::Nothing {
            let saved = Saved::read(&store, run)?;
            let verdicts = Judgement::of_run(&found);
            let judgement =
                if self.conditions.is_empty() { verdicts } else { verdicts.decided_by(cases.clone()) };
            common::print(&saved.shown(args.format, judgement))?;
        }
        if code != ExitCode::SUCCESS {
            return Ok(code.into());
        }
        Ok(conclude(found, &cases))
    }

    /// What is printed at the end.
    fn screen(&self) -> Screen {
        if self.args.format == Format::Text { Screen::Tables } else { Screen::Nothing }
    }
}

/// The exit code for what was found.
fn conclude(found: Findings, cases: &[Case]) -> Answer {
    let mut rows = found.experiments.iter().flat_map(|e| &e.estimates);
    if let Some(row) = rows.find(|row| row.trials > 0 && row.successes == 0) {
        common::say(format_args!("{} gave no right answer in any trial", row.scenario.system));
        return ExitCode::FAILURE.into();
    }
    let code = if say_failed(cases) { ExitCode::from(FAILED) } else { ExitCode::SUCCESS };
    Answer { code, found: Some(found) }
}

/// Starts the services. They stop when they are dropped.
fn services(
    args: &Args,
    dir: &Path,
    placement: &Placement,
    cancel: &AtomicBool,
) -> anyhow::Result<Vec<Service>> {
    let start = |text: &String| {
        let words = arms::words(&Source::new("--service", text.as_str()), args.shell)?;
        let started = Service::start(&words, dir, &placement.system, args.ready, cancel);
        started.map_err(|error| anyhow!("{}: {}\n{}", error.system, error.reason, error.output.trim_end()))
    };
    args.services.iter().map(start).collect()
}

/// Prints the command of every point.
fn dry_run(catalog: &Catalog, plan: &Plan) -> End {
    let mut lines = String::new();
    for planned in &plan.experiments {
        for scenario in &planned.scenarios {
            let command = arms::shown(catalog.get(&scenario.system)?, &scenario.point)?;
            lines += &format!("{}: {command}\n", planned.label(scenario));
        }
    }
    common::print(&lines)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn workload(&self) -> Workload {
        match self.frames || self.arms.iter().all(|arm| arm.starts_with("frames://")) {
            true => Workload::Frames,
            false => Workload::Requests,
        }
    }

    /// Says what would make the figures mean something else than the user thinks.
    fn warn(&self, arms: &Arms, cores: usize) {
        if self.arms.iter().any(|arm| arms::is_url(arm)) {
            common::say(
                "nothing is restarted: a server that runs already keeps what earlier trials left in it",
            );
        }
        if let Some((knob, most)) = knobs::more_than_cores(&arms.knobs, cores) {
            let cores = report::number::several(cores as u64, "core");
            common::say(format_args!(
                "warning: {knob}={most} is more than the {cores} that a system gets here"
            ));
        }
    }

    /// What is sent. None for frames, whose contract says it.
    fn ask(&self, workload: Workload) -> anyhow::Result<Option<Ask>> {
        if workload != Workload::Requests {
            return Ok(None);
        }
        let body = self.traffic.body()?;
        Ok(Some(Ask {
            method: self.traffic.method(&body),
            headers: self.traffic.headers.clone(),
            body,
            expect_continue: self.traffic.expect_continue,
            status: self.traffic.checks.expect_status,
            expect: self.traffic.checks.expect.clone(),
            unequal: self.unequal,
            ..Ask::get(self.path_asked()?)
        }))
    }

    /// The path of `--path`, or that of the URLs.
    fn path_asked(&self) -> anyhow::Result<String> {
        let paths = self.arms.iter().filter(|arm| arms::is_url(arm));
        let mut paths =
            paths.map(|url| &url[arms::without_path(url).len()..]).filter(|path| !path.is_empty());
        let first = paths.next();
        if self.request_path.is_none() && paths.any(|path| Some(path) != first) {
            bail!(Usage("the URLs have different paths: give one with --path".to_owned()));
        }
        let path = self.request_path.as_deref().or(first).unwrap_or("/");
        if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            bail!(Usage(format!("{path:?} is not a path: write one such as /users?id=1, without spaces")));
        }
        Ok(path.to_owned())
    }
}
