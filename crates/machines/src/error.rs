//! What goes wrong between two machines.

/// Why a machine cannot be used, or no longer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("machine {machine}: {why}")]
pub struct MachineError {
    /// The machine as the user wrote it.
    pub machine: String,
    /// What happened, what its command said, and what to do.
    pub why: String,
    /// Whether it cannot be reached, or no longer.
    pub gone: bool,
}
