//! Process trees: a program that Narrows started and all its descendants, wherever they went.
//!
//! A descendant may leave the process group and the session, overwrite its environment, and outlive its parents. It keeps
//! its limits. One of them, that on file locks (`RLIMIT_LOCKS`), has had no effect since Linux 2.4.25, so nothing changes
//! it. Narrows writes a mark into it before the program begins. Every descendant inherits the mark, and `/proc` shows it to
//! everybody. Where the kernel refuses the mark, only the process group is known.

use std::collections::HashSet;
use std::fmt;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::descent;
use crate::proc::{self, Stat};
use crate::sys;

/// The bits of a mark that number the programs of a run. Those above name the run.
const OF_PROGRAM: u32 = 20;

/// How often processes are listed at most. The search ends earlier if a listing has no new process.
const LISTINGS: usize = 5;

/// A process of this group, or with this mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tree {
    group: u32,
    mark: Mark,
    /// The thread of this process that started it.
    starter: u32,
    /// When its first process began, in the kernel's ticks. Processes that are older are not asked for their mark.
    since: u64,
}

/// The mark of a program that Narrows starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u64);

/// The name of one invocation of Narrows. It is part of every mark, so that a descendant of an earlier or of another
/// Narrows with the same process id, such as one in a container, is not taken for one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run(u64);

impl Run {
    /// That of this process.
    pub(crate) fn ours() -> Self {
        static RUN: OnceLock<u64> = OnceLock::new();
        Self(*RUN.get_or_init(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let seed = since.as_secs().rotate_left(40) ^ u64::from(since.subsec_nanos()).rotate_left(20);
            // Two that begin at the same instant differ in their ids. All bits of a mark but the highest are used, because a
            // limit of all ones means none.
            let mixed = (seed ^ u64::from(std::process::id())).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed >> 1) >> OF_PROGRAM
        }))
    }

    /// From its name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        name.parse().ok().map(Self)
    }

    /// Whether a process descends from a program of this run.
    pub(crate) fn has(self, pid: u32) -> bool {
        proc::locks_limit(pid).is_some_and(|mark| mark >> OF_PROGRAM == self.0)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Mark {
    /// One that no other program of this run has.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed) & !(u64::MAX << OF_PROGRAM);
        Self(Run::ours().0 << OF_PROGRAM | number)
    }

    /// Lets the command carry it.
    pub(crate) fn put(self, command: &mut Command) {
        sys::limit_locks(command, Some(self.0));
    }
}

impl Tree {
    /// The tree of a program that leads this group and carries this mark. The calling thread has started it.
    pub(crate) fn of(group: u32, mark: Mark) -> Self {
        let since = proc::stat(group).map_or(0, |stat| stat.began);
        Self { group, mark, starter: sys::thread(), since }
    }

    /// Whether a process of which this was read belongs to it.
    fn takes(&self, pid: u32, stat: &Stat) -> bool {
        stat.group == self.group || stat.began >= self.since && proc::locks_limit(pid) == Some(self.mark.0)
    }

    /// Whether this process belongs to it and fits.
    fn fits(&self, pid: u32, fits: impl Fn(&Stat) -> bool) -> bool {
        proc::stat(pid).is_some_and(|stat| fits(&stat) && self.takes(pid, &stat))
    }

    /// All its processes, and some others. Reads the lists of children of their threads, and little else, if the kernel has such lists.
    /// Otherwise these are all processes of the machine.
    fn candidates(&self) -> Vec<u32> {
        match descent::of(self.group, self.starter) {
            Some(descendants) => descendants.into_iter().collect(),
            None => proc::pids().collect(),
        }
    }

    /// Those of its processes that fit.
    fn find(&self, fits: impl Fn(&Stat) -> bool) -> Vec<u32> {
        self.candidates().into_iter().filter(|pid| self.fits(*pid, &fits)).collect()
    }

    /// Its processes, including zombies. For readings while it works: it may have many threads, and processes come and go.
    pub(crate) fn members(&self) -> Vec<u32> {
        proc::pids().filter(|pid| self.fits(*pid, |_| true)).collect()
    }

    /// Its processes, including zombies, when it is to end.
    pub(crate) fn left(&self) -> Vec<u32> {
        self.find(|_| true)
    }

    /// Those that have not ended.
    pub(crate) fn living(&self) -> Vec<u32> {
        self.find(Stat::lives)
    }

    /// Whether a process of it has not ended. Also true if that cannot be told.
    pub(crate) fn lives(&self) -> bool {
        any(|| self.own_or_gone(self.candidates()), |pid| self.fits(pid, Stat::lives)) != Some(false)
    }

    /// Whether a process of it meets a condition. `None` if that cannot be told, because processes come and go.
    pub(crate) fn any(&self, meets: impl Fn(u32) -> bool) -> Option<bool> {
        any(|| self.own_or_gone(proc::pids().collect()), |pid| self.has(pid) && meets(pid))
    }

    /// Those of these processes that are its own or are gone. One that is gone may have been its own, and may have forked.
    fn own_or_gone(&self, mut pids: Vec<u32>) -> Vec<u32> {
        pids.retain(|pid| proc::stat(*pid).is_none_or(|stat| self.takes(*pid, &stat)));
        pids
    }

    /// Those that have not ended and have left the process group.
    pub(crate) fn strays(&self) -> Vec<u32> {
        self.find(|stat| stat.lives() && stat.group != self.group)
    }

    /// Whether a process belongs to it.
    pub(crate) fn has(&self, pid: u32) -> bool {
        self.fits(pid, |_| true)
    }

    /// The tree of the group of this process.
    #[cfg(test)]
    pub(crate) fn around_us() -> Self {
        let group = proc::stat(std::process::id()).map_or(0, |stat| stat.group);
        Self { group, mark: Mark(0), starter: 0, since: u64::MAX }
    }

    /// A tree without processes.
    #[cfg(test)]
    pub(crate) fn empty() -> Self {
        Self { group: u32::MAX, mark: Mark(0), starter: 0, since: u64::MAX }
    }
}

/// Whether a listed process meets a condition. A process may fork after it was listed and end before it is looked at, as daemons do. Its
/// child is in the next listing. So this lists again until there is no new process. `None` if each listing has a new one.
fn any(listed: impl Fn() -> Vec<u32>, meets: impl Fn(u32) -> bool) -> Option<bool> {
    let mut seen = HashSet::new();
    for _ in 0..LISTINGS {
        let new: Vec<u32> = listed().into_iter().filter(|pid| seen.insert(*pid)).collect();
        if new.is_empty() {
            return Some(false);
        }
        if new.into_iter().any(&meets) {
            return Some(true);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Stdio};

    use super::*;

    /// Starts `cat` with this mark in a group of its own.
    fn start(mark: Mark) -> Child {
        let mut command = Command::new("cat");
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        mark.put(&mut command);
        command.spawn().unwrap()
    }

    #[test]
    fn a_process_that_begins_during_a_listing_is_found() {
        // The processes at each listing, and the one that meets the condition when its turn comes.
        let found = |listings: &[&[u32]], right: u32| {
            let next = Cell::new(0);
            let listed = || listings[next.replace(next.get() + 1).min(listings.len() - 1)].to_vec();
            any(listed, |pid| pid == right)
        };
        assert_eq!(found(&[&[1, 2]], 2), Some(true));
        assert_eq!(found(&[&[1, 2]], 3), Some(false));
        assert_eq!(found(&[&[]], 3), Some(false));
        assert_eq!(found(&[&[1], &[2]], 2), Some(true), "1 has forked 2 and ended");
        assert_eq!(found(&[&[1], &[1, 2], &[3]], 3), Some(true), "2 has done the same");
        assert_eq!(found(&[&[1], &[2], &[3], &[4], &[5], &[6]], 7), None, "they come and go all the time");
    }

    #[test]
    fn a_mark_names_the_run_and_the_program() {
        let marks = [Mark::new(), Mark::new()];
        assert_ne!(marks[0], marks[1]);
        let mut children = marks.map(start);
        for (child, (own, other)) in children.iter().zip([(0, 1), (1, 0)]) {
            let tree = |mark: usize| Tree::of(u32::MAX, marks[mark]);
            assert!(tree(own).has(child.id()) && !tree(other).has(child.id()));
            assert_eq!(tree(own).living(), [child.id()]);
            assert_eq!(tree(own).strays(), [child.id()]);
            assert!(Tree::of(child.id(), marks[own]).strays().is_empty());
            assert!(Run::ours().has(child.id()));
            assert!(!Run::named("1").unwrap().has(child.id()));
        }
        assert_eq!(Run::named(&Run::ours().to_string()), Some(Run::ours()));
        assert!(!Run::ours().has(std::process::id()));
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
