//! Why a figure is not compared, as a sentence with what to do.

use lab::experiment::Asks;
use lab::findings::{Comparison, Estimate, FigureView, Missing};

use super::doubts::{self, evidence};
use super::options::Asked;
use super::warnings::without_figure;
use crate::number::{percent, seconds, several};

/// Why the figure of a scenario is not compared. The experiment's failures are those of its trials that failed.
pub(crate) fn missing(e: &FigureView<'_>, of: &Estimate, why: &Missing) -> String {
    let failure = if matches!(why, Missing::Failed) { failed(e, of) } else { None };
    failure.unwrap_or_else(|| format!("{}: {}", e.label(&of.scenario), reason(why, Asked::of(e))))
}

/// The same without the name of the scenario.
pub(crate) fn reason(why: &Missing, asked: Asked) -> String {
    match why {
        Missing::NotRun => "it has not run yet".to_owned(),
        Missing::Failed => "every trial failed".to_owned(),
        Missing::NothingRight { errors: None } => {
            "no operation ended in a window: measure for longer, or less work in one operation".to_owned()
        }
        Missing::NothingRight { errors: Some((class, count)) } => {
            format!("no right answer, {}, most of them {class}", several(*count, "error"))
        }
        Missing::Errors { share, class } => {
            format!("{} of its operations failed, most of them with {class}", percent(*share))
        }
        Missing::CountsDisagree => "its counts and those of the server contradict each other".to_owned(),
        Missing::Doubted(seen) => format!("{}; {}", evidence(seen), doubts::remedy(seen.doubt(), asked)),
        Missing::TooFewAnswers { needed, had, longer_s } => format!(
            "this percentile needs {needed} answers, and all trials together have {had}; trials of {} would have enough ({})",
            seconds(longer_s.ceil()),
            asked.either("-d", "measure_s")
        ),
        Missing::NotCounted => "the kernel gave no such count: see `narrows doctor`".to_owned(),
        Missing::NothingGood => "in the usual trial no answer met all limits of --slo".to_owned(),
        Missing::NoFigure => "no trial has this figure".to_owned(),
    }
}

/// With what the trials of a scenario failed that did.
fn failed(e: &FigureView<'_>, of: &Estimate) -> Option<String> {
    let label = e.label(&of.scenario);
    let failure = e.failures.iter().find(|failure| failure.scenario == label)?;
    Some(format!("{label} failed at {}: {}", failure.stage, failure.reason))
}

/// Why a comparison has no ratio.
pub(super) fn without_ratio(e: &FigureView<'_>, c: &Comparison) -> String {
    let both = [c.scenario, c.against].map(|at| &e.estimates[at]);
    let why = both.into_iter().find_map(|of| Some(missing(e, of, &of.missing(e, e.figure)?)));
    why.unwrap_or_else(|| few_rounds(e, both.into_iter(), "the two have fewer than three rounds in common"))
}

/// That these have too few rounds in common, and why: trials that failed or have no figure.
fn few_rounds<'a>(e: &FigureView<'_>, mut of: impl Iterator<Item = &'a Estimate>, said: &str) -> String {
    let without = |of: &Estimate| {
        let (_, advice) = without_figure(e).find(|(system, _)| *system == of.scenario.system)?;
        Some(format!("{}; {}", advice.message, advice.remedy))
    };
    let why = of.find_map(|of| failed(e, of).or_else(|| without(of)));
    why.map_or_else(|| said.to_owned(), |why| format!("{said} ({why})"))
}

/// Why what the experiment asks about is not compared.
pub(super) fn unanswered(e: &FigureView<'_>, asks: &Asks) -> String {
    let of_asked = |c: &&Comparison| c.by.knob() == asks.knob();
    let comparisons: Vec<&Comparison> = e.comparisons.iter().filter(of_asked).collect();
    let without = comparisons.iter().find(|c| c.ratio.is_none()).map(|c| without_ratio(e, c));
    let ran = e.estimates.iter().filter(|of| !of.is_reference()).map(|of| of.scenario.system.as_str());
    let mut ran: Vec<&str> = ran.collect();
    ran.dedup();
    let Some(knob) = asks.knob() else {
        return match (&ran[..], without) {
            ([only], _) => format!("no systems are compared: only {only} takes part"),
            (_, Some(why)) => format!("the systems cannot be compared: {why}"),
            (_, None) => "no systems are compared: no two of them ran at the same point".to_owned(),
        };
    };
    let axis = e.axes.iter().find(|axis| axis.knob == knob);
    match (axis.map(|axis| (axis, &axis.values[..])), without) {
        (Some((axis, [value])), _) => {
            format!("`{knob}` is not compared: it is {} everywhere", axis.show(value))
        }
        (_, Some(why)) => format!("`{knob}` cannot be compared: {why}"),
        _ if comparisons.is_empty() => format!("`{knob}` is not compared: no two rows differ only in it"),
        // Only of knobs that set the work is no claim made although they are compared.
        _ => {
            format!("`{knob}` has no cliff: no step is shown to cost more than the additional work explains")
        }
    }
}

/// Why the comparisons without a ratio have none: some of the scenarios that have no figure to compare.
pub(super) fn of_all(e: &FigureView<'_>) -> String {
    /// So many scenarios are named.
    const NAMED: usize = 2;
    let all = e.missing();
    let why: Vec<String> = all.iter().take(NAMED).map(|(of, why)| missing(e, of, why)).collect();
    match (&why[..], all.len().saturating_sub(NAMED)) {
        ([], _) => few_rounds(e, e.estimates.iter(), "no two rows have three rounds in common"),
        (some, 0) => some.join("; "),
        (some, more) => format!("{}; and {}", some.join("; "), several(more as u64, "other row")),
    }
}
