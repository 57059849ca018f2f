//! Demands that a verdict recurs with other builds. How a linker happens to lay out code can make a program faster or slower by
//! ten percent, in every round alike, so the intervals of one build do not show it.

use std::collections::BTreeMap;

use stats::Verdict;

use super::{Compared, Withheld};
use crate::plan::{Plan, Planned};

/// Makes each comparison undecided that other builds of the same systems do not confirm.
pub(super) fn demand(compared: &mut [Vec<Compared<'_>>]) {
    // By experiment of the first build, and figure.
    let mut groups: BTreeMap<(&str, &str), Vec<&mut Compared>> = BTreeMap::new();
    for one in compared.iter_mut().flatten() {
        groups.entry((first(one.planned.planned), one.planned.figure.name())).or_default().push(one);
    }
    for builds in groups.values_mut() {
        // Repeated experiments ask for the same comparisons, in the same order.
        let asked = builds.first().map_or(0, |first| first.comparisons.len());
        (0..asked).for_each(|at| demand_one(builds, at));
    }
}

/// The same for one comparison, which each build has made.
fn demand_one(builds: &mut [&mut Compared<'_>], at: usize) {
    let verdicts: Vec<Verdict> =
        builds.iter().filter_map(|one| Some(one.comparisons.get(at)?.verdict)).collect();
    if verdicts.windows(2).all(|pair| pair[0] == pair[1]) {
        return;
    }
    for one in builds {
        if let Some(comparison) = one.comparisons.get_mut(at).filter(|c| c.verdict.is_decided()) {
            comparison.withheld = Some(Withheld::OtherBuild);
            comparison.verdict = Verdict::Undecided { more_rounds: None };
        }
    }
}

/// The name of the experiment of the first build.
pub(super) fn first(planned: &Planned) -> &str {
    planned.repeats.as_ref().unwrap_or(&planned.name)
}

/// The number of builds that a plan measures of the systems of each experiment, by the name of that of the first build.
pub(super) fn builds(plan: &Plan) -> BTreeMap<&str, usize> {
    let mut builds = BTreeMap::new();
    for planned in &plan.experiments {
        *builds.entry(first(planned)).or_default() += 1;
    }
    builds
}
