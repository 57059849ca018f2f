//! Marks scenarios that cannot be told from the reference. Their figures may be those of the generator or the machine.

use stats::{FEWEST_ROUNDS, LEVEL, Location};

use super::Estimate;
use crate::doubt::Evidence;
use crate::experiment::Figure;

/// A ratio to the reference below which a difference does not matter.
const NEAR: f64 = 1.05;

/// Adds a doubt to every scenario that the rounds cannot tell from the reference.
///
/// A scenario with a pool of connections or a rate of arrivals is left out. The reference has the same limit there, so
/// being as fast says nothing about the generator.
pub(super) fn mark(figure: Figure, estimates: &mut [Estimate]) {
    let found: Vec<Option<Evidence>> = estimates.iter().map(|e| at_ceiling(figure, e, estimates)).collect();
    for (estimate, seen) in estimates.iter_mut().zip(found) {
        if let Some(seen) = seen {
            estimate.doubts.entry(seen.doubt()).or_insert(seen);
        }
    }
}

fn at_ceiling(figure: Figure, estimate: &Estimate, all: &[Estimate]) -> Option<Evidence> {
    let scenario = &estimate.scenario;
    if estimate.is_reference() || scenario.work().has_own_limit() {
        return None;
    }
    let reference_scenario = scenario.reference();
    let reference = all.iter().find(|other| other.scenario == reference_scenario)?;
    let ratios = estimate.by_round.iter().filter_map(|(round, value)| {
        let ratio = figure.advantage(*value, *reference.by_round.get(round)?);
        (ratio > 0.0).then(|| ratio.ln())
    });
    let ratios: Vec<f64> = ratios.collect();
    let location = Location::of(&ratios).filter(|_| ratios.len() >= FEWEST_ROUNDS)?;
    let (low, high) = location.interval(LEVEL);
    let close = low.max(-high) <= 0.0 && location.estimate.abs() < NEAR.ln();
    close.then(|| Evidence::AsTheReference {
        share: location.estimate.exp(),
        low: low.exp(),
        high: high.exp(),
        rounds: ratios.len() as u32,
    })
}
