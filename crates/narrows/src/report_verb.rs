//! `narrows report`: prints the report of a saved run, or the list of runs, or quotes a run in a file.

mod quoting;

mod formats;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use lab::findings::{Findings, findings_beside};
use lab::observation::{Observation, Outcome, Scenario};
use lab::profiles;
use lab::store::{RunHeader, RunId, Store};
use measurement::Measurement;
use report::{Interval, Judgement};
use serde::{Deserialize, Serialize};

use crate::common::{self, End};
use crate::stores::{self, StoreArg};
use quoting::QuoteArgs;

/// The format of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Tables for the terminal.
    #[default]
    Text,
    /// Tables to paste into a README or a pull request.
    Markdown,
    /// One page with figures, to open in a browser.
    Html,
    /// One JSON object, with a schema version.
    Json,
    /// All tables, with raw numbers and their units.
    Csv,
    /// The latencies of each trial, as an HdrHistogram log.
    Hlog,
    /// The latencies of each scenario, with its rounds merged, as an HdrHistogram log.
    HlogMerged,
    /// Workflow commands of GitHub Actions: an annotation for each comparison and each warning.
    Github,
    /// JUnit's XML: a test for each comparison. It fails if a scenario certainly is slower than the base.
    Junit,
    /// One JSON object about the one candidate beside its base: accept, reject or inconclusive, and why.
    Verdict,
    /// Bencher Metric Format: the figures of each scenario, to follow them over time.
    Bencher,
    /// Where CPU time went: stacks in lines, as flame graphs are made of.
    Folded,
    /// Where CPU time went, for <https://www.speedscope.app>.
    Speedscope,
    /// Where CPU time went, for `go tool pprof` and others; it is no text, so use --output.
    Pprof,
}

/// `narrows report`
#[derive(clap::Args)]
pub struct Args {
    /// The number of a run, `last` or `previous`; without it, the list of runs is printed
    run: Option<String>,
    /// The format of the report
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Print all tables, warnings and notes instead of one screen for each experiment
    #[arg(long, requires = "run")]
    details: bool,
    /// Print in which functions the CPU time of scenarios differs, with intervals, below each comparison that is decided
    #[arg(long, requires = "run", conflicts_with = "details")]
    functions: bool,
    /// Write to this file
    #[arg(short, long, value_name = "FILE", requires = "run")]
    output: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArg,
    // What has a heading of its own in the help stands last.
    #[command(flatten)]
    quote: QuoteArgs,
}

/// Prints the report of a saved run, or the list of runs, or quotes a run in a file.
pub fn run(args: &Args) -> End {
    if args.details && args.format != Format::Text {
        let message = "--details is for the text format; the other formats always have everything";
        return Err(common::Usage(message.to_owned()).into());
    }
    if args.functions && args.format != Format::Text {
        let message =
            "--functions is for the text format; --format folded, speedscope and pprof have the profiles";
        return Err(common::Usage(message.to_owned()).into());
    }
    if args.format == Format::Pprof && args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(common::Usage("pprof is no text: write it to a file with --output".to_owned()).into());
    }
    let store = Store::read(&args.store.newest()?)?;
    if let Some(end) = args.quote.run(&store, args.run.as_deref()) {
        return end;
    }
    let text = match &args.run {
        Some(word) => {
            let run = Saved::read(&store, store.resolve(word)?)?;
            match args.format {
                Format::Text => {
                    let colour = args.output.is_none() && common::colour();
                    let form = match (args.details, args.functions) {
                        (true, _) => report::text,
                        (_, true) => report::functions_text,
                        _ => on_the_screen,
                    };
                    form(&run.found, common::width(), colour).into_bytes()
                }
                format => run.shown(format, &Judgement::of_run(&run.found), store.path())?,
            }
        }
        None => list(&store)?.into_bytes(),
    };
    match &args.output {
        Some(path) => common::AtomicFile::create(path)?.write(text)?,
        None => common::print(text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A run as it was saved, with its findings.
pub struct Saved {
    id: RunId,
    header: RunHeader,
    observations: Vec<Observation>,
    /// What was found, beside the published tables.
    pub found: Findings,
}

impl Saved {
    /// Reads a run and computes its findings.
    pub fn read(store: &Store, id: RunId) -> anyhow::Result<Self> {
        let (observations, header) = (store.observations(id)?, store.header(id)?);
        Ok(Self::of(id, header, observations))
    }

    /// Computes the findings of a run.
    pub fn of(id: RunId, header: RunHeader, observations: Vec<Observation>) -> Self {
        let found = findings_beside(&header.plan, &observations, published::beside);
        Self { id, header, observations, found }
    }

    /// What began it, and its plan.
    pub fn header(&self) -> &RunHeader {
        &self.header
    }

    /// The trials that were done.
    pub fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// Its page.
    pub fn page(&self) -> String {
        let profiles = profiles::profiles(&self.observations);
        report::html(&self.found, &report::Run { profiles: &profiles, ..self.shown_run() })
    }

    /// The run in a format, in one screen if that is text. The judgement is for the formats that are read by CI,
    /// and `path` is that of its store.
    ///
    /// # Errors
    /// The format is one of profiles, and the run has none; or it is about one candidate, and the run has another
    /// question.
    pub fn shown(&self, format: Format, judgement: &Judgement, path: &Path) -> anyhow::Result<Vec<u8>> {
        let (found, profiles) = (&self.found, || profiles::profiles(&self.observations));
        Ok(match format {
            Format::Pprof => return formats::pprof(&profiles()),
            Format::Folded => formats::folded(&profiles())?,
            Format::Speedscope => formats::speedscope(&profiles(), &self.header.command)?,
            Format::Text => {
                let (width, colour) = (common::width(), common::colour());
                on_the_screen(found, width, colour)
            }
            Format::Markdown => report::markdown(found),
            Format::Html => self.page(),
            Format::Json => report::json(found, &self.header.environment),
            Format::Csv => report::csv(found),
            Format::Hlog => report::hlog(&by_trial(&self.observations)),
            Format::HlogMerged => report::hlog(&by_scenario(&self.observations)),
            Format::Github => report::github(judgement),
            Format::Junit => report::junit(judgement),
            Format::Bencher => report::bencher(found),
            Format::Verdict => verdict(found, self.id, path, None)?,
        }
        .into_bytes())
    }

    /// The facts of the run that are shown.
    fn shown_run(&self) -> report::Run<'_> {
        shown_run(self.id, &self.header)
    }
}

/// The verdict on the one candidate of a run in the store at this path.
///
/// # Errors
/// The run does not set one candidate beside its base.
pub fn verdict(
    found: &Findings,
    run: RunId,
    path: &Path,
    ledger: Option<report::Entry<'_>>,
) -> anyhow::Result<String> {
    let report = format!("narrows report {run}{}", stores::option(path));
    report::verdict_json(found, &report::Verdict { run, report: &report, ledger }).with_context(|| {
        format!("run {run} does not set one candidate beside its base: a verdict is about `narrows try BASE CANDIDATE`")
    })
}

/// All experiments, each on one screen, and below them the answers of a comparison with several figures.
fn on_the_screen(found: &Findings, width: usize, colour: bool) -> String {
    report::brief(found, width, colour) + &report::verdicts(found, width, colour)
}

/// The facts of a run that are shown.
fn shown_run(id: RunId, header: &RunHeader) -> report::Run<'_> {
    report::Run {
        id,
        started_unix_s: header.started_unix_s,
        command: &header.command,
        seed: header.plan.seed,
        environment: &header.environment,
        profiles: &[],
    }
}

/// The observations with a measurement.
fn measured(observations: &[Observation]) -> impl Iterator<Item = (&Observation, &Measurement)> {
    observations.iter().filter_map(|observation| match &observation.outcome {
        Outcome::Measured(m) => Some((observation, m.as_ref())),
        Outcome::Failed(_) => None,
    })
}

/// The latencies of each measured trial, from the intended send if that is known. Rounds count from 1.
fn by_trial(observations: &[Observation]) -> Vec<Interval> {
    let intervals = measured(observations).map(|(observation, m)| {
        let trial = &observation.trial;
        let twin = if trial.twin { ";twin" } else { "" };
        let tag = format!("{};round={}{twin}", series(&trial.scenario), trial.round + 1);
        interval(tag, observation, m)
    });
    intervals.collect()
}

/// The latencies of each scenario without the twin's, as in the report's percentiles. The length of an interval is the
/// sum of its windows, so that its count divided by its length is a rate.
fn by_scenario(observations: &[Observation]) -> Vec<Interval> {
    let mut merged: Vec<(&Scenario, Interval)> = Vec::new();
    for (observation, m) in measured(observations).filter(|(observation, _)| !observation.trial.twin) {
        let scenario = &observation.trial.scenario;
        let next = interval(series(scenario), observation, m);
        match merged.iter_mut().find(|(known, _)| *known == scenario) {
            Some((_, all)) => {
                all.length_s += next.length_s;
                all.histogram += next.histogram;
            }
            None => merged.push((scenario, next)),
        }
    }
    merged.into_iter().map(|(_, interval)| interval).collect()
}

fn interval(tag: String, observation: &Observation, m: &Measurement) -> Interval {
    Interval {
        tag,
        began_unix_s: observation.began_unix_s,
        length_s: m.elapsed_s,
        histogram: m.latency().to_nanos(),
    }
}

/// The name of a scenario's series: `experiment;system;knob=value;…`.
fn series(scenario: &Scenario) -> String {
    let knobs = scenario.point.iter().map(|(name, value)| format!("{name}={value}"));
    let names = [scenario.experiment.clone(), scenario.system.clone()];
    names.into_iter().chain(knobs).collect::<Vec<_>>().join(";")
}

fn list(store: &Store) -> anyhow::Result<String> {
    let mut text = String::from("run  trials     state        command\n");
    for run in store.runs()? {
        let run = match run {
            Ok(run) => run,
            Err(damaged) => {
                text.push_str(&format!("{:<15} damaged      {damaged}\n", ""));
                continue;
            }
        };
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
