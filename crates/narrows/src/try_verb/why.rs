//! Tests the reasons of a saved comparison: the faster command is given each suspected cause alone, as further arms of the same rounds.
//!
//! A suspected cause is a count in which the two differ and that can be injected: the bytes that a read returns, or the number of
//! system calls. Each has three doses: half of it, as much as the slower command has, and twice that. The arm without a dose has the
//! library too, and is the base.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use inject::{Injection, LIBRARY};
use lab::findings::{Claim, Comparison as Compared, Counted, Estimate, FigureView, Findings};
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

    /// Whether the injected arm has come near to the slower one, as a share of the way in logarithms.
    fn has_taken(&self, injected: &Estimate) -> bool {
        let way = |count: f64| (count / self.faster).ln() / (self.slower / self.faster).ln();
        self.of(injected).is_none_or(|count| way(count) >= TAKEN)
    }

    /// What it is, in words.
    fn words(&self) -> String {
        match self.counted {
            Counted::BytesPerRead => {
                format!("reads that return {:.0} bytes, and not {:.0}", self.slower, self.faster)
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
    let question = Asked { command: asked.command.clone(), question: None, of_commits: true };
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
    let [faster, slower] = by_speed(c).map(|at| e.estimates.get(at));
    let (faster, slower) = faster.zip(slower).context("the run has no such rows")?;
    let suspects = suspects(faster, slower);
    if suspects.is_empty() {
        bail!(
            "there is nothing to test: only the bytes of a read and the number of system calls can be injected, and the two do not differ in \
             them by {DIFFER} times, or they were not counted (see `narrows doctor`)"
        );
    }
    Ok(Case { faster: command(comparison, faster)?, slower: command(comparison, slower)?, suspects })
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

/// The positions of the faster and of the slower scenario of a comparison that is decided.
fn by_speed(c: &Compared) -> [usize; 2] {
    match c.ratio.is_some_and(|ratio| ratio.estimate >= 1.0) {
        true => [c.scenario, c.against],
        false => [c.against, c.scenario],
    }
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
    /// Makes these the options of the test: the same traffic for the faster command, with and without causes, and the slower one.
    fn become_test(&mut self, case: &Case, library: &Path) {
        let shell = self.command.start.shell;
        let with = |injection: Injection, command: &str| match shell {
            true => format!("export {}; {command}", injection.variables(library).join(" ")),
            false => format!("env {} {command}", injection.variables(library).join(" ")),
        };
        let nothing = Injection::default();
        let doses = case.suspects.iter().flat_map(|suspect| {
            DOSES.map(|(dose, times)| (suspect.name(dose), with(suspect.injection(times), &case.faster)))
        });
        let arms = std::iter::once((FASTER.to_owned(), with(nothing, &case.faster)))
            .chain(doses)
            .chain([(SLOWER.to_owned(), with(nothing, &case.slower))]);
        (self.names, self.arms) = arms.unzip();
        self.command.knobs.retain(|knob| self.arms.iter().any(|arm| uses(arm, knob)));
        self.command.parameter_lists.clear();
        self.figures.truncate(1);
        (self.rounds, self.seed, self.save, self.duet) = (None, None, None, false);
        self.no_duet = true;
        self.fail_if.clear();
        self.inconclusive = None;
    }
}

/// Whether a command has the placeholder of a knob that is written as `name=values`.
fn uses(command: &str, knob: &str) -> bool {
    let name = knob.split('=').next().unwrap_or(knob);
    template::names(command).is_ok_and(|names| names.iter().any(|used| used == name))
}

/// What became of each suspected cause, a paragraph for each.
fn verdicts(case: &Case, found: &Findings, again: &Saved) -> String {
    let mut out = String::new();
    let Some(e) = found.views().next() else { return out };
    let row = |name: &str| e.estimates.iter().find(|row| row.scenario.system == name);
    for suspect in &case.suspects {
        let rows = row(FASTER).zip(row(&suspect.name("once"))).zip(row(SLOWER));
        let words = suspect.words();
        let Some(((faster, once), slower)) = rows else { continue };
        if !suspect.has_taken(once) {
            let _ = writeln!(
                out,
                "cannot be tested here: {words}. The command makes its system calls itself, or reads in another way: what was injected \
                 did not reach it"
            );
            continue;
        }
        match mediated(e.figure, &faster.by_round, &once.by_round, &slower.by_round) {
            None => {
                let _ = writeln!(
                    out,
                    "not tested: {words}. The two commands do not certainly differ in this run; give it more time"
                );
            }
            Some(share) => {
                let _ = writeln!(out, "{}{}", said(&share, &words), each_costs(suspect, again));
            }
        }
    }
    out
}

fn said(share: &Mediated, words: &str) -> String {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let interval = format!(
        "{} [{}, {}] of the difference ({} rounds)",
        percent(share.share),
        percent(share.low),
        percent(share.high),
        share.rounds
    );
    match share.tested {
        Tested::Proven => format!("proven: {words}. They alone make {interval}"),
        Tested::Excluded => format!("excluded: {words}. They alone make {interval}"),
        Tested::GoesWith => {
            format!("goes with it: {words}. They alone make {interval}, so more rounds must tell")
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
