//! Commits on a machine to which their files are sent. It does not have the repository, and it may not have git.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;

use systems::Parcel;

use crate::cache::{CacheLock, LIMIT_BYTES, Unfinished, cannot, entries, hold, tidy};
use crate::clone::{build, folder_of, marker};
use crate::{Result, Trouble};

/// A commit is not built more often than this.
const MOST_BUILDS: u32 = 9;

/// The files of one commit, in a folder of the cache. As long as this value lives, no other run builds in it.
#[derive(Debug)]
pub struct Sent {
    clones: PathBuf,
    top: PathBuf,
    /// The files that have come so far.
    coming: Option<Unfinished>,
    _held: CacheLock,
}

impl Sent {
    /// The place below `clones` for the files that `id` stands for, a hash in hexadecimal digits. `build` counts the places of
    /// one commit, from 1.
    ///
    /// # Errors
    /// `id` is not such a hash, the folder cannot be written, or another narrows uses it.
    pub fn place(clones: &Path, id: &str, build: u32) -> Result<Self> {
        let is_hash = (40..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_hash || build > MOST_BUILDS {
            return Err(Trouble::wrong(format!("{id:?}, build {build}, is no place for a commit")));
        }
        let top = folder_of(clones, id, build);
        let held = hold(&top)?;
        if marker(&top).exists() {
            // A build was killed here, or the removal of its files was.
            match fs::remove_dir_all(&top) {
                Err(why) if why.kind() != ErrorKind::NotFound => return Err(cannot("empty", &top, why)),
                _ => _ = fs::remove_file(marker(&top)),
            }
        }
        Ok(Self { clones: clones.to_owned(), top, coming: None, _held: held })
    }

    /// Whether it is the place for this build of these files.
    pub fn is_of(&self, id: &str, build: u32) -> bool {
        self.top == folder_of(&self.clones, id, build)
    }

    /// Whether its files have come.
    pub fn is_there(&self) -> bool {
        self.top.is_dir()
    }

    /// Takes some of its files.
    ///
    /// # Errors
    /// They cannot be written. All that have come are removed.
    pub fn take(&mut self, part: &Parcel) -> Result<()> {
        let coming = self.coming.take().map_or_else(|| Unfinished::new(&self.clones), Ok)?;
        part.add_to(coming.path()).map_err(|e| cannot("write into", coming.path(), e))?;
        self.coming = Some(coming);
        Ok(())
    }

    /// Builds it with `sh -c COMMAND` in the folder `prefix` of the commit, if there is a command. All files must have come.
    /// Returns the folder, in which its command runs.
    ///
    /// # Errors
    /// As for [`crate::Clone::build`].
    pub fn build(
        &mut self,
        (name, prefix): (&str, &Path),
        command: Option<&str>,
        cancel: &AtomicBool,
    ) -> Result<PathBuf> {
        if let Some(coming) = self.coming.take() {
            coming.settle(&self.top)?;
            tidy(entries(&self.clones), LIMIT_BYTES);
        }
        if !self.is_there() {
            return Err(Trouble::wrong(format!("{name} has no files that can be sent")));
        }
        let folder = self.top.join(prefix);
        let inside = prefix.components().all(|part| matches!(part, Component::Normal(_)));
        if !inside || !folder.is_dir() {
            return Err(Trouble::wrong(format!("{name} has no folder {}", prefix.display())));
        }
        if let Some(command) = command {
            build(name, &self.top, &folder, command, cancel)?;
        }
        Ok(folder)
    }
}
