//! How a trial can end early.

use load::LoadError;
use systems::SystemError;

use crate::observation::Failure;

/// Why a trial ended without a measurement.
pub(super) enum Stopped {
    Interrupted,
    Failed(Failure),
}

impl From<SystemError> for Stopped {
    fn from(error: SystemError) -> Self {
        let stage = error.stage.name().to_owned();
        Self::Failed(Failure { stage, reason: error.reason, output: error.output })
    }
}

impl From<LoadError> for Stopped {
    fn from(error: LoadError) -> Self {
        Self::failed("drive", error.to_string())
    }
}

impl Stopped {
    pub(super) fn failed(stage: &str, reason: impl Into<String>) -> Self {
        Self::Failed(Failure { stage: stage.to_owned(), reason: reason.into(), output: String::new() })
    }

    /// The same with the end of the system's output.
    pub(super) fn with_output(self, output: String) -> Self {
        match self {
            Self::Failed(failure) => Self::Failed(Failure { output, ..failure }),
            Self::Interrupted => Self::Interrupted,
        }
    }
}
