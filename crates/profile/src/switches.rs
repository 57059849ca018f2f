//! Times off the CPU, from the kernel's reports of switches. Pure.
//!
//! The switches of one thread may be reported by several CPUs, which are read one after another. So they are
//! put in the order of their times before they are used, and only those until the time at which reading
//! began: all of these have arrived.

use std::collections::HashMap;

use crate::profile::Sum;
use crate::reading::{Event, Source};
use crate::stacks::Stacks;

/// How long a report may take from its time to the buffer, in nanoseconds.
const UNDER_WAY: u64 = 1_000_000;
/// How many reports may wait for their order, and how many threads are followed. Beyond, they are lost.
const MOST_REPORTS: usize = 1 << 20;
const MOST_THREADS: usize = 65_536;
/// How many stacks are taken per second in the long run. One takes the kernel some 5 µs.
const STACKS_PER_SECOND: u64 = 10_000;
/// How many stacks may be taken beyond that before there is a pause.
const BURST: u64 = 400;

/// What is counted of a stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub blocked_ns: u64,
    pub runnable_ns: u64,
    pub blocked: u64,
    pub preempted: u64,
}

impl Sum for Spent {
    fn grow(&mut self, other: Self) {
        self.blocked_ns.grow(other.blocked_ns);
        self.runnable_ns.grow(other.runnable_ns);
        self.blocked.grow(other.blocked);
        self.preempted.grow(other.preempted);
    }
}

/// With what stack a thread left its CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Left {
    /// With this one, which has a number if there was room for it.
    With(Option<usize>),
    /// With one that was not taken.
    #[default]
    Unsampled,
    /// Before sampling began, if it was off the CPU then.
    Before,
}

#[derive(Debug, Clone, Copy)]
struct Off {
    since: u64,
    preempted: bool,
    left: Left,
}

/// A thread: the last stack that was taken of it, and whether it is off the CPU.
#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    stack: Left,
    off: Option<Off>,
}

#[derive(Debug, Clone, Copy)]
struct Report {
    time: u64,
    thread: u32,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Stack(Option<usize>),
    Off {
        preempted: bool,
    },
    On,
    Ended,
    /// Reports of all threads since this time may be missing.
    Gap(u64),
}

/// The times of all threads, by stack.
#[derive(Debug)]
pub(crate) struct Switches {
    pub stacks: Stacks<Spent>,
    /// The time of waits whose stack was not taken.
    pub unsampled: Spent,
    /// The time of waits that had begun before sampling.
    pub before: Spent,
    /// How often a thread left its CPU.
    pub switches: u64,
    reports: Vec<Report>,
    threads: HashMap<u32, Thread>,
    /// How many stacks were taken beyond what is allowed until now.
    debt: u64,
    sampling: bool,
    last_read: u64,
}

impl Switches {
    /// For at most so many different stacks, and these threads, which exist when sampling begins.
    pub(crate) fn new(limit: usize, threads: &[u32], began: u64) -> Self {
        let off = Some(Off { since: began, preempted: false, left: Left::Before });
        Self {
            stacks: Stacks::new(limit),
            unsampled: Spent::default(),
            before: Spent::default(),
            switches: 0,
            reports: Vec::new(),
            threads: threads.iter().map(|thread| (*thread, Thread { off, ..Thread::default() })).collect(),
            debt: 0,
            sampling: true,
            last_read: began,
        }
    }

    /// Takes a report.
    pub(crate) fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Sample { of, sample } => {
                self.debt = self.debt.saturating_add(1);
                if self.stacks.counts(of.thread, of.origin) {
                    let number = self.stacks.number(&sample);
                    self.put(of, What::Stack(number));
                }
            }
            Event::Off { of, preempted } => self.switch(of, What::Off { preempted }),
            Event::On { of } => self.switch(of, What::On),
            Event::Ended { of } => self.put(of, What::Ended),
            Event::Lost { since, time, .. } => {
                self.stacks.note(event);
                self.put(Source { thread: 0, origin: 0, time }, What::Gap(since));
            }
            other => self.stacks.note(other),
        }
    }

    fn switch(&mut self, of: Source, what: What) {
        if self.stacks.counts(of.thread, of.origin) {
            self.put(of, what);
        }
    }

    fn put(&mut self, of: Source, what: What) {
        if self.reports.len() < MOST_REPORTS {
            self.reports.push(Report { time: of.time, thread: of.thread, what });
        } else {
            self.lose();
        }
    }

    fn lose(&mut self) {
        self.stacks.lost = self.stacks.lost.saturating_add(1);
    }

    /// Uses the reports until this time, after all of them were taken. Says whether stacks may be taken until
    /// the next call.
    pub(crate) fn read(&mut self, until: u64) -> bool {
        self.settle(until.saturating_sub(UNDER_WAY));
        let passed = until.saturating_sub(self.last_read);
        let allowed = u128::from(passed).saturating_mul(STACKS_PER_SECOND.into()) / 1_000_000_000;
        let allowed = u64::try_from(allowed).unwrap_or(u64::MAX);
        // After one second without stacks there are some again, whatever came before.
        self.debt = self.debt.min(STACKS_PER_SECOND).saturating_sub(allowed);
        self.last_read = until;
        // A pause lasts until nothing is owed, so that there are few of them.
        self.sampling = self.debt <= if self.sampling { BURST } else { 0 };
        self.sampling
    }

    /// Ends all waits at this time. `asleep` says of a thread that was never reported whether it sleeps: then
    /// it has slept all the time.
    pub(crate) fn end(&mut self, time: u64, asleep: impl Fn(u32) -> bool) {
        self.settle(time);
        for (number, mut thread) in std::mem::take(&mut self.threads) {
            if thread.off.is_some_and(|off| off.left != Left::Before || asleep(number)) {
                self.close(&mut thread, time);
            }
        }
    }

    fn settle(&mut self, until: u64) {
        let mut reports = std::mem::take(&mut self.reports);
        // Equal times keep their order, which is that of their CPU.
        reports.sort_by_key(|report| report.time);
        let later = reports.partition_point(|report| report.time <= until);
        for report in reports.drain(..later) {
            self.settle_one(report);
        }
        self.reports = reports;
    }

    fn settle_one(&mut self, Report { time, thread: number, what }: Report) {
        match what {
            What::Gap(since) => return self.gap(since),
            What::Ended => {
                self.threads.remove(&number);
                return;
            }
            _ => {}
        }
        if self.threads.len() >= MOST_THREADS && !self.threads.contains_key(&number) {
            return self.lose();
        }
        let mut thread = self.threads.get(&number).copied().unwrap_or_default();
        match what {
            What::Stack(stack) => thread.stack = Left::With(stack),
            What::Off { preempted } => {
                if thread.off.is_some_and(|off| off.left != Left::Before) {
                    self.lose();
                }
                self.switches = self.switches.saturating_add(1);
                let left = std::mem::take(&mut thread.stack);
                thread.off = Some(Off { since: time, preempted, left });
            }
            _ => self.close(&mut thread, time),
        }
        self.threads.insert(number, thread);
    }

    /// Counts the time since a thread left its CPU, if it did.
    fn close(&mut self, thread: &mut Thread, time: u64) {
        let Some(Off { since, preempted, left }) = thread.off.take() else { return };
        let ns = time.saturating_sub(since);
        let spent = match preempted {
            true => Spent { runnable_ns: ns, preempted: 1, ..Spent::default() },
            false => Spent { blocked_ns: ns, blocked: 1, ..Spent::default() },
        };
        match left {
            Left::With(number) => self.stacks.add(number, spent),
            Left::Unsampled => self.unsampled.grow(spent),
            Left::Before => self.before.grow(spent),
        }
    }

    /// A wait that had begun before reports were lost counts until then: its end may be among them. One that
    /// began meanwhile may be another by now.
    fn gap(&mut self, since: u64) {
        let mut threads = std::mem::take(&mut self.threads);
        for thread in threads.values_mut() {
            thread.stack = Left::Unsampled;
            match thread.off {
                Some(off) if off.left != Left::Before && off.since <= since => self.close(thread, since),
                Some(_) => {
                    thread.off = None;
                    self.lose();
                }
                None => {}
            }
        }
        self.threads = threads;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stacks::Sample;

    const MS: u64 = 1_000_000;

    fn of(thread: u32, time: u64) -> Source {
        Source { thread, origin: 1, time }
    }

    fn sample(thread: u32, time: u64, chain: &[u64]) -> Event<'_> {
        Event::Sample { of: of(thread, time), sample: Sample { process: 1, chain, top: None } }
    }

    fn off(thread: u32, time: u64) -> Event<'static> {
        Event::Off { of: of(thread, time), preempted: false }
    }

    fn on(thread: u32, time: u64) -> Event<'static> {
        Event::On { of: of(thread, time) }
    }

    /// What is left of these reports at a time, if only these threads sleep that were never reported.
    fn after(threads: &[u32], events: &[Event<'_>], end: u64, asleep: &[u32]) -> Switches {
        let mut switches = Switches::new(9, threads, 0);
        events.iter().for_each(|event| switches.take(*event));
        switches.end(end, |thread| asleep.contains(&thread));
        switches
    }

    fn blocked(ns: u64, times: u64) -> Spent {
        Spent { blocked_ns: ns, blocked: times, ..Spent::default() }
    }

    #[test]
    fn a_wait_has_the_stack_with_which_it_began() {
        let preempted = Event::Off { of: of(7, 50), preempted: true };
        let events = [
            sample(7, 10, &[]),
            off(7, 11),
            on(7, 21),
            sample(7, 49, &[u64::MAX - 511, 9]),
            preempted,
            on(7, 52),
            off(7, 60),
        ];
        let switches = after(&[], &events, 100, &[]);
        let mut spent: Vec<_> =
            switches.stacks.iter().map(|(stack, spent)| (stack.user.len(), spent)).collect();
        spent.sort_by_key(|(frames, _)| *frames);
        let runnable = Spent { runnable_ns: 2, preempted: 1, ..Spent::default() };
        assert_eq!(spent, [(0, blocked(10, 1)), (1, runnable)]);
        // The last one has no stack of its own, and has not ended.
        assert_eq!((switches.unsampled, switches.switches), (blocked(40, 1), 3));
    }

    #[test]
    fn reports_of_one_thread_may_arrive_from_several_cpus_in_any_order() {
        let events = [on(7, 30), on(8, 9), off(7, 40), sample(7, 10, &[]), off(7, 11), on(7, 41), off(8, 5)];
        let switches = after(&[], &events, 100, &[]);
        assert_eq!(switches.stacks.total(), blocked(19, 1));
        assert_eq!((switches.unsampled, switches.stacks.lost), (blocked(5, 2), 0));
    }

    #[test]
    fn a_report_waits_for_those_before_it() {
        let mut switches = Switches::new(9, &[], 0);
        switches.take(on(7, 5 * MS));
        switches.read(3 * MS);
        switches.take(off(7, 2 * MS));
        switches.read(9 * MS);
        assert_eq!(switches.unsampled, blocked(3 * MS, 1));
    }

    #[test]
    fn threads_that_slept_before_have_slept_since_the_beginning() {
        // 1 wakes, 2 falls asleep, 3 sleeps all the time, 4 runs all the time, 5 ends.
        let events = [on(1, 10), off(2, 20), Event::Ended { of: of(5, 30) }];
        let switches = after(&[1, 2, 3, 4, 5], &events, 100, &[2, 3, 5]);
        assert_eq!((switches.before, switches.unsampled), (blocked(110, 2), blocked(80, 1)));
        assert_eq!(switches.stacks.lost, 0);
    }

    #[test]
    fn a_wait_counts_until_reports_were_lost() {
        let lost = Event::Lost { count: 3, since: 50, time: 60 };
        let events = [off(1, 10), off(2, 55), lost, on(1, 70), off(2, 80), on(2, 90)];
        let switches = after(&[3], &events, 100, &[3]);
        assert_eq!(switches.unsampled, blocked(40 + 10, 2));
        // The reports, the wait of 2 that began meanwhile, and that of 3 that had begun before.
        assert_eq!((switches.stacks.lost, switches.before), (3 + 2, Spent::default()));
    }

    #[test]
    fn a_thread_without_an_end_of_its_wait_is_lost() {
        let switches = after(&[], &[off(1, 10), off(1, 20), on(1, 25)], 100, &[]);
        assert_eq!((switches.unsampled, switches.stacks.lost), (blocked(5, 1), 1));
    }

    #[test]
    fn too_many_stacks_are_followed_by_a_pause() {
        let mut switches = Switches::new(9, &[], 0);
        for time in 0..1000 {
            switches.take(sample(7, time, &[]));
        }
        let wanted = (1..=6).map(|round| switches.read(round * 20 * MS)).collect::<Vec<_>>();
        assert_eq!(wanted, [false, false, false, false, true, true]);
        for time in 0..STACKS_PER_SECOND * 9 {
            switches.take(sample(7, time, &[]));
        }
        assert_eq!((switches.read(200 * MS), switches.read(1200 * MS)), (false, true));
        // Somewhat too many are taken for some time, and then there is a short pause.
        let mut wanted = Vec::new();
        for round in 61..=69 {
            for time in 0..300 {
                switches.take(sample(7, time, &[]));
            }
            wanted.push(switches.read(round * 20 * MS));
        }
        assert_eq!(wanted[..6], [true, true, true, true, false, false]);
    }

    proptest! {
        /// Threads that are off and on in turn, with any part of their stacks taken, read in any rounds.
        #[test]
        fn all_time_off_the_cpu_is_counted_once(
            turns in prop::collection::vec((1_u32..5, 1_u64..50, 1_u64..50, any::<bool>(), any::<bool>()), 0..80),
            rounds in prop::collection::vec(1_u64..400, 0..9),
        ) {
            let (mut clocks, mut events) = (HashMap::new(), Vec::new());
            let mut expected = Spent::default();
            for (thread, ran, waited, preempted, sampled) in turns {
                let clock = clocks.entry(thread).or_insert(0);
                *clock += ran;
                if sampled {
                    events.push((*clock, sample(thread, *clock * MS, &[])));
                }
                events.push((*clock, Event::Off { of: of(thread, *clock * MS), preempted }));
                *clock += waited;
                events.push((*clock, on(thread, *clock * MS)));
                expected.grow(match preempted {
                    true => Spent { runnable_ns: waited * MS, preempted: 1, ..Spent::default() },
                    false => blocked(waited * MS, 1),
                });
            }
            let mut switches = Switches::new(0, &[], 0);
            let mut until = 0;
            for round in rounds {
                let next = until + round;
                let arrived = events.iter().filter(|(time, _)| (until..next).contains(time));
                arrived.for_each(|(_, event)| switches.take(*event));
                switches.read(next * MS);
                until = next;
            }
            events.iter().filter(|(time, _)| *time >= until).for_each(|(_, event)| switches.take(*event));
            switches.end(u64::MAX, |_| false);
            let mut all = switches.stacks.total();
            all.grow(switches.unsampled);
            prop_assert_eq!(all, expected);
            prop_assert_eq!(switches.switches, expected.blocked + expected.preempted);
            prop_assert_eq!(switches.stacks.lost, 0);
        }

        #[test]
        fn reports_in_any_order_cost_no_more_than_all_the_time(
            reports in prop::collection::vec((1_u32..4, 0_u64..100, 0..6), 0..60),
        ) {
            let events: Vec<Event<'_>> = reports
                .iter()
                .map(|(thread, time, kind)| match kind {
                    0 | 1 => off(*thread, *time),
                    2 | 3 => on(*thread, *time),
                    4 => sample(*thread, *time, &[]),
                    _ => Event::Lost { count: 1, since: time.saturating_sub(9), time: *time },
                })
                .collect();
            let switches = after(&[1], &events, 100, &[1]);
            let mut all = switches.stacks.total();
            all.grow(switches.unsampled);
            all.grow(switches.before);
            prop_assert!(all.blocked_ns <= 3 * 100, "{:?}", all);
        }
    }
}
