//! `--fail-if`: which arms or values certainly meet a condition.

use lab::findings::{Comparison, Estimate, ExperimentFindings, Findings};
use report::{Case, Grade};

use crate::condition::Condition;

/// A case for each condition and each arm or value. A condition on a ratio sets arms beside the base arm, and values of a knob
/// beside that of the base. One on a figure judges each row by itself. If there are several builds, a condition is met if all
/// of them meet it.
#[expect(
    clippy::indexing_slicing,
    reason = "a comparison has the number of one of the same experiment's estimates"
)]
pub fn judged(conditions: &[Condition], found: &Findings) -> Vec<Case> {
    let mut cases = Vec::new();
    for condition in conditions {
        let before = cases.len();
        let first_builds = found.experiments.iter().filter(|e| e.repeats.is_none());
        for e in first_builds.filter(|e| condition.is_about(e.figure)) {
            if !condition.needs_baseline() {
                let labels = e.estimates.iter().map(|row| e.label(&row.scenario));
                cases.extend(labels.enumerate().map(|(at, label)| {
                    let same = builds(found, e).filter_map(|e| e.estimates.get(at));
                    of_row(condition, &label, e, same)
                }));
                continue;
            }
            for (at, c) in e.comparisons.iter().enumerate().filter(|(_, c)| e.is_beside_base(c)) {
                let label = e.label(&e.estimates[c.scenario].scenario);
                let same: Vec<&Comparison> = builds(found, e).filter_map(|e| e.comparisons.get(at)).collect();
                cases.push(case(condition, &label, e, &same));
            }
        }
        if cases.len() == before {
            cases.push(condition.without_comparison());
        }
    }
    cases
}

/// The case of one comparison, which every build has made: that of the build that speaks most against it.
fn case(condition: &Condition, label: &str, e: &ExperimentFindings, same: &[&Comparison]) -> Case {
    let ratio = |c: &Comparison| c.known();
    let holds = |c: &Comparison| ratio(c).is_some_and(|ratio| condition.holds(e.figure, ratio, c.p));
    let unjudged = same.iter().find(|c| ratio(c).is_none());
    let seen = unjudged.or(same.iter().find(|c| !holds(c))).or(same.first());
    let (ratio, p) = seen.map_or((None, None), |c| (ratio(c), c.p));
    let mut case = condition.case(label, e.figure, ratio, p);
    if let (Grade::Unjudged, Some(c)) = (case.grade, seen.filter(|c| c.ratio.is_none())) {
        case.words = format!("{}: {}", case.words, report::without_ratio(e, c));
    }
    case
}

/// The case of one row, which every build has: that of the build that speaks most against the condition.
fn of_row<'a>(
    condition: &Condition,
    label: &str,
    e: &ExperimentFindings,
    same: impl Iterator<Item = &'a Estimate>,
) -> Case {
    let cases = same.map(|row| condition.case_of_row(label, e.figure, row));
    let first = cases.min_by_key(|case| match case.grade {
        Grade::Unjudged => 0,
        Grade::Fine => 1,
        Grade::Open => 2,
        Grade::Worse => 3,
    });
    first.unwrap_or_else(|| condition.without_comparison())
}

/// The experiment and those that repeat it with other builds.
fn builds<'a>(
    found: &'a Findings,
    first: &'a ExperimentFindings,
) -> impl Iterator<Item = &'a ExperimentFindings> {
    let repeats = |e: &&ExperimentFindings| {
        e.figure == first.figure && e.repeats.as_deref() == Some(first.name.as_str())
    };
    std::iter::once(first).chain(found.experiments.iter().filter(repeats))
}
