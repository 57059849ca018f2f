//! What can go wrong with a store, in words that say which file and what to do.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use serde::de::DeserializeOwned;

use super::{RunId, SCHEMA};

/// Why a store cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no file, or an empty one.
    #[error("there is no store at {path}: `narrows run` makes one; --store names another")]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file is not SQLite.
    #[error(
        "{path} is not a database: --store must name a store of Narrows, or a file that is not there yet"
    )]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// An SQLite database of another program.
    #[error("{path} is a database, but not a store of Narrows: choose another file with --store")]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// Written by a later version.
    #[error(
        "{path} has schema {found}, this Narrows knows up to {SCHEMA}: use a newer Narrows, or another --store"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
    },
    /// It may only be read.
    #[error(
        "{path} cannot be written: check the permissions of file and folder, or choose another with --store"
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be opened at all.
    #[error("cannot open {path}: does its folder exist, and may you write there? ({reason})")]
    CannotOpen {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        reason: String,
    },
    /// Another process holds it for too long.
    #[error("{path} is being written by another process: try again, or give this run its own --store")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// No such run.
    #[error("{path} has no run `{word}`: {known}")]
    NoRun {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        word: String,
        /// What there is.
        known: String,
    },
    /// A second observation of one trial, or one of a run that does not exist.
    #[error(
        "trial {trial} of run {run} cannot be kept: it has an observation already, or the run does not exist"
    )]
    Conflict {
        /// The run.
        run: RunId,
        /// The trial's index.
        trial: u32,
    },
    /// JSON that this version cannot read.
    #[error("{what} in {path} cannot be read ({reason}): the file is damaged, or was changed by hand")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was being read.
        what: String,
        /// The reader's words.
        reason: String,
    },
    /// A folder stands where the file should be.
    #[error("{path} is a folder: --store must name a file, as {}", path.join("narrows.db").display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// It may only be read, and its last trials are in a file beside it that needs more than that.
    #[error(
        "{path} was not closed, and cannot be read where nothing may be written: copy it and {}-wal to another folder, and \
         name the copy with --store", path.display()
    )]
    Unclosed {
        /// The file.
        path: PathBuf,
    },
    /// No room is left.
    #[error("the disk of {path} is full: make room there, or choose another with --store")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file ends too early, or holds what no database does.
    #[error(
        "{path} is damaged: a part of it is missing or was overwritten; take an older copy, or another --store; \
         `sqlite3 {path} .recover` prints what is left"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
    },
    /// The system refuses to read or write.
    #[error(
        "{path} cannot be read or written ({reason}): see to its disk and to limits of the size of files (`df`, `ulimit -f`), or \
         choose another with --store"
    )]
    Disk {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        reason: String,
    },
    /// Anything else that SQLite reports.
    #[error("{path}: {reason}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        reason: String,
    },
}

impl From<rusqlite::Error> for StoreError {
    fn from(source: rusqlite::Error) -> Self {
        let path = PathBuf::new();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
            Some(ErrorCode::CannotOpen) => Self::CannotOpen { path, reason: source.to_string() },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path },
            Some(ErrorCode::SystemIoFailure) => Self::Disk { path, reason: source.to_string() },
            _ => Self::Sqlite { path, reason: source.to_string() },
        }
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Damaged {
            path: PathBuf::new(),
            what: "what was to be kept".to_owned(),
            reason: error.to_string(),
        }
    }
}

impl StoreError {
    /// The same error with the file it is about, where the place that noticed it did not know.
    pub(super) fn at(mut self, file: &Path) -> Self {
        match &mut self {
            Self::Missing { path }
            | Self::NotADatabase { path }
            | Self::NotOurs { path }
            | Self::Newer { path, .. }
            | Self::ReadOnly { path }
            | Self::CannotOpen { path, .. }
            | Self::Busy { path }
            | Self::NoRun { path, .. }
            | Self::Damaged { path, .. }
            | Self::Folder { path }
            | Self::Unclosed { path }
            | Self::Full { path }
            | Self::Corrupt { path }
            | Self::Disk { path, .. }
            | Self::Sqlite { path, .. } => file.clone_into(path),
            Self::Conflict { .. } => {}
        }
        self
    }
}

/// Reads JSON that the store holds; `what` names it in the error.
pub(super) fn decode<T: DeserializeOwned>(json: &str, what: impl Fn() -> String) -> Result<T, StoreError> {
    serde_json::from_str(json).map_err(|e| StoreError::Damaged {
        path: PathBuf::new(),
        what: what(),
        reason: e.to_string(),
    })
}

/// Whether the database refused a row because of a key.
pub(super) fn is_constraint(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}
