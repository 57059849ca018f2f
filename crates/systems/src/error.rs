//! What can go wrong with a system while it is built, started and watched. Pure.

use std::fmt;

/// Where it went wrong; the words are those of stored failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Building it, or asking for its version.
    Build,
    /// Starting its program.
    Start,
    /// Waiting until it serves.
    Ready,
    /// Later: it died or broke its contract.
    System,
}

impl Stage {
    /// The word used in observations and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Start => "start",
            Self::Ready => "ready",
            Self::System => "system",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a system could not be used; other systems are unaffected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{system}: {stage}: {reason}")]
pub struct SystemError {
    /// Where it went wrong.
    pub stage: Stage,
    /// The system's name.
    pub system: String,
    /// What was wrong and what to do, in a sentence.
    pub reason: String,
    /// The end of what its program printed; empty when it printed nothing.
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
