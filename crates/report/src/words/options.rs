//! What a reader types to change a run: the options of a command, or the fields of an experiment's file.

use lab::findings::Shared;

/// Where the timing of a run is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The options of `try`, `tune` or `load`.
    Typed,
    /// The file of an experiment, for `run`.
    File,
}

impl Asked {
    /// Of an experiment. `try` and `tune` make those with a base that no file has.
    pub fn of(e: &Shared) -> Self {
        if e.base.is_some() && !e.from_file { Self::Typed } else { Self::File }
    }

    /// One of two remedies.
    pub(super) fn either(self, typed: &'static str, file: &'static str) -> &'static str {
        match self {
            Self::Typed => typed,
            Self::File => file,
        }
    }
}
