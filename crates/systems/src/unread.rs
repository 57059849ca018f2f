//! Files of the kernel (`/proc`, `/sys`), and which of them could not be read.
//!
//! A file that is not there says nothing: a process may end at any time, and kernels differ. But if this program has no descriptor
//! or no memory left, or the kernel cannot read a file, a figure from it is too low, or counts from the machine's start. So the
//! failure is kept, and the trial fails.

use std::fs::{self, DirEntry, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

/// How many readings have failed so far, and the last of them.
fn failed() -> MutexGuard<'static, (u64, String)> {
    static FAILED: Mutex<(u64, String)> = Mutex::new((0, String::new()));
    FAILED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What this program could not read of the kernel from some time on.
#[derive(Debug)]
pub struct Unread {
    before: u64,
}

impl Unread {
    /// From now on.
    pub fn from_now() -> Self {
        Self { before: failed().0 }
    }

    /// The file that could not be read last, and why. None if all could.
    pub fn found(&self) -> Option<String> {
        let failed = failed();
        (failed.0 > self.before).then(|| failed.1.clone())
    }
}

/// What was read. None if there is nothing to read, or it could not be read.
fn known<T>(path: &Path, read: io::Result<T>) -> Option<T> {
    let why = match read {
        Ok(read) => return Some(read),
        Err(why) => why,
    };
    if matches!(Errno::from_io_error(&why), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO)) {
        let mut failed = failed();
        *failed = (failed.0.saturating_add(1), format!("{}: {why}", path.display()));
    }
    None
}

/// The text of a file.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    known(path.as_ref(), fs::read_to_string(&path))
}

/// The bytes of a file.
pub(crate) fn bytes(path: impl AsRef<Path>) -> Option<Vec<u8>> {
    known(path.as_ref(), fs::read(&path))
}

/// The lines of a file, up to the first that cannot be read.
pub(crate) fn lines(path: &'static str) -> impl Iterator<Item = String> {
    let path = Path::new(path);
    let lines = known(path, File::open(path)).into_iter().flat_map(|file| BufReader::new(file).lines());
    lines.map_while(move |line| known(path, line))
}

/// What is in a folder.
pub(crate) fn entries(path: impl AsRef<Path>) -> impl Iterator<Item = DirEntry> {
    let folder = path.as_ref().to_owned();
    let entries = known(&folder, fs::read_dir(&folder)).into_iter().flatten();
    entries.filter_map(move |entry| known(&folder, entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_unread() {
        let unread = Unread::from_now();
        assert_eq!(text("/proc/0/stat"), None);
        assert_eq!(known(Path::new("/a"), Err::<(), _>(io::ErrorKind::PermissionDenied.into())), None);
        assert_eq!(unread.found(), None);
        assert_eq!(known(Path::new("/a"), Err::<(), _>(Errno::MFILE.into())), None);
        assert!(unread.found().is_some_and(|why| why.starts_with("/a: Too many open files")));
        assert_eq!(Unread::from_now().found(), None);
    }
}
