//! Which commit to try next, to find the first one after which something is worse. Git chooses the middle of what is left.

use std::collections::BTreeSet;

use crate::{Repository, Result};

/// What a search for the first worse commit knows.
#[derive(Debug)]
pub struct Bisect {
    worse: String,
    good: Vec<String>,
    unclear: BTreeSet<String>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Try this commit; so many others are left.
    Try {
        /// Its id.
        commit: String,
        /// The commits of which any may be the first.
        left: usize,
    },
    /// This is the first.
    Found(String),
    /// It is one of these, and no other can be tried.
    Unclear(Vec<String>),
}

impl Bisect {
    /// Begins with a commit that is good and one that is worse.
    pub fn new(good: &str, worse: &str) -> Self {
        Self { worse: worse.to_owned(), good: vec![good.to_owned()], unclear: BTreeSet::new() }
    }

    /// This commit is good.
    pub fn good(&mut self, commit: &str) {
        self.good.push(commit.to_owned());
    }

    /// This commit is worse.
    pub fn worse(&mut self, commit: &str) {
        self.worse = commit.to_owned();
    }

    /// This commit cannot be judged.
    pub fn skip(&mut self, commit: &str) {
        self.unclear.insert(commit.to_owned());
    }

    /// What to do next.
    ///
    /// # Errors
    /// Git fails.
    pub fn next(&self, repository: &Repository) -> Result<Next> {
        let not: Vec<String> = self.good.iter().map(|commit| format!("^{commit}")).collect();
        let ask = |how: &str| {
            let words = ["rev-list", how, &self.worse].into_iter().chain(not.iter().map(String::as_str));
            repository.git().run(&words.collect::<Vec<_>>())
        };
        let can_be_tried = |commit: &str| commit != self.worse && !self.unclear.contains(commit);
        let left: usize = ask("--count")?.parse().unwrap_or(0);
        let middle = ask("--bisect")?;
        if left > 1 && can_be_tried(&middle) {
            return Ok(Next::Try { commit: middle, left });
        }
        let listed = ask("--bisect-all")?;
        // `ID (dist=3)`, the best first.
        let all: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
        Ok(match all.iter().find(|commit| can_be_tried(commit)) {
            Some(commit) => Next::Try { commit: (*commit).to_owned(), left },
            None if all.len() <= 1 => Next::Found(self.worse.clone()),
            None => Next::Unclear(all.into_iter().map(str::to_owned).collect()),
        })
    }
}
