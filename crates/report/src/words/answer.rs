//! What an experiment says first: the answer to its question, what comes second, or why there is no answer.

use lab::findings::{Claim, FailedTrials, FigureView, Silence};
use systems::said;

use super::claims::{Wording, list};
use super::missing::of_all;
use super::tuned;

/// A sentence for each claim with its reason, in the findings' order. The first is the headline. Of a search, its answer and
/// what stands below it.
pub fn headlines(e: &FigureView<'_>) -> Vec<String> {
    if let Some(found) = &e.tuned {
        return std::iter::once(tuned::answer(e, found)).chain(tuned::below(e, found)).collect();
    }
    let wording = Wording { e };
    let claims = e.claims.iter().map(|claim| {
        let sentence = with_reason(wording.sentence(claim), wording.reason(claim));
        match wording.elsewhere(claim) {
            Some(also) => format!("{sentence}. {}", capital(&also)),
            None => sentence,
        }
    });
    let alone = alone(e).into_iter();
    failing(e).into_iter().chain(claims).chain(alone).collect()
}

/// What is said of the only arm of a comparison. None if there are several, or if a file names the systems.
fn alone(e: &FigureView<'_>) -> Option<String> {
    let base =
        e.base.as_ref().filter(|_| e.claims.is_empty() && e.silence() == Some(Silence::OneScenario))?;
    Some(Wording { e }.alone(&base.scenario.system))
}

/// The scenarios of which every trial failed while others were measured, with the first reason.
fn failing(e: &FigureView<'_>) -> Option<String> {
    let systems = || e.estimates.iter().filter(|estimate| !estimate.is_reference());
    let failing: Vec<String> = systems()
        .filter(|estimate| estimate.trials == 0 && estimate.failed > 0)
        .map(|estimate| e.label(&estimate.scenario))
        .collect();
    let first = e.failures.iter().find(|failure| failing.first() == Some(&failure.scenario))?;
    systems().any(|estimate| estimate.trials > 0).then(|| {
        let fails = if failing.len() == 1 { "fails" } else { "fail" };
        format!("{} {fails} in every trial: {}", list(&failing), first_line(first))
    })
}

/// Why trials failed, and the line of the system's output that tells it.
pub(crate) fn first_line(failure: &FailedTrials) -> String {
    let said = said(&failure.output).map_or_else(String::new, |line| format!("; it said: {line}"));
    format!("{}{said}", failure.reason)
}

/// The headline, or why there is none.
pub fn answer(e: &FigureView<'_>) -> String {
    let (sentence, reason) = answer_and_reason(e);
    with_reason(sentence, reason)
}

/// What comes second, below the headline: which systems lead at other points. If the experiment has a question, also the same
/// systems at like settings, on what the answer depends, if that turns it, and the largest other difference.
pub(crate) fn second(e: &FigureView<'_>) -> Vec<String> {
    let Some(first) = e.claims.first().filter(|_| e.tuned.is_none()) else { return Vec::new() };
    let wording = Wording { e };
    let elsewhere = wording.elsewhere(first).into_iter();
    let Some(asks) = e.asks.as_ref() else { return elsewhere.collect() };
    let matters = |claim: &&Claim| match claim {
        Claim::Systems { alike, .. } => *alike,
        Claim::DependsOn { interaction: on, .. } => {
            side(on.most.1, e.threshold) != side(on.least.1, e.threshold)
        }
        _ => false,
    };
    let (of_question, others): (Vec<&Claim>, Vec<&Claim>) =
        e.claims.iter().skip(1).partition(|claim| claim.knob() == asks.knob());
    let differs = |claim: &&&Claim| {
        matches!(
            claim,
            Claim::Knob { .. } | Claim::Cliff { .. } | Claim::Systems { .. } | Claim::NoDifference { .. }
        )
    };
    let largest = others.iter().find(differs).copied();
    let further = of_question.into_iter().filter(matters).chain(largest);
    elsewhere.chain(further.map(|claim| wording.sentence(claim))).collect()
}

/// Which way a ratio points: -1, or 1, or 0 within the threshold.
fn side(ratio: f64, threshold: f64) -> i8 {
    i8::from(ratio > 1.0 + threshold) - i8::from(ratio < 1.0 / (1.0 + threshold))
}

/// The headline without its reason, or why there is none; and the reason.
pub(crate) fn answer_and_reason(e: &FigureView<'_>) -> (String, Option<String>) {
    if let Some(found) = &e.tuned {
        return (tuned::answer(e, found), None);
    }
    let wording = Wording { e };
    let (sentence, reason) = match e.claims.first() {
        Some(claim) => (wording.sentence(claim), wording.reason(claim)),
        None => match (alone(e), e.silence()) {
            (Some(alone), _) => (alone, None),
            (_, Some(Silence::NoRatio)) => (format!("nothing can be compared: {}", of_all(e)), None),
            (_, why) => (why.map_or_else(String::new, |why| silence(why).to_owned()), None),
        },
    };
    match failing(e) {
        // Names are not English words.
        Some(failing) if begins_with_name(e) => (format!("{failing}. {sentence}"), reason),
        Some(failing) => (format!("{failing}. {}", capital(&sentence)), reason),
        None => (sentence, reason),
    }
}

/// Whether the headline begins with the name of a system.
fn begins_with_name(e: &FigureView<'_>) -> bool {
    match e.claims.first() {
        Some(claim) => matches!(claim, Claim::Systems { .. }),
        None => alone(e).is_some(),
    }
}

/// The sentence with a capital letter.
pub(crate) fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn with_reason(sentence: String, reason: Option<String>) -> String {
    match reason {
        Some(reason) => format!("{sentence}: {reason}"),
        None => sentence,
    }
}

/// Why there is no claim.
fn silence(why: Silence) -> &'static str {
    match why {
        Silence::NotYet => "nothing to compare yet",
        Silence::NoSystem => "there is nothing to compare: no system ran but the reference",
        Silence::NothingMeasured => "nothing was measured: every trial of every system failed",
        Silence::OneScenario => "there is nothing to compare: one system at one point",
        Silence::NothingCounted => {
            "nothing was counted: the kernel gives no such counts here; see `narrows doctor`"
        }
        Silence::UnequalWork => "nothing is compared: the systems answer differently",
        Silence::NothingComparable => "there is nothing to compare: no two rows differ in one thing only",
        Silence::TooFewRounds => "too few rounds: a comparison takes three",
        Silence::NoRatio => "nothing can be compared",
        Silence::NothingStandsOut => "nothing stands out",
    }
}
