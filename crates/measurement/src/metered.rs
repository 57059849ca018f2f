//! What another program measured that drove the system in the place of Narrows' generator (`narrows try --driver`).

use serde::{Deserialize, Serialize};

use crate::check::table;

table! {
    /// What another program says of the system that it drove. Narrows has not verified the answers.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct Metered {
        /// The name of the program.
        pub by: String,
        /// Requests or transactions per second that did not fail.
        pub per_s: f64,
        /// The median of its latencies, microseconds. None if it does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub p50_us: Option<f64>,
        /// The 99th percentile of its latencies, microseconds. None if it does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub p99_us: Option<f64>,
    }
}

impl Metered {
    /// Percentile `p` (0..100) of its latencies, microseconds. None if it does not say.
    pub fn percentile(&self, p: f64) -> Option<f64> {
        match p {
            50.0 => self.p50_us,
            99.0 => self.p99_us,
            _ => None,
        }
    }
}
