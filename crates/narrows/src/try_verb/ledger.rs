//! `--ledger`: an attempt of a session, and the file that keeps the session.
//!
//! The file is locked from before the first trial to the end, so that no two processes test at one level. An
//! attempt is written when its run begins, as one that showed nothing: whoever interrupts it may have seen
//! its figures. The first rounds decide whether fresh ones are measured, which are a run of their own: new
//! processes, another seed, and their number is fixed by that of the first.

use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::{CommandFactory, ValueEnum};
use lab::findings::candidate::Choice;
use lab::findings::{Findings, Ratio};
use lab::ledger::{Arm, Confirmation, Ledger, Question};
use lab::observation::Timing;
use lab::store::RunId;
use report::Entry;
use revisions::Revision;
use stats::Decision;

use super::commits::Commits;
use super::{Args, Comparison};
use crate::common::{self, AtomicFile, End, INTERRUPTED, Usage};
use crate::report_verb::{self, Format};
use crate::runs::{Place, Run};
use crate::{Cli, question, stores};

/// No ledger has more bytes: it has at most `stats::MOST_ATTEMPTS`.
const MOST_BYTES: u64 = 256 << 20;

/// The options that say which arms there are, and what is printed. They are no part of a session's question.
const OF_ARMS: [&str; 4] = ["arms", "names", "git", "figures"];

/// An attempt, before it is measured.
pub struct Attempt {
    locked: Locked,
    candidate: Arm,
}

/// A ledger that this process has locked.
struct Locked {
    path: PathBuf,
    ledger: Ledger,
    /// Unlocked when it is dropped.
    _lock: File,
}

/// The rounds of an attempt, or those that confirm it.
struct Measured {
    run: Run,
    code: ExitCode,
    found: Findings,
}

/// What rounds say of the candidate.
struct Seen {
    rounds: u32,
    ratio: Option<Ratio>,
    p: f64,
}

impl Args {
    /// Whether it is an attempt of a ledger.
    pub fn has_ledger(&self) -> bool {
        self.ledger.is_some()
    }

    /// Checks that there are two arms, where the answer is about one candidate, and that nothing else is
    /// asked of them.
    pub(super) fn check_candidate(&self, arms: usize) -> Result<(), Usage> {
        let wrong = |why: String| Err(Usage(why));
        let option = match (&self.ledger, self.format) {
            (Some(_), Format::Text | Format::Verdict) => "--ledger",
            (Some(_), _) => {
                return wrong("--ledger prints text, or one object with --format verdict".to_owned());
            }
            (None, Format::Verdict) => "--format verdict",
            (None, _) => return Ok(()),
        };
        if arms != 2 {
            return wrong(format!(
                "{option} is about one candidate beside its base: give two commands, or one with two commits in --git, and no knob \
                 with several values"
            ));
        }
        if self.unequal {
            return wrong(format!(
                "{option} compares two arms, and --unequal compares nothing: leave one of them out"
            ));
        }
        if self.has_ledger() && self.commits.builds > 1 {
            return wrong("--ledger decides by one build of each commit: leave out --builds".to_owned());
        }
        Ok(())
    }

    /// What makes attempts belong to the session of this one, beside its base.
    fn question(&self, base: Arm) -> anyhow::Result<Question> {
        let asked = question::Question::Try(Box::new(self.clone())).identity(false);
        let options =
            asked.as_ref().and_then(|asked| asked.get("try")).and_then(|options| options.as_object());
        let options = options
            .context("--ledger keeps the options, and one of them names a file whose name is no text")?;
        let kept = options.iter().filter(|(name, _)| !OF_ARMS.contains(&name.as_str()));
        let cli = Cli::command();
        let named = |name: &str| {
            let mut known = cli.find_subcommand("try")?.get_arguments();
            known.find(|option| option.get_id() == name)?.get_long().map(str::to_owned)
        };
        let figure = self.figures().first().and_then(ValueEnum::to_possible_value);
        Ok(Question {
            figure: figure.map(|figure| figure.get_name().to_owned()).unwrap_or_default(),
            base,
            options: kept
                .map(|(name, value)| (named(name).unwrap_or_else(|| name.clone()), value.clone()))
                .collect(),
        })
    }

    /// The options of the fresh rounds: as many and as long as those of this run.
    fn again(&self, run: &Run) -> Self {
        let plan = &run.header.plan;
        let timing = plan.experiments.first().map(|planned| planned.timing);
        let time = |of: fn(&Timing) -> f64| Duration::try_from_secs_f64(of(timing.as_ref()?)).ok();
        Self {
            rounds: plan.experiments.iter().map(|planned| planned.rounds).max(),
            budget: None,
            seed: self.seed.map(|seed| seed.wrapping_add(1)),
            duration: time(|timing| timing.measure_s),
            warmup: time(|timing| timing.warmup_s).filter(|_| !self.cold),
            ..self.clone()
        }
    }
}

impl Locked {
    /// Locks and reads a session, or begins one if there is no such file.
    ///
    /// # Errors
    /// Another process has locked it, it is damaged, it belongs to another question, or it takes no more
    /// attempts.
    fn open(path: &Path, asked: &Question) -> anyhow::Result<Self> {
        // The lock of a symbolic link is that of its file.
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let shown = stores::shown(path);
        let another = "or begin another session with --ledger and another file";
        let lock = lock(path)?;
        let ledger = match read(path)? {
            None => Ledger::new(asked.clone()),
            Some(text) => Ledger::parse(&text).map_err(|why| {
                anyhow!("{shown} is damaged: {why}; mend it, {another}. It was not changed")
            })?,
        };
        if let Some(why) = ledger.refuses(asked) {
            bail!(Usage(format!("{shown} keeps another session: {why}, {another}")));
        }
        if ledger.is_full() {
            bail!("{shown} takes no more attempts: begin another session with --ledger and another file");
        }
        Ok(Self { path: path.to_owned(), ledger, _lock: lock })
    }

    fn write(&self) -> anyhow::Result<()> {
        AtomicFile::create(&self.path)?.write(self.ledger.text())
    }
}

/// Locks a ledger. The lock is a file beside it, because the ledger itself is replaced.
fn lock(path: &Path) -> anyhow::Result<File> {
    let mut name = path.file_name().with_context(|| format!("{} is no file", path.display()))?.to_owned();
    name.push(".lock");
    let beside = path.with_file_name(name);
    let context = || format!("cannot lock {}", beside.display());
    let file =
        File::options().create(true).write(true).truncate(false).open(&beside).with_context(context)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "another process uses {}: its attempt must end before the next one begins, because each has a level of its own",
            stores::shown(path)
        ),
        Err(TryLockError::Error(error)) => Err(error).with_context(context),
    }
}

/// The text of a ledger. None if there is no file.
fn read(path: &Path) -> anyhow::Result<Option<String>> {
    let context = || format!("cannot read {}", path.display());
    let known = match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        known => known.with_context(context)?,
    };
    if !known.is_file() || known.len() > MOST_BYTES {
        bail!("{} is no ledger: it is no file, or longer than any ledger", path.display());
    }
    let mut text = String::new();
    let file = File::open(path).with_context(context)?;
    file.take(MOST_BYTES).read_to_string(&mut text).with_context(context)?;
    Ok(Some(text))
}

/// The base and the candidate.
fn arms(args: &Args, revisions: &[Revision]) -> anyhow::Result<[Arm; 2]> {
    let commit = |at: usize| Some(revisions.get(at)?.commit.clone());
    let arms = match (args.arms.as_slice(), revisions) {
        ([base, candidate], []) => Some([(base, None), (candidate, None)]),
        ([command], [_, _]) => Some([(command, commit(0)), (command, commit(1))]),
        _ => None,
    };
    let arms = arms.context("a ledger needs a base and one candidate")?;
    Ok(arms.map(|(command, commit)| Arm { command: command.clone(), commit }))
}

impl Attempt {
    /// Makes ready for the attempt that these options ask for. None without a ledger. `revisions` are the
    /// commits, if they are what differs.
    ///
    /// # Errors
    /// The ledger cannot be used, or belongs to another question.
    pub fn of(args: &Args, revisions: &[Revision]) -> anyhow::Result<Option<Self>> {
        let Some(path) = &args.ledger else { return Ok(None) };
        let [base, candidate] = arms(args, revisions)?;
        let locked = Locked::open(path, &args.question(base)?)?;
        Ok(Some(Self { locked, candidate }))
    }

    /// Measures the candidate, confirms it if it looks better, keeps what was seen, and prints the answer.
    pub fn measure(mut self, comparison: &Comparison<'_>, commits: Option<&Commits>) -> End {
        let (place, run) = match comparison.begin(1, commits)? {
            Ok(begun) => begun,
            Err(code) => return Ok(code),
        };
        self.locked.ledger.begin(self.candidate.clone(), run.header.started_unix_s, run.id);
        self.locked.write()?;
        let first = Measured::of(comparison, place, run)?;
        if first.is_interrupted() {
            return Ok(self.interrupted());
        }
        let seen = Seen::of(&first.found);
        self.end(&seen, None, &first.found)?;
        if self.last()?.decision != Decision::Unconfirmed {
            return self.print(comparison, &first, None);
        }
        let fresh = match confirm(comparison, commits, &first)? {
            Ok(fresh) if fresh.is_interrupted() => return Ok(self.interrupted()),
            Ok(fresh) => fresh,
            Err(code) => return Ok(code),
        };
        let Seen { rounds, ratio, p } = Seen::of(&fresh.found);
        let confirmation = Confirmation { run: fresh.run.id, rounds, ratio, p };
        self.end(&seen, Some(confirmation), &fresh.found)?;
        self.print(comparison, &fresh, Some(first.run.id))
    }

    /// Records what the rounds have shown. `found` is what the answer is about.
    fn end(&mut self, seen: &Seen, fresh: Option<Confirmation>, found: &Findings) -> anyhow::Result<()> {
        let answer = |decision| {
            let of = found.views().next().and_then(|e| Some(e.candidate()?.after(decision, e.threshold)));
            of.unwrap_or(Choice::Inconclusive)
        };
        self.locked.ledger.end((seen.rounds, seen.ratio, seen.p), fresh, answer);
        self.locked.write()
    }

    /// The attempt as it is recorded.
    fn last(&self) -> anyhow::Result<&lab::ledger::Attempt> {
        self.locked.ledger.attempts().last().context("the attempt is not in its ledger")
    }

    fn interrupted(&self) -> ExitCode {
        let (number, file) = (self.locked.ledger.attempts().len(), stores::shown(&self.locked.path));
        common::say(format_args!(
            "attempt {number} of {file} is spent, because its figures may have been seen"
        ));
        ExitCode::from(INTERRUPTED)
    }

    /// Prints the answer. `first_run` is that of the first rounds, if these are the fresh ones.
    fn print(&self, comparison: &Comparison<'_>, decides: &Measured, first_run: Option<RunId>) -> End {
        let file = stores::shown(&self.locked.path);
        let attempts = self.locked.ledger.attempts().len();
        let recorded = self.last()?;
        let entry = Entry { file: &file, attempts, attempt: recorded.recorded(), first_run };
        let path = decides.run.store.path();
        common::print(match comparison.args.format {
            Format::Verdict => report_verb::verdict(&decides.found, decides.run.id, path, Some(entry))?,
            _ => format!("{}\n", report::ledger_words(&entry)),
        })?;
        match super::is_unanswered(&decides.found) {
            true => Ok(ExitCode::FAILURE),
            false => Ok(decides.code),
        }
    }
}

/// Measures fresh rounds. Gives the exit code if they do not begin.
fn confirm(
    comparison: &Comparison<'_>,
    commits: Option<&Commits>,
    first: &Measured,
) -> anyhow::Result<Result<Measured, ExitCode>> {
    common::say("it looks better: fresh rounds confirm it, or not");
    let again = comparison.args.again(&first.run);
    let fresh = Comparison::read(&again, comparison.asked, comparison.files)?;
    Ok(match fresh.begin(1, commits)? {
        Ok((place, run)) => Ok(Measured::of(&fresh, place, run)?),
        Err(code) => Err(code),
    })
}

impl Measured {
    fn of(comparison: &Comparison<'_>, place: Place, run: Run) -> anyhow::Result<Self> {
        let (code, saved) = run.carry_out(place, &comparison.cancel, comparison.screen())?;
        Ok(Self { run, code, found: saved.map(|saved| saved.found).unwrap_or_default() })
    }

    fn is_interrupted(&self) -> bool {
        self.code == ExitCode::from(INTERRUPTED)
    }
}

impl Seen {
    /// What the deciding figure says. Nothing if it has no candidate.
    fn of(found: &Findings) -> Self {
        let of = found.views().next().and_then(|e| e.candidate());
        of.map_or(Self { rounds: 0, ratio: None, p: 1.0 }, |candidate| Self {
            rounds: candidate.comparison.rounds,
            ratio: candidate.ratio,
            p: candidate.p,
        })
    }
}
