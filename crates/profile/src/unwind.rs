//! The callers of functions without frame pointers. The kernel walks a stack by frame pointers and misses
//! them; what they have at the top of the stack leads to them (see [`cfi`](crate::cfi)).

use std::collections::HashMap;
use std::path::PathBuf;

use crate::cfi::{Module, Rule};
use crate::maps::Image;

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
    /// pointers.
    pub(crate) fn complete(&mut self, process: u32, chain: Vec<u64>, top: Top<'_>) -> Vec<u64> {
        let Some((leaf, callers)) = chain.split_first() else { return chain };
        let mut frames = vec![*leaf];
        let mut rule = self.rule(process, *leaf);
        let (mut stack, mut frame) = (top.stack, top.frame);
        for _ in 0..MOST_FRAMES {
            let found = rule.unwrap_or(Rule::FRAME);
            if found == Rule::FRAME && frame == top.frame {
                // From here on the kernel has seen all of them.
                frames.extend(callers);
                return frames;
            }
            let base = if found.by_frame { frame } else { stack };
            let next = base.wrapping_add_signed(found.offset);
            let Some(caller) = top.read(next.wrapping_sub(8)) else { break };
            if let Some(saved) = found.saved {
                let Some(saved) = top.read(next.wrapping_add_signed(saved)) else { break };
                frame = saved;
            }
            // A caller is in code, and its frame is further up.
            if next <= stack || !self.is_code(process, caller) {
                break;
            }
            stack = next;
            frames.push(caller);
            // It goes on after its call, which may be another function already.
            rule = self.rule(process, caller.wrapping_sub(1));
        }
        if frame == top.frame {
            // Some are missing, but these are callers.
            frames.extend(callers);
        }
        frames
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
        if self.rules.len() >= MOST_RULES {
            self.rules.clear();
        }
        let module = self.files.get(file)?;
        *self.rules.entry((file, offset)).or_insert_with(|| module.rule(offset))
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
            let complete = unwinder.complete(own, chain.clone(), top);
            prop_assert_eq!(complete.first(), chain.first());
            // Without anything known of a process, the kernel's walk is all that there is.
            prop_assert_eq!(unwinder.complete(u32::MAX, chain.clone(), top), chain);
        }
    }
}
