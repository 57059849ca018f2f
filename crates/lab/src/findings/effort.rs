//! What the kernel did for a system, by unit of its work.
//!
//! Counts, not times: they hardly vary from run to run. Counted in a short drive after the first round's window
//! (`lab::session`), so that counting slows nothing that is timed; context switches are those of the windows themselves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{median, median_ratio};
use systems::work::WorkUnit;

use crate::observation::Measurement;

/// What the kernel did for a system; a unit is a payload byte of uploads, a frame, or a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "Work")]
pub struct Effort {
    /// Context switches, voluntary and not: the median over trials.
    pub switches_per_unit: Option<f64>,
    /// System calls of all kinds.
    pub calls_per_unit: Option<f64>,
    /// Bytes that a call of read(2), recvmsg(2) and their like took on average, calls without a byte among them; None
    /// for a system that reads without calls (io_uring).
    pub bytes_per_read: Option<f64>,
    /// Instructions, user and kernel, where the processor's counters could be used.
    pub instructions_per_unit: Option<f64>,
    /// Segments that the machine's TCP sent again in a window: the median over trials.
    pub retransmits: Option<f64>,
}

impl Effort {
    /// Of one scenario's trials.
    pub(super) fn of<'a>(unit: &WorkUnit, trials: impl Iterator<Item = &'a Measurement> + Clone) -> Self {
        let counted = trials.clone().find_map(|m| m.counted);
        let per_unit = |count: Option<u64>| {
            let counted = counted?;
            let units = if unit.bytes { counted.bytes } else { counted.operations };
            (units > 0).then_some(count? as f64 / units as f64)
        };
        let reads = counted.and_then(|c| c.reads).filter(|reads| *reads > 0);
        Self {
            switches_per_unit: median_ratio(
                trials.clone().map(|m| (m.system.context_switches as f64, m.worth(unit))),
            ),
            calls_per_unit: per_unit(counted.and_then(|c| c.system_calls)),
            bytes_per_read: reads.zip(counted).map(|(reads, c)| c.bytes as f64 / reads as f64),
            instructions_per_unit: per_unit(counted.and_then(|c| c.instructions)),
            retransmits: median(trials.map(|m| m.retransmits as f64)),
        }
    }
}
