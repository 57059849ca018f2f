//! The highest rate at which an objective held in a trial.

use serde::{Deserialize, Serialize};

use crate::check::table;

table! {
    /// The highest rate at which a trial's objective held. The rest of the measurement is of the window at this rate.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
    pub struct MaxRate {
        /// The rate, in requests per second.
        pub per_s: f64,
        /// The lowest rate above it at which the objective did not hold. None if no rate failed.
        pub fails_at: Option<f64>,
        /// The share of the window at that rate in which the generator's busiest core worked. 0 if no rate failed.
        pub busiest_core: f64,
        /// The number of windows that were driven to find it.
        pub tries: u32,
    }
}
