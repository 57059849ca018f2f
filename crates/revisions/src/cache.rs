//! The folders in the cache: how they get their names, who uses them, and which are removed when there are too many.

use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use systems::Fleeting;

use crate::{Repository, Result, Trouble};

/// The most bytes that clones may take together before those that were not used for longest are removed.
pub const LIMIT_BYTES: u64 = 10 << 30;

/// A folder that is still unfinished after this time belongs to a process that was killed together with its keeper.
const UNFINISHED_AGE: Duration = Duration::from_secs(86_400);

/// A folder without a final name. It is removed unless it gets one.
#[derive(Debug)]
pub(crate) struct Unfinished(Fleeting);

impl Unfinished {
    /// Makes an empty folder below `parent`.
    pub(crate) fn new(parent: &Path) -> Result<Self> {
        // Containers can share the cache, and then two processes have the same id.
        let name = RandomState::new().build_hasher().finish();
        let folder = Fleeting::new(parent.join(format!("{name:016x}.new")));
        fs::create_dir_all(folder.path()).map_err(|e| cannot("make", folder.path(), e))?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Gives it its name, unless a folder has it already.
    pub(crate) fn settle(self, name: &Path) -> Result<()> {
        match fs::rename(self.path(), name) {
            Err(_) if name.is_dir() => Ok(()),
            moved => moved.map_err(|e| cannot("make", name, e)),
        }
    }
}

pub(crate) fn cannot(action: &str, path: &Path, error: io::Error) -> Trouble {
    Trouble::wrong(format!("cannot {action} {}: {error}", path.display()))
}

/// A folder of the cache that this process uses alone. The kernel releases it after a crash, too.
#[derive(Debug)]
pub(crate) struct CacheLock(File);

impl Drop for CacheLock {
    /// Closing the file is not enough: a child that another thread is just starting has it, too, for a moment.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Holds a folder of the cache for this process.
pub(crate) fn hold(folder: &Path) -> Result<CacheLock> {
    let path = folder.with_extension("lock");
    let unfit = |path: &Path, e: io::Error| {
        let path = path.display();
        Trouble::wrong(format!("cannot make {path}: {e}: set XDG_CACHE_HOME to a folder that can be written"))
    };
    fs::create_dir_all(folder.parent().unwrap_or(folder)).map_err(|e| unfit(folder, e))?;
    let file = File::options().create(true).write(true).truncate(false).open(&path);
    let file = file.map_err(|e| unfit(&path, e))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(Trouble::wrong(format!(
                "another narrows uses {}: wait until it ends, or stop it",
                folder.display()
            )));
        }
        Err(TryLockError::Error(e)) => return Err(cannot("lock", &path, e)),
    }
    // Its time says when the folder was used last.
    let _ = file.set_modified(SystemTime::now());
    Ok(CacheLock(file))
}

impl Repository {
    /// Removes the clones of all repositories that were not used for longest, until the others take at most `limit` bytes. Those
    /// that a process holds stay.
    pub fn tidy(&self, limit: u64) {
        let Some(all) = self.clones.parent() else { return };
        tidy(entries(all).flat_map(|repository| entries(&repository)), limit);
    }
}

/// What is in a folder. Nothing if it cannot be read.
pub(crate) fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Removes those of these folders that were not used for longest, until the others take at most `limit` bytes.
pub(crate) fn tidy(folders: impl Iterator<Item = PathBuf>, limit: u64) {
    let modified = |path: &Path| fs::metadata(path).ok()?.modified().ok();
    let mut clones: Vec<(SystemTime, PathBuf, u64)> = folders
        .filter(|folder| folder.is_dir())
        .filter_map(|folder| {
            let used = modified(&folder.with_extension("lock")).or_else(|| modified(&folder))?;
            let is_new = folder.extension().is_some_and(|extension| extension == "new");
            if is_new {
                // Another process may be making it just now.
                let old = used.elapsed().is_ok_and(|age| age >= UNFINISHED_AGE);
                let _ = old.then(|| fs::remove_dir_all(&folder));
            }
            (!is_new).then(|| (used, folder.clone(), size(&folder)))
        })
        .collect();
    clones.sort();
    let mut total: u64 = clones.iter().map(|(_, _, bytes)| bytes).sum();
    for (_, folder, bytes) in clones {
        if total <= limit {
            return;
        }
        // It loses its name first. If this process is killed here, nobody takes what is left of the folder for all of it.
        if let Ok(_held) = hold(&folder)
            && let Some(parent) = folder.parent()
            && let Ok(doomed) = Unfinished::new(parent)
            && fs::rename(&folder, doomed.path()).is_ok()
        {
            let _ = fs::remove_file(folder.with_extension("log"));
            total -= bytes;
        }
    }
}

/// The bytes that a folder takes on the disk. Symbolic links are not followed.
fn size(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let sizes = entries(folder).filter_map(|path| {
        let known = fs::symlink_metadata(&path).ok()?;
        Some(if known.is_dir() { size(&path) } else { known.blocks() * 512 })
    });
    sizes.sum()
}
