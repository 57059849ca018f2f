//! The kernel's work for a system, per unit of the system's work.
//!
//! These are counts, which vary less from run to run than times do. System calls, instructions and what TCP says of the
//! connections are counted in a short drive after the first round's window (`lab::session`), so that counting slows
//! nothing that is timed. The others are those of the windows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{median, median_ratio};
use systems::tcp::TcpEnd;
use systems::work::WorkUnit;

use crate::observation::{KernelCounts, Measurement};

/// The kernel's work for a system. A unit is a payload byte of an upload, a frame or a request. *In* is what the system
/// receives, and *out* what it sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "Work")]
#[serde(default)]
pub struct Effort {
    /// Voluntary and involuntary context switches, the median over trials.
    pub switches_per_unit: Option<f64>,
    /// System calls of all kinds.
    pub calls_per_unit: Option<f64>,
    /// The mean number of bytes that a call of read(2), recvmsg(2) or the like returned, including calls that returned
    /// none. None for a system that reads without such calls (io_uring).
    pub bytes_per_read: Option<f64>,
    /// Whether these two were counted by tracing (ptrace), which slows a system.
    pub traced: bool,
    /// Instructions, user and kernel. None if the processor's counters could not be used.
    pub instructions_per_unit: Option<f64>,
    /// Segments that the machine's TCP retransmitted in a window, the median over trials.
    pub retransmits: Option<f64>,
    /// Page faults, minor and major, the median over trials.
    pub faults_per_unit: Option<f64>,
    /// Seconds in which its threads could run and waited for a core, for each second that they ran; the median over
    /// trials.
    pub waited_s_per_cpu_s: Option<f64>,
    /// The share of its cores' time that softirqs took, the median over trials.
    pub softirq_share: Option<f64>,
    /// What TCP sent to the system.
    pub tcp_in: Option<Sent>,
    /// What TCP sent for the system.
    pub tcp_out: Option<Sent>,
}

/// What TCP sent in one direction. From the account that the kernel keeps of each connection (`TCP_INFO`).
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Sent {
    /// Segments, including those without payload. None if too little of the traffic was seen, because connections were
    /// short.
    pub segments_per_unit: Option<f64>,
    /// Bytes of a segment with payload, on average.
    pub bytes_per_segment: Option<f64>,
    /// Segments that were sent again, like `segments_per_unit`.
    pub resent_per_unit: Option<f64>,
    /// The share of the time with something to send in which the receiver's window was full. None if the kernel does not
    /// say (before Linux 4.10).
    pub window_limited: Option<f64>,
    /// The share of that time in which the sender's own buffer was full.
    pub buffer_limited: Option<f64>,
}

/// At least this share of the bytes must be those of connections that the kernel listed.
const SEEN: f64 = 0.5;

impl Sent {
    /// By one end, which sent so many bytes in all.
    fn of(end: &TcpEnd, bytes: u64, counts: &KernelCounts, unit: &WorkUnit) -> Self {
        // The last listing is a moment before the end, so the segments are those of the bytes that it shows.
        let seen = end.bytes > 0 && end.bytes as f64 >= bytes as f64 * SEEN;
        let whole = bytes as f64 / end.bytes as f64;
        let per_unit = |count: u64| {
            counts.per_operation(1, unit).filter(|_| seen).map(|each| each * count as f64 * whole)
        };
        Self {
            segments_per_unit: per_unit(end.segments),
            bytes_per_segment: end.bytes_per_segment(),
            resent_per_unit: per_unit(end.retransmits),
            window_limited: end.window_limited(),
            buffer_limited: end.buffer_limited(),
        }
    }
}

impl Effort {
    /// Computes the effort of one scenario's trials.
    pub(super) fn of<'a>(unit: &WorkUnit, trials: impl Iterator<Item = &'a Measurement> + Clone) -> Self {
        let counted = trials.clone().find_map(|m| m.counted);
        let ends = counted.and_then(|counts| Some((counts, counts.tcp?)));
        let sent = |end: Option<TcpEnd>, bytes: u64, counts: &KernelCounts| {
            end.map(|end| Sent::of(&end, bytes, counts, unit))
        };
        let ratio = |of: fn(&Measurement) -> Option<f64>, by: &dyn Fn(&Measurement) -> f64| {
            median_ratio(trials.clone().filter_map(|m| Some((of(m)?, by(m)))))
        };
        let worth = |m: &Measurement| m.worth(unit);
        Self {
            switches_per_unit: ratio(|m| Some(m.system.context_switches as f64), &worth),
            calls_per_unit: counted.and_then(|counts| counts.calls_per_operation(unit)),
            bytes_per_read: counted.and_then(|counts| counts.bytes_per_read()),
            traced: counted.is_some_and(|counts| counts.system_calls.is_none() && counts.traced.is_some()),
            instructions_per_unit: counted
                .and_then(|counts| counts.per_operation(counts.instructions?, unit)),
            retransmits: median(trials.clone().map(|m| m.retransmits as f64)),
            faults_per_unit: ratio(|m| m.system.page_faults.map(|faults| faults as f64), &worth),
            waited_s_per_cpu_s: ratio(|m| m.system.waited_s, &|m| m.system.cpu_s),
            softirq_share: median(trials.clone().filter_map(|m| m.system.softirq_share)),
            tcp_in: ends.and_then(|(counts, tcp)| sent(tcp.clients, counts.bytes, &counts)),
            tcp_out: ends.and_then(|(counts, tcp)| sent(tcp.server, counts.bytes_received, &counts)),
        }
    }
}
