//! The kernel's work for a system, per unit of the system's work.
//!
//! These are counts, which vary less from run to run than times do. System calls and instructions are counted in a short
//! drive after the first round's window (`lab::session`), so that counting slows nothing that is timed. Context switches
//! are those of the windows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{median, median_ratio};
use systems::work::WorkUnit;

use crate::observation::Measurement;

/// The kernel's work for a system. A unit is a payload byte of an upload, a frame or a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "Work")]
pub struct Effort {
    /// Voluntary and involuntary context switches, the median over trials.
    pub switches_per_unit: Option<f64>,
    /// System calls of all kinds.
    pub calls_per_unit: Option<f64>,
    /// The mean number of bytes that a call of read(2), recvmsg(2) or the like returned, including calls that returned
    /// none. None for a system that reads without such calls (io_uring).
    pub bytes_per_read: Option<f64>,
    /// Instructions, user and kernel. None if the processor's counters could not be used.
    pub instructions_per_unit: Option<f64>,
    /// Segments that the machine's TCP retransmitted in a window, the median over trials.
    pub retransmits: Option<f64>,
}

impl Effort {
    /// Computes the effort of one scenario's trials.
    pub(super) fn of<'a>(unit: &WorkUnit, trials: impl Iterator<Item = &'a Measurement> + Clone) -> Self {
        let counted = trials.clone().find_map(|m| m.counted);
        let per_unit = |count: Option<u64>| counted?.per_operation(count?, unit);
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
