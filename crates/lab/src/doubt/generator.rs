//! Whether the generator may have been the bottleneck: in the window that was measured, or, if a trial searched the highest
//! rate, in the window that ended its climb.

use super::{Evidence, GENERATOR_BUSY};
use crate::observation::{MaxRate, Measurement};

/// The evidence if the generator may have been the bottleneck.
pub(super) fn bound(m: &Measurement) -> Option<Evidence> {
    let share = m.generator.busiest_core;
    let busy = (share > GENERATOR_BUSY).then_some(Evidence::GeneratorBusy { share });
    busy.or_else(|| climb_bound(m.max_rate.as_ref()?))
}

/// The evidence if a climb did not end because of the system.
fn climb_bound(found: &MaxRate) -> Option<Evidence> {
    let share = found.busiest_core;
    match found.fails_at {
        None => Some(Evidence::NoRateFailed { per_s: found.per_s }),
        Some(per_s) => (share > GENERATOR_BUSY).then_some(Evidence::FailedBusy { per_s, share }),
    }
}
