//! Samples, folded into stacks of addresses while they arrive. Pure.

use std::collections::{HashMap, HashSet};

/// Markers in the kernel's call chains (`enum perf_callchain_context` in linux/perf_event.h).
const CONTEXT_KERNEL: u64 = -128_i64 as u64;
const CONTEXT_USER: u64 = -512_i64 as u64;
/// All larger values are markers (`PERF_CONTEXT_MAX`).
const CONTEXT_MAX: u64 = -4095_i64 as u64;
/// How many threads, forks and programs are remembered. Beyond, the rare mistakes that these prevent are possible.
const REMEMBERED: usize = 65_536;

/// A stack of one process, as addresses, each part from the leaf to the root.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Addresses {
    pub process: u32,
    /// Whether the process had begun another program (execve(2)) since sampling began.
    pub executed: bool,
    pub kernel: Box<[u64]>,
    pub user: Box<[u64]>,
}

/// One sample as the kernel gives it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample<'s> {
    pub process: u32,
    pub thread: u32,
    /// The thread whose event this is: the sampled one, or the one from which it inherited the event.
    pub origin: u32,
    pub chain: &'s [u64],
}

/// What was sampled. Its memory is limited by the number of stacks and their depth.
#[derive(Debug)]
pub(crate) struct Stacks {
    limit: usize,
    pub counts: HashMap<Addresses, u64>,
    /// Samples of further stacks, which had no room.
    pub more: u64,
    pub samples: u64,
    pub lost: u64,
    pub throttled: u64,
    /// The parents of the processes that were started meanwhile.
    pub parents: HashMap<u32, u32>,
    executed: HashSet<u32>,
    origins: HashMap<u32, u32>,
}

impl Stacks {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            counts: HashMap::new(),
            more: 0,
            samples: 0,
            lost: 0,
            throttled: 0,
            parents: HashMap::new(),
            executed: HashSet::new(),
            origins: HashMap::new(),
        }
    }

    /// Counts a sample. A thread that began while events were being opened may have two: one that it inherited, and one of its own.
    /// Then only the event counts that was seen first.
    pub(crate) fn add(&mut self, sample: Sample<'_>) {
        if self.origins.len() < REMEMBERED || self.origins.contains_key(&sample.thread) {
            let origin = self.origins.entry(sample.thread).or_insert(sample.origin);
            if *origin != sample.origin {
                return;
            }
        }
        self.samples = self.samples.saturating_add(1);
        let (kernel, user) = parts(sample.chain);
        let executed = self.executed.contains(&sample.process);
        let stack = Addresses { process: sample.process, executed, kernel: kernel.into(), user: user.into() };
        let full = self.counts.len() >= self.limit;
        match self.counts.get_mut(&stack) {
            Some(count) => *count = count.saturating_add(1),
            None if full => self.more = self.more.saturating_add(1),
            None => {
                self.counts.insert(stack, 1);
            }
        }
    }

    /// A process was started by another.
    pub(crate) fn forked(&mut self, process: u32, parent: u32) {
        if process != parent && self.parents.len() < REMEMBERED {
            self.parents.insert(process, parent);
        }
    }

    /// Whether a process has begun another program since sampling began.
    pub(crate) fn has_executed(&self, process: u32) -> bool {
        self.executed.contains(&process)
    }

    /// A process began another program.
    pub(crate) fn executed(&mut self, process: u32) {
        if self.executed.len() < REMEMBERED {
            self.executed.insert(process);
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
        Sample { process: 1, thread: 1, origin: 1, chain }
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
        let mut stacks = Stacks::new(9);
        for (thread, origin) in [(7, 5), (7, 7), (7, 5), (8, 7), (8, 5)] {
            stacks.add(Sample { thread, origin, ..sample(&[CONTEXT_USER, 1]) });
        }
        assert_eq!(stacks.samples, 3);
    }

    #[test]
    fn a_new_program_has_stacks_of_its_own() {
        let mut stacks = Stacks::new(9);
        stacks.add(sample(&[CONTEXT_USER, 1]));
        stacks.executed(1);
        stacks.add(sample(&[CONTEXT_USER, 1]));
        assert_eq!(stacks.counts.len(), 2);
    }

    #[test]
    fn threads_are_not_forks() {
        let mut stacks = Stacks::new(9);
        stacks.forked(1, 1);
        stacks.forked(2, 1);
        assert_eq!(stacks.parents, HashMap::from([(2, 1)]));
    }

    proptest! {
        #[test]
        fn every_sample_is_counted_once(
            chains in prop::collection::vec(prop::collection::vec(prop_oneof![Just(CONTEXT_USER), Just(CONTEXT_KERNEL), 0_u64..4], 0..6), 0..60),
            limit in 0_usize..20,
        ) {
            let mut stacks = Stacks::new(limit);
            chains.iter().for_each(|chain| stacks.add(sample(chain)));
            prop_assert!(stacks.counts.len() <= limit);
            prop_assert_eq!(stacks.samples, chains.len() as u64);
            prop_assert_eq!(stacks.counts.values().sum::<u64>() + stacks.more, stacks.samples);
        }
    }
}
