//! What `narrows doctor` says of a machine, as values: agents send them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What is found about a machine: the object of `--json`.
#[derive(Serialize, Deserialize)]
pub struct Examined {
    /// The model of the processor.
    pub cpu: String,
    /// The operating system's kernel.
    pub kernel: String,
    /// The cores that Narrows may use.
    pub cores: Vec<usize>,
    /// The number of findings with a remedy.
    pub problems: usize,
    /// What disturbs measurements, and what does not.
    pub findings: Vec<Finding>,
    /// The measurement. Null if it failed; the findings say why.
    pub measured: Option<TrialRun>,
}

/// One property of the machine, and what to do if it disturbs measurements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The property.
    pub what: Cow<'static, str>,
    /// Its value.
    pub found: String,
    /// The command that fixes the problem, or what to do if there is none. `None` if there is no problem.
    pub remedy: Option<String>,
}

/// A short measurement of Narrows by itself, on the cores that a run would use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRun {
    /// Requests per second, the median of all trials.
    pub requests_per_s: f64,
    /// The median time from a request to its answer on a single connection, microseconds.
    pub round_trip_us: Option<f64>,
    /// The generator's CPU time per request, microseconds.
    pub generator_us: f64,
    /// The difference between the two trials of a pair, as a share of the faster: the median of the pairs.
    pub noise: f64,
    /// The difference in the worst pair.
    pub worst_noise: f64,
    /// The number of pairs.
    pub pairs: usize,
}
