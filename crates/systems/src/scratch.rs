//! A folder for what is needed only as long as Narrows runs: sockets, certificates.
//!
//! Its owner removes it, or the keeper if Narrows is killed. If both are killed, the next Narrows removes it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::keeper::Fleeting;

/// How the names of these folders begin and end.
const NAME: [&str; 2] = ["narrows-", ".scratch"];
/// The file that is locked as long as the folder is in use. The kernel unlocks it when the process ends. A process id
/// would not say as much, because a container that shares the folder has other processes.
const LOCK: &str = "lock";
/// A folder younger than this may not have its lock yet.
const YOUNG: Duration = Duration::from_secs(60);

/// A folder below that for temporary files, which only this user may enter. Dropping it removes it.
#[derive(Debug)]
pub struct Scratch {
    folder: Fleeting,
    _lock: File,
}

impl Scratch {
    /// Makes it, and removes those that processes have left which were killed.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> io::Result<Self> {
        Self::below(&std::env::temp_dir(), YOUNG)
    }

    fn below(parent: &Path, young: Duration) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        sweep(parent, young);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}{}-{number}{}", NAME[0], std::process::id(), NAME[1]);
            let path = parent.join(name);
            match DirBuilder::new().mode(0o700).create(&path) {
                // It may belong to a process of a container, which has the same id.
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            let folder = Fleeting::new(path);
            let lock = File::create(folder.path().join(LOCK))?;
            lock.lock()?;
            return Ok(Self { folder, _lock: lock });
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders whose lock nobody holds.
fn sweep(parent: &Path, young: Duration) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !(name.starts_with(NAME[0]) && name.ends_with(NAME[1])) {
            continue;
        }
        let Ok(known) = entry.metadata() else { continue };
        let old = known.modified().ok().and_then(|made| made.elapsed().ok()).is_some_and(|age| age >= young);
        if known.is_dir() && old && !in_use(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn in_use(folder: &Path) -> bool {
    // Whoever may write here could put a pipe there, which blocks whoever opens it.
    let options = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    match OpenOptions::new().read(true).custom_flags(options).open(folder.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_err(),
        // Another user's folder may not be entered.
        Err(why) => why.kind() != io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_removed_with_their_owner_and_those_of_the_dead_by_the_next() {
        let parent = tempfile::tempdir().unwrap();
        let names = || {
            let entries = fs::read_dir(parent.path()).unwrap().flatten();
            let mut names: Vec<_> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let dead = ["narrows-1-0.scratch", "narrows-1-1.scratch"].map(|name| parent.path().join(name));
        dead.iter().for_each(|folder| fs::create_dir(folder).unwrap());
        fs::write(dead[0].join(LOCK), "").unwrap();
        fs::create_dir(parent.path().join("narrows-of-the-user")).unwrap();
        let held = Scratch::below(parent.path(), YOUNG).unwrap();
        assert_eq!(names().len(), 4, "what is young may be in the making");
        let next = Scratch::below(parent.path(), Duration::ZERO).unwrap();
        assert!(held.path().is_dir() && next.path().is_dir());
        assert!(dead.iter().all(|folder| !folder.exists()));
        drop((held, next));
        assert_eq!(names(), ["narrows-of-the-user"]);
    }
}
