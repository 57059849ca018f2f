//! The work tree as it is, as a commit that exists in a clone only.

use std::ffi::OsStr;
use std::fs;

use crate::cache::hold;
use crate::git::{Git, text};
use crate::{Repository, Result, Trouble};

/// Whoever makes the snapshot, it has the same id.
const MAKER: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "narrows"),
    ("GIT_AUTHOR_EMAIL", "narrows@localhost"),
    ("GIT_AUTHOR_DATE", "2000-01-01T00:00:00Z"),
    ("GIT_COMMITTER_NAME", "narrows"),
    ("GIT_COMMITTER_EMAIL", "narrows@localhost"),
    ("GIT_COMMITTER_DATE", "2000-01-01T00:00:00Z"),
];

impl Repository {
    /// A commit of the work tree with its changes and its untracked files, without those that are ignored. Its objects go to its
    /// clone, through an index of its own.
    ///
    /// # Errors
    /// A submodule has changes that are not committed, or another repository lies in this one.
    pub(crate) fn snapshot(&self) -> Result<String> {
        self.no_other_repository()?;
        let empty = self.empty_clone()?;
        let index = empty.path().join("index");
        // A copy of the user's index knows which files have not changed. Without one, git reads all. One that is split has a part
        // in the repository, whose time git would renew.
        let known = self.git().run(&["rev-parse", "--path-format=absolute", "--git-path", "index"])?;
        if self.git().run(&["rev-parse", "--shared-index-path"])?.is_empty() {
            let _ = fs::copy(known, &index);
        }
        let objects = empty.path().join(".git/objects");
        // The repository's objects are not lent to git here, because it would renew the times of those that it finds again.
        let elsewhere =
            [("GIT_INDEX_FILE", index.as_os_str()), ("GIT_OBJECT_DIRECTORY", objects.as_os_str())];
        self.git().with(&["add", "--all", "--", text(&self.top)?], &elsewhere)?;
        let tree = self.git().with(&["write-tree", "--missing-ok"], &elsewhere)?;
        let head = self.commit("HEAD")?;
        if self.git().run(&["rev-parse", "HEAD^{tree}"])? == tree {
            return Ok(head);
        }
        self.borrow(empty.path(), &[&self.objects])?;
        let made = ["commit-tree", &tree, "-p", &head, "-m", "the work tree with its changes"];
        let maker = MAKER.map(|(name, value)| (name, OsStr::new(value)));
        let commit = Git::new(empty.path(), &self.cancel).with(&made, &maker)?;
        let _ = fs::remove_file(index);
        let folder = self.folder_of(&commit, 1);
        let object = format!("{commit}^{{tree}}");
        let is_there =
            folder.is_dir() && Git::new(&folder, &self.cancel).ask(&["cat-file", "-e", &object])?.is_some();
        if !is_there {
            let _held = hold(&folder)?;
            let _ = fs::remove_dir_all(&folder);
            empty.settle(&folder)?;
        }
        Ok(commit)
    }

    /// The snapshot has the commit of a submodule, but not what was changed in its work tree, and nothing of a repository that
    /// lies in this one.
    fn no_other_repository(&self) -> Result<()> {
        let status = ["status", "--porcelain=v2", "--ignore-submodules=none", "--untracked-files=all"];
        let status = self.git().run(&status)?;
        // `1 .M S.M. …`: the third word says of a submodule whether it has changed files (M) or untracked files (U).
        let changed = |line: &&str| {
            line.split(' ').nth(2).is_some_and(|word| word.starts_with('S') && word.contains(['M', 'U']))
        };
        if let Some(line) = status.lines().find(changed) {
            let name = line.splitn(9, ' ').last().unwrap_or_default();
            let why =
                format!("the submodule {name} has changes that `dirty` cannot contain: commit them there");
            return Err(Trouble::Wrong(why));
        }
        // All untracked files are listed, so what is listed as a folder is a repository.
        match status.lines().find_map(|line| line.strip_prefix("? ").filter(|path| path.ends_with('/'))) {
            Some(path) => Err(Trouble::Wrong(format!(
                "{path} is a repository of its own, which `dirty` cannot contain: add it to .gitignore, or make it a submodule"
            ))),
            None => Ok(()),
        }
    }
}
