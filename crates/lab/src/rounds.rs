//! When is it enough? Which trials a run without a fixed number of rounds needs next. Pure: the same plan and
//! observations give the same next trials, so that a resumed run goes on as if it had not been interrupted.
//!
//! Rounds are added look by look (`stats::LOOKS`) to experiments of which a comparison is undecided: the scenarios of its
//! undecided comparisons, their references, and the reference's twin. What is decided costs nothing more.

use std::collections::BTreeSet;

use stats::Verdict;

use crate::findings::{Judged, judged};
use crate::observation::{Observation, Scenario};
use crate::plan::{Plan, Planned};

/// Adds what is needed next to a plan whose trials all have observations; false where nothing is: all is decided, the
/// budget is spent, or the number of rounds is fixed.
pub fn extend(plan: &mut Plan, observations: &[Observation]) -> bool {
    let Some(budget_s) = plan.budget_s else { return false };
    let mut spent: f64 = observations.iter().map(|o| o.took_s).sum();
    let before = plan.trials.len();
    for at in 0..plan.experiments.len() {
        let planned = &plan.experiments[at];
        let Some(rounds) = plan.design().next_look(planned.rounds) else { continue };
        let own: Vec<&Observation> =
            observations.iter().filter(|o| o.trial.scenario.experiment == planned.name).collect();
        let found = judged(planned, plan.design(), &own);
        let step = rounds - planned.rounds;
        // All that is undecided; where that does not fit any more, what this look is expected to decide.
        let fitting = [u32::MAX, step].into_iter().find_map(|most| {
            let open = undecided(planned, &found, most);
            let cost = f64::from(step) * round_s(planned, &open, &own);
            (!open.is_empty() && spent + cost <= budget_s).then_some((open, cost))
        });
        if let Some((open, cost)) = fitting {
            spent += cost;
            plan.grow(at, &open, rounds);
        }
    }
    plan.trials.len() > before
}

/// The scenarios of which at most so many more rounds may decide a comparison, in the plan's order; the references that
/// they are compared with among them.
fn undecided(planned: &Planned, judged: &Judged, most: u32) -> Vec<Scenario> {
    let mut open: BTreeSet<Scenario> = BTreeSet::new();
    for comparison in &judged.comparisons {
        if !matches!(comparison.verdict, Verdict::Undecided { more_rounds: Some(more) } if more <= most) {
            continue;
        }
        for scenario in [comparison.scenario, comparison.against].map(|at| &planned.scenarios[at]) {
            open.insert(scenario.reference());
            open.insert(scenario.clone());
        }
    }
    // The twin is nothing without the trial that it is the twin of.
    open.extend(planned.twin().filter(|_| !open.is_empty()).cloned());
    planned.scenarios.iter().filter(|scenario| open.contains(scenario)).cloned().collect()
}

/// What a round of these scenarios is expected to take, by how long their trials took so far.
fn round_s(planned: &Planned, scenarios: &[Scenario], observations: &[&Observation]) -> f64 {
    let mean = |scenario: &Scenario| {
        let own = observations.iter().filter(|o| o.trial.scenario == *scenario);
        let (sum, n) = own.fold((0.0, 0), |(sum, n), o| (sum + o.took_s, n + 1));
        sum / f64::from(n.max(1))
    };
    scenarios.iter().chain(planned.twin()).map(mean).sum()
}

#[cfg(test)]
mod tests;
