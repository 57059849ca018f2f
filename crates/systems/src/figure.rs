//! Figures: the one number of a trial by which its scenario is judged. Pure.

use serde::{Deserialize, Serialize};

/// Makes the enum of figures from each one's doc comment, variant and name.
macro_rules! figures {
    ($($(#[$doc:meta])* $figure:ident = $name:literal,)*) => {
        /// The number that a table shows for each trial, and by which its scenario is judged.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum Figure {
            $($(#[$doc])* #[serde(rename = $name)] $figure,)*
        }

        impl Figure {
            /// All figures, in the order of docs/contracts.md.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$figure),*];

            /// The word used in experiments and reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$figure => $name,)*
                }
            }
        }
    };
}

figures! {
    /// Milliseconds from the start of an upload to its verified answer.
    MsPerUpload = "ms_per_upload",
    /// Payload bytes of verified operations per second.
    BytesPerS = "bytes_per_s",
    /// Frames per second, verified by the receiver's count.
    FramesPerS = "frames_per_s",
    /// Verified answers per second.
    RequestsPerS = "requests_per_s",
    /// The highest rate of requests at which the experiment's objective holds, per second.
    MaxRate = "max_rate",
    /// The median of response times, in microseconds, counted from when a request was due.
    P50Us = "p50_us",
    /// The 99th percentile of response times, in microseconds, counted from when a request was due.
    P99Us = "p99_us",
    /// The median time to the first byte of an answer that came in parts, in microseconds.
    FirstByteUs = "first_byte_us",
    /// The median time to the first event of a stream that is not empty, in microseconds.
    FirstEventUs = "first_event_us",
    /// The 99th percentile of these times, in microseconds.
    FirstEventP99Us = "first_event_p99_us",
    /// The median gap between two reads with events of a stream, in microseconds.
    GapUs = "gap_us",
    /// The 99th percentile of these gaps, in microseconds.
    GapP99Us = "gap_p99_us",
    /// The median of the longest gap of each stream, in microseconds.
    LongestGapUs = "longest_gap_us",
    /// The median time of a whole answer, in microseconds.
    WholeUs = "whole_us",
    /// Events of streams for each read that brought any.
    EventsPerRead = "events_per_read",
    /// Events of streams per second.
    EventsPerS = "events_per_s",
    /// Answers per second that meet all limits of their times.
    GoodPerS = "good_per_s",
    /// CPU seconds of the system for each unit of the workload.
    CpuPerUnit = "cpu_per_unit",
    /// System calls for each unit of the workload.
    CallsPerUnit = "calls_per_unit",
    /// Instructions, in user and kernel mode, for each unit of the workload.
    InstructionsPerUnit = "instructions_per_unit",
    /// The largest proportional set size of the system, in bytes.
    MemoryBytes = "memory_bytes",
    /// Milliseconds from the start of the system's program to its first right answer.
    StartMs = "start_ms",
    /// The time of the first request to a new process, in microseconds.
    FirstRequestUs = "first_request_us",
    /// The proportional set size of the system when it was ready and had no load yet, in bytes.
    IdleMemoryBytes = "idle_memory_bytes",
    /// CPU seconds per second that the system takes without load.
    IdleCpu = "idle_cpu",
}

impl Figure {
    /// Whether a larger number is better; false for times and costs.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::BytesPerS | Self::FramesPerS | Self::RequestsPerS | Self::MaxRate)
            || matches!(self, Self::EventsPerS | Self::GoodPerS)
    }

    /// Which percentile (0..100) of response times it is, if it is one.
    pub fn percentile(self) -> Option<f64> {
        match self {
            Self::P50Us => Some(50.0),
            Self::P99Us => Some(99.0),
            _ => None,
        }
    }

    /// Whether the figure exists only in an open loop. In a closed loop no request is due while the server stalls.
    pub fn needs_rate(self) -> bool {
        self.percentile().is_some()
    }

    /// Whether the figure needs an objective, under which each trial searches the rate itself.
    pub fn needs_objective(self) -> bool {
        self == Self::MaxRate
    }

    /// Whether it is about single answers as they arrive, most of all streams. Each trial has its own.
    pub fn is_of_streams(self) -> bool {
        self.is_time_of_answer() || matches!(self, Self::EventsPerRead | Self::EventsPerS | Self::GoodPerS)
    }

    /// Whether it is a time within an answer, in microseconds.
    pub fn is_time_of_answer(self) -> bool {
        matches!(self, Self::FirstByteUs | Self::FirstEventUs | Self::FirstEventP99Us | Self::GapUs)
            || matches!(self, Self::GapP99Us | Self::LongestGapUs | Self::WholeUs)
    }

    /// Whether the figure needs the kernel's counts of each trial.
    pub fn needs_counts(self) -> bool {
        matches!(self, Self::CallsPerUnit | Self::InstructionsPerUnit)
    }

    /// Whether it says how the system was before it had any load.
    pub fn is_before_load(self) -> bool {
        matches!(self, Self::StartMs | Self::FirstRequestUs | Self::IdleMemoryBytes | Self::IdleCpu)
    }

    /// Whether it says what the work costs the system, and not how fast the work is done.
    pub fn is_cost(self) -> bool {
        matches!(self, Self::CpuPerUnit | Self::CallsPerUnit | Self::InstructionsPerUnit | Self::MemoryBytes)
            || self.is_before_load()
            || self == Self::EventsPerRead
    }

    /// How many times better `a` is than `b`: above 1 if `a` is better, for both kinds of figures.
    pub fn advantage(self, a: f64, b: f64) -> f64 {
        if self.more_is_better() { a / b } else { b / a }
    }
}
