//! Where threads were off the CPU, as plain data, and what is computed from it. Pure.
//!
//! As a profile, it may come out of a file: frames that do not exist are left out.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::profile::{Frame, FunctionTime, Sum, Table, frames_of, function_times};
use crate::switches::Spent;
use crate::wait::{Wait, caller, wait};

/// The only frame of waits whose stack was not taken.
pub(crate) const NOT_SAMPLED: &str = "[not sampled]";
/// The only frame of waits that had begun before sampling.
pub(crate) const ALREADY_WAITING: &str = "[already waiting]";

/// A stack with which threads left their CPU, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitStack {
    /// Indices into [`Waits::frames`], from the root (the function that was called first) to the leaf (mostly
    /// `schedule`).
    pub frames: Vec<u32>,
    /// How long threads were blocked with it, in nanoseconds: until something woke them, and then until they
    /// got a CPU.
    pub blocked_ns: u64,
    /// How long threads could have gone on but had to wait for a CPU after they were preempted, in
    /// nanoseconds.
    pub runnable_ns: u64,
    /// How often threads blocked.
    pub blocked: u64,
    /// How often threads were preempted.
    pub preempted: u64,
}

/// Where threads were off the CPU. The times of threads that wait at once add up, so they may exceed
/// `seconds`.
///
/// A blocked time includes the wait for a CPU after the thread was woken: the kernel reports when a thread
/// gets a CPU, not when it is woken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// How long was watched, in seconds.
    pub seconds: f64,
    /// How often threads left their CPU. All were timed, but not all had their stack taken: the times of the
    /// others are in a stack with the only frame `[not sampled]`, and those of waits that had begun before in
    /// one with `[already waiting]`. Nothing is scaled up.
    pub switches: u64,
    /// The reports that the kernel had no room for, and the waits whose end is not known. A wait that had
    /// begun when reports were lost counts until then.
    pub lost: u64,
    /// The switches whose stack has one frame in user space: mostly, a program or a library without frame
    /// pointers.
    pub shallow: u64,
    /// Whether the kernel's functions are in the stacks. Their names are missing if this user may not see its
    /// addresses (kernel.kptr_restrict).
    pub kernel: bool,
    /// The functions, each once for each of its lines.
    pub frames: Vec<Frame>,
    /// The stacks, each once, with the longest blocked time first.
    pub stacks: Vec<WaitStack>,
}

/// The blocked time of one kind of wait that one function began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitTime {
    /// What it waited for.
    pub wait: Wait,
    /// How long threads were blocked, in nanoseconds.
    pub blocked_ns: u64,
    /// How often threads blocked.
    pub count: u64,
    /// The innermost function in user space, without those of libc and of runtimes that only make system calls
    /// for others. `None` if none is known.
    pub by: Option<String>,
}

impl Waits {
    /// The blocked time by what was waited for and by the function that wanted it, with the longest first.
    ///
    /// Waits whose stack was not taken are [`Wait::Unknown`]. Stacks are taken less often while there are more
    /// switches. The other waits have the same shares in the unknown ones only if the rate of switches was
    /// steady.
    pub fn by_wait(&self) -> Vec<WaitTime> {
        let mut times: HashMap<(Wait, Option<String>), (u64, u64)> = HashMap::new();
        for stack in self.stacks.iter().filter(|stack| stack.blocked > 0) {
            let frames: Vec<&Frame> = self.frames_of(stack).collect();
            let (ns, count) = times.entry((wait(&frames), caller(&frames).map(str::to_owned))).or_default();
            ns.grow(stack.blocked_ns);
            count.grow(stack.blocked);
        }
        let times = times.into_iter();
        let mut times: Vec<_> =
            times.map(|((wait, by), (blocked_ns, count))| WaitTime { wait, blocked_ns, count, by }).collect();
        times.sort_by(|a, b| {
            (Reverse(a.blocked_ns), &a.wait, &a.by).cmp(&(Reverse(b.blocked_ns), &b.wait, &b.by))
        });
        times
    }

    /// How long each function was blocked itself and in what it had called, in nanoseconds: in waits of this
    /// kind, or in all. Callers in user space have times in `inclusive` only, where the kernel's functions
    /// are in the stacks.
    pub fn blocked_and_inclusive(&self, of: Option<&Wait>) -> Vec<FunctionTime<'_>> {
        let stacks = self.stacks.iter().filter(|stack| {
            let is = |kind: &Wait| wait(&self.frames_of(stack).collect::<Vec<_>>()) == *kind;
            stack.blocked > 0 && of.is_none_or(is)
        });
        function_times(stacks.map(|stack| (self.frames_of(stack), stack.blocked_ns)))
    }

    /// Adds up what was watched at different times. The seconds add up, too; the kernel is in the sum if it
    /// is in all of them.
    pub fn merge(all: &[Self]) -> Self {
        let mut sum = Self { kernel: all.iter().all(|waits| waits.kernel), ..Self::default() };
        let mut table = Table::default();
        for waits in all {
            sum.seconds += waits.seconds;
            sum.switches.grow(waits.switches);
            sum.lost.grow(waits.lost);
            sum.shallow.grow(waits.shallow);
            for stack in &waits.stacks {
                let WaitStack { blocked_ns, runnable_ns, blocked, preempted, .. } = *stack;
                table.add(
                    waits.frames_of(stack).cloned(),
                    Spent { blocked_ns, runnable_ns, blocked, preempted },
                );
            }
        }
        sum.set(table);
        sum
    }

    /// The frames of a stack, from the root to the leaf.
    pub fn frames_of<'w>(&'w self, stack: &'w WaitStack) -> impl DoubleEndedIterator<Item = &'w Frame> {
        frames_of(&self.frames, &stack.frames)
    }

    /// Sets the frames and the stacks.
    pub(crate) fn set(&mut self, table: Table<Spent>) {
        let (frames, stacks) = table.into_parts();
        self.frames = frames;
        self.stacks = stacks
            .map(|(frames, Spent { blocked_ns, runnable_ns, blocked, preempted })| WaitStack {
                frames,
                blocked_ns,
                runnable_ns,
                blocked,
                preempted,
            })
            .collect();
        self.stacks.sort_by_key(|stack| Reverse((stack.blocked_ns, stack.runnable_ns)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::Kind;
    use crate::profile::tests::frame;

    fn blocked(blocked_ns: u64) -> Spent {
        Spent { blocked_ns, runnable_ns: 1, blocked: 2, preempted: 3 }
    }

    fn waits(stacks: &[(&[&str], Spent)]) -> Waits {
        let mut table = Table::default();
        for (names, spent) in stacks {
            table.add(names.iter().map(|name| frame(name)), *spent);
        }
        let mut waits = Waits { kernel: true, seconds: 1.0, ..Waits::default() };
        waits.set(table);
        waits
    }

    #[test]
    fn blocked_time_by_what_is_waited_for() {
        let preempted = Spent { blocked_ns: 0, runnable_ns: 900, blocked: 0, preempted: 1 };
        let waits = waits(&[
            (&["main", "load", "readinto", "__x64_sys_recvfrom"], blocked(400)),
            (&["main", "save", "readinto", "__x64_sys_recvfrom"], blocked(10)),
            (&["main", "__x64_sys_futex"], blocked(7)),
            (&["main", "__x64_sys_recvfrom"], preempted),
        ]);
        let times = waits.by_wait();
        let table: Vec<_> =
            times.iter().map(|time| (&time.wait, time.by.as_deref(), time.blocked_ns, time.count)).collect();
        let expected = [(&Wait::Receive, Some("readinto"), 410, 4), (&Wait::Lock, Some("main"), 7, 2)];
        assert_eq!(table, expected);

        let inclusive = |of: Option<&Wait>, name: &str| {
            let times = waits.blocked_and_inclusive(of);
            times.iter().find(|time| time.name == name).map(|time| (time.own, time.inclusive))
        };
        assert_eq!(inclusive(Some(&Wait::Receive), "readinto"), Some((0, 410)));
        assert_eq!(inclusive(Some(&Wait::Receive), "main"), Some((0, 410)));
        assert_eq!(inclusive(None, "main"), Some((0, 417)));
        assert_eq!(inclusive(None, "__x64_sys_recvfrom"), Some((410, 410)));
        assert_eq!(inclusive(Some(&Wait::Disk), "main"), None);
    }

    #[test]
    fn waits_survive_json_and_damage() {
        let mut waits = waits(&[(&["main", "__x64_sys_futex"], blocked(5))]);
        let text = serde_json::to_string(&waits).unwrap();
        assert_eq!(serde_json::from_str::<Waits>(&text).unwrap(), waits);
        assert!(waits.frames.iter().any(|frame| frame.kind == Kind::Kernel));
        waits.stacks[0].frames = vec![u32::MAX];
        assert_eq!(waits.by_wait()[0].wait, Wait::Unknown);
    }

    proptest! {
        #[test]
        fn times_add_up(stacks in prop::collection::vec((prop::collection::vec("[a-c]|__x64_sys_(futex|poll)", 0..4), 0_u64..100), 0..20)) {
            let total: u64 = stacks.iter().map(|(_, ns)| ns).sum();
            let (first, second) = stacks.split_at(stacks.len() / 2);
            let halves = [first, second].map(|half| {
                let names: Vec<Vec<&str>> =
                    half.iter().map(|(names, _)| names.iter().map(String::as_str).collect()).collect();
                let half: Vec<_> = names.iter().zip(half).map(|(names, (_, ns))| (&names[..], blocked(*ns))).collect();
                waits(&half)
            });
            let sum = Waits::merge(&halves);
            prop_assert_eq!(sum.stacks.iter().map(|stack| stack.blocked_ns).sum::<u64>(), total);
            prop_assert_eq!(sum.stacks.iter().map(|stack| stack.preempted).sum::<u64>(), 3 * stacks.len() as u64);
            prop_assert_eq!(sum.by_wait().iter().map(|time| time.blocked_ns).sum::<u64>(), total);
            prop_assert!(sum.blocked_and_inclusive(None).iter().all(|time| time.own <= time.inclusive && time.inclusive <= total));
        }
    }
}
