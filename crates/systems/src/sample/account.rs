//! What processes used in a window, whichever of them began, ended or were reaped in it. Pure.

use std::collections::HashMap;

/// A process: its number, and when it began, because the kernel gives numbers again.
pub(super) type Key = (u32, u64);

/// What processes have used so far.
pub(super) type Readings = HashMap<Key, Spent>;

/// What a process has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) parent: u32,
    /// Its own CPU time.
    pub(super) own_ns: u64,
    /// That of its children that it has reaped, and of theirs.
    pub(super) children_ns: u64,
    /// The page faults of all of these.
    pub(super) faults: u64,
}

impl Spent {
    pub(super) fn cpu_ns(&self) -> u64 {
        self.own_ns.saturating_add(self.children_ns)
    }
}

/// The account of a window.
///
/// A process that is reaped adds all that it ever used to its parent's children. So what it had used before the window, and
/// the parent after it, must be known. A parent that ignores its children's end (SIGCHLD) gets nothing; then the last reading
/// of the child counts.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// When the window opened, in the kernel's ticks.
    opened: u64,
    /// What the processes that began earlier had used at the opening, or when they were first seen.
    first: Readings,
    /// The last reading of each process that was seen.
    last: Readings,
}

impl Account {
    /// Opens a window with what is known of the processes at this moment.
    pub(super) fn open(opened: u64, now: Readings) -> Self {
        Self { opened, last: now.clone(), first: now }
    }

    /// Takes note of a reading in the window.
    pub(super) fn see(&mut self, now: &Readings) {
        for (key, spent) in now {
            if key.1 < self.opened {
                self.first.entry(*key).or_insert(*spent);
            }
            self.last.insert(*key, *spent);
        }
    }

    /// Closes the window. Returns the nanoseconds of CPU time and the page faults.
    pub(super) fn close(mut self, now: &Readings) -> (u64, u64) {
        self.see(now);
        // What processes that have gone left to the nearest ancestor that has not.
        let mut left: HashMap<Option<Key>, Vec<Spent>> = HashMap::new();
        for (key, spent) in self.last.iter().filter(|(key, _)| !now.contains_key(*key)) {
            left.entry(self.heir(*key, now)).or_default().push(*spent);
        }
        let lost = left.into_iter().filter(|(heir, gone)| !self.inherited(*heir, gone, now));
        let lost: Vec<Spent> = lost.flat_map(|(_, gone)| gone).collect();
        let sum = |of: fn(&Spent) -> u64| {
            let used: u64 = now.values().chain(&lost).map(of).fold(0, u64::saturating_add);
            used.saturating_sub(self.first.values().map(of).fold(0, u64::saturating_add))
        };
        (sum(Spent::cpu_ns), sum(|spent| spent.faults))
    }

    /// The nearest ancestor of a process that is still there.
    fn heir(&self, key: Key, now: &Readings) -> Option<Key> {
        let (mut key, mut steps) = (key, self.last.len());
        while steps > 0 {
            let parent = self.last.get(&key)?.parent;
            if let Some((heir, _)) = now.iter().find(|((pid, _), _)| *pid == parent) {
                return Some(*heir);
            }
            key = *self.last.keys().find(|(pid, _)| *pid == parent)?;
            steps = steps.saturating_sub(1);
        }
        None
    }

    /// Whether the heir's children have grown by all that those who have gone had used when they were last seen.
    fn inherited(&self, heir: Option<Key>, gone: &[Spent], now: &Readings) -> bool {
        let Some(heir) = heir else { return false };
        let before = self.first.get(&heir).map_or(0, |spent| spent.children_ns);
        let after = now.get(&heir).map_or(0, |spent| spent.children_ns);
        let left = gone.iter().map(Spent::cpu_ns).fold(0, u64::saturating_add);
        // The kernel says the time of children in whole ticks, apart for the user and for itself.
        after.saturating_sub(before).saturating_add(TICKS_NS) >= left
    }
}

/// Two of the coarsest ticks in which kernels say times.
const TICKS_NS: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const LEADER: Key = (10, 1);

    /// Readings of (key, parent, own seconds, children's seconds).
    fn read(processes: &[(Key, u32, u64, u64)]) -> Readings {
        let spent = |(key, parent, own, children): &(Key, u32, u64, u64)| {
            let spent = Spent { parent: *parent, own_ns: own * S, children_ns: children * S, faults: *own };
            (*key, spent)
        };
        processes.iter().map(spent).collect()
    }

    fn used(
        opened: &[(Key, u32, u64, u64)],
        seen: &[&[(Key, u32, u64, u64)]],
        closed: &[(Key, u32, u64, u64)],
    ) -> u64 {
        let mut account = Account::open(100, read(opened));
        seen.iter().for_each(|seen| account.see(&read(seen)));
        account.close(&read(closed)).0 / S
    }

    #[test]
    fn a_child_counts_for_the_window_in_which_it_worked() {
        let (old, new, helper) = ((11, 50), (11, 200), (12, 50));
        let leader = |own, children| (LEADER, 1, own, children);
        // It was there all the time.
        assert_eq!(used(&[leader(1, 0), (old, 10, 5, 0)], &[], &[leader(2, 0), (old, 10, 9, 0)]), 1 + 4);
        // It was reaped, with all that it had used before.
        assert_eq!(used(&[leader(1, 0), (old, 10, 5, 0)], &[], &[leader(2, 7)]), 1 + 2);
        // It had begun before the window and was first seen in it.
        assert_eq!(used(&[leader(1, 0)], &[&[leader(1, 0), (old, 10, 5, 0)]], &[leader(2, 7)]), 1 + 2);
        // It began in the window, and was seen or not.
        assert_eq!(used(&[leader(1, 0)], &[&[leader(1, 0), (new, 10, 5, 0)]], &[leader(2, 7)]), 1 + 7);
        assert_eq!(used(&[leader(1, 0)], &[], &[leader(2, 7)]), 1 + 7);
        // Its number was given again.
        let begun = [leader(1, 0), (old, 10, 5, 0)];
        assert_eq!(used(&begun, &[], &[leader(2, 6), (new, 10, 3, 0)]), 1 + 1 + 3);
        // It and its own child were reaped.
        let begun = [leader(1, 0), (old, 10, 5, 0), (helper, 11, 4, 0)];
        assert_eq!(used(&begun, &[], &[leader(1, 11)]), 2);
        assert_eq!(used(&begun, &[], &[leader(1, 0), (old, 10, 5, 6)]), 2);
    }

    #[test]
    fn what_no_parent_inherits_counts_as_far_as_it_was_seen() {
        let (old, new) = ((11, 50), (12, 200));
        let leader = (LEADER, 1, 1, 0);
        let begun = [leader, (old, 10, 50, 0)];
        // The leader ignores the end of its children.
        let seen = [leader, (old, 10, 53, 0), (new, 10, 2, 0)];
        assert_eq!(used(&begun, &[&seen], &[leader]), 3 + 2);
        assert_eq!(used(&begun, &[], &[leader]), 0);
        // A daemon's parent is no process of the system.
        let begun = [leader, (old, 1, 50, 0)];
        assert_eq!(used(&begun, &[&[leader, (old, 1, 53, 0)]], &[leader]), 3);
        // All have ended.
        assert_eq!(used(&begun, &[], &[]), 0);
        // Parents that make a circle, as numbers that were given again may.
        let circle = [((11, 50), 12, 1, 0), ((12, 50), 11, 1, 0)];
        assert_eq!(used(&circle, &[], &[]), 0);
    }
}
