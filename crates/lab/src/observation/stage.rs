//! The stage of a trial that failed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The stage of a trial that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Building the system, or asking for its version.
    Build,
    /// Starting its program.
    Start,
    /// Waiting until it serves.
    Ready,
    /// An answer before the window was not the wanted one, or there was none.
    EqualWork,
    /// Driving it, or serving it if it is a client.
    Drive,
    /// No rate met the objective.
    Objective,
    /// It died after it was ready, or broke its contract.
    System,
    /// What was counted makes no sense, or could not be read.
    Counts,
    /// A machine was lost.
    Machine,
}

impl Stage {
    /// Its word in the store and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Start => "start",
            Self::Ready => "ready",
            Self::EqualWork => "equal_work",
            Self::Drive => "drive",
            Self::Objective => "objective",
            Self::System => "system",
            Self::Counts => "counts",
            Self::Machine => "machine",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<systems::Stage> for Stage {
    fn from(stage: systems::Stage) -> Self {
        match stage {
            systems::Stage::Build => Self::Build,
            systems::Stage::Start => Self::Start,
            systems::Stage::Ready => Self::Ready,
            systems::Stage::System => Self::System,
        }
    }
}
