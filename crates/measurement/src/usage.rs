//! What the system and the generator used.

use serde::{Deserialize, Serialize};

use crate::check::table;

table! {
    /// What the system under test used during the measured window.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct SystemUse {
        /// CPU seconds of all of its processes, user and kernel.
        pub cpu_s: f64,
        /// The largest proportional set size that was seen, bytes.
        pub peak_pss_bytes: u64,
        /// The proportional set size over time: milliseconds since the window opened, and bytes. Empty if it was not
        /// sampled.
        #[serde(deserialize_with = "crate::latency::without_spare_capacity")]
        pub pss_course: Vec<(u64, u64)> [entries],
        /// The largest resident set size since its start (VmHWM), bytes.
        pub peak_rss_bytes: u64,
        /// Voluntary and involuntary context switches.
        pub context_switches: u64,
        /// The largest growth of the kernel's TCP socket memory, bytes, on the whole machine.
        pub socket_memory_bytes: u64,
        /// The cores that it was pinned to. Empty if it was not pinned.
        pub cores: Vec<usize>,
        /// How its work differs from docs/contracts.md, as its manifest declares. Empty if it does not.
        pub unequal: String,
        /// Its version, as `build.version` or `needs` reported it.
        pub version: String,
        /// Seconds in which its threads could run and waited for a core, added up. None if the kernel does not say, and in
        /// runs of earlier versions, as below.
        #[serde(default)]
        pub waited_s: Option<f64>,
        /// Seconds that threads which compile its code while it runs, as those of a JVM, were on a core. None if it has no such thread.
        #[serde(default)]
        pub compiled_s: Option<f64>,
        /// Page faults, minor and major.
        #[serde(default)]
        pub page_faults: Option<u64>,
        /// The share of its cores' time that softirqs took, whatever caused them. Cores that it shares count too.
        #[serde(default)]
        pub softirq_share: Option<f64>,
        /// Seconds from its start until it was ready. None if its user started it.
        #[serde(default)]
        pub ready_s: Option<f64>,
        /// Seconds from the send of the first request to its right answer, after it was ready. None if its user started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub first_request_s: Option<f64>,
        /// CPU seconds per second without load, after it had answered the check of equal work. None if nobody asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub idle_cpu: Option<f64>,
        /// The proportional set size when it was ready and had answered the check of equal work, bytes. None if its user started
        /// it.
        #[serde(default)]
        pub rest_pss_bytes: Option<u64>,
    }

    /// What the generator used during the measured window.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct GeneratorUse {
        /// CPU seconds of the generator's threads.
        pub cpu_s: f64,
        /// Seconds in which its threads could run and waited for a core, added up. Zero if the kernel does not say, and in runs of
        /// earlier versions.
        #[serde(default)]
        pub waited_s: f64,
        /// The share of the window in which its busiest core worked, 0 to 1.
        pub busiest_core: f64,
        /// The cores that it was pinned to. Empty if it was not pinned.
        pub cores: Vec<usize>,
        /// `io_uring` or `epoll`.
        pub backend: String,
    }
}

/// Compilers that take more than this share of a system's CPU time have not finished. Those of a Spring server on one core took 15 to
/// 33 % for 28 s, during which it went from 1,300/s to 19,000/s. Then they took 0 to 5 %, and it answered 33,000/s.
pub const COMPILING: f64 = 0.1;

impl SystemUse {
    /// The share of its CPU time that compilers took which work while it runs. None if it has none.
    pub fn compiling_share(&self) -> Option<f64> {
        self.compiled_s.filter(|_| self.cpu_s > 0.0).map(|compiled_s| compiled_s / self.cpu_s)
    }
}
