//! The durations of a trial, and the longest that they can be.

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

/// The durations of a trial in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timing {
    /// The warm-up, in which connections, caches and compilers settle. It is not measured.
    #[serde(deserialize_with = "warmup")]
    pub warmup_s: f64,
    /// The measured window.
    #[serde(deserialize_with = "measure")]
    pub measure_s: f64,
    /// The timeout of one operation.
    #[serde(deserialize_with = "timeout")]
    pub timeout_s: f64,
}

// The derived PartialEq compares floats. No time of a trial is NaN, so it is an equivalence.
impl Eq for Timing {}

/// No time of a trial is longer than a day, in seconds. The limit keeps sums and `Duration`s far from overflow.
pub(crate) const LONGEST_TRIAL_S: f64 = 86_400.0;

fn seconds<'de, D: Deserializer<'de>>(name: &str, from: D) -> Result<f64, D::Error> {
    let seconds = f64::deserialize(from)?;
    let wrong =
        || D::Error::custom(format!("`{name}` is {seconds}, not a number from 0 to {LONGEST_TRIAL_S}"));
    (0.0..=LONGEST_TRIAL_S).contains(&seconds).then_some(seconds).ok_or_else(wrong)
}

fn warmup<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    seconds("warmup_s", from)
}

fn measure<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    seconds("measure_s", from)
}

fn timeout<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    seconds("timeout_s", from)
}
