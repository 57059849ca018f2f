//! Runs that are saved: they begin, are carried out, end, and go on when they were interrupted. `run`, `try` and `tune` share this.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::bail;
use lab::findings::Findings;
use lab::observation::{Observation, Outcome, Scenario};
use lab::plan::Plan;
use lab::session::{self, Away, Executor, Without};
use lab::store::{RunHeader, RunId, Store, StoreError};
use report::number;
use systems::machine::Limit;
use systems::{Catalog, Service, is_reference};

use crate::command::{self, learn};
use crate::common::{self, AtomicFile, End, INTERRUPTED};
use crate::first_use;
use crate::lab_args::LabArgs;
use crate::report_verb::Saved;
use crate::requests_args::Scripted;
use crate::stores;

mod announcement;
mod earlier;
mod interim;
mod progress;

/// A run that is saved: a new one, or one that goes on.
pub struct Run {
    /// Where it is saved.
    pub store: Store,
    /// Its number.
    pub id: RunId,
    /// What began it, and its plan.
    pub header: RunHeader,
    /// Whether nothing is measured yet, because it has just begun.
    is_new: bool,
    /// See [`Asked::at_once`].
    at_once: bool,
    /// Whether progress is shown in plain lines.
    quiet: bool,
}

/// What a run saves of the question that it answers.
pub struct Asked {
    /// The command line, for people.
    pub command: String,
    /// The question, as JSON. None if it cannot be saved.
    pub question: Option<serde_json::Value>,
    /// Whether the run cannot go on later: the clones of commits are not saved, and an attempt of a ledger is
    /// measured at once.
    pub at_once: bool,
}

/// The error of a run that has lost a machine.
#[derive(Debug)]
pub struct MachineLost {
    /// Which machine it is, and what is kept.
    pub why: String,
    /// How another run can begin without the machine.
    pub without: Option<Without>,
}

impl std::fmt::Display for MachineLost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for MachineLost {}

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
    /// Nothing, and nothing of its rounds: the arms of a test answer another question.
    Test,
}

/// What stopped a run before its end.
enum Stopped {
    Interrupted,
    /// A machine stays away.
    Away(Away),
    /// A trial could not be saved.
    Store(StoreError),
}

/// What a verb makes again of its question for a run that goes on.
pub struct Parts<'a> {
    /// A catalog that has the systems.
    pub catalog: &'a Catalog,
    /// Whether they were made of commands or URLs. Otherwise they have manifests.
    pub typed: bool,
    /// The requests of a file, if they are sent.
    pub scripted: Option<Scripted>,
    /// What its user wants to run beside the trials.
    pub services: Vec<Service>,
}

/// Where the trials of a run happen, and what runs beside them.
pub struct Place {
    /// Where they happen.
    pub executor: Box<dyn Executor>,
    /// What its user wants to run beside them.
    pub services: Vec<Service>,
}

impl Run {
    /// Saves the plan of a new run. None if the user interrupted while it was made: a large one takes a while.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn begin(
        store: Store,
        plan: Plan,
        asked: &Asked,
        executor: &dyn Executor,
        quiet: bool,
    ) -> anyhow::Result<Option<Self>> {
        if common::is_interrupted() {
            return Ok(None);
        }
        let header = RunHeader {
            started_unix_s: common::since_epoch().as_secs_f64(),
            command: asked.command.clone(),
            question: asked.question.clone(),
            plan,
            environment: executor.environment(),
        };
        let id = store.begin(&header)?;
        Ok(Some(Self { store, id, header, is_new: true, at_once: asked.at_once, quiet }))
    }

    /// Opens a saved run that is to go on.
    ///
    /// # Errors
    /// There is no such run.
    pub fn saved(lab: &LabArgs, word: &str) -> anyhow::Result<Self> {
        let store = Store::open(&lab.store.newest()?)?;
        let id = store.resolve(word)?;
        let header = store.header(id)?;
        Ok(Self { store, id, header, is_new: false, at_once: false, quiet: lab.quiet })
    }

    /// Makes ready for the rest of a saved run, as `lab` says. None if the user interrupted, or a machine stays away.
    ///
    /// # Errors
    /// The catalog lacks a system, or something is no longer as it was when the run began.
    pub fn go_on(
        &self,
        lab: &LabArgs,
        parts: Parts<'_>,
        files: Limit,
        cancel: &Arc<AtomicBool>,
    ) -> anyhow::Result<Option<Place>> {
        let plan = &self.header.plan;
        let mut systems = plan.trials.iter().map(|trial| &trial.scenario.system);
        if let Some(error) = systems.find_map(|system| parts.catalog.get(system).err()) {
            return Err(error.into());
        }
        if !parts.typed && !lab.is_fake() {
            first_use::show_named(parts.catalog, &named(plan));
        }
        let place = place(plan, lab, parts, files, cancel, !self.store.is_finished(self.id)?)?;
        if place.is_none() {
            common::say(format_args!("interrupted before the next trial: run {} is as it was", self.id));
        }
        Ok(place)
    }

    /// Carries out what is missing, shows its progress, stops what runs beside it, and prints what was found. Without a run to show,
    /// the user interrupted before there was something to find.
    ///
    /// # Errors
    /// The store cannot be read or written, or a machine stays away.
    pub fn carry_out(
        &self,
        Place { mut executor, services }: Place,
        cancel: &AtomicBool,
        screen: Screen,
    ) -> anyhow::Result<(ExitCode, Option<Saved>)> {
        let done = self.carry_out_trials(&mut *executor, cancel, screen != Screen::Test)?;
        command::stop(services);
        self.finish(done, screen)
    }

    /// Says whether all was done, or why not. `news` says whether findings are shown after each round.
    fn carry_out_trials(
        &self,
        executor: &mut dyn Executor,
        cancel: &AtomicBool,
        news: bool,
    ) -> anyhow::Result<Result<(), Stopped>> {
        let Self { id, store, header: RunHeader { plan, .. }, quiet, .. } = self;
        let seen = if self.is_new { Vec::new() } else { store.observations(*id)? };
        let pending = plan.missing(&seen);
        // Each step takes a moment if the plan is very large, and so did saving it.
        let is_interrupted = || cancel.load(Ordering::Relaxed);
        if !is_interrupted() {
            announcement::announce(plan, pending.len(), *id, earlier::noise(self));
        }
        if !is_interrupted() {
            executor.prepare(plan, &pending, &mut |line| common::say(line));
        }
        if is_interrupted() {
            return Ok(Err(Stopped::Interrupted));
        }
        // The rounds of a search are short and many, so none of them is news.
        let news = news && !is_search(plan);
        let mut progress = progress::RunProgress::new(plan, &pending, &seen, *quiet, news);
        let done = session::carry_out(executor, store, *id, plan, seen, cancel, &mut progress);
        progress.clear();
        Ok(match (done, executor.away()) {
            (Ok(true), _) => Ok(()),
            (Ok(false), None) => Err(Stopped::Interrupted),
            (Ok(false), Some(away)) => Err(Stopped::Away(away.clone())),
            (Err(error), _) => Err(Stopped::Store(error)),
        })
    }

    /// Prints the answers, where the rest is, and how to resume the run if it is unfinished.
    fn finish(&self, done: Result<(), Stopped>, screen: Screen) -> anyhow::Result<(ExitCode, Option<Saved>)> {
        if matches!(done, Err(Stopped::Interrupted)) && !self.store.has_observations(self.id)? {
            common::say(format_args!("interrupted before the first trial: {}", self.remedy()));
            return Ok((ExitCode::from(INTERRUPTED), None));
        }
        let (header, observations) = match (self.store.header(self.id), self.store.observations(self.id)) {
            (Ok(header), Ok(observations)) => (header, observations),
            // If something stopped the run, report that error.
            (Err(error), _) | (_, Err(error)) => match done {
                Err(Stopped::Store(first)) => bail!(first),
                _ => bail!(error),
            },
        };
        let kept = format!(
            "{} of {} trials are kept: {}",
            observations.len(),
            header.plan.trials.len(),
            self.remedy()
        );
        let run = self.id;
        let made = common::unless_interrupted(move || {
            let saved = Saved::of(run, header, observations);
            let page = saved.page();
            (saved, page)
        })?;
        if let Some((saved, page)) = &made {
            self.print(&saved.found, page, &saved.header().plan, screen)?;
        }
        let shown =
            format!("`narrows report {run}{}` shows what was found", stores::option(self.store.path()));
        let code = match (done, &made) {
            (Ok(()), Some((saved, _))) if anything_measured(&saved.header().plan, saved.observations()) => {
                ExitCode::SUCCESS
            }
            (Ok(()), Some(_)) => {
                common::say(match screen {
                    Screen::Answers => {
                        "every trial of every system failed, so at most the reference was measured; the report says why"
                    }
                    _ => "every trial failed",
                });
                ExitCode::FAILURE
            }
            (Ok(()), None) => {
                common::say(format_args!("interrupted after the last trial: {shown}"));
                ExitCode::from(INTERRUPTED)
            }
            (Err(Stopped::Interrupted), made) => {
                let shown = if made.is_some() { String::new() } else { format!("{shown}, and ") };
                common::say(format_args!("interrupted: {shown}{}", self.remedy()));
                ExitCode::from(INTERRUPTED)
            }
            (Err(Stopped::Store(error)), _) => bail!("{error}\n{kept}"),
            (Err(Stopped::Away(Away { why, without })), _) => {
                bail!(MachineLost { why: format!("{why}\n{kept}"), without })
            }
        };
        Ok((code, made.map(|(saved, _)| saved)))
    }

    fn print(&self, found: &Findings, page: &str, plan: &Plan, screen: Screen) -> anyhow::Result<()> {
        let (width, colour) = (common::width(), common::colour());
        let rest = self.where_the_rest_is(found, page, plan);
        match screen {
            Screen::Answers => common::print(&(report::answers(found, width, colour) + &rest))?,
            Screen::Tables => {
                let verdicts = report::verdicts(found, width, colour);
                common::print(&(report::brief(found, width, colour) + &rest + &verdicts))?;
            }
            Screen::Nothing => common::say(rest.trim()),
            Screen::Step | Screen::Test => {}
        }
        Ok(())
    }

    /// What does the trials that are missing.
    fn remedy(&self) -> String {
        match self.at_once {
            false => format!(
                "`narrows run --resume {}{}` does what is missing",
                self.id,
                stores::option(self.store.path())
            ),
            true => format!("`narrows {}` runs it again", self.header.command),
        }
    }

    /// Writes the page with figures next to the store, and says how to see everything.
    fn where_the_rest_is(&self, found: &Findings, page: &str, plan: &Plan) -> String {
        let (run, path) = (self.id, self.store.path());
        let beside = path.with_extension("html");
        let written = AtomicFile::create(&beside).and_then(|file| file.write(page));
        let figures = match written {
            Ok(()) => format!("; its figures are in {}", stores::shown_beside(&beside)),
            // The trials are safe, and the page can be made later.
            Err(error) => {
                common::say(format_args!("{error:#}"));
                String::new()
            }
        };
        let store = stores::option(path);
        let failed: u32 =
            found.experiments.iter().flat_map(|e| &e.failures).map(|failure| failure.trials).sum();
        let failed = if failed > 0 {
            format!("{} failed.\n", number::several(failed.into(), "trial"))
        } else {
            String::new()
        };
        let what = match is_search(plan) {
            true => "prints this again, and the tables with --details",
            false => "prints the tables, and all with --details",
        };
        format!(
            "\n{failed}run {run} is saved in {}{figures}\n`narrows report {run}{store}` {what}\n",
            stores::shown(path)
        )
    }
}

/// The names of the systems of a plan.
fn named(plan: &Plan) -> BTreeSet<String> {
    plan.trials.iter().map(|trial| trial.scenario.system.clone()).collect()
}

/// Makes ready for the trials of a plan whose systems were measured before, as `lab` says. With `look`, commands must start and answer
/// as they did then. None if the user interrupted.
///
/// # Errors
/// Something is no longer as it was.
pub fn place(
    plan: &Plan,
    lab: &LabArgs,
    Parts { catalog, typed, scripted, services }: Parts<'_>,
    files: Limit,
    cancel: &Arc<AtomicBool>,
    look: bool,
) -> anyhow::Result<Option<Place>> {
    let mut executor = lab.lab(catalog, files, cancel)?;
    command::bring_again(scripted, plan, &mut *executor)?;
    if !typed {
        // A system that lacks something by now fails its trials. An interruption ends the run before its next trial.
        let _ = executor.probe(&named(plan));
    } else if look && !learn::look_again(&mut *executor, plan)? {
        return Ok(None);
    }
    Ok(Some(Place { executor, services }))
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

fn is_search(plan: &Plan) -> bool {
    plan.experiments.iter().any(|planned| planned.search.is_some())
}

/// Whether at least one trial of a requested system was measured. If the plan has only the reference, its trials count.
fn anything_measured(plan: &Plan, observations: &[Observation]) -> bool {
    let requested = |scenario: &Scenario| !is_reference(&scenario.system);
    let only_reference = !plan.trials.iter().any(|trial| requested(&trial.scenario));
    observations.iter().any(|seen| {
        matches!(seen.outcome, Outcome::Measured(_)) && (only_reference || requested(&seen.trial.scenario))
    })
}
