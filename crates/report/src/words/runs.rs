//! What is said of two runs beside the table of their scenarios: what else differs, the machine, and what cannot be judged.

use lab::compare::{Alone, Difference, Incomparable, Intervals, Matched, RunComparison};
use lab::experiment::grid::Excluded;
use lab::findings::{Missing, Ratio};
use stats::FEWEST_RUNS;

use super::missing;
use super::options::Asked;
use crate::number::{interval_in_hundredths, percent, several};

/// A system that takes no part, or not everywhere, and why.
pub(crate) fn left_out(excluded: &Excluded) -> String {
    let Excluded { system, reason, partly } = excluded;
    let where_not = if *partly { " at some points" } else { "" };
    format!("{system}{where_not}: {reason}")
}

/// The side that has nothing to compare, for a cell of a table.
pub(super) fn side(because: Incomparable) -> &'static str {
    match because {
        Incomparable::First => "nothing to compare in the first",
        Incomparable::Second => "nothing to compare in the second",
        Incomparable::Both => "nothing to compare in both",
        Incomparable::TooFewRounds => "fewer than 3 rounds",
        Incomparable::NoReference => "no rounds with the reference",
        Incomparable::FewRuns => "not known",
    }
}

/// Why two scenarios cannot be compared.
pub(super) fn why(m: &Matched) -> String {
    let of = |side: &str, why: &Option<Missing>| {
        let why =
            why.as_ref().map_or_else(|| "no figure".to_owned(), |why| missing::reason(why, Asked::File));
        format!("{side}: {why}")
    };
    let Some(because) = m.because else { return "no ratio".to_owned() };
    match because {
        Incomparable::First => of("in the first", &m.missing_a),
        Incomparable::Second => of("in the second", &m.missing_b),
        Incomparable::Both => {
            format!("{}; {}", of("in the first", &m.missing_a), of("in the second", &m.missing_b))
        }
        because => side(because).to_owned(),
    }
}

/// What no condition can be asked of, each with the reason: scenarios without a ratio, and those that only one side has.
pub fn unjudged(found: &RunComparison) -> Vec<String> {
    let open = found.matched.iter().filter(|m| m.estimate.is_none());
    let open = open.map(|m| format!("{} {}: {}", m.experiment, m.b, why(m)));
    let alone = without_counterpart(found).into_iter().map(|label| format!("{label}: without a counterpart"));
    open.chain(alone).collect()
}

/// Why it is not known how much runs differ. None if it is, or if it does not matter.
pub fn few_runs(m: &Matched) -> Option<String> {
    let earlier = m.earlier.filter(|_| m.because == Some(Incomparable::FewRuns))?;
    Some(too_few(&several(earlier.runs.into(), "earlier run")))
}

fn too_few(runs: &str) -> String {
    format!(
        "only {runs} of this question; at least {FEWEST_RUNS} are needed to know how much runs differ here"
    )
}

/// How much runs differ, as far as it is known, and what helps where it is not.
pub(crate) fn between_runs(found: &RunComparison) -> Vec<String> {
    let earlier = || found.matched.iter().filter_map(|m| m.earlier);
    let few = earlier().filter(|earlier| earlier.spread.is_none()).map(|earlier| earlier.runs);
    let range = |least: u32, most: u32| match least == most {
        true => several(least.into(), "earlier run"),
        false => format!("{least} to {}", several(most.into(), "earlier run")),
    };
    let few = few.clone().min().zip(few.max()).map(|(least, most)| {
        let few = too_few(&range(least, most));
        format!("{few}: measure both in one run (narrows try), or look at these two alone (--within-run)")
    });
    let known: Vec<(f64, u32)> = earlier().filter_map(|e| Some((e.spread?, e.runs))).collect();
    let spreads = || known.iter().map(|(spread, _)| spread.exp_m1());
    let (least, most) = (spreads().reduce(f64::min), spreads().reduce(f64::max));
    let runs = known.iter().map(|(_, runs)| *runs);
    let known =
        runs.clone().min().zip(runs.max()).zip(least.zip(most)).map(|((few, many), (least, most))| {
            let [least, most] = [least, most].map(percent);
            let spread = if least == most { most } else { format!("{least} to {most}") };
            format!(
                "runs of this question differ by {spread} here (standard deviation, {})",
                range(few, many)
            )
        });
    known.into_iter().chain(few).collect()
}

/// What intervals of two runs are about, behind a number and `intervals`.
pub(super) fn about(found: &RunComparison) -> &'static str {
    match found.intervals {
        Intervals::SharedRounds => "",
        Intervals::BetweenRuns => " that hold how much runs differ here",
        Intervals::WithinRuns => " of these two runs alone, without how much runs differ",
    }
}

/// The scenarios that only one side has, each behind the name of that side.
pub(crate) fn without_counterpart(found: &RunComparison) -> Vec<String> {
    let side = |alone: &Alone| if alone.first { &found.a } else { &found.b };
    let alone = found.unmatched.iter();
    alone.map(|alone| format!("{}: {} {}", side(alone), alone.experiment, alone.scenario)).collect()
}

/// So many scenarios are named.
const NAMED: usize = 3;

/// What of each side has no counterpart, in some words.
pub fn alone(found: &RunComparison) -> String {
    let words = |first: bool| {
        let own = found.unmatched.iter().filter(|alone| alone.first == first);
        let all: Vec<String> = own.map(|alone| format!("{} {}", alone.experiment, alone.scenario)).collect();
        match all.len() {
            0 => "nothing".to_owned(),
            count if count > NAMED => format!("{} and {} more", all[..NAMED].join("; "), count - NAMED),
            _ => all.join("; "),
        }
    };
    format!("only the first has {}; only the second has {}", words(true), words(false))
}

/// What of the machine, its settings or the trials is not the same.
pub(crate) fn difference(difference: &Difference) -> String {
    let Difference { what, a, b, grave } = difference;
    let grave = if *grave { ", which makes the comparison meaningless" } else { "" };
    format!("{what}: {a} in the first, {b} in the second{grave}")
}

/// How much faster the machine was.
pub(crate) fn machine((experiment, ratio): (&String, &Ratio)) -> String {
    let ratio = interval_in_hundredths(*ratio);
    format!(
        "in {experiment} the reference was {ratio} as fast in the second: scenarios are compared as shares of it"
    )
}
