//! Names of functions from the kernel's list, from executables and from libraries, by blazesym.
//!
//! A thread of its own does it. Whoever waits for it waits for a limited time, whatever a file contains, and a panic while a file
//! is read costs the names of this file only. What the thread has read stays in memory, so that later profiles are cheap.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use blazesym::MaybeDefault;
use blazesym::Pid;
use blazesym::symbolize::source::{Elf, Kernel, Process, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolized, Symbolizer};

use crate::maps::Image;
use crate::names::{clean, function};

/// How long one profile waits for names.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the time may run out at one place until the thread that is there is given up: the machine may be busy. A file is then
/// read without its debug information. If that takes as long again, it is read no more.
const STRIKES: u32 = 2;
/// How many files are kept open. Then all are closed, and those that are needed again are read again.
const MOST_FILES: usize = 4096;
/// How long the function `_init` may be, in bytes. It is 27 bytes long on x86-64.
const LONGEST_INIT: usize = 32;
/// How many inlined functions one address may have.
const MOST_INLINED: usize = 32;

/// Where names are looked up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The kernel, by address.
    Kernel,
    /// An executable or a library, by offset within the file.
    File(PathBuf),
    /// The kernel's part of a process's memory (vdso(7)), by address.
    Vdso(u32),
}

/// A function at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub name: String,
    pub inlined: bool,
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// The functions at each address of a place: the outermost first, then what is inlined in it. None if no function is known.
pub(crate) type Found = HashMap<u64, Vec<Function>>;

/// What is known of functions' names. Keep it between profiles: the first one of a program reads its files, the kernel's list too,
/// and later ones find them read. It keeps the files open, and its thread ends when it is dropped.
#[derive(Debug, Default)]
pub struct Symbols {
    worker: Option<Sender<Job>>,
    /// How often the time ran out at a place.
    slow: HashMap<Place, u32>,
}

#[derive(Debug)]
struct Job {
    place: Place,
    debug: bool,
    addresses: Vec<u64>,
    answer: Sender<(Place, Found)>,
}

impl Symbols {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads what a profile of these processes will need, so that its first [`Profiler::finish`](crate::Profiler::finish) is as quick as
    /// later ones. Call it before the time that is measured: it takes some 0.1 s for the kernel's list, and as long again or longer for
    /// a large program. It waits until all is read, and for ten seconds at most.
    pub fn prepare(&mut self, processes: &[u32]) {
        // No function is at the last address, but the list is read to find that out.
        let mut wanted = HashMap::from([(Place::Kernel, vec![u64::MAX])]);
        for image in processes.iter().filter_map(|process| Image::of(*process)) {
            wanted.extend(image.files().map(|(path, offset)| (Place::File(path), vec![offset])));
        }
        self.find(wanted);
    }

    /// Looks up addresses. A place that is not in the answer was not reached in time.
    pub(crate) fn find(&mut self, wanted: HashMap<Place, Vec<u64>>) -> HashMap<Place, Found> {
        let until = Instant::now().checked_add(PATIENCE);
        let (answer, answers) = channel();
        let mut waiting = Vec::new();
        for (place, addresses) in wanted {
            let strikes = self.slow.get(&place).copied().unwrap_or(0);
            let debug = strikes < STRIKES;
            if strikes > STRIKES || !debug && !matches!(place, Place::File(_)) {
                continue;
            }
            let job = Job { place: place.clone(), debug, addresses, answer: answer.clone() };
            match self.worker().map(|worker| worker.send(job)) {
                Some(Ok(())) => waiting.push(place),
                // It has ended. The next profile gets another.
                _ => self.worker = None,
            }
        }
        drop(answer);
        let mut found = HashMap::new();
        loop {
            let left = until.map_or(PATIENCE, |until| until.saturating_duration_since(Instant::now()));
            match answers.recv_timeout(left) {
                Ok((place, functions)) => drop(found.insert(place, functions)),
                Err(_) => break,
            }
        }
        // The worker looks up one place after another. The first without an answer is the one that it is at.
        if let Some(stuck) = waiting.into_iter().find(|place| !found.contains_key(place)) {
            let strikes = self.slow.entry(stuck).or_default();
            *strikes = strikes.saturating_add(1);
            if *strikes >= STRIKES {
                // Nobody waits for this worker any more, and it ends as soon as it is done.
                self.worker = None;
            }
        }
        found
    }

    fn worker(&mut self) -> Option<&Sender<Job>> {
        if self.worker.is_none() {
            let (jobs, receiver) = channel();
            thread::Builder::new().name("symbols".into()).spawn(move || work(&receiver)).ok()?;
            self.worker = Some(jobs);
        }
        self.worker.as_ref()
    }
}

fn work(jobs: &Receiver<Job>) {
    let mut symbolizer = symbolizer();
    let mut files = HashSet::new();
    while let Ok(job) = jobs.recv() {
        if let Place::File(path) = &job.place {
            files.insert(path.clone());
        }
        let looked_up = catch_unwind(AssertUnwindSafe(|| look_up(&symbolizer, &job)));
        if looked_up.is_err() || files.len() > MOST_FILES {
            // After a panic what it has kept may be half made.
            symbolizer = self::symbolizer();
            files.clear();
        }
        // If nobody waits any more, the next profile finds it read.
        let _ = job.answer.send((job.place, looked_up.unwrap_or_default()));
    }
}

fn symbolizer() -> Symbolizer {
    Symbolizer::builder().enable_code_info(true).enable_inlined_fns(true).enable_demangling(false).build()
}

fn look_up(symbolizer: &Symbolizer, job: &Job) -> Found {
    let addresses = job.addresses.as_slice();
    let answer = match &job.place {
        Place::Kernel => {
            // An image of the kernel would give lines, but takes seconds to read.
            let kernel = Kernel { vmlinux: MaybeDefault::None, debug_syms: false, ..Kernel::default() };
            symbolizer.symbolize(&Source::from(kernel), Input::AbsAddr(addresses))
        }
        Place::File(path) => {
            let elf = |debug| Source::from(Elf { debug_syms: debug, ..Elf::new(path) });
            let with = |debug| symbolizer.symbolize(&elf(debug), Input::FileOffset(addresses));
            // Damaged debug information is no reason to do without names.
            with(job.debug).or_else(|_| with(false))
        }
        Place::Vdso(process) => {
            let mut source = Process::new(Pid::from(*process));
            (source.debug_syms, source.perf_map, source.map_files) = (false, false, false);
            symbolizer.symbolize(&Source::from(source), Input::AbsAddr(addresses))
        }
    };
    let symbols = answer.unwrap_or_default();
    addresses
        .iter()
        .copied()
        .zip(symbols.iter().map(functions))
        .filter(|(_, found)| !found.is_empty())
        .collect()
}

fn functions(symbol: &Symbolized<'_>) -> Vec<Function> {
    let Some(symbol) = symbol.as_sym() else { return Vec::new() };
    // The jumps to functions of other libraries have no symbols. They follow this one, which is short and says no size.
    let name = if symbol.name == "_init" && symbol.offset >= LONGEST_INIT { "[plt]" } else { &symbol.name };
    let one = |name: &str, inlined: bool, code: Option<&CodeInfo<'_>>| Function {
        name: function(name),
        inlined,
        file: code.map(|code| clean(&code.to_path().to_string_lossy())),
        line: code.and_then(|code| code.line).filter(|line| *line > 0),
    };
    let inlined = symbol.inlined.iter().take(MOST_INLINED);
    let inlined = inlined.map(|inner| one(&inner.name, true, inner.code_info.as_ref()));
    std::iter::once(one(name, false, symbol.code_info.as_deref())).chain(inlined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_exist_has_no_names() {
        let mut symbols = Symbols::new();
        let missing = Place::File("/does/not/exist".into());
        let text = Place::File("/proc/self/status".into());
        let wanted = HashMap::from([
            (missing.clone(), vec![1, 2]),
            (text.clone(), vec![3]),
            (Place::Vdso(u32::MAX), vec![4]),
        ]);
        let found = symbols.find(wanted);
        assert_eq!(found.len(), 3);
        assert!(found.values().all(HashMap::is_empty), "{found:?}");
    }

    #[test]
    fn symbols_may_go_to_another_thread() {
        fn may<T: Send>() {}
        may::<Symbols>();
        may::<crate::Profiler>();
    }

    #[test]
    fn files_that_are_no_executables_are_survived() {
        let mut symbols = Symbols::new();
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for cut in [0, 3, 16, 64, 1000, 100_000] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &own[..cut]).unwrap();
            let place = Place::File(file.path().into());
            let found = symbols.find(HashMap::from([(place.clone(), vec![0, 5000, u64::MAX])]));
            assert!(found[&place].is_empty(), "{cut}: {found:?}");
        }
    }
}
