//! Scenarios that cannot be told from the reference: what was measured there may be the generator and the machine.

use systems::Workload;

use super::Estimate;
use super::headline::FLAT;
use super::warning::FEWEST_TRIALS;
use crate::doubt::Doubt;
use crate::experiment::Figure;
use crate::plan::reference_of;

/// Marks the scenarios to which the reference has no advantage that every round shows, nor they to it.
///
/// A pool of connections and a rate of arrivals are limits of their own, which the reference meets as well: there it says
/// nothing of the generator.
pub(super) fn mark(figure: Figure, estimates: &mut [Estimate]) {
    let found: Vec<Option<String>> = estimates.iter().map(|e| at_ceiling(figure, e, estimates)).collect();
    for (estimate, message) in estimates.iter_mut().zip(found) {
        if let Some(message) = message {
            estimate.doubts.entry(Doubt::GeneratorBound).or_insert(message);
        }
    }
}

fn at_ceiling(figure: Figure, estimate: &Estimate, all: &[Estimate]) -> Option<String> {
    let scenario = &estimate.scenario;
    if estimate.is_reference() || scenario.workload == Workload::Clients || scenario.is_open_loop() {
        return None;
    }
    let of = reference_of(scenario);
    let reference = all.iter().find(|other| other.scenario == of)?;
    let rounds = estimate.by_round.keys().filter(|round| reference.by_round.contains_key(round)).count();
    let behind = reference.least_advantage(figure, estimate)?;
    let ahead = estimate.least_advantage(figure, reference)?;
    (rounds >= FEWEST_TRIALS as usize && behind < FLAT && ahead < FLAT).then(|| {
        let share = estimate.of_reference.unwrap_or(f64::NAN) * 100.0;
        format!("{share:.0} % of the reference's speed, and no difference that each of {rounds} rounds shows")
    })
}
