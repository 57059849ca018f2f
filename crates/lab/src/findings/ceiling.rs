//! Scenarios that cannot be told from the reference: what was measured there may be the generator and the machine.

use stats::{FEWEST_ROUNDS, LEVEL, Location};

use super::Estimate;
use crate::doubt::Evidence;
use crate::experiment::Figure;

/// A ratio to the reference that is no difference worth having.
const NEAR: f64 = 1.05;

/// Marks the scenarios that are as fast as the reference, as far as the rounds can tell.
///
/// A pool of connections and a rate of arrivals are limits of their own, which the reference meets as well: there it says
/// nothing of the generator.
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
    let of = scenario.reference();
    let reference = all.iter().find(|other| other.scenario == of)?;
    let ratios = estimate.by_round.iter().filter_map(|(round, own)| {
        let ratio = figure.advantage(*own, *reference.by_round.get(round)?);
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
