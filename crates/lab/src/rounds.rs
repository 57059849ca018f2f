//! Decides which trials a run without a fixed number of rounds needs next, and when it has enough. Pure: the same plan
//! and observations give the same next trials, so that a resumed run continues as if it had not been interrupted.
//!
//! Rounds are added look by look (`stats::LOOKS`) to experiments with undecided comparisons. The added rounds contain
//! only the scenarios of those comparisons, their references and the reference's twin, so that decided comparisons cost
//! no more time.

use std::collections::BTreeSet;

use stats::Verdict;

use crate::findings::{Comparisons, compare_scenarios};
use crate::observation::{Observation, Scenario};
use crate::plan::{Plan, Planned};

/// Adds the trials that are needed next to a plan whose trials all have observations. Returns false if none are: all
/// comparisons are decided, the budget is spent, or the number of rounds is fixed.
pub fn extend(plan: &mut Plan, observations: &[Observation]) -> bool {
    let Some(budget_s) = plan.budget_s else { return false };
    let mut spent: f64 = observations.iter().map(|o| o.took_s).sum();
    let before = plan.trials.len();
    for index in 0..plan.experiments.len() {
        let planned = &plan.experiments[index];
        let Some(rounds) = plan.design().next_look(planned.rounds) else { continue };
        let observations: Vec<&Observation> =
            observations.iter().filter(|o| o.trial.scenario.experiment == planned.name).collect();
        let comparisons = compare_scenarios(planned, plan.design(), &observations);
        let step = rounds - planned.rounds;
        // Take all undecided scenarios. If they exceed the budget, take those that this look is expected to decide.
        let fitting = [u32::MAX, step].into_iter().find_map(|most| {
            let open = undecided(planned, &comparisons, most);
            let cost = f64::from(step) * round_s(planned, &open, &observations);
            (!open.is_empty() && spent + cost <= budget_s).then_some((open, cost))
        });
        if let Some((open, cost)) = fitting {
            spent += cost;
            plan.grow(index, &open, rounds);
        }
    }
    plan.trials.len() > before
}

/// The scenarios of undecided comparisons that `most` more rounds or fewer may decide, and their references, in the
/// plan's order.
fn undecided(planned: &Planned, comparisons: &Comparisons, most: u32) -> Vec<Scenario> {
    let mut open: BTreeSet<Scenario> = BTreeSet::new();
    for comparison in &comparisons.all {
        if !matches!(comparison.verdict, Verdict::Undecided { more_rounds: Some(more) } if more <= most) {
            continue;
        }
        for scenario in [comparison.scenario, comparison.against].map(|index| &planned.scenarios[index]) {
            open.insert(scenario.reference());
            open.insert(scenario.clone());
        }
    }
    // The twin needs the trial that it is compared with.
    open.extend(planned.twin().filter(|_| !open.is_empty()).cloned());
    planned.scenarios.iter().filter(|scenario| open.contains(scenario)).cloned().collect()
}

/// The expected duration of a round of these scenarios in seconds, from the trials so far.
fn round_s(planned: &Planned, scenarios: &[Scenario], observations: &[&Observation]) -> f64 {
    let mean = |scenario: &Scenario| {
        let seen = observations.iter().filter(|o| o.trial.scenario == *scenario);
        let (sum, n) = seen.fold((0.0, 0), |(sum, n), o| (sum + o.took_s, n + 1));
        sum / f64::from(n.max(1))
    };
    scenarios.iter().chain(planned.twin()).map(mean).sum()
}

#[cfg(test)]
mod tests;
