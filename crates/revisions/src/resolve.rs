//! From the words of a command line to commits: `A..B`, `A...B`, `A,B,C`, and `dirty` for the work tree as it is.

use crate::git::Git;
use crate::{Repository, Result, Revision, SHORT, Trouble};

/// The name of the work tree with its changes.
const DIRTY: &str = "dirty";

impl Repository {
    /// The commits that these texts name, in order. `A..B` names A and B, `A...B` the merge base of the two and B; an empty side
    /// is HEAD. `dirty` is the work tree with its changes and its untracked files.
    ///
    /// # Errors
    /// A name that the repository does not know, or fewer than two commits.
    pub fn resolve(&self, texts: &[String]) -> Result<Vec<Revision>> {
        let mut found = Vec::new();
        for text in texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()) {
            match text
                .split_once("...")
                .map(|ends| (true, ends))
                .or(text.split_once("..").map(|ends| (false, ends)))
            {
                Some((forked, (from, to))) => {
                    let [from, to] = [from, to].map(|end| if end.is_empty() { "HEAD" } else { end });
                    found.push(if forked { self.fork(from, to)? } else { self.revision(from)? });
                    found.push(self.revision(to)?);
                }
                None => found.push(self.revision(text)?),
            }
        }
        match found.as_slice() {
            [] | [_] => Err(Trouble::wrong("one commit is not enough: write two, such as main..HEAD")),
            _ => Ok(found),
        }
    }

    /// The commit with this id or name.
    ///
    /// # Errors
    /// There is none.
    pub fn revision(&self, name: &str) -> Result<Revision> {
        let commit = match name {
            DIRTY => self.snapshot()?,
            _ => self.commit(name)?,
        };
        self.described(name, commit)
    }

    fn described(&self, name: &str, commit: String) -> Result<Revision> {
        // A snapshot is in its clone only.
        let clone = self.folder_of(&commit, 1);
        let git = if name == DIRTY && clone.is_dir() { Git::new(&clone, &self.cancel) } else { self.git() };
        let told = git.run(&["log", "-1", "--format=%T %s", &commit, "--"])?;
        let (tree, subject) = told.split_once(' ').unwrap_or((&told, ""));
        // Nobody reads 40 digits.
        let name = if commit.starts_with(name) { name.get(..SHORT).unwrap_or(name) } else { name };
        Ok(Revision { name: name.to_owned(), tree: tree.to_owned(), subject: subject.to_owned(), commit })
    }

    /// The newest commit that both have in their history.
    fn fork(&self, from: &str, to: &str) -> Result<Revision> {
        let ends = [from, to].map(|name| self.commit(if name == DIRTY { "HEAD" } else { name }));
        let [from_id, to_id] = ends;
        match self.git().ask(&["merge-base", &from_id?, &to_id?])? {
            Some(commit) => self.described("merge-base", commit),
            None => {
                let why = format!("{from} and {to} have no commit in common{}", self.shallowness());
                Err(Trouble::wrong(why))
            }
        }
    }

    /// Whether a commit is in the history of another.
    ///
    /// # Errors
    /// Git fails.
    pub fn is_ancestor(&self, old: &Revision, new: &Revision) -> Result<bool> {
        Ok(self.git().ask(&["merge-base", "--is-ancestor", &old.commit, &new.commit])?.is_some())
    }

    pub(crate) fn commit(&self, name: &str) -> Result<String> {
        let known = |name: &str| {
            let object = format!("{name}^{{commit}}");
            self.git().ask(&["rev-parse", "--verify", "--quiet", "--end-of-options", &object])
        };
        if let Some(commit) = known(name)? {
            return Ok(commit);
        }
        let remote = format!("origin/{name}");
        let help = match known(&remote)? {
            Some(_) => format!(": write {remote}"),
            None if self.shallow => self.shallowness(),
            None => {
                ": `git branch --all` and `git tag` list names, and `git fetch` brings new ones".to_owned()
            }
        };
        Err(Trouble::wrong(format!("the repository has no commit `{name}`{help}")))
    }

    fn shallowness(&self) -> String {
        match self.shallow {
            true => ": this clone is shallow. Fetch all with `git fetch --unshallow`, or in a GitHub workflow with \
                     `fetch-depth: 0` for actions/checkout"
                .to_owned(),
            false => String::new(),
        }
    }
}
