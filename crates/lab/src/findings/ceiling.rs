//! Marks scenarios that cannot be told from the reference. Their figures may be those of the generator or the machine.

use std::collections::BTreeMap;

use measurement::doubt::Evidence;
use stats::LEVEL;

use super::Estimate;
use super::Rows;
use crate::observation::Scenario;

/// A ratio to the reference below which a difference does not matter.
const NEAR: f64 = 1.05;

/// Adds a doubt to every scenario that the rounds cannot tell from the reference.
///
/// A scenario with a pool of connections or a rate of arrivals is left out. The reference has the same limit there, so
/// being as fast says nothing about the generator.
pub(super) fn mark(rows: &Rows, estimates: &mut [Estimate]) {
    let positions: BTreeMap<&Scenario, usize> =
        estimates.iter().enumerate().map(|(at, estimate)| (&estimate.scenario, at)).collect();
    let at_ceiling = |(at, estimate): (usize, &Estimate)| {
        let reference = positions.get(&estimate.scenario.reference());
        reference.and_then(|reference| at_ceiling(rows, (at, *reference), estimate))
    };
    let found: Vec<Option<Evidence>> = estimates.iter().enumerate().map(at_ceiling).collect();
    for (estimate, seen) in estimates.iter_mut().zip(found) {
        if let Some(seen) = seen {
            estimate.doubts.entry(seen.doubt()).or_insert(seen);
        }
    }
}

/// The evidence if the estimate at the first of these positions cannot be told from its reference at the second.
fn at_ceiling(rows: &Rows, (at, reference): (usize, usize), estimate: &Estimate) -> Option<Evidence> {
    if estimate.is_reference() || estimate.scenario.work().has_own_limit() {
        return None;
    }
    let location = rows.ratio(at, reference)?;
    let (low, high) = location.interval(LEVEL);
    let close = low.max(-high) <= 0.0 && location.estimate.abs() < NEAR.ln();
    close.then(|| Evidence::AsTheReference {
        share: location.estimate.exp(),
        low: low.exp(),
        high: high.exp(),
        rounds: location.n as u32,
    })
}
