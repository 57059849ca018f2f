//! The verdict on one candidate beside its base, as one JSON object for programs that try many.
//!
//! It has what the screen says, and the numbers behind it. Nothing is computed anew.

use lab::ask::{Ask, Demand};
use lab::experiment::Figure;
use lab::findings::candidate::{Candidate, Choice};
use lab::findings::functions::{FEW_SAMPLES, FunctionChange};
use lab::findings::{CpuDifference, FailedTrials, FigureView, Findings, Unit, Withheld};
use lab::store::RunId;
use serde::Serialize;
use stats::{Attempt, CONFIRMATION_LEVEL, Decision, LEVEL, PartChange};

use crate::json::pretty;
use crate::number::percent;
use crate::words::{Advice, Asked, advice, answer, answer_and_reason, equal_work};

/// The schema version of a verdict.
pub const VERDICT_SCHEMA: u32 = 1;

/// The most functions that are named beside the one that carries the difference.
const MOST_FUNCTIONS: usize = 5;

/// What a verdict says beside the findings of its run.
#[derive(Debug, Clone, Copy)]
pub struct Verdict<'a> {
    /// The run whose rounds decide.
    pub run: RunId,
    /// The command that shows its report.
    pub report: &'a str,
    /// The ledger's entry. None without a ledger.
    pub ledger: Option<Entry<'a>>,
}

/// An attempt of a ledger.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The ledger, as its user calls it.
    pub file: &'a str,
    /// How many attempts it has, with this one.
    pub attempts: usize,
    /// What it decided.
    pub attempt: Attempt,
    /// The run of the first rounds, if the run whose rounds decide confirmed them.
    pub first_run: Option<RunId>,
}

/// The verdict on a candidate beside its base. Ratios say how many times better the candidate is, whether
/// more or less of the figure is better.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Verdict"))]
struct Document<'a> {
    /// The schema version. It changes if a field is removed or changes its meaning.
    #[cfg_attr(feature = "schema", schemars(extend("const" = VERDICT_SCHEMA)))]
    schema: u32,
    /// What to do with the candidate.
    verdict: Choice,
    /// What the screen says of the comparison, in words.
    answer: String,
    /// The figure that decides.
    figure: Figure,
    /// What the figure is in.
    unit: Unit,
    /// The base.
    base: Arm,
    /// The candidate.
    candidate: Arm,
    /// How many times better the candidate is. Null if it cannot be compared.
    ratio: Option<f64>,
    /// The 95 % interval of that ratio.
    interval: Option<[f64; 2]>,
    /// The smallest difference worth having, as a share.
    threshold: f64,
    /// Whether both did the same work.
    equal_work: EqualWork,
    /// What makes the difference, where one is decided.
    moved: Moved,
    /// The rounds that have both.
    rounds: u32,
    /// How many further rounds may decide, at most 200, if the verdict is inconclusive. Null if no number
    /// would.
    rounds_to_decide: Option<u32>,
    /// Why the comparison has no verdict although more rounds would not help.
    withheld: Option<Withheld>,
    /// The error that is allowed: that of one comparison, both sides together, or of this attempt of the
    /// ledger.
    level: f64,
    /// The ledger. Null without one.
    ledger: Option<InLedger<'a>>,
    /// Why the numbers may be untrustworthy.
    doubts: Vec<Doubted<'a>>,
    /// Trials that failed.
    failures: &'a [FailedTrials],
    /// The run in the store whose rounds decide.
    run: RunId,
    /// The command that shows its report.
    report: &'a str,
}

/// One of the two.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "VerdictArm"))]
struct Arm {
    /// Its name in the reports.
    name: String,
    /// Its figure. Null if it has none.
    figure: Option<f64>,
    /// Trials that were measured.
    trials: u32,
    /// Failed operations as a share of those that ended.
    errors: f64,
}

/// What was demanded of answers, which each had to meet.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EqualWork {
    /// Whether more than the status of each answer was checked, and the same of both.
    checked: bool,
    /// What was sent and demanded, in words.
    words: String,
}

/// What makes the difference.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Moved {
    /// The reason, as the screen says it. Null if there is none.
    words: Option<String>,
    /// Functions whose CPU time certainly changed, the one that carries the difference first.
    functions: Vec<Function>,
    /// System calls for a unit of work. Null if they were not counted.
    calls: Option<Counts>,
}

/// A function's CPU time for a unit of work.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MovedFunction"))]
struct Function {
    /// The function, or the system call of the kernel.
    name: String,
    /// Whether it is the kernel's time in this system call.
    kernel: bool,
    /// Where its source is, as `file:line`. Null if that is not known.
    at: Option<String>,
    /// What it takes in the base, seconds.
    base_s: f64,
    /// What it takes in the candidate, seconds.
    candidate_s: f64,
    /// Whether it carries the difference, with all that it calls. Otherwise its times are its own.
    carries: bool,
}

/// A count of both.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Counts {
    /// Of the base.
    base: f64,
    /// Of the candidate.
    candidate: f64,
}

/// What a ledger says of the attempt.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct InLedger<'a> {
    /// The file.
    file: &'a str,
    /// The attempts so far, with this one.
    attempts: usize,
    /// The one-sided p-value of the first rounds.
    p: f64,
    /// The level at which they were tested.
    level: f64,
    /// The one-sided p-value of the fresh rounds. Null if there were none.
    confirmation: Option<f64>,
    /// The level of fresh rounds.
    confirmation_level: f64,
    /// What was decided.
    decision: Decision,
    /// The run of the first rounds, if fresh rounds followed. The other fields are those of the fresh rounds.
    first_run: Option<RunId>,
}

/// A warning in words.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Doubted<'a> {
    #[serde(flatten)]
    advice: Advice,
    /// The scenarios that it concerns. Empty if it concerns all.
    scenarios: &'a [String],
}

/// An object as docs/schema/verdict.schema.json describes it. None if the run does not set one candidate
/// beside its base.
pub fn verdict_json(found: &Findings, of: &Verdict<'_>) -> Option<String> {
    let e = found.views().next()?;
    Some(pretty(&document(&e, &e.candidate()?, of)?))
}

/// The schema of [`verdict_json`].
#[cfg(feature = "schema")]
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Document)
}

/// What a ledger's attempt came to, in one sentence.
pub fn ledger_words(entry: &Entry<'_>) -> String {
    let Entry { file, attempts, attempt, .. } = entry;
    let (p, level) = (percent(attempt.p), percent(attempt.level));
    let first = format!("attempt {attempts} of {file}: p is {p}, and the level of this attempt is {level}");
    let fresh = |p: f64| {
        format!("p is {} in fresh rounds, whose level is {}", percent(p), percent(CONFIRMATION_LEVEL))
    };
    match (attempt.decision, attempt.confirmation) {
        (Decision::Accept, Some(p)) => format!("{first}; {}: it is accepted", fresh(p)),
        (Decision::Unconfirmed, Some(p)) => format!("{first}; {}: it is not confirmed", fresh(p)),
        (Decision::Unconfirmed | Decision::Accept, None) => format!("{first}: it was not confirmed"),
        (Decision::Reject, _) => format!("{first}: it is not shown to be better"),
    }
}

fn document<'a>(e: &FigureView<'a>, candidate: &Candidate<'_>, of: &Verdict<'a>) -> Option<Document<'a>> {
    let choice = match of.ledger {
        None => candidate.choice(e.threshold),
        Some(entry) => candidate.after(entry.attempt.decision, e.threshold),
    };
    // Fresh rounds have a level of their own.
    let level = of.ledger.map(|entry| match entry.first_run {
        Some(_) => CONFIRMATION_LEVEL,
        None => entry.attempt.level,
    });
    let open = choice == Choice::Inconclusive;
    let doubts = e
        .warnings
        .iter()
        .map(|warning| Doubted { advice: advice(warning, Asked::of(e)), scenarios: &warning.scenarios });
    let known = candidate.ratio.filter(|_| candidate.comparison.known().is_some());
    Some(Document {
        schema: VERDICT_SCHEMA,
        verdict: choice,
        answer: answer(e),
        figure: e.figure,
        unit: Unit::of(e.figure),
        base: arm(e, candidate.base)?,
        candidate: arm(e, candidate.candidate)?,
        ratio: known.map(|ratio| ratio.estimate),
        interval: known.map(|ratio| [ratio.low, ratio.high]),
        threshold: e.threshold,
        equal_work: of_work(e),
        moved: moved(e, candidate),
        rounds: candidate.comparison.rounds,
        rounds_to_decide: open.then(|| e.rounds_to_decide(candidate, level)).flatten(),
        withheld: candidate.comparison.withheld,
        level: of.ledger.map_or(LEVEL, |entry| entry.attempt.level),
        ledger: of.ledger.as_ref().map(in_ledger),
        doubts: doubts.collect(),
        failures: &e.shared.failures,
        run: of.run,
        report: of.report,
    })
}

fn arm(e: &FigureView<'_>, at: usize) -> Option<Arm> {
    let row = e.estimates.get(at)?;
    Some(Arm {
        name: e.label(&row.scenario),
        figure: row.figure,
        trials: row.trials,
        errors: row.error_share,
    })
}

fn of_work(e: &FigureView<'_>) -> EqualWork {
    let demands = |ask: &Ask| ask.answer != Demand::Any || !ask.expect.is_empty();
    EqualWork { checked: e.is_compared() && e.ask.as_deref().is_none_or(demands), words: equal_work(e) }
}

fn in_ledger<'a>(entry: &Entry<'a>) -> InLedger<'a> {
    let Entry { file, attempts, attempt, first_run } = *entry;
    let Attempt { p, level, confirmation, decision } = attempt;
    let confirmation_level = CONFIRMATION_LEVEL;
    InLedger { file, attempts, p, level, confirmation, confirmation_level, decision, first_run }
}

fn moved(e: &FigureView<'_>, candidate: &Candidate<'_>) -> Moved {
    let Candidate { base, candidate, .. } = *candidate;
    let mut known = e.cpu.iter().filter(|cpu| !cpu.open || cpu.is_certain());
    let cpu = known.find(|cpu| cpu.is_between(base, candidate));
    let calls = |at: usize| Some(e.estimates.get(at)?.work.calls_per_unit? * e.workload.about().unit.size);
    let counts = calls(base).zip(calls(candidate));
    Moved {
        words: answer_and_reason(e).1,
        functions: cpu.map_or_else(Vec::new, |cpu| functions(cpu, base)),
        calls: counts.map(|(base, candidate)| Counts { base, candidate }),
    }
}

fn functions(cpu: &CpuDifference, base: usize) -> Vec<Function> {
    let Some(found) = &cpu.functions else { return Vec::new() };
    let function = |of: &FunctionChange, carries: bool| {
        let [less, more] = [of.change.first, of.change.second].map(|share| share * cpu.less_s);
        let (base_s, candidate_s) = if cpu.less == base { (less, more) } else { (more, less) };
        let (name, at) = (of.function.name.clone(), of.at.clone());
        Function { name, kernel: of.function.kernel, at, base_s, candidate_s, carries }
    };
    let has_moved = |change: &PartChange| change.low > 0.0 || change.high < 0.0;
    let carrier = found.carrier.as_ref();
    let own = found.parts.iter().filter(|part| {
        has_moved(&part.change)
            && part.function.name != FEW_SAMPLES
            && carrier.is_none_or(|carrier| carrier.function != part.function)
    });
    let own = own.take(MOST_FUNCTIONS).map(|part| function(part, false));
    carrier.map(|carrier| function(carrier, true)).into_iter().chain(own).collect()
}

#[cfg(test)]
mod tests;
