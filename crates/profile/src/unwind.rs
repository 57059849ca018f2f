//! The callers of functions without frame pointers. The kernel walks a stack by frame pointers and misses
//! them; what they have at the top of the stack leads to them (see [`cfi`](crate::cfi)).

use std::collections::HashMap;
use std::path::PathBuf;

use crate::cfi::{Module, Rule};
use crate::maps::Image;

/// How large a stack is, mostly, at most.
const LARGEST_STACK: u64 = 8 << 20;
/// How many callers are looked for. The kernel's walk goes on from there.
const MOST_FRAMES: usize = 64;
/// How often the memory of one process is looked at: it may load libraries later.
const LOOKS: u32 = 8;
/// How much is kept: processes, files, their bytes, rules.
const MOST_PROCESSES: usize = 1024;
const MOST_FILES: usize = 1024;
const MOST_BYTES: usize = 128 << 20;
const MOST_RULES: usize = 65_536;

/// The registers of a thread in user space, and the beginning of its stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Top<'s> {
    pub frame: u64,
    pub stack: u64,
    /// From the address `stack` on.
    pub bytes: &'s [u8],
}

impl Top<'_> {
    /// Whether an address is in the stack, after what was copied of it.
    fn is_followed_by(&self, address: u64) -> bool {
        let after = address.checked_sub(self.stack);
        after.is_some_and(|after| (self.bytes.len() as u64..LARGEST_STACK).contains(&after))
    }

    fn read(&self, address: u64) -> Option<u64> {
        let start = usize::try_from(address.checked_sub(self.stack)?).ok()?;
        let bytes = self.bytes.get(start..start.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }
}

/// What is known of processes and their files while they are sampled.
#[derive(Debug, Default)]
pub(crate) struct Unwinder {
    /// How often each process was looked at, and what was there.
    images: HashMap<u32, (u32, Image)>,
    /// The numbers of files, by process and region, and by path.
    regions: HashMap<(u32, u64), Option<usize>>,
    paths: HashMap<PathBuf, Option<usize>>,
    files: Vec<Module>,
    bytes: usize,
    /// By file and offset.
    rules: HashMap<(usize, u64), Option<Rule>>,
}

impl Unwinder {
    /// Forgets a process, which has begun another program.
    pub(crate) fn forget(&mut self, process: u32) {
        self.images.remove(&process);
        self.regions.retain(|(of, _), _| *of != process);
    }

    /// The stack in user space, from the leaf to the root: `chain` is what the kernel found by frame
    /// pointers. Also says whether there are callers that are known to be missing.
    pub(crate) fn complete(&mut self, process: u32, chain: Vec<u64>, top: Top<'_>) -> (Vec<u64>, bool) {
        let Some((leaf, callers)) = chain.split_first() else { return (chain, false) };
        let mut frames = vec![*leaf];
        let mut rule = self.rule(process, *leaf);
        let (mut stack, mut frame, mut beyond) = (top.stack, top.frame, false);
        for _ in 0..MOST_FRAMES {
            let found = rule.unwrap_or(Rule::FRAME);
            if found == Rule::FRAME && frame == top.frame {
                // From here on the kernel has seen all of them.
                frames.extend(callers);
                return (frames, false);
            }
            let base = if found.by_frame { frame } else { stack };
            let next = base.wrapping_add_signed(found.offset);
            let saved = match found.saved {
                Some(saved) => top.read(next.wrapping_add_signed(saved)),
                None => Some(frame),
            };
            let (Some(caller), Some(saved)) = (top.read(next.wrapping_sub(8)), saved) else {
                beyond = top.is_followed_by(next);
                break;
            };
            // A caller is in code, and its frame is further up.
            if next <= stack || !self.is_code(process, caller) {
                break;
            }
            (stack, frame) = (next, saved);
            frames.push(caller);
            // It goes on after its call, which may be another function already.
            rule = self.rule(process, caller.wrapping_sub(1));
        }
        if frame == top.frame {
            // Some are missing, but these are callers.
            frames.extend(callers);
        }
        (frames, beyond && frame != top.frame)
    }

    fn is_code(&self, process: u32, address: u64) -> bool {
        self.images.get(&process).is_some_and(|(_, image)| image.region(address).is_some())
    }

    fn rule(&mut self, process: u32, address: u64) -> Option<Rule> {
        self.look(process, address);
        let (_, image) = self.images.get(&process)?;
        let region = image.region(address).filter(|region| region.is_file())?;
        let offset = region.file_offset(address);
        let key = (process, region.start);
        let file = match self.regions.get(&key) {
            Some(file) => *file,
            None => {
                let path = region.file(process);
                let file = path.and_then(|path| self.file(path));
                self.regions.insert(key, file);
                file
            }
        }?;
        let key = (file, offset);
        if let Some(rule) = self.rules.get(&key) {
            return *rule;
        }
        if self.rules.len() >= MOST_RULES {
            self.rules.clear();
        }
        let rule = self.files.get(file)?.rule(offset);
        self.rules.insert(key, rule);
        rule
    }

    /// Looks at the memory of a process if this address is in nothing that is known.
    fn look(&mut self, process: u32, address: u64) {
        let looks = match self.images.get(&process) {
            Some((looks, image)) if *looks >= LOOKS || image.region(address).is_some() => return,
            Some((looks, _)) => *looks,
            None if self.images.len() >= MOST_PROCESSES => return,
            None => 0,
        };
        let image = Image::of(process).unwrap_or_default();
        self.regions.retain(|(of, _), _| *of != process);
        self.images.insert(process, (looks.saturating_add(1), image));
    }

    fn file(&mut self, path: PathBuf) -> Option<usize> {
        if let Some(file) = self.paths.get(&path) {
            return *file;
        }
        if self.paths.len() >= MOST_FILES || self.bytes >= MOST_BYTES {
            return None;
        }
        let file = Module::read(&path).map(|module| {
            self.bytes = self.bytes.saturating_add(module.size());
            self.files.push(module);
            self.files.len().saturating_sub(1)
        });
        self.paths.insert(path, file);
        file
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAPS: &str = "\
1000-2000 r-xp 00000000 fe:01 7 /lib/libc.so.6
5000-6000 r-xp 00000000 fe:01 8 /bin/server
";
    const LEAF: u64 = 0x1010;

    /// The stack of a function at `LEAF` with this rule. Functions of the program have frame pointers.
    fn complete(rule: Rule, chain: &[u64], frame: u64, words: &[u64]) -> (Vec<u64>, bool) {
        let mut unwinder = Unwinder::default();
        unwinder.images.insert(1, (LOOKS, Image::with(1, MAPS)));
        unwinder.regions.extend([((1, 0x1000), Some(0)), ((1, 0x5000), None)]);
        unwinder.rules.insert((0, LEAF - 0x1000), Some(rule));
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        unwinder.complete(1, chain.to_vec(), Top { frame, stack: 0x9000, bytes: &bytes })
    }

    #[test]
    fn the_caller_of_a_function_without_a_frame_is_found() {
        // The kernel has walked from the frame of the caller, 0x9010, and has missed the caller.
        let rule = Rule { by_frame: false, offset: 8, saved: None };
        let chain = [LEAF, 0x5061, 0x5071];
        let found = complete(rule, &chain, 0x9010, &[0x5051, 0, 0x9100, 0x5061]);
        assert_eq!(found, (vec![LEAF, 0x5051, 0x5061, 0x5071], false));
        // What is no code is no caller, and what the kernel found stays.
        assert_eq!(complete(rule, &chain, 0x9010, &[0x7051, 0]), (chain.to_vec(), false));
        assert_eq!(complete(rule, &chain, 0x9010, &[]), (chain.to_vec(), false));
    }

    #[test]
    fn a_function_that_uses_the_frame_pointer_for_something_else_has_callers() {
        let rule = Rule { by_frame: false, offset: 24, saved: Some(-16) };
        let words = [1, 0x9020, 0x5051, 3, 0x9100, 0x5061, 4];
        // The frame after the next one is not in the copy of the stack.
        assert_eq!(complete(rule, &[LEAF], 5, &words), (vec![LEAF, 0x5051, 0x5061], true));
        // The last frame of a thread has none before it.
        let last = [1, 0x9020, 0x5051, 3, 0, 0x5061, 4];
        assert_eq!(complete(rule, &[LEAF], 5, &last), (vec![LEAF, 0x5051, 0x5061], false));
    }

    #[test]
    fn frames_that_lead_nowhere_end_the_walk() {
        // Each frame is its own caller.
        let rule = Rule { by_frame: false, offset: 0, saved: None };
        assert_eq!(complete(rule, &[LEAF], 5, &[0x5051; 9]).0, [LEAF]);
        let to_itself = Rule { by_frame: false, offset: 24, saved: Some(-16) };
        let found = complete(to_itself, &[LEAF], 5, &[1, 0x9008, 0x5051, 3]);
        assert_eq!(found.0, [LEAF, 0x5051]);
    }

    proptest! {
        #[test]
        fn any_stack_keeps_its_leaf(
            chain in prop::collection::vec(any::<u64>(), 0..6),
            bytes in prop::collection::vec(any::<u8>(), 0..64),
            (frame, stack) in (any::<u64>(), prop_oneof![any::<u64>(), Just(u64::MAX - 9)]),
        ) {
            let mut unwinder = Unwinder::default();
            let top = Top { frame, stack, bytes: &bytes };
            let own = std::process::id();
            let (complete, _) = unwinder.complete(own, chain.clone(), top);
            prop_assert_eq!(complete.first(), chain.first());
            // Without anything known of a process, the kernel's walk is all that there is.
            prop_assert_eq!(unwinder.complete(u32::MAX, chain.clone(), top), (chain, false));
        }
    }
}
