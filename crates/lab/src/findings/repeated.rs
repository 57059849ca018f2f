//! Demands that a verdict recurs with other builds. How a linker happens to lay out code can make a program faster or slower by
//! ten percent, in every round alike, so the intervals of one build do not show it.

use stats::Verdict;

use super::Compared;
use crate::plan::Planned;

/// Makes each comparison undecided that other builds of the same systems do not confirm.
pub(super) fn demand(compared: &mut [Compared<'_>]) {
    for index in 0..compared.len() {
        let group: Vec<usize> = (0..compared.len())
            .filter(|other| same(&compared[index].planned, &compared[*other].planned))
            .collect();
        if group.first() != Some(&index) {
            continue;
        }
        // Repeated experiments ask for the same comparisons, in the same order.
        for at in 0..compared[index].comparisons.len() {
            let verdicts: Vec<Verdict> =
                group.iter().filter_map(|one| Some(compared[*one].comparisons.get(at)?.verdict)).collect();
            if verdicts.windows(2).all(|pair| pair[0] == pair[1]) {
                continue;
            }
            let here = group
                .iter()
                .filter_map(|one| compared[*one].comparisons.get_mut(at).map(|_| *one))
                .collect::<Vec<_>>();
            for one in here {
                let comparison = &mut compared[one].comparisons[at];
                comparison.unrepeated = comparison.verdict.is_decided();
                if comparison.unrepeated {
                    comparison.verdict = Verdict::Undecided { more_rounds: None };
                }
            }
        }
    }
}

/// Whether two experiments ask the same about different builds.
fn same(one: &Planned, other: &Planned) -> bool {
    let first = |planned: &Planned| planned.repeats.clone().unwrap_or_else(|| planned.name.clone());
    first(one) == first(other) && one.figure == other.figure
}
