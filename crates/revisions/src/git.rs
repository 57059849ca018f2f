//! Runs the program `git`, so that it changes nothing that it was not told to change.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use systems::subprocess::{Captured, Waited, capture};

use crate::{Result, Trouble};

/// Variables that lead git to another repository than that of its folder. Git sets them for its hooks.
pub(crate) const ELSEWHERE: [&str; 6] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
];

/// No hook runs, no daemon watches, and nothing is packed behind our back.
const CALM: [&str; 12] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.splitIndex=false",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "advice.detachedHead=false",
];

/// A clone over a slow network takes its time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Git in one folder.
#[derive(Clone, Copy)]
pub(crate) struct Git<'a> {
    folder: &'a Path,
    cancel: &'a AtomicBool,
}

impl<'a> Git<'a> {
    pub(crate) fn new(folder: &'a Path, cancel: &'a AtomicBool) -> Self {
        Self { folder, cancel }
    }

    /// What it prints to standard output, without white space at the end.
    ///
    /// # Errors
    /// It fails; with its message.
    pub(crate) fn run(&self, words: &[&str]) -> Result<String> {
        self.with(words, &[])
    }

    /// The same with variables in its environment.
    pub(crate) fn with(&self, words: &[&str], environment: &[(&str, &OsStr)]) -> Result<String> {
        let ended = self.captured(words, environment)?;
        if ended.is_success() {
            return Ok(ended.out);
        }
        let verb = words.iter().find(|word| !word.starts_with('-') && !word.contains('=')).unwrap_or(&"");
        Err(Trouble::wrong(format!("git {verb} in {}: {}", self.folder.display(), ended.output())))
    }

    /// What it prints. None if it exits with another code than 0.
    pub(crate) fn ask(&self, words: &[&str]) -> Result<Option<String>> {
        let ended = self.captured(words, &[])?;
        Ok(ended.is_success().then_some(ended.out))
    }

    fn captured(&self, words: &[&str], environment: &[(&str, &OsStr)]) -> Result<Captured> {
        let mut command = Command::new("git");
        command.args(CALM).args(words).current_dir(self.folder);
        for name in ELSEWHERE {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
        command.envs(environment.iter().copied());
        if !self.folder.is_dir() {
            let folder = self.folder.display();
            return Err(Trouble::wrong(format!(
                "there is no folder {folder}: does its name end with a space?"
            )));
        }
        let ended = capture(command, Instant::now() + PATIENCE, self.cancel).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                Trouble::wrong("git cannot be started: is it installed? `apt-get install git` does it")
            }
            _ => Trouble::wrong(format!("git cannot be started: {e}")),
        })?;
        if ended.waited == Waited::Cancelled { Err(Trouble::Interrupted) } else { Ok(ended) }
    }
}

/// The path as git's arguments take it.
pub(crate) fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| {
        Trouble::wrong(format!("the path {} is not valid UTF-8: rename the folder", path.display()))
    })
}
