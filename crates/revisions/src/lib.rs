//! Commits of a user's git repository, as folders that can be built and run.
//!
//! Each commit gets a clone in a cache outside the repository. The clone has its own work tree, and it shares the repository's
//! objects. Nothing in the repository or in its work tree changes: the program `git` reads it, and writes into the clones only.
//!
//! Knows git, folders and how a command runs to its end. Knows nothing of systems, traffic or statistics.

// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

mod bisect;
mod cache;
mod clone;
mod git;
mod repository;
mod resolve;
mod sent;
mod snapshot;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use bisect::{Bisect, Next};
pub use cache::LIMIT_BYTES;
pub use clone::Clone;
pub use repository::Repository;
pub use sent::Sent;

/// A commit, under the name by which the user called it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// Such as `main`, `HEAD~1` or `dirty`.
    pub name: String,
    /// Its full id.
    pub commit: String,
    /// The id of its files. Commits with the same files have the same.
    pub tree: String,
    /// The first line of its message.
    pub subject: String,
}

/// How many digits of an id are shown.
const SHORT: usize = 9;

impl Revision {
    /// The first digits of its id, as `git log --oneline` shows them.
    pub fn short(&self) -> &str {
        self.commit.get(..SHORT).unwrap_or(&self.commit)
    }
}

/// Why a commit cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// What is wrong, and what to do.
    #[error("{0}")]
    Wrong(String),
    /// The build of a commit failed.
    #[error("the build of {name} {why}; its full output is in {}{}", log.display(), below(output))]
    Build {
        /// The commit, as the user called it.
        name: String,
        /// How the command ended.
        why: String,
        /// The file with all that it printed.
        log: PathBuf,
        /// The end of what it printed.
        output: String,
    },
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// Output below a message.
fn below(output: &str) -> String {
    if output.is_empty() { String::new() } else { format!("\n{output}") }
}

impl Trouble {
    fn wrong(text: impl Into<String>) -> Self {
        Self::Wrong(text.into())
    }
}

type Result<T> = std::result::Result<T, Trouble>;
