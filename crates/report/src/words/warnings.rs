//! Warnings as sentences, each with what to do: those of experiments and of single trials; and trials that lie far from the
//! others.

use std::collections::BTreeMap;

use lab::findings::{
    APART, Code, FEWEST_TRIALS, FigureView, FirstFailure, Outlier, Seen, UNSTEADY, Warning, WithoutFigure,
};
use measurement::doubt::{Doubt, Evidence};
use serde::Serialize;

use super::doubts::{self, evidence};
use super::duets;
use super::options::Asked;
use super::per_connection;
use crate::number::{chosen_percent, tenths, times};

/// A warning in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// What was seen.
    pub message: String,
    /// What to do about it.
    pub remedy: &'static str,
}

/// Of a single trial.
pub fn advice_on_trial(seen: &Evidence) -> Advice {
    Advice { message: evidence(seen), remedy: doubts::remedy(seen.doubt(), Asked::Typed) }
}

/// Of an experiment; the scenarios are not named.
pub fn advice(warning: &Warning, asked: Asked) -> Advice {
    let Warning { code, count, of, .. } = warning;
    let message = match (code, &warning.seen) {
        (Code::Incomplete, _) => format!("{count} of {of} trials are done"),
        (_, Some(Seen::Work { system, unequal })) => {
            format!("{system} does not do the work of the others: {unequal}")
        }
        (_, Some(Seen::Evidence(seen))) => format!("{} in {count} of {of} scenarios", evidence(seen)),
        (code, Some(Seen::Failures(first))) => {
            let first: String = first.iter().map(first_failure).collect();
            format!("{} in {count} of {of} scenarios{first}", what(*code))
        }
        (code, None) => format!("{} in {count} of {of} scenarios", what(*code)),
    };
    Advice { message, remedy: remedy(*code, asked) }
}

fn first_failure(first: &FirstFailure) -> String {
    format!("; {} of {}: {}", first.class, first.system, first.example)
}

/// What the code alone says.
fn what(code: Code) -> String {
    match code {
        Code::TooFewTrials => format!("fewer than {FEWEST_TRIALS} measured trials"),
        Code::NothingFinished => "no operation ended inside the window".to_owned(),
        Code::Errors => "operations failed".to_owned(),
        Code::CountsDisagree => "the client's and the server's counts contradict each other".to_owned(),
        Code::SpeedChanges => {
            "the speed still changed in the windows; how far it may go on makes the intervals wide".to_owned()
        }
        Code::HeldBack => {
            "an idle server needs two sends for one answer, with 40 ms between them (Nagle's algorithm and a delayed \
             acknowledgement)"
                .to_owned()
        }
        Code::Unsteady => {
            format!("trials lie more than {} of their median apart", chosen_percent(UNSTEADY))
        }
        Code::FewTrialsDecide => format!(
            "the percentile of all answers differs from that of the median trial by a factor of {} or more: few trials decide it",
            tenths(APART)
        ),
        Code::PercentileUnsupported => "too few operations for p99 (it needs 1000)".to_owned(),
        Code::Incomplete | Code::UnequalWork | Code::Trial(_) => "something is doubtful".to_owned(),
    }
}

pub(super) fn remedy(code: Code, asked: Asked) -> &'static str {
    match code {
        Code::Incomplete => "wait, or continue with --resume",
        Code::TooFewTrials => "more --rounds, or a longer --budget",
        Code::NothingFinished => asked.either(
            "a longer window (-d), or less work for one operation",
            "a longer measure_s, or less work for one operation",
        ),
        Code::Errors => {
            "rows above 1 % of errors are not ranked, unless a note says why; the classes say what to change"
        }
        Code::SpeedChanges => asked.either(
            "a longer --warmup, or --cold if the beginning is what counts",
            "a longer warmup_s, or 0 if the beginning is what counts",
        ),
        Code::HeldBack => "set TCP_NODELAY on the server's sockets, or send head and body with one write",
        Code::CountsDisagree => "do not use these rows; docs/contracts.md says what a driver must count",
        Code::Unsteady => asked.either(
            "stop other work on the machine (`narrows doctor`), a longer window (-d), more --rounds",
            "stop other work on the machine (`narrows doctor`), a longer measure_s, more --rounds",
        ),
        Code::FewTrialsDecide => asked.either(
            "a longer window (-d) or more --rounds, so that many windows contain what is slow",
            "a longer measure_s or more --rounds, so that many windows contain what is slow",
        ),
        Code::PercentileUnsupported => {
            asked.either("a longer window (-d), or more --rounds", "a longer measure_s, or more --rounds")
        }
        Code::UnequalWork => "compare it only with systems that do the same",
        Code::Trial(doubt) => doubts::remedy(doubt, asked),
    }
}

/// A trial that lies far from the others of its scenario, and why; such trials count like all.
pub(crate) fn outlier(outlier: &Outlier) -> String {
    let Outlier { scenario, round, ratio, .. } = outlier;
    let because: Vec<String> = outlier.because.iter().map(evidence).collect();
    let because = match &because[..] {
        [] => "nothing that was measured explains it".to_owned(),
        some => some.join("; "),
    };
    format!("{scenario} in round {round} was {} as fast as its median, and counts: {because}", times(*ratio))
}

/// What else there is to know: the trials without a figure, the duets, and the cost of a connection.
pub(crate) fn notes(e: &FigureView<'_>) -> Vec<String> {
    let without = without_figure(e).map(|(_, advice)| advice.message);
    without.chain(duets(e)).chain(per_connection(e)).collect()
}

/// The trials without a figure: for each system and reason their number, and the first of them.
pub(super) fn without_figure<'a>(e: &FigureView<'a>) -> impl Iterator<Item = (&'a str, Advice)> {
    let mut groups: BTreeMap<(&str, Doubt), (usize, &Evidence)> = BTreeMap::new();
    for WithoutFigure { system, evidence } in e.without_figure {
        groups.entry((system, evidence.doubt())).or_insert((0, evidence)).0 += 1;
    }
    let asked = Asked::of(e);
    groups.into_iter().map(move |((system, doubt), (trials, first))| {
        let message = match trials {
            1 => format!("{system}: a trial has no figure: {}", evidence(first)),
            _ => format!("{system}: {trials} trials have no figure; in the first, {}", evidence(first)),
        };
        (system, Advice { message, remedy: doubts::remedy(doubt, asked) })
    })
}
