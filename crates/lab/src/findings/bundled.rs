//! Finds scenarios whose streams arrive in fewer reads than those of the scenario that they are set beside: something on the way
//! holds events back and passes them on together. A mean gap, and the rate, can look better for it.

use std::collections::BTreeMap;

use measurement::doubt::Evidence;

use super::Estimate;
use crate::observation::Scenario;
use crate::setup::Setup;

/// Events are held back if a read brings so many times as many of them. A busy machine delivers two at once now and then.
const BUNDLED: f64 = 1.5;

/// Adds a doubt to each scenario whose events arrive in fewer reads than the yardstick's.
pub(super) fn mark(setup: &Setup, estimates: &mut [Estimate]) {
    let all: BTreeMap<&Scenario, &Estimate> = estimates.iter().map(|e| (&e.scenario, e)).collect();
    let bundled = |e: &Estimate| bundled(e, all.get(&setup.yardstick(&e.scenario))?);
    let found: Vec<Option<Evidence>> = estimates.iter().map(bundled).collect();
    for (estimate, seen) in estimates.iter_mut().zip(found) {
        if let Some(seen) = seen {
            estimate.doubts.entry(seen.doubt()).or_insert(seen);
        }
    }
}

fn bundled(estimate: &Estimate, base: &Estimate) -> Option<Evidence> {
    let (per_read, base_per_read) = (estimate.events_per_read?, base.events_per_read?);
    (per_read >= BUNDLED * base_per_read).then_some(Evidence::Bundled {
        per_read,
        base_per_read,
        first_us: estimate.first_event_us?,
        base_first_us: base.first_event_us?,
    })
}
