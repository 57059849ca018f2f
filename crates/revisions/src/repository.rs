//! The repository of the user: where its parts are, and where its clones go.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::git::{Git, text};
use crate::{Result, Trouble};

/// The user's repository, which is only read.
#[derive(Debug)]
pub struct Repository {
    /// The work tree.
    pub(crate) top: PathBuf,
    /// The user's folder, relative to the work tree. Commands run in the same folder of each clone.
    pub(crate) prefix: PathBuf,
    /// The folder `.git` that all its work trees share.
    pub(crate) common: PathBuf,
    /// The folder with its objects.
    pub(crate) objects: PathBuf,
    /// Whether it lacks a part of its history.
    pub(crate) shallow: bool,
    /// The folder of its clones.
    pub(crate) clones: PathBuf,
    pub(crate) cancel: Arc<AtomicBool>,
}

impl Repository {
    /// The repository to which `folder` belongs. Its clones go below `cache`.
    ///
    /// # Errors
    /// There is none, it has no work tree, or git is not installed.
    pub fn find(folder: &Path, cache: &Path, cancel: &Arc<AtomicBool>) -> Result<Self> {
        let git = Git::new(folder, cancel);
        let path = |what: &[&str]| -> Result<PathBuf> {
            let words: Vec<&str> =
                ["rev-parse", "--path-format=absolute"].into_iter().chain(what.iter().copied()).collect();
            Ok(PathBuf::from(git.run(&words)?))
        };
        let top = path(&["--show-toplevel"]).map_err(|trouble| match trouble {
            Trouble::Wrong(why) => {
                Trouble::Wrong(format!("--git needs the work tree of a repository: {why}"))
            }
            other => other,
        })?;
        let prefix = git.run(&["rev-parse", "--show-prefix"])?;
        let common = path(&["--git-common-dir"])?;
        text(&common)?;
        let mut hasher = DefaultHasher::new();
        common.hash(&mut hasher);
        Ok(Self {
            top,
            prefix: PathBuf::from(prefix),
            objects: path(&["--git-path", "objects"])?,
            shallow: git.run(&["rev-parse", "--is-shallow-repository"])? == "true",
            clones: cache.join("revisions").join(format!("{:016x}", hasher.finish())),
            common,
            cancel: Arc::clone(cancel),
        })
    }

    /// The user's work tree.
    pub fn work_tree(&self) -> &Path {
        &self.top
    }

    /// The user's folder, relative to the work tree.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    pub(crate) fn git(&self) -> Git<'_> {
        Git::new(&self.top, &self.cancel)
    }
}
