//! The errors of building, starting and watching a system. Pure.

use std::fmt;

/// The stage at which a system failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Building it, or asking for its version.
    Build,
    /// Starting its program.
    Start,
    /// Waiting until it serves.
    Ready,
    /// After it was ready: it died or broke its contract.
    System,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Build => "build",
            Self::Start => "start",
            Self::Ready => "ready",
            Self::System => "system",
        })
    }
}

/// Why a system could not be used. Other systems are not affected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{system}: {stage}: {reason}")]
pub struct SystemError {
    /// The stage at which it failed.
    pub stage: Stage,
    /// The system's name.
    pub system: String,
    /// What went wrong and what to do about it.
    pub reason: String,
    /// The last 4 KiB that its program printed; empty if it printed nothing.
    pub output: String,
}

impl SystemError {
    pub(crate) fn new(stage: Stage, system: &str, reason: impl Into<String>) -> Self {
        Self { stage, system: system.to_owned(), reason: reason.into(), output: String::new() }
    }

    pub(crate) fn with_output(self, output: String) -> Self {
        Self { output, ..self }
    }
}
