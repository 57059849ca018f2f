//! Why a trial ended without a measurement.

use load::LoadError;
use systems::SystemError;

use crate::observation::{Failure, Stage};

/// Why a trial ended without a measurement.
#[derive(Debug)]
pub enum TrialError {
    /// The user interrupted it.
    Interrupted,
    /// The system or the driver failed.
    Failed(Failure),
}

impl From<SystemError> for TrialError {
    fn from(error: SystemError) -> Self {
        Self::Failed(Failure::new(error.stage.into(), &error.reason, &error.output))
    }
}

impl From<LoadError> for TrialError {
    fn from(error: LoadError) -> Self {
        Self::failed(Stage::Drive, error.to_string())
    }
}

impl TrialError {
    /// A failure of this stage.
    pub fn failed(stage: Stage, reason: impl AsRef<str>) -> Self {
        Self::Failed(Failure::new(stage, reason.as_ref(), ""))
    }

    /// Adds the end of the system's output to a failure.
    pub(super) fn with_output(self, output: &str) -> Self {
        match self {
            Self::Failed(Failure { stage, reason, .. }) => Self::Failed(Failure::new(stage, &reason, output)),
            Self::Interrupted => Self::Interrupted,
        }
    }
}
