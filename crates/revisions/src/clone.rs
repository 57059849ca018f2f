//! The clone of one commit: made, checked out with its submodules, and built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use systems::subprocess::{self, CAPTURED, Exit, Waited};
use systems::wait;

use crate::cache::{CacheLock, Unfinished, cannot, hold};
use crate::git::{ELSEWHERE, Git, text};
use crate::{Repository, Result, Revision, Trouble};

/// How long a build may take. Ctrl-C ends it before.
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

/// The files of one commit. As long as this value lives, no other process uses them.
#[derive(Debug)]
pub struct Clone {
    /// The commit, as the user called it.
    name: String,
    /// Its work tree.
    pub top: PathBuf,
    /// The folder in it that corresponds to the user's current folder. Commands run here.
    pub folder: PathBuf,
    cancel: Arc<AtomicBool>,
    _held: CacheLock,
}

/// The folder of a build of a commit. Every build has a folder of its own, and their paths differ in length, because the length
/// of a path can change where the linker and the kernel put code and stack.
pub(crate) fn folder_of(clones: &Path, commit: &str, build: u32) -> PathBuf {
    clones.join(format!("{commit}{}", "-again".repeat(build.saturating_sub(1) as usize)))
}

impl Repository {
    /// The folder of a commit's clone.
    pub(crate) fn folder_of(&self, commit: &str, build: u32) -> PathBuf {
        folder_of(&self.clones, commit, build)
    }

    /// The files of a commit, checked out into a folder of the cache. `build` counts the folders of one commit, from 1.
    ///
    /// # Errors
    /// Git fails, the folder cannot be written, or another narrows uses it.
    pub fn clone_of(&self, revision: &Revision, build: u32) -> Result<Clone> {
        let top = self.folder_of(&revision.commit, build);
        let held = hold(&top)?;
        match self.check_out(&top, revision, build) {
            Ok(()) => {}
            Err(Trouble::Interrupted) => return Err(Trouble::Interrupted),
            Err(first) => {
                // Its files may be damaged. Its objects are kept, because those of a snapshot are nowhere else.
                empty(&top).map_err(|e| cannot("empty", &top, e))?;
                self.check_out(&top, revision, build).map_err(|_| first)?;
            }
        }
        let folder = top.join(&self.prefix);
        if !folder.is_dir() {
            let prefix = self.prefix.display();
            return Err(Trouble::wrong(format!("{} has no folder {prefix}", revision.name)));
        }
        let (name, cancel) = (revision.name.clone(), Arc::clone(&self.cancel));
        Ok(Clone { name, top, folder, cancel, _held: held })
    }

    fn check_out(&self, top: &Path, revision: &Revision, build: u32) -> Result<()> {
        if marker(top).exists() {
            // A build was killed here. Half-written files could look finished.
            empty(top).map_err(|e| cannot("empty", top, e))?;
            let _ = fs::remove_file(marker(top));
        }
        if !top.is_dir() {
            self.empty_clone()?.settle(top)?;
        }
        // A snapshot's objects are in its first clone.
        let first = self.folder_of(&revision.commit, 1).join(".git/objects");
        let lenders = [&self.objects, &first];
        self.borrow(top, if build > 1 { &lenders } else { &lenders[..1] })?;
        let git = Git::new(top, &self.cancel);
        git.run(&["checkout", "--quiet", "--detach", "--force", &revision.commit])?;
        submodules(top, &self.top, &self.cancel)
    }

    /// A repository with the user's tags, without objects and without files.
    pub(crate) fn empty_clone(&self) -> Result<Unfinished> {
        let unfinished = Unfinished::new(&self.clones)?;
        let (top, users) = (unfinished.path(), self.git());
        let format = users.run(&["rev-parse", "--show-object-format"])?;
        let git = Git::new(top, &self.cancel);
        git.run(&["init", "--quiet", "--template=", &format!("--object-format={format}")])?;
        let dot = top.join(".git");
        if self.shallow {
            let (from, to) = (self.common.join("shallow"), dot.join("shallow"));
            fs::copy(from, &to).map_err(|e| cannot("write", &to, e))?;
        }
        // Builds ask `git describe` for a version.
        let tags = users.run(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/tags"])?;
        let packed = dot.join("packed-refs");
        fs::write(&packed, format!("# pack-refs with: sorted\n{tags}\n").replace("\n\n", "\n"))
            .map_err(|e| cannot("write", &packed, e))?;
        // The addresses of submodules can be relative to it.
        let origin = users.ask(&["config", "--get", "remote.origin.url"])?;
        let origin = origin.filter(|url| !url.is_empty());
        git.run(&["config", "remote.origin.url", origin.as_deref().unwrap_or(text(&self.top)?)])?;
        for (name, value) in [("core.hooksPath", "/dev/null"), ("gc.auto", "0")] {
            git.run(&["config", name, value])?;
        }
        // A partial clone fetches the objects that it lacks when they are needed.
        if users.ask(&["config", "--get", "remote.origin.promisor"])?.as_deref() == Some("true") {
            for (name, value) in [
                ("core.repositoryformatversion", "1"),
                ("extensions.partialClone", "origin"),
                ("remote.origin.promisor", "true"),
            ] {
                git.run(&["config", name, value])?;
            }
        }
        Ok(unfinished)
    }

    /// Lets a clone read the objects in these folders.
    pub(crate) fn borrow(&self, top: &Path, objects: &[&PathBuf]) -> Result<()> {
        let lines = objects.iter().map(|path| Ok(format!("{}\n", text(path)?)));
        let lines: String = lines.collect::<Result<_>>()?;
        let path = top.join(".git/objects/info/alternates");
        let folder = path.parent().unwrap_or(top);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, lines));
        written.map_err(|e| cannot("write", &path, e))
    }
}

/// Checks out the submodules of the clone in `top`, with theirs. One that the user has is taken from there.
fn submodules(top: &Path, users: &Path, cancel: &AtomicBool) -> Result<()> {
    if !top.join(".gitmodules").is_file() {
        return Ok(());
    }
    let git = Git::new(top, cancel);
    let listed = ["config", "--null", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$"];
    let listed = git.ask(&listed)?.unwrap_or_default();
    git.run(&["submodule", "--quiet", "init"])?;
    // Each entry is the key and the value on two lines.
    for (key, path) in listed.split('\0').filter_map(|entry| entry.split_once('\n')) {
        let own = users.join(path);
        let wanted = git.ask(&["rev-parse", "--verify", "--quiet", &format!("HEAD:{path}")])?;
        if let Some(commit) = wanted.filter(|_| own.join(".git").exists()) {
            let here = Git::new(&own, cancel);
            if here.ask(&["cat-file", "-e", &format!("{commit}^{{commit}}")])?.is_some() {
                let objects = here.run(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
                let name = key.strip_suffix(".path").unwrap_or(key);
                git.run(&["config", &format!("{name}.url"), &objects])?;
            }
        }
        let update =
            ["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--force", "--", path];
        match git.run(&update) {
            Ok(_) => submodules(&top.join(path), &own, cancel)?,
            // The user works without it. If the build needs it, it says so.
            Err(Trouble::Wrong(_)) if !own.join(".git").exists() => {}
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(())
}

/// Removes all files of a clone but those of git, and what a killed git left of its index.
fn empty(top: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(top).into_iter().flatten() {
        let path = entry?.path();
        match path.symlink_metadata()?.is_dir() {
            true if path.ends_with(".git") => {}
            true => fs::remove_dir_all(&path)?,
            false => fs::remove_file(&path)?,
        }
    }
    for left in ["index", "index.lock"] {
        let _ = fs::remove_file(top.join(".git").join(left));
    }
    Ok(())
}

/// The file that exists while a build runs.
pub(crate) fn marker(top: &Path) -> PathBuf {
    top.with_extension("building")
}

impl Clone {
    /// The names of its files, relative to its work tree, with those of its submodules. A submodule without files is a folder.
    ///
    /// # Errors
    /// Git fails, a name is no text, or there are too many.
    pub fn files(&self) -> Result<Vec<String>> {
        let git = Git::new(&self.top, &self.cancel);
        let list = |option: &str| {
            let listed = git.run(&["ls-files", option, "-z"])?;
            match listed.len() < CAPTURED {
                true => Ok(listed),
                false => Err(Trouble::wrong(format!("{} has too many files to be sent", self.name))),
            }
        };
        let listed = list("--recurse-submodules")?;
        let mut files: Vec<String> =
            listed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if let Some(odd) = files.iter().find(|name| name.contains(char::REPLACEMENT_CHARACTER)) {
            return Err(Trouble::wrong(format!(
                "{} cannot be sent: the name {odd:?} is not UTF-8: rename it, or build where the repository is",
                self.name
            )));
        }
        // The first list leaves out a submodule that is not fetched.
        let submodules = list("--stage")?;
        let folders = submodules.split('\0').filter(|entry| entry.starts_with("160000 "));
        let folders = folders.filter_map(|entry| Some(entry.split_once('\t')?.1.to_owned()));
        files.extend(folders.filter(|folder| self.top.join(folder).is_dir()));
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// Builds it with `sh -c COMMAND`. What an earlier build left is there, as in a work tree that one goes on using.
    ///
    /// # Errors
    /// The command fails, or the user interrupts; then the clone is removed, because its files may be half-written.
    pub fn build(&self, command: &str) -> Result<()> {
        build(&self.name, &self.top, &self.folder, command, &self.cancel)
    }
}

/// Builds what is in `top` with a command in `folder`.
pub(crate) fn build(name: &str, top: &Path, folder: &Path, command: &str, cancel: &AtomicBool) -> Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder);
    for variable in ELSEWHERE {
        shell.env_remove(variable);
    }
    let (marker, log) = (marker(top), top.with_extension("log"));
    fs::write(&marker, "").map_err(|e| cannot("write", &marker, e))?;
    let ended = subprocess::log(shell, &log, wait::deadline_in(LONGEST), cancel).map_err(Trouble::Wrong);
    // If an interrupted build cannot be removed completely, the marker stays and shows that the folder is incomplete.
    let settled = !matches!(ended, Ok(Waited::Cancelled)) || fs::remove_dir_all(top).is_ok();
    if settled {
        let _ = fs::remove_file(&marker);
    }
    let why = match ended? {
        Waited::Exited(Exit::Code(0)) => return Ok(()),
        Waited::Exited(exit) => exit.to_string(),
        Waited::TimedOut => format!("did not end within {} days", LONGEST.as_secs() / 86_400),
        Waited::Cancelled => return Err(Trouble::Interrupted),
    };
    Err(Trouble::Build { name: name.to_owned(), why, output: subprocess::end_of(&log), log })
}
