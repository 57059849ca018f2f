//! Programs that Narrows starts: each is pinned, with raised limits, in a process group of its own. Narrows watches it, and leaves nothing
//! of its process tree behind.
//!
//! Knows processes and signals; knows nothing of systems. Every process that Narrows starts is started here.

use std::fmt;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitIdStatus};

use crate::descent;
use crate::keeper::{self, Charge};
use crate::machine;
use crate::proc;
use crate::sys;
use crate::trace;
use crate::tree::{Mark, Tree};
use crate::wait::{self, deadline_in, poll};

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It is gone. Only its parent, which is not Narrows, knows its exit status.
    Gone,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "was killed by signal {signal}"),
            Self::Gone => f.write_str("has ended"),
        }
    }
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The program ended.
    Exited(Exit),
    /// The deadline passed.
    TimedOut,
    /// The user interrupted.
    Cancelled,
}

/// How a group was stopped.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// It did not end in time after SIGTERM.
    pub(crate) killed: bool,
    /// The names of descendants outside the group that had to be killed.
    pub(crate) strays: Vec<String>,
}

/// A child in its own process group. Dropping it kills the group.
///
/// The leader is reaped only after its group has been killed. As long as it is a zombie, the kernel cannot give its id
/// to another group, so no signal reaches an unrelated process.
pub(crate) struct Group {
    child: Child,
    tree: Tree,
    ended: Option<Exit>,
}

/// A helper outside the group, such as Erlang's, ends shortly after its program. This is how long we wait for it.
const HELPERS: Duration = Duration::from_millis(500);
/// How often a wait for the end of a process looks whether the user interrupted.
const GLANCE: Duration = Duration::from_millis(20);
/// A process that survives SIGKILL for this long hangs in the kernel, and waiting longer does not help.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

impl Group {
    /// Starts `command`, pinned to `cores` unless the slice is empty.
    ///
    /// The kernel kills the child when the *thread* that called this ends, so call it from a thread that lives as long as
    /// the child should. If Narrows is killed, its keeper ends the child's descendants.
    pub(crate) fn spawn(mut command: Command, cores: &[usize]) -> io::Result<Self> {
        descent::adopt_orphans();
        keeper::begin();
        let mark = Mark::new();
        // What is started is the same with a trace as without.
        command.env_remove(trace::VARIABLE).process_group(0);
        mark.put(&mut command);
        sys::tie_to_us(&mut command, (!cores.is_empty()).then(|| machine::core_set(cores)));
        let child = descent::adopt(&mut command).inspect_err(|error| {
            trace::say(|| format!("cannot start, {error}: {}", trace::command(&command, cores)));
        })?;
        keeper::take(&Charge::Group(child.id()));
        trace::say(|| format!("started {}: {}", child.id(), trace::command(&command, cores)));
        let tree = Tree::of(child.id(), mark);
        Ok(Self { child, tree, ended: None })
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The id of the leader, which is also that of the group.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The leader and all its descendants.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// How the program ended, if it has. One whose leader exits with 0 goes on in the background as long as a descendant
    /// lives. After that it ended as the first of its daemons that failed.
    pub(crate) fn finished(&self) -> Option<Exit> {
        let exit = self.exited()?;
        if exit != Exit::Code(0) || self.ended.is_some() {
            return Some(exit);
        }
        if self.tree.lives() {
            return None;
        }
        // Daemons are this process's children, because their own parents have ended.
        let daemons = self.tree.left().into_iter().filter_map(|pid| sys::ended(pid).and_then(exit_of));
        Some(daemons.into_iter().find(|exit| *exit != Exit::Code(0)).unwrap_or(exit))
    }

    /// How the leader ended, if it has. Does not reap it.
    pub(crate) fn exited(&self) -> Option<Exit> {
        self.ended.or_else(|| sys::ended(self.id()).and_then(exit_of))
    }

    /// Waits until the leader ends, the deadline passes or `cancel` is set.
    pub(crate) fn wait(&self, deadline: Instant, cancel: &AtomicBool) -> Waited {
        loop {
            if let Some(exit) = self.exited() {
                return Waited::Exited(exit);
            }
            if cancel.load(Ordering::Relaxed) {
                return Waited::Cancelled;
            }
            if Instant::now() >= deadline {
                return Waited::TimedOut;
            }
            wait::for_end(self.id(), deadline.min(deadline_in(GLANCE)));
        }
    }

    /// Sends SIGTERM to all processes of the tree, waits for `grace`, and sends SIGKILL to what is left.
    pub(crate) fn stop(&mut self, grace: Duration) -> Ended {
        let group = self.id();
        if self.ended.is_some() {
            return Ended::default();
        }
        sys::signal_group(group, Signal::TERM);
        trace::say(|| format!("sent SIGTERM to the group of {group}"));
        self.signal_strays(Signal::TERM);
        let left = wait::until_none(deadline_in(grace), || self.living());
        let strays = wait::until_none(deadline_in(HELPERS), || self.tree.strays());
        let strays = strays.into_iter().map(proc::name).collect();
        self.kill();
        Ended { killed: !left.is_empty(), strays }
    }

    /// The processes that have not ended.
    fn living(&self) -> Vec<u32> {
        let mut living = self.tree.living();
        // A leader whose first thread has ended looks like a zombie as long as its other threads run.
        if self.exited().is_none() && !living.contains(&self.id()) {
            living.push(self.id());
        }
        living
    }

    /// Sends a signal to the descendants that have left the group. Returns them.
    fn signal_strays(&self, signal: Signal) -> Vec<u32> {
        let strays = self.tree.strays();
        for pid in &strays {
            trace::say(|| format!("sends {signal:?} to {pid}, {}, which left its group", proc::name(*pid)));
            sys::signal(*pid, signal, |pid| self.tree.has(pid));
        }
        strays
    }

    /// Sends SIGKILL to the group and to descendants that left it, and reaps them.
    pub(crate) fn kill(&mut self) {
        if self.ended.is_some() {
            return;
        }
        let group = self.id();
        if trace::on() && !self.living().is_empty() {
            trace::say(|| format!("sends SIGKILL to the group of {group}, in which something still runs"));
        }
        sys::signal_group(group, Signal::KILL);
        self.kill_descendants();
        let Waited::Exited(exit) = self.wait(deadline_in(KILL_PATIENCE), &AtomicBool::new(false)) else {
            return;
        };
        self.ended = Some(exit);
        trace::say(|| format!("ended {group}: it {exit}"));
        // It is a zombie, so this returns at once.
        let _ = self.child.wait();
        descent::disown(group);
        keeper::release(&Charge::Group(group));
        descent::reap_orphans();
    }

    /// Kills and reaps all descendants. Asks again until there is none, because one may have started a child during the search.
    fn kill_descendants(&self) {
        let deadline = deadline_in(KILL_PATIENCE);
        poll(deadline, || {
            self.signal_strays(Signal::KILL);
            sys::signal_group(self.id(), Signal::KILL);
            // The leader is reaped last. Until then no other group can have its number.
            for pid in self.tree.left().into_iter().filter(|pid| *pid != self.id()) {
                wait::for_end(pid, deadline);
                sys::reap(pid);
            }
            !self.tree.lives()
        });
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a child ended. `None` if it only stopped for its tracer, which is a thread of this process.
fn exit_of(status: WaitIdStatus) -> Option<Exit> {
    status.exit_status().map(Exit::Code).or(status.terminating_signal().map(Exit::Signal))
}
