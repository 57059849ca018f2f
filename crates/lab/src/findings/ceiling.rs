//! Scenarios that cannot be told from the reference: what was measured there may be the generator and the machine.

use stats::{FEWEST_ROUNDS, LEVEL, Location};

use super::Estimate;
use crate::doubt::Doubt;
use crate::experiment::Figure;

/// A ratio to the reference that is no difference worth having.
const NEAR: f64 = 1.05;

/// Marks the scenarios that are as fast as the reference, as far as the rounds can tell.
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
    close.then(|| {
        let share = location.estimate.exp() * 100.0;
        let (low, high) = (low.exp() * 100.0, high.exp() * 100.0);
        format!("{share:.0} % [{low:.0}, {high:.0}] of the reference's speed in {} rounds", ratios.len())
    })
}
