//! Figures: the one number of a trial that its scenario is judged by. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a table shows; the one number of a trial that its scenario is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Milliseconds from the send of an upload to its checked answer.
    MsPerUpload,
    /// Payload bytes of verified operations a second.
    BytesPerS,
    /// Frames verified by the receiver's count, a second.
    FramesPerS,
    /// Verified answers a second.
    RequestsPerS,
    /// Microseconds from when a request was due within which 99 of 100 were answered.
    P99Us,
}

impl Figure {
    /// All of them, in the order of the documents.
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

    /// Whether more is better; false for times.
    pub fn more_is_better(self) -> bool {
        !matches!(self, Self::MsPerUpload | Self::P99Us)
    }

    /// Whether it is one of open loops only: a closed loop asks again when it has its answer, so that no request is due
    /// while the server stands still.
    pub fn needs_rate(self) -> bool {
        self == Self::P99Us
    }

    /// How many times better `a` is than `b`: above 1 where `a` is better, whichever way the figure points.
    pub fn advantage(self, a: f64, b: f64) -> f64 {
        if self.more_is_better() { a / b } else { b / a }
    }
}
