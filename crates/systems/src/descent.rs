//! The children of this process, and the descendants that the kernel gives it when their own parents end.
//!
//! This process adopts orphans, so every descendant of a program that it started stays its own descendant. The kernel's lists of
//! children (`/proc/PID/task/TID/children`) lead to all of them, and the other processes of the machine need not be read. Each machine
//! of a fleet is a child of this process. If the end of each one read all of `/proc`, the cost of a fleet would be quadratic.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::process::{Child, Command};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::process::getpid;

use crate::proc;
use crate::sys;

/// How often the lists are read until two readings in a row agree. Where processes come and go all the time, they may never.
const READINGS: usize = 5;

/// Makes this process adopt orphaned descendants, so that it can find and reap them. An init process might leave them as
/// zombies. Returns whether it does.
pub(crate) fn adopt_orphans() -> bool {
    static ADOPTS: OnceLock<bool> = OnceLock::new();
    // If it fails, orphans go to init, as usual. Any process switches it on.
    *ADOPTS.get_or_init(|| rustix::process::set_child_subreaper(Some(getpid())).is_ok())
}

/// Starts a child that its owner will reap.
pub(crate) fn adopt(command: &mut Command) -> io::Result<Child> {
    // Hold the lock until the child is in the set: otherwise another thread could take it for an orphan.
    let mut leaders = leaders();
    let child = command.spawn()?;
    leaders.insert(child.id());
    Ok(child)
}

/// Says that the owner of a child has reaped it.
pub(crate) fn disown(child: u32) {
    leaders().remove(&child);
}

/// The children that their owner, such as their [`Group`](crate::group::Group), will reap.
fn leaders() -> MutexGuard<'static, HashSet<u32>> {
    static LEADERS: LazyLock<Mutex<HashSet<u32>>> = LazyLock::new(Mutex::default);
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reaps dead descendants that had left their group, such as Erlang's helper. A long run would collect thousands of
/// them.
///
/// Children in this program's own group were started elsewhere in it, and are reaped there.
pub(crate) fn reap_orphans() {
    let leaders = leaders();
    let me = std::process::id();
    let own_group = proc::stat(me).map(|stat| stat.group);
    // The kernel gives orphans to the first thread.
    let children = proc::children(me, me).unwrap_or_else(|| proc::pids().collect());
    for pid in children.into_iter().filter(|pid| !leaders.contains(pid)) {
        let orphan = proc::stat(pid)
            .is_some_and(|stat| stat.parent == me && !stat.lives() && Some(stat.group) != own_group);
        if orphan {
            sys::reap(pid);
        }
    }
}

/// The processes among which all descendants of this child are: itself, those below it, and orphans of all programs with those below
/// them. `starter` is the thread that started it. `None` if the kernel does not say, or says something else each time.
pub(crate) fn of(child: u32, starter: u32) -> Option<BTreeSet<u32>> {
    if !adopt_orphans() {
        return None;
    }
    let mut last = below(child, starter)?;
    // A list misses a process if the one before it ends while it is read.
    for _ in 1..READINGS {
        let next = below(child, starter)?;
        if next == last {
            return Some(last);
        }
        last = next;
    }
    None
}

fn below(child: u32, starter: u32) -> Option<BTreeSet<u32>> {
    let me = std::process::id();
    let mut found = BTreeSet::new();
    add(child, &mut found);
    // Last, because what loses its parent meanwhile comes here. A process can also give its own parent a child (CLONE_PARENT).
    let mut own = proc::children(me, me)?;
    own.extend(proc::children(me, starter).unwrap_or_default());
    let leaders = leaders().clone();
    own.into_iter().filter(|pid| !leaders.contains(pid)).for_each(|pid| add(pid, &mut found));
    Some(found)
}

/// Adds a process and those below it.
fn add(pid: u32, found: &mut BTreeSet<u32>) {
    let mut open = vec![pid];
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(proc::threads(pid).filter_map(|thread| proc::children(pid, thread)).flatten());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::Stdio;

    use super::*;

    /// Starts a shell that runs this in a group of its own.
    fn start(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        adopt(&mut command).unwrap()
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
        disown(child.id());
    }

    /// Of 4 and of 16 programs, each end looks at as many processes: at none of the other programs.
    #[test]
    fn other_programs_are_not_looked_at() {
        adopt_orphans();
        let starter = sys::thread();
        if proc::children(std::process::id(), starter).is_none() {
            return; // This kernel has no lists of children.
        }
        for count in [4, 16] {
            let programs: Vec<Child> = (0..count).map(|_| start("cat")).collect();
            let others: HashSet<u32> = programs.iter().skip(1).map(Child::id).collect();
            let mut found = BTreeSet::new();
            // Other tests start and end processes, so the lists may change each time that they are read.
            let is_told =
                crate::wait::poll(crate::wait::deadline_in(std::time::Duration::from_secs(60)), || {
                    of(programs[0].id(), starter).is_some_and(|told| {
                        found = told;
                        true
                    })
                });
            assert!(is_told && found.contains(&programs[0].id()), "{found:?}");
            assert!(found.iter().all(|pid| !others.contains(pid)), "{found:?}");
            programs.into_iter().for_each(end);
        }
    }

    #[test]
    fn what_lost_its_parent_is_found() {
        adopt_orphans();
        let starter = sys::thread();
        if proc::children(std::process::id(), starter).is_none() {
            return;
        }
        // The inner shell ends, and its child goes on in a session of its own.
        let mut shell = start("(setsid sleep 1000 & echo $!); exec cat");
        let mut said = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let sleeper: u32 = said.trim().parse().unwrap();
        // It is started as a child of the inner shell, which ends a moment later.
        let is_found =
            crate::wait::poll(crate::wait::deadline_in(std::time::Duration::from_secs(60)), || {
                proc::stat(sleeper)
                    .is_some_and(|stat| stat.parent == std::process::id() && stat.group != shell.id())
                    && of(shell.id(), starter).is_some_and(|found| found.contains(&sleeper))
            });
        assert!(is_found);
        rustix::process::kill_process(sys::process(sleeper).unwrap(), rustix::process::Signal::KILL).unwrap();
        crate::wait::for_end(sleeper, crate::wait::deadline_in(std::time::Duration::from_secs(60)));
        reap_orphans();
        assert!(proc::stat(sleeper).is_none(), "it is reaped");
        end(shell);
    }
}
