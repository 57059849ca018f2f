//! Marks scenarios that cannot be told from the reference. Their figures may be those of the generator or the machine.

use measurement::doubt::Evidence;
use stats::LEVEL;

use super::Estimate;
use super::Rows;

/// A ratio to the reference below which a difference does not matter.
const NEAR: f64 = 1.05;

/// Adds a doubt to every scenario that the rounds cannot tell from the reference.
///
/// A scenario with a pool of connections or a rate of arrivals is left out. The reference has the same limit there, so
/// being as fast says nothing about the generator.
pub(super) fn mark(rows: &Rows, estimates: &mut [Estimate]) {
    let found: Vec<Option<Evidence>> =
        (0..estimates.len()).map(|index| at_ceiling(rows, index, estimates)).collect();
    for (estimate, seen) in estimates.iter_mut().zip(found) {
        if let Some(seen) = seen {
            estimate.doubts.entry(seen.doubt()).or_insert(seen);
        }
    }
}

fn at_ceiling(rows: &Rows, index: usize, all: &[Estimate]) -> Option<Evidence> {
    let estimate = &all[index];
    let scenario = &estimate.scenario;
    if estimate.is_reference() || scenario.work().has_own_limit() {
        return None;
    }
    let reference_scenario = scenario.reference();
    let reference = all.iter().position(|other| other.scenario == reference_scenario)?;
    let location = rows.ratio(index, reference)?;
    let (low, high) = location.interval(LEVEL);
    let close = low.max(-high) <= 0.0 && location.estimate.abs() < NEAR.ln();
    close.then(|| Evidence::AsTheReference {
        share: location.estimate.exp(),
        low: low.exp(),
        high: high.exp(),
        rounds: location.n as u32,
    })
}
