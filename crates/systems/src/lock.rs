//! Locks on files: what only one Narrows may do at a time.
//!
//! The kernel releases a lock when its file is closed, even if we crash.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::wait::poll;

/// Takes the lock of the file at `path`, which is made if it is not there, and waits for whoever has it.
///
/// # Errors
/// The file cannot be locked, the user interrupted, or another process still has it at the deadline: then `busy` is the reason.
pub(crate) fn take(path: &Path, deadline: Instant, cancel: &AtomicBool, busy: &str) -> Result<File, String> {
    let options = OpenOptions::new().create(true).write(true).truncate(false).open(path);
    let file = options.map_err(|e| format!("cannot open {}: {e}", path.display()))?;
    let mut failure = None;
    let held = poll(deadline, || match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => {
            failure = cancel.load(Ordering::Relaxed).then(|| "interrupted".to_owned());
            failure.is_some()
        }
        Err(TryLockError::Error(e)) => {
            failure = Some(format!("cannot lock {}: {e}", path.display()));
            true
        }
    });
    match failure {
        Some(reason) => Err(reason),
        None if held => Ok(file),
        None => Err(busy.to_owned()),
    }
}
