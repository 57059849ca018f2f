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
        Self::Failed(Failure { stage: error.stage.into(), reason: error.reason, output: error.output })
    }
}

impl From<LoadError> for TrialError {
    fn from(error: LoadError) -> Self {
        Self::failed(Stage::Drive, error.to_string())
    }
}

impl TrialError {
    /// A failure of this stage.
    pub fn failed(stage: Stage, reason: impl Into<String>) -> Self {
        Self::Failed(Failure { stage, reason: reason.into(), output: String::new() })
    }

    /// Adds the end of the system's output to a failure.
    pub(super) fn with_output(self, output: String) -> Self {
        match self {
            Self::Failed(failure) => Self::Failed(Failure { output, ..failure }),
            Self::Interrupted => Self::Interrupted,
        }
    }
}
