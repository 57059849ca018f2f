//! How several generators on other machines worked together in a trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How several generators worked together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Together {
    /// How far apart the openings or the ends of their windows were at most, with the error of their clocks, in seconds.
    /// `None` if a window never opened.
    #[serde(default)]
    pub skew_s: Option<f64>,
    /// Whether one of them shared the cores of the system.
    #[serde(default)]
    pub shares_cores: bool,
    /// Each of them.
    pub generators: Vec<Generated>,
    /// The way between them and the system, as it was before the first trial. `None` if it was not measured.
    #[serde(default)]
    pub path: Option<Path>,
}

/// The network between the generators and the system.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Path {
    /// The shortest time to an answer of Narrows' own server, in microseconds.
    pub round_trip_us: f64,
    /// The bytes per second that it carries in each direction. `None` if the machines were the limit and not the network.
    pub bytes_per_s: Option<f64>,
}

/// What one of several generators did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    /// Its machine, as it was named.
    pub machine: String,
    /// Its verified operations.
    pub successes: u64,
    /// Its connections.
    pub connections: u64,
    /// How busy its busiest core was, from 0 to 1.
    pub busiest_core: f64,
}
