//! Errors of the store. Each names the file and says what to do.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use serde::de::DeserializeOwned;

use super::{RunId, SCHEMA};

/// Why an operation on a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file does not exist or is empty.
    #[error(
        "there is no store at {path}: `narrows run` and `narrows try` create one; --store names another file"
    )]
    Missing {
        /// The missing file.
        path: PathBuf,
    },
    /// The file is not SQLite.
    #[error(
        "{path} is not a database: --store must name a store of Narrows, or a file that does not exist yet"
    )]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a SQLite database of another program.
    #[error("{path} is a database, but not a store of Narrows: choose another file with --store")]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a newer version.
    #[error(
        "{path} has schema {found}, but this Narrows knows schemas up to {SCHEMA}: use a newer Narrows, or choose another file with --store"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
    },
    /// The file may only be read.
    #[error(
        "{path} cannot be written: check the permissions of the file and its folder, or choose another file with --store"
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be opened.
    #[error("cannot open {path}: does its folder exist, and may you write there? ({reason})")]
    CannotOpen {
        /// The file.
        path: PathBuf,
        /// SQLite's message.
        reason: String,
    },
    /// Another process kept the file locked for too long.
    #[error("{path} is being written by another process: try again, or give this run its own --store")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// There is no such run.
    #[error("{path} has no run `{word}`: {known}")]
    NoRun {
        /// The file.
        path: PathBuf,
        /// The requested run.
        word: String,
        /// Which runs there are.
        known: String,
    },
    /// The trial already has an observation, or the run does not exist.
    #[error(
        "trial {trial} of run {run} cannot be stored: it already has an observation, or the run does not exist"
    )]
    Conflict {
        /// The run.
        run: RunId,
        /// The trial's index.
        trial: u32,
    },
    /// A row does not match its checksum, or holds what this version cannot read.
    #[error(
        "{what} in {path} cannot be read ({reason}): the file is damaged, or was changed by hand; use an older copy, or choose \
         another file with --store"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was being read.
        what: String,
        /// Why it cannot be read.
        reason: String,
    },
    /// The path is a folder.
    #[error("{path} is a folder: --store must name a file, such as {}", path.join("narrows.db").display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// The path is a pipe, a socket or a device.
    #[error(
        "{path} is no regular file, but a pipe, a socket or a device: --store must name a store of Narrows, or a file that does \
         not exist yet"
    )]
    NoRegularFile {
        /// The path.
        path: PathBuf,
    },
    /// The file may only be read, but its last trials are in a WAL, which needs write access.
    #[error(
        "{path} was not closed, and cannot be read where nothing may be written: copy it and {}-wal to another folder, and \
         name the copy with --store", path.display()
    )]
    Unclosed {
        /// The file.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("the disk of {path} is full: make room there, or choose another file with --store")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file ends too early, or its content is not valid.
    #[error(
        "{path} is damaged: a part of it is missing or was overwritten; use an older copy, or choose another file with --store; \
         `sqlite3 {path} .recover` prints what is left"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
    },
    /// The system could not read or write the file.
    #[error(
        "{path} cannot be read or written ({reason}): check its disk and the limit of file sizes (`df`, `ulimit -f`), or choose \
         another file with --store"
    )]
    Disk {
        /// The file.
        path: PathBuf,
        /// SQLite's message.
        reason: String,
    },
    /// Anything else that SQLite reports.
    #[error("{path}: {reason}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's message.
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
            what: "a value to be stored".to_owned(),
            reason: error.to_string(),
        }
    }
}

impl StoreError {
    /// Names the file in an error that was created without it.
    pub(super) fn with_path(mut self, file: &Path) -> Self {
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
            | Self::NoRegularFile { path }
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

/// Parses JSON from the store. `what` names it in the error.
pub(super) fn decode<T: DeserializeOwned>(json: &str, what: impl Fn() -> String) -> Result<T, StoreError> {
    serde_json::from_str(json).map_err(|e| damaged(what(), e.to_string()))
}

/// What is in the store makes no sense.
pub(super) fn damaged(what: String, reason: String) -> StoreError {
    StoreError::Damaged { path: PathBuf::new(), what, reason }
}

/// A column of a row could not be read. `what` names the row in the error.
pub(super) fn unreadable(what: String, error: rusqlite::Error) -> StoreError {
    match error {
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::Utf8Error(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..) => damaged(what, error.to_string()),
        other => other.into(),
    }
}

/// Whether the database rejected a row because of a key.
pub(super) fn is_constraint(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}
