//! Whether the generator may have been the bottleneck: in the window that was measured, or, if a trial searched the highest
//! rate, in the window that ended its climb. Of several generators, how many more would do.

use super::{Evidence, GENERATOR_BUSY};
use crate::{MaxRate, Measurement};

/// How busy a generator may be on average that is not at its limit.
const HEADROOM: f64 = 0.8;

/// How many more generators make `wanted` operations per second without being at their limit, if these `generators` made
/// `reached` at their limit. At least one.
pub fn more_generators(generators: u64, reached: f64, wanted: f64) -> u64 {
    // If they reached nothing, nobody knows how many do: one more is the least.
    let factor = if reached > 0.0 { (wanted / reached).max(1.0) } else { 1.0 };
    let needed = (generators as f64 * factor / HEADROOM).ceil();
    (needed as u64).saturating_sub(generators).max(1)
}

/// The evidence if the generator may have been the bottleneck.
pub(super) fn bound(m: &Measurement) -> Option<Evidence> {
    let share = m.generator.busiest_core;
    let busy =
        (share > GENERATOR_BUSY).then(|| several(m, share).unwrap_or(Evidence::GeneratorBusy { share }));
    busy.or_else(|| climb_bound(m, m.max_rate.as_ref()?))
}

/// The number of generators on other machines. None if the generator was on the machine of the system.
fn generators(m: &Measurement) -> Option<u64> {
    let together = m.together.as_ref()?;
    Some(together.generators.len() as u64).filter(|generators| *generators > 0)
}

/// The evidence if some of several generators were at their limit.
fn several(m: &Measurement, share: f64) -> Option<Evidence> {
    let of = generators(m)?;
    let all = m.together.as_ref()?.generators.iter();
    let busy = all.filter(|generator| generator.busiest_core > GENERATOR_BUSY).count() as u64;
    // A failed operation costs a generator time, too.
    let reached = m.attempts as f64;
    // A closed loop asks for no rate. With more generators, those that there were would not be at their limit at this one.
    let wanted = reached.max(m.arrivals as f64);
    Some(Evidence::GeneratorsBusy { busy, of, share, more: more_generators(of, reached, wanted) })
}

/// The evidence if a climb did not end because of the system.
fn climb_bound(m: &Measurement, found: &MaxRate) -> Option<Evidence> {
    let share = found.busiest_core;
    match found.fails_at {
        None => Some(Evidence::NoRateFailed { per_s: found.per_s }),
        Some(per_s) => (share > GENERATOR_BUSY).then(|| {
            let more = generators(m).map(|generators| more_generators(generators, found.per_s, per_s));
            Evidence::FailedBusy { per_s, share, more }
        }),
    }
}
