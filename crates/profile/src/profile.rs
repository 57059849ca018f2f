//! A profile as plain data, and what is computed from it. Pure.
//!
//! A profile may come out of a file, so a stack may name frames that do not exist. Such frames are left out.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

/// The module of the kernel's functions, and the name of what cannot be told apart of it.
pub(crate) const KERNEL: &str = "[kernel]";

/// What kind of code a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A function of the kernel.
    Kernel,
    /// A function of an executable or of a library.
    User,
    /// A function that its runtime made while it ran, with its name from a perf map.
    Runtime,
    /// Code whose function is not known.
    Unknown,
}

/// A function in a stack, at one line of its source if that is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Frame {
    /// The function's name, demangled, without control characters, of at most 256 characters. A word in
    /// brackets stands for what has no name: `[unknown]`, `[plt]` for the jumps to functions of other
    /// libraries, `[ended]` in a process that ended before it could be looked at, `[deeper frames]` for the
    /// callers that a stack had no room for, `[more stacks]` for samples that the profile had no room for.
    pub name: String,
    /// The path of the executable or library, `[kernel]`, `[vdso]`, or another word in brackets for memory
    /// without a file. Empty if the frame is none of a process.
    pub module: String,
    /// What kind of code it is.
    pub kind: Kind,
    /// Whether the compiler put this function into the frame before it, so that there was no call.
    pub inlined: bool,
    /// The path of the source file, as the compiler wrote it.
    pub file: Option<String>,
    /// The line of the source file that ran, or that called the next frame. From 1.
    pub line: Option<u32>,
}

impl Frame {
    /// The kernel, where its functions may not be seen.
    pub(crate) fn of_kernel() -> Self {
        let name = KERNEL.to_owned();
        Self { module: name.clone(), name, kind: Kind::Kernel, inlined: false, file: None, line: None }
    }
}

/// A stack and how often it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Indices into [`Profile::frames`], from the root (the function that was called first) to the leaf (the
    /// one that ran).
    pub frames: Vec<u32>,
    /// In how many samples it was seen.
    pub count: u64,
}

/// Where processes spent their CPU time. Each sample stands for one period of CPU time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The time between two samples of a thread that runs, in nanoseconds of CPU time.
    pub period_ns: u64,
    /// All samples, which is the sum of the counts of all stacks.
    pub samples: u64,
    /// The samples that the kernel had no room for. They are in no stack.
    pub lost: u64,
    /// How often the kernel stopped sampling for the rest of a tick, because sampling took too much time
    /// (kernel.perf_event_max_sample_rate).
    pub throttled: u64,
    /// The samples whose stack has one frame in user space: mostly, a program without frame pointers.
    pub shallow: u64,
    /// Whether the kernel's functions are in it. Without them, its time is the only frame `[kernel]` of one
    /// stack: how much there was is known from what was on a CPU in all, but not where.
    pub kernel: bool,
    /// How long was sampled, in seconds.
    pub seconds: f64,
    /// The functions, each once for each of its lines.
    pub frames: Vec<Frame>,
    /// The stacks, each once.
    pub stacks: Vec<Stack>,
}

/// What was seen of one function: in a [`Profile`] as a number of samples, in [`Waits`](crate::Waits) as
/// nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionTime<'p> {
    /// The function's name.
    pub name: &'p str,
    /// Its module.
    pub module: &'p str,
    /// What kind of code it is.
    pub kind: Kind,
    /// What passed in it itself.
    pub own: u64,
    /// What passed in it or in what it had called. It counts once, even if the function called itself.
    pub inclusive: u64,
}

/// Profiles that cannot be merged, because a sample of one does not stand for as much time as a sample of the
/// other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot merge profiles with periods of {0} ns and {1} ns: sample both at the same rate")]
pub struct Unlike(pub u64, pub u64);

impl Profile {
    /// How often each function ran itself, and how often it ran or was a caller of what ran. A function is a
    /// name within a module. The functions that ran most come first; equal ones are in the order of their
    /// names.
    pub fn self_and_inclusive(&self) -> Vec<FunctionTime<'_>> {
        function_times(self.stacks.iter().map(|stack| (self.frames_of(stack), stack.count)))
    }

    /// Adds up profiles. The seconds add up, too; the kernel is in the sum if it is in all of them.
    ///
    /// # Errors
    /// Two profiles have different periods. Profiles without samples are not compared.
    pub fn merge(profiles: &[Self]) -> Result<Self, Unlike> {
        let mut sum = Self { kernel: profiles.iter().all(|profile| profile.kernel), ..Self::default() };
        let mut table = Table::default();
        for profile in profiles {
            if sum.samples > 0 && profile.samples > 0 && sum.period_ns != profile.period_ns {
                return Err(Unlike(sum.period_ns, profile.period_ns));
            }
            if sum.samples == 0 {
                sum.period_ns = profile.period_ns;
            }
            sum.samples = sum.samples.saturating_add(profile.samples);
            sum.lost = sum.lost.saturating_add(profile.lost);
            sum.throttled = sum.throttled.saturating_add(profile.throttled);
            sum.shallow = sum.shallow.saturating_add(profile.shallow);
            sum.seconds += profile.seconds;
            for stack in &profile.stacks {
                table.add(profile.frames_of(stack).cloned(), stack.count);
            }
        }
        table.put_into(&mut sum);
        Ok(sum)
    }

    /// The same profile, in which a frame of this name has called all others.
    pub fn under(mut self, name: &str) -> Self {
        let Ok(root) = u32::try_from(self.frames.len()) else { return self };
        let (name, module) = (name.to_owned(), String::new());
        self.frames.push(Frame { name, module, kind: Kind::User, inlined: false, file: None, line: None });
        self.stacks.iter_mut().for_each(|stack| stack.frames.insert(0, root));
        self
    }

    /// The frames of a stack, from the root to the leaf.
    pub fn frames_of<'p>(&'p self, stack: &'p Stack) -> impl DoubleEndedIterator<Item = &'p Frame> {
        frames_of(&self.frames, &stack.frames)
    }
}

/// The frames with these indices.
pub(crate) fn frames_of<'p>(
    frames: &'p [Frame],
    indices: &'p [u32],
) -> impl DoubleEndedIterator<Item = &'p Frame> {
    indices.iter().filter_map(|index| frames.get(usize::try_from(*index).ok()?))
}

/// What passed in each function, from stacks and what each counts. The functions in which most passed come
/// first.
pub(crate) fn function_times<'p, F: Iterator<Item = &'p Frame>>(
    stacks: impl Iterator<Item = (F, u64)>,
) -> Vec<FunctionTime<'p>> {
    let mut times: HashMap<(&str, &str), FunctionTime<'_>> = HashMap::new();
    for (frames, count) in stacks {
        let frames: Vec<&Frame> = frames.collect();
        let mut seen = HashSet::new();
        for (position, frame) in frames.iter().enumerate() {
            let key = (frame.name.as_str(), frame.module.as_str());
            let time = times.entry(key).or_insert(FunctionTime {
                name: key.0,
                module: key.1,
                kind: frame.kind,
                own: 0,
                inclusive: 0,
            });
            if seen.insert(key) {
                time.inclusive = time.inclusive.saturating_add(count);
            }
            if position.saturating_add(1) == frames.len() {
                time.own = time.own.saturating_add(count);
            }
        }
    }
    let mut times: Vec<_> = times.into_values().collect();
    times.sort_by_key(|time| {
        (std::cmp::Reverse(time.own), std::cmp::Reverse(time.inclusive), time.name, time.module)
    });
    times
}

/// What is counted of a stack.
pub(crate) trait Sum: Default + Copy + PartialEq {
    /// Adds another count to it, and stops at the largest.
    fn grow(&mut self, other: Self);
}

impl Sum for u64 {
    fn grow(&mut self, other: Self) {
        *self = self.saturating_add(other);
    }
}

/// Frames and stacks while they are collected: each is kept once.
pub(crate) struct Table<S> {
    indices: HashMap<Frame, u32>,
    frames: Vec<Frame>,
    stacks: BTreeMap<Vec<u32>, S>,
}

impl<S> Default for Table<S> {
    fn default() -> Self {
        Self { indices: HashMap::new(), frames: Vec::new(), stacks: BTreeMap::new() }
    }
}

impl<S: Sum> Table<S> {
    /// Adds a stack, from the root to the leaf.
    pub(crate) fn add(&mut self, frames: impl IntoIterator<Item = Frame>, count: S) {
        let stack: Vec<u32> = frames.into_iter().filter_map(|frame| self.index(frame)).collect();
        self.stacks.entry(stack).or_default().grow(count);
    }

    /// `None` for more frames than have numbers: 2^32.
    fn index(&mut self, frame: Frame) -> Option<u32> {
        if let Some(index) = self.indices.get(&frame) {
            return Some(*index);
        }
        let index = u32::try_from(self.frames.len()).ok()?;
        self.frames.push(frame.clone());
        self.indices.insert(frame, index);
        Some(index)
    }

    /// The frames, and the stacks in the order of their frames.
    pub(crate) fn into_parts(self) -> (Vec<Frame>, impl Iterator<Item = (Vec<u32>, S)>) {
        (self.frames, self.stacks.into_iter())
    }
}

impl Table<u64> {
    /// Sets the frames and the stacks of a profile, with the stacks that were seen most first.
    pub(crate) fn put_into(self, profile: &mut Profile) {
        let (frames, stacks) = self.into_parts();
        profile.frames = frames;
        profile.stacks = stacks.map(|(frames, count)| Stack { frames, count }).collect();
        profile.stacks.sort_by_key(|stack| std::cmp::Reverse(stack.count));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn frame(name: &str) -> Frame {
        let kind = if name.starts_with("__x64") { Kind::Kernel } else { Kind::User };
        let module = if kind == Kind::Kernel { "[kernel]" } else { "/bin/server" };
        Frame { name: name.into(), module: module.into(), kind, inlined: false, file: None, line: None }
    }

    pub(crate) fn profile(stacks: &[(&[&str], u64)]) -> Profile {
        let mut table = Table::default();
        for (names, count) in stacks {
            table.add(names.iter().map(|name| frame(name)), *count);
        }
        let samples = stacks.iter().map(|(_, count)| count).sum();
        let mut profile =
            Profile { period_ns: 1_000_000, samples, kernel: true, seconds: 1.0, ..Profile::default() };
        table.put_into(&mut profile);
        profile
    }

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        let profile = profile(&[(&["main", "walk", "walk", "walk"], 5), (&["main", "walk", "free"], 2)]);
        let times = profile.self_and_inclusive();
        let table: Vec<_> = times.iter().map(|time| (time.name, time.own, time.inclusive)).collect();
        assert_eq!(table, [("walk", 5, 7), ("free", 2, 2), ("main", 0, 7)]);
    }

    #[test]
    fn lines_of_a_function_are_one_function() {
        let mut table = Table::default();
        for line in [3, 4] {
            table.add([Frame { line: Some(line), ..frame("f") }], 1);
        }
        let mut profile = Profile::default();
        table.put_into(&mut profile);
        assert_eq!(profile.frames.len(), 2);
        assert_eq!(profile.self_and_inclusive().len(), 1);
    }

    #[test]
    fn a_profile_under_a_name_has_it_as_the_root_of_all_stacks() {
        let under = profile(&[(&["main", "f"], 3), (&["main"], 4)]).under("new");
        let times = under.self_and_inclusive();
        let table: Vec<_> = times.iter().map(|time| (time.name, time.own, time.inclusive)).collect();
        assert_eq!(table, [("main", 4, 7), ("f", 3, 3), ("new", 0, 7)]);
    }

    #[test]
    fn different_periods_do_not_merge() {
        let (one, mut other) = (profile(&[(&["f"], 1)]), profile(&[(&["f"], 1)]));
        other.period_ns = 2_000_000;
        assert_eq!(Profile::merge(&[one.clone(), other]), Err(Unlike(1_000_000, 2_000_000)));
        let nothing = Profile { kernel: true, ..Profile::default() };
        assert_eq!(Profile::merge(&[nothing.clone(), one.clone(), nothing]), Ok(one));
    }

    #[test]
    fn a_stack_of_a_damaged_file_loses_the_frames_that_do_not_exist() {
        let mut damaged = profile(&[(&["main", "f"], 3)]);
        damaged.stacks[0].frames.push(u32::MAX);
        assert_eq!(damaged.self_and_inclusive()[0].name, "f");
        assert_eq!(Profile::merge(&[damaged]).unwrap(), profile(&[(&["main", "f"], 3)]));
    }

    #[test]
    fn a_profile_survives_json() {
        let profile = profile(&[(&["main", "__x64_sys_read"], 3)]);
        let text = serde_json::to_string(&profile).unwrap();
        assert!(text.contains(r#""kind":"kernel""#), "{text}");
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
    }

    proptest! {
        #[test]
        fn counts_add_up(stacks in prop::collection::vec((prop::collection::vec("[a-d]", 0..5), 1_u64..100), 0..30)) {
            let total: u64 = stacks.iter().map(|(_, count)| count).sum();
            let (first, second) = stacks.split_at(stacks.len() / 2);
            let halves = [first, second].map(|half| {
                let mut table = Table::default();
                let mut profile = Profile::default();
                for (names, count) in half {
                    table.add(names.iter().map(|name| frame(name)), *count);
                    profile.samples += count;
                }
                table.put_into(&mut profile);
                profile
            });
            let sum = Profile::merge(&halves).unwrap();
            prop_assert_eq!(sum.samples, total);
            prop_assert_eq!(sum.stacks.iter().map(|stack| stack.count).sum::<u64>(), total);
            let empty: u64 = sum.stacks.iter().filter(|stack| stack.frames.is_empty()).map(|stack| stack.count).sum();
            let times = sum.self_and_inclusive();
            prop_assert_eq!(times.iter().map(|time| time.own).sum::<u64>(), total - empty);
            prop_assert!(times.iter().all(|time| time.own <= time.inclusive && time.inclusive <= total));
        }
    }
}
