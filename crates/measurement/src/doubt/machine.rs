//! Doubts about the machines of a trial and their limits: cores, connections, ports, files, and what took processor time away.

use super::{Evidence, TrialKind};
use crate::{Measurement, SystemUse};

/// Stolen time is in doubt above this share of one core.
const STOLEN: f64 = 0.02;
/// The same for time in which a limit stopped the system or the generator.
const HELD: f64 = 0.02;
/// A pause of the generator's loop is in doubt above this share of the window. A rate is lower by as much, and percentiles of answers
/// that waited meanwhile are not the system's.
const PAUSED: f64 = 0.05;
/// Ports or files are nearly used up above this share.
const NEAR: f64 = 0.8;

/// The evidence if the system and the generator had no cores of their own.
pub(super) fn cores_shared(m: &Measurement) -> Option<Evidence> {
    if let Some(together) = &m.together {
        return together.shares_cores.then_some(Evidence::CoresShared);
    }
    let (system, generator) = (&m.system.cores, &m.generator.cores);
    // `narrows load` knows nothing about the system.
    if system.is_empty() && generator.is_empty() && m.system == SystemUse::default() {
        return None;
    }
    let apart =
        !system.is_empty() && !generator.is_empty() && system.iter().all(|core| !generator.contains(core));
    (!apart).then_some(Evidence::CoresShared)
}

/// The evidence if a client opened more connections than its pool may have.
pub(super) fn pool_cap_exceeded(m: &Measurement, kind: &TrialKind) -> Option<Evidence> {
    let (cap, seen) = (kind.pool_cap?, m.server.as_ref()?.peak_connections);
    (seen > cap).then_some(Evidence::Connections { seen, cap })
}

/// The evidence if ports or files were nearly used up.
pub(super) fn limit_near(m: &Measurement) -> Option<Evidence> {
    let near = |limit: u64| limit > 0 && m.connections as f64 > NEAR * limit as f64;
    match (near(m.ports), near(m.files)) {
        (true, _) => Some(Evidence::Ports { connections: m.connections, of: m.ports }),
        (_, true) => Some(Evidence::Files { connections: m.connections, of: m.files }),
        _ => None,
    }
}

/// The evidence if the hypervisor gave processor time to others.
pub(super) fn stolen_time(m: &Measurement) -> Option<Evidence> {
    let share = m.stolen_s / m.elapsed_s;
    (m.elapsed_s > 0.0 && share > STOLEN).then_some(Evidence::Stolen { share })
}

/// The evidence if the processor slowed itself down for heat.
pub(super) fn throttled(m: &Measurement) -> Option<Evidence> {
    (m.throttles > 0).then_some(Evidence::Throttled { times: m.throttles })
}

/// The evidence if a limit of CPU time stopped the system or the generator.
pub(super) fn held(m: &Measurement) -> Option<Evidence> {
    let share = m.held_s / m.elapsed_s;
    (m.elapsed_s > 0.0 && share > HELD).then_some(Evidence::Held { share })
}

/// The evidence if the generator's loop stood still for a noticeable part of the window.
pub(super) fn generator_paused(m: &Measurement) -> Option<Evidence> {
    let share = m.pause_s / m.elapsed_s;
    (m.elapsed_s > 0.0 && share > PAUSED).then_some(Evidence::Paused { pause_s: m.pause_s, share })
}
