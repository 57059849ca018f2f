//! Figures: the one number of a trial by which its scenario is judged. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number that a table shows for each trial, and by which its scenario is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Milliseconds from the start of an upload to its verified answer.
    MsPerUpload,
    /// Payload bytes of verified operations per second.
    BytesPerS,
    /// Frames per second, verified by the receiver's count.
    FramesPerS,
    /// Verified answers per second.
    RequestsPerS,
    /// The 99th percentile of response times, in microseconds, counted from when a request was due.
    P99Us,
}

impl Figure {
    /// All figures, in the order of docs/contracts.md.
    pub const ALL: [Self; 5] =
        [Self::MsPerUpload, Self::BytesPerS, Self::FramesPerS, Self::RequestsPerS, Self::P99Us];

    /// The word used in experiments and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::MsPerUpload => "ms_per_upload",
            Self::BytesPerS => "bytes_per_s",
            Self::FramesPerS => "frames_per_s",
            Self::RequestsPerS => "requests_per_s",
            Self::P99Us => "p99_us",
        }
    }

    /// Whether a larger number is better; false for times.
    pub fn more_is_better(self) -> bool {
        match self {
            Self::MsPerUpload | Self::P99Us => false,
            Self::BytesPerS | Self::FramesPerS | Self::RequestsPerS => true,
        }
    }

    /// Whether the figure exists only in an open loop. In a closed loop no request is due while the server stalls.
    pub fn needs_rate(self) -> bool {
        self == Self::P99Us
    }

    /// How many times better `a` is than `b`: above 1 if `a` is better, for both kinds of figures.
    pub fn advantage(self, a: f64, b: f64) -> f64 {
        if self.more_is_better() { a / b } else { b / a }
    }
}
