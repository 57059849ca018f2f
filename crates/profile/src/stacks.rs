//! Samples, folded into stacks of addresses while they arrive. Pure.

use std::collections::{HashMap, HashSet};

use crate::profile::Sum;
use crate::reading::Event;
use crate::unwind::{Top, Unwinder};

/// Markers in the kernel's call chains (`enum perf_callchain_context` in linux/perf_event.h).
const CONTEXT_KERNEL: u64 = -128_i64 as u64;
const CONTEXT_USER: u64 = -512_i64 as u64;
/// All larger values are markers (`PERF_CONTEXT_MAX`).
const CONTEXT_MAX: u64 = -4095_i64 as u64;
/// How many threads, forks and programs are remembered. Beyond, the rare mistakes that these prevent are
/// possible.
const REMEMBERED: usize = 65_536;

/// A stack of one process, as addresses, each part from the leaf to the root.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Addresses {
    pub process: u32,
    /// Whether the process had begun another program (execve(2)) since sampling began.
    pub executed: bool,
    pub kernel: Box<[u64]>,
    pub user: Box<[u64]>,
    /// Whether its first callers are known to be missing.
    pub cut: bool,
}

/// One sample as the kernel gives it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample<'s> {
    pub process: u32,
    pub chain: &'s [u64],
    /// The registers and the top of the stack in user space, where the kernel gave them.
    pub top: Option<Top<'s>>,
}

/// What was sampled, with what is counted of each stack. Its memory is limited by the number of stacks and
/// their depth.
#[derive(Debug)]
pub(crate) struct Stacks<S> {
    limit: usize,
    numbers: HashMap<Addresses, usize>,
    /// By the numbers of the stacks.
    counts: Vec<S>,
    /// What is counted of further stacks, which had no room.
    pub more: S,
    pub lost: u64,
    pub throttled: u64,
    /// The parents of the processes that were started meanwhile.
    pub parents: HashMap<u32, u32>,
    executed: HashSet<u32>,
    origins: HashMap<u32, u32>,
    unwinder: Unwinder,
}

impl<S: Sum> Stacks<S> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            numbers: HashMap::new(),
            counts: Vec::new(),
            more: S::default(),
            lost: 0,
            throttled: 0,
            parents: HashMap::new(),
            executed: HashSet::new(),
            origins: HashMap::new(),
            unwinder: Unwinder::default(),
        }
    }

    /// Whether what the kernel reports of a thread counts. A thread that began while events were being opened
    /// may have two: one that it inherited, and one of its own. Then only the event counts that was seen
    /// first.
    pub(crate) fn counts(&mut self, thread: u32, origin: u32) -> bool {
        if self.origins.len() >= REMEMBERED && !self.origins.contains_key(&thread) {
            return true;
        }
        *self.origins.entry(thread).or_insert(origin) == origin
    }

    /// The number of a sample's stack. `None` if there is no room for it.
    pub(crate) fn number(&mut self, sample: &Sample<'_>) -> Option<usize> {
        let (kernel, mut user) = parts(sample.chain);
        let mut cut = false;
        if let Some(top) = sample.top {
            (user, cut) = self.unwinder.complete(sample.process, user, top);
        }
        let executed = self.executed.contains(&sample.process);
        let stack =
            Addresses { process: sample.process, executed, kernel: kernel.into(), user: user.into(), cut };
        if let Some(number) = self.numbers.get(&stack) {
            return Some(*number);
        }
        let number = self.counts.len();
        (number < self.limit).then(|| {
            self.counts.push(S::default());
            self.numbers.insert(stack, number);
            number
        })
    }

    /// Adds to what is counted of a stack, which has a number if there was room for it.
    pub(crate) fn add(&mut self, number: Option<usize>, count: S) {
        number.and_then(|number| self.counts.get_mut(number)).unwrap_or(&mut self.more).grow(count);
    }

    /// The stacks and what is counted of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Addresses, S)> {
        self.numbers.iter().filter_map(|(stack, number)| Some((stack, *self.counts.get(*number)?)))
    }

    /// What is counted of all stacks.
    pub(crate) fn total(&self) -> S {
        self.counts.iter().fold(self.more, |mut sum, count| {
            sum.grow(*count);
            sum
        })
    }

    /// Whether a process has begun another program since sampling began.
    pub(crate) fn has_executed(&self, process: u32) -> bool {
        self.executed.contains(&process)
    }

    /// Notes what the kernel reports besides stacks.
    pub(crate) fn note(&mut self, event: Event<'_>) {
        match event {
            Event::Lost { count, .. } => self.lost = self.lost.saturating_add(count),
            Event::Throttled => self.throttled = self.throttled.saturating_add(1),
            Event::Forked { process, parent } if process != parent && self.parents.len() < REMEMBERED => {
                self.parents.insert(process, parent);
            }
            Event::Executed { process } => {
                self.unwinder.forget(process);
                if self.executed.len() < REMEMBERED {
                    self.executed.insert(process);
                }
            }
            Event::Unread => self.lost = self.lost.saturating_add(1),
            _ => {}
        }
    }
}

/// The kernel's and the user's part of a call chain. Other parts, such as a hypervisor's, are left out.
fn parts(chain: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let (mut kernel, mut user) = (Vec::new(), Vec::new());
    let mut context = CONTEXT_MAX;
    for address in chain {
        match (*address, context) {
            (marker @ CONTEXT_MAX.., _) => context = marker,
            (address, CONTEXT_KERNEL) => kernel.push(address),
            (address, CONTEXT_USER) => user.push(address),
            _ => {}
        }
    }
    (kernel, user)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(chain: &[u64]) -> Sample<'_> {
        Sample { process: 1, chain, top: None }
    }

    #[test]
    fn markers_separate_the_parts() {
        let chain = [CONTEXT_KERNEL, 9, 8, CONTEXT_USER, 2, 1, CONTEXT_MAX + 1, 7];
        assert_eq!(parts(&chain), (vec![9, 8], vec![2, 1]));
        assert_eq!(parts(&[5, CONTEXT_USER, 2]), (vec![], vec![2]));
        assert_eq!(parts(&[]), (vec![], vec![]));
    }

    #[test]
    fn a_thread_counts_by_one_of_its_events() {
        let mut stacks = Stacks::<u64>::new(9);
        let counted =
            [(7, 5), (7, 7), (7, 5), (8, 7), (8, 5)].map(|(thread, origin)| stacks.counts(thread, origin));
        assert_eq!(counted, [true, false, true, true, false]);
    }

    #[test]
    fn a_new_program_has_stacks_of_its_own() {
        let mut stacks = Stacks::<u64>::new(9);
        let number = stacks.number(&sample(&[CONTEXT_USER, 1]));
        assert_eq!(stacks.number(&sample(&[CONTEXT_USER, 1])), number);
        stacks.note(Event::Executed { process: 1 });
        assert_ne!(stacks.number(&sample(&[CONTEXT_USER, 1])), number);
    }

    #[test]
    fn threads_are_not_forks() {
        let mut stacks = Stacks::<u64>::new(9);
        stacks.note(Event::Forked { process: 1, parent: 1 });
        stacks.note(Event::Forked { process: 2, parent: 1 });
        assert_eq!(stacks.parents, HashMap::from([(2, 1)]));
    }

    proptest! {
        #[test]
        fn every_sample_is_counted_once(
            chains in prop::collection::vec(prop::collection::vec(prop_oneof![Just(CONTEXT_USER), Just(CONTEXT_KERNEL), 0_u64..4], 0..6), 0..60),
            limit in 0_usize..20,
        ) {
            let mut stacks = Stacks::<u64>::new(limit);
            for chain in &chains {
                let number = stacks.number(&sample(chain));
                stacks.add(number, 1);
            }
            prop_assert!(stacks.iter().count() <= limit);
            prop_assert_eq!(stacks.total(), chains.len() as u64);
            prop_assert_eq!(stacks.iter().map(|(_, count)| count).sum::<u64>() + stacks.more, stacks.total());
        }
    }
}
