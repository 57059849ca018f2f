//! Tests the reasons of a saved comparison: the faster command is given each suspected cause alone, as further arms of the same rounds.
//!
//! A suspected cause is a count in which the two differ and that can be injected: the bytes that a read returns, or the number of
//! system calls. Each has three doses: half of it, as much as the slower command has, and twice that. The arm without a dose has the
//! library too, and is the base.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use inject::{Injection, LIBRARY};
use lab::findings::{Claim, Counted, Estimate, FigureView, Findings};
use lab::mediation::{Mediated, Tested, cost_of_event, cpu_s, mediated};
use lab::store::Store;
use systems::machine::Limit;
use systems::{Scratch, template};

use super::{Args, Comparison, Concluded};
use crate::common::{self, End};
use crate::report_verb::Saved;
use crate::runs::{Asked, Screen};

/// The names of the arms that are neither suspected nor injected.
const FASTER: &str = "faster";
const SLOWER: &str = "slower";

/// The doses of a cause, as multiples of what the slower command has.
const DOSES: [(&str, f64); 3] = [("half", 0.5), ("once", 1.0), ("twice", 2.0)];

/// Counts that differ less are no suspects.
const DIFFER: f64 = 1.2;

/// The injected count must come this near to that of the slower command.
const TAKEN: f64 = 0.5;

/// A count that may be the cause.
struct Suspect {
    counted: Counted,
    faster: f64,
    slower: f64,
    /// Reads for a unit of work of the faster command.
    reads: f64,
}

impl Suspect {
    /// A word for its arms.
    fn word(&self) -> &'static str {
        if self.counted == Counted::BytesPerRead { "reads" } else { "calls" }
    }

    fn name(&self, dose: &str) -> String {
        format!("{}-{dose}", self.word())
    }

    fn injection(&self, dose: f64) -> Injection {
        match self.counted {
            Counted::BytesPerRead => Injection {
                most_bytes: Some((self.slower / dose).round().max(1.0) as u64),
                ..Injection::default()
            },
            _ => {
                let calls = (self.slower - self.faster) / self.reads * 1000.0 * dose;
                Injection { thousandths_of_calls: calls.round().max(0.0) as u64, ..Injection::default() }
            }
        }
    }

    /// The same count of another arm.
    fn of(&self, e: &Estimate) -> Option<f64> {
        if self.counted == Counted::BytesPerRead { e.work.bytes_per_read } else { e.work.calls_per_unit }
    }

    /// Whether the injected arm has come near to the slower one, as a share of the way in logarithms. None if nothing was counted.
    fn has_taken(&self, injected: &Estimate) -> Option<bool> {
        let way = |count: f64| (count / self.faster).ln() / (self.slower / self.faster).ln();
        self.of(injected).map(|count| (TAKEN..=1.0 / TAKEN).contains(&way(count)))
    }

    /// What it is, in words.
    fn words(&self) -> String {
        match self.counted {
            Counted::BytesPerRead => {
                format!("reads of {:.0} bytes instead of {:.0}", self.slower, self.faster)
            }
            _ => format!("{:.1} more system calls for each read", (self.slower - self.faster) / self.reads),
        }
    }
}

/// What is tested: the two commands of a decided comparison, and the counts in which they differ.
struct Case {
    faster: String,
    slower: String,
    suspects: Vec<Suspect>,
    /// The knobs that no command contains, as `name=value`: those of the traffic and of what a command is allotted.
    knobs: Vec<String>,
}

/// Tests the reasons of a saved comparison, and prints what became of each.
pub fn test(saved: &Saved, mut args: Args, asked: &Asked, files: Limit) -> End {
    if !args.fleet.is_here() {
        bail!("reasons are tested on this machine only, and the run was on other machines");
    }
    let comparison = Comparison::read(&args, asked, files)?;
    let e = saved.found.views().next().context("the run has no findings")?;
    let case = case(&comparison, &e)?;
    let scratch = Scratch::new().context("no folder for the library that is preloaded")?;
    let library = scratch.path().join("inject.so");
    std::fs::write(&library, LIBRARY).with_context(|| format!("cannot write {}", library.display()))?;
    args.become_test(&case, &library);
    let question = Asked { command: asked.command.clone(), question: None, at_once: true };
    let Concluded { code, found } =
        Comparison::read(&args, &question, files)?.answer_in(1, None, Screen::Step)?;
    let Some(found) = found else { return Ok(code) };
    let store = Store::read(&args.store.of_commands())?;
    let again = Saved::read(&store, store.resolve("last")?)?;
    common::print(verdicts(&case, &found, &again))?;
    Ok(ExitCode::SUCCESS)
}

/// The commands of the first claim, the faster first, and what may be the cause.
fn case(comparison: &Comparison<'_>, e: &FigureView<'_>) -> anyhow::Result<Case> {
    let Some(
        Claim::Knob { comparison: c, .. }
        | Claim::Systems { comparison: c, .. }
        | Claim::Cliff { comparison: c, .. },
    ) = e.claims.first()
    else {
        bail!(
            "the run decides nothing, so there is no reason to test: it needs more rounds, or its arms do not differ"
        );
    };
    let rows = c.better_first().map(|both| both.map(|at| e.estimates.get(at)));
    let Some([Some(faster), Some(slower)]) = rows else { bail!("the run has no such rows") };
    let suspects = suspects(faster, slower);
    if suspects.is_empty() {
        bail!(
            "there is nothing to test. Narrows can inject shorter reads and more system calls only. The slower command has neither \
             {DIFFER} times as much as the faster one, or they were not counted (see `narrows doctor`)"
        );
    }
    let knobs = others(comparison, [faster, slower])?;
    Ok(Case { faster: command(comparison, faster)?, slower: command(comparison, slower)?, suspects, knobs })
}

/// The knobs that no command contains, with the value that both rows have.
fn others(comparison: &Comparison<'_>, [faster, slower]: [&Estimate; 2]) -> anyhow::Result<Vec<String>> {
    let (arms, _) = comparison.arms(None)?;
    let contained = |name: &str| comparison.args.arms.iter().any(|arm| uses(arm, name));
    let mut knobs = Vec::new();
    for (name, _) in arms.knobs.iter().filter(|(name, _)| !contained(name)) {
        let values = [faster, slower].map(|row| row.scenario.point.get(name));
        match values {
            [Some(one), Some(other)] if one == other => knobs.push(format!("{name}={one}")),
            _ => bail!(
                "the two differ in `{name}`, which no command contains, so it cannot be set for each arm"
            ),
        }
    }
    Ok(knobs)
}

/// Whether a command has the placeholder of a knob.
fn uses(command: &str, knob: &str) -> bool {
    template::names(command).is_ok_and(|names| names.iter().any(|used| used == knob))
}

/// The counts in which the slower one has so many times more to do.
fn suspects(faster: &Estimate, slower: &Estimate) -> Vec<Suspect> {
    let Some(reads) = faster.work.reads_per_unit().filter(|reads| *reads > 0.0) else { return Vec::new() };
    let (few, many) = (&faster.work, &slower.work);
    let suspect = |counted, both: Option<(f64, f64)>, ratio: fn(f64, f64) -> f64| {
        let (faster, slower) = both?;
        (ratio(faster, slower) >= DIFFER).then_some(Suspect { counted, faster, slower, reads })
    };
    let found = [
        suspect(Counted::BytesPerRead, few.bytes_per_read.zip(many.bytes_per_read), |fast, slow| fast / slow),
        suspect(Counted::SystemCalls, few.calls_per_unit.zip(many.calls_per_unit), |fast, slow| slow / fast),
    ];
    found.into_iter().flatten().collect()
}

/// The command of a row, with the values of its knobs filled in.
fn command(comparison: &Comparison<'_>, row: &Estimate) -> anyhow::Result<String> {
    let (arms, _) = comparison.arms(None)?;
    let at = arms.systems.iter().position(|system| system.name == row.scenario.system);
    let text = at.and_then(|at| comparison.args.arms.get(at)).context("the run has another command")?;
    if crate::command::arms::is_url(text) {
        bail!(
            "{text} is a server that runs already: nothing can be injected into it; give the command that starts it to `try`"
        );
    }
    let mut text = text.clone();
    for (knob, value) in &row.scenario.point {
        text = text.replace(&format!("{{{knob}}}"), &value.to_string());
    }
    Ok(text)
}

impl Args {
    /// What is preloaded already, as the end of a list of libraries.
    fn preloaded(&self) -> String {
        let given = self.command.start.env.iter().find_map(|given| given.strip_prefix("LD_PRELOAD="));
        let given = given.map(str::to_owned).or_else(|| std::env::var("LD_PRELOAD").ok());
        given.filter(|given| !given.is_empty()).map_or_else(String::new, |given| format!(":{given}"))
    }

    /// Makes these the options of the test: the same traffic for the faster command, with and without causes, and the slower one.
    fn become_test(&mut self, case: &Case, library: &Path) {
        let (shell, preloaded) = (self.command.start.shell, self.preloaded());
        let with = |injection: Injection, command: &str| {
            let [library, what] = injection.variables(library);
            let variables = shlex::try_join([&*format!("{library}{preloaded}"), &*what]);
            let variables = variables.unwrap_or_default();
            match shell {
                true => format!("export {variables}; {command}"),
                false => format!("env {variables} {command}"),
            }
        };
        let nothing = Injection::default();
        let doses = case.suspects.iter().flat_map(|suspect| {
            DOSES.map(|(dose, times)| (suspect.name(dose), with(suspect.injection(times), &case.faster)))
        });
        let arms = std::iter::once((FASTER.to_owned(), with(nothing, &case.faster)))
            .chain(doses)
            .chain([(SLOWER.to_owned(), with(nothing, &case.slower))]);
        (self.names, self.arms) = arms.unzip();
        self.command.knobs.clone_from(&case.knobs);
        self.command.parameter_lists.clear();
        self.figures.truncate(1);
        (self.rounds, self.seed, self.save, self.duet) = (None, None, None, false);
        self.no_duet = true;
        self.fail_if.clear();
        self.inconclusive = None;
    }
}

/// What became of each suspected cause, a paragraph for each.
fn verdicts(case: &Case, found: &Findings, again: &Saved) -> String {
    let e = found.views().next();
    let said = |suspect: &Suspect| {
        let words = suspect.words();
        let verdict = e.as_ref().and_then(|e| verdict(suspect, e));
        match verdict {
            Some(verdict) => format!("{verdict}{}\n", each_costs(suspect, again)),
            None => format!("not tested: {words}. An arm was not measured; `narrows report` says why\n"),
        }
    };
    case.suspects.iter().map(said).collect()
}

/// What became of a suspected cause. None if an arm has no figure.
fn verdict(suspect: &Suspect, e: &FigureView<'_>) -> Option<String> {
    let row = |name: &str| e.estimates.iter().find(|row| row.scenario.system == name && row.trials > 0);
    let dose = |dose: &str| row(&suspect.name(dose));
    let (faster, once, slower) = (row(FASTER)?, dose("once")?, row(SLOWER)?);
    let words = suspect.words();
    match suspect.has_taken(once) {
        None => {
            return Some(format!(
                "not tested: {words}. Narrows could not count them in this run; see `narrows doctor`"
            ));
        }
        Some(false) => {
            return Some(format!(
                "cannot be tested here: {words}. What was injected did not reach the server: it makes its system calls itself, or it \
                 reads with other functions"
            ));
        }
        Some(true) => {}
    }
    let share = |arm: &Estimate| mediated(e.figure, &faster.by_round, &arm.by_round, &slower.by_round);
    let Some(found) = share(once) else {
        return Some(format!(
            "not tested: {words}. In this run the slower command is not certainly slower; give more time with --budget"
        ));
    };
    let other = |name: &str| dose(name).and_then(share).map(|share| percent(share.share));
    let doses = match (other("half"), other("twice")) {
        (Some(half), Some(twice)) => format!("; half of it makes {half}, and twice of it {twice}"),
        _ => String::new(),
    };
    Some(format!("{}{doses}", said(&found, &words)))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn said(share: &Mediated, words: &str) -> String {
    let interval = format!(
        "{} [{}, {}] of the difference ({} rounds)",
        percent(share.share),
        percent(share.low),
        percent(share.high),
        share.rounds
    );
    match share.tested {
        Tested::Proven => format!("proven: {words}. This alone makes {interval}"),
        Tested::Excluded => format!("excluded: {words}. This alone makes {interval}"),
        Tested::GoesWith => {
            format!("goes with it: {words}. This alone makes {interval}; more rounds may decide it")
        }
    }
}

/// What each event costs on this machine, from the arm with twice the dose.
fn each_costs(suspect: &Suspect, again: &Saved) -> String {
    let of = |name: &str| -> BTreeMap<u32, f64> { cpu_s(again.observations(), name) };
    let twice = suspect.injection(2.0);
    let (events, what) = match twice.most_bytes {
        // Twice the reads of the slower one, less those of the faster one.
        Some(most) => (suspect.reads * (suspect.faster / most as f64 - 1.0), "read"),
        None => (suspect.reads * twice.thousandths_of_calls as f64 / 1000.0, "call"),
    };
    match cost_of_event(&of(FASTER), &of(&suspect.name("twice")), events) {
        Some([cost, low, high]) if low > 0.0 => {
            format!(
                ". Each further {what} costs {:.2} us of CPU [{:.2}, {:.2}] on this machine",
                cost * 1e6,
                low * 1e6,
                high * 1e6
            )
        }
        _ => String::new(),
    }
}
