//! Demands that a verdict recurs with other builds. How a linker happens to lay out code can make a program faster or slower by
//! ten percent, in every round alike, so the intervals of one build do not show it.

use stats::Verdict;

use super::{Compared, Withheld};
use crate::plan::{Plan, Planned};

/// Makes each comparison undecided that other builds of the same systems do not confirm.
pub(super) fn demand(compared: &mut [Compared<'_>]) {
    for index in 0..compared.len() {
        let first = &compared[index].planned;
        let group: Vec<usize> =
            (0..compared.len()).filter(|other| same(first, &compared[*other].planned)).collect();
        if group.first() == Some(&index) {
            // Repeated experiments ask for the same comparisons, in the same order.
            (0..compared[index].comparisons.len()).for_each(|at| demand_one(compared, &group, at));
        }
    }
}

/// The same for one comparison, which each experiment of the group has made.
fn demand_one(compared: &mut [Compared<'_>], group: &[usize], at: usize) {
    let verdicts = group.iter().filter_map(|one| Some(compared[*one].comparisons.get(at)?.verdict));
    let verdicts: Vec<Verdict> = verdicts.collect();
    if verdicts.windows(2).all(|pair| pair[0] == pair[1]) {
        return;
    }
    for one in group {
        if let Some(comparison) = compared[*one].comparisons.get_mut(at).filter(|c| c.verdict.is_decided()) {
            comparison.withheld = Some(Withheld::OtherBuild);
            comparison.verdict = Verdict::Undecided { more_rounds: None };
        }
    }
}

/// Whether two experiments ask the same about different builds.
fn same(one: &Planned, other: &Planned) -> bool {
    first(one) == first(other) && one.figure == other.figure
}

/// The name of the experiment of the first build.
fn first(planned: &Planned) -> &str {
    planned.repeats.as_ref().unwrap_or(&planned.name)
}

/// The number of builds that a plan measures of the systems of an experiment.
pub(super) fn builds(plan: &Plan, planned: &Planned) -> usize {
    plan.experiments.iter().filter(|other| first(other) == first(planned)).count()
}
