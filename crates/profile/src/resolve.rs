//! From stacks of addresses to stacks of functions. Reads `/proc` and the files of programs, as long as the
//! processes exist.

use std::collections::{HashMap, HashSet};

use crate::jvm;
use crate::maps::{Image, Region};
use crate::names::clean;
use crate::perf_map;
use crate::profile::{Frame, KERNEL, Kind, Sum, Table};
use crate::stacks::{Addresses, Stacks};
use crate::symbols::{Found, Function, Place, Symbols};

/// How many generations of forks are followed to a process that still exists.
const GENERATIONS: usize = 16;

/// The memory of processes, as it was when sampling began and as it is when it ends.
#[derive(Debug, Default)]
pub(crate) struct Images {
    /// By process and whether it had begun another program.
    known: HashMap<(u32, bool), Option<Image>>,
    before: HashMap<u32, Image>,
}

impl Images {
    /// Looks at processes when sampling begins, in case that they end meanwhile.
    pub(crate) fn before(processes: &[u32]) -> Self {
        let before = processes.iter().filter_map(|process| Some((*process, Image::of(*process)?))).collect();
        Self { known: HashMap::new(), before }
    }

    /// The memory in which a stack's addresses are. A process that has ended is looked for in what was seen
    /// before, and in its parent, of which it was a copy unless it began another program.
    fn of<S: Sum>(&mut self, stack: &Addresses, stacks: &Stacks<S>) -> Option<&Image> {
        let key = (stack.process, stack.executed);
        if !self.known.contains_key(&key) {
            let image = self.find(key, stacks);
            self.known.insert(key, image);
        }
        self.known.get(&key)?.as_ref()
    }

    fn find<S: Sum>(&self, (process, executed): (u32, bool), stacks: &Stacks<S>) -> Option<Image> {
        // What is in memory now is another program if the process has begun one since.
        let still = executed == stacks.has_executed(process);
        let mut process = process;
        if let Some(image) = Image::of(process).filter(|_| still) {
            return Some(image);
        }
        for _ in 0..GENERATIONS {
            if let Some(image) = self.before.get(&process).filter(|_| !executed) {
                return Some(image.clone());
            }
            process = *stacks.parents.get(&process).filter(|_| !executed)?;
            if let Some(image) = Image::of(process).filter(|_| !stacks.has_executed(process)) {
                return Some(image);
            }
        }
        None
    }
}

/// What an address of a process is in.
enum Spot {
    Place(Place, u64, String),
    /// Code without a file: of a process, at an address, with what the kernel calls its memory.
    Made(u32, u64, String),
    /// In a file that cannot be opened.
    Module(String),
}

/// All frames of a stack as spots, each part from the leaf to the root.
struct Located<'s, S> {
    stack: &'s Addresses,
    count: S,
    /// `None` in a process that ended before it could be looked at.
    user: Option<Vec<Spot>>,
}

/// Names what was sampled. `depth` is the number of frames that a stack may have. Also gives what is counted
/// of the stacks with one frame in user space.
pub(crate) fn resolve<S: Sum>(
    stacks: &Stacks<S>,
    mut images: Images,
    symbols: &mut Symbols,
    depth: u16,
) -> (Table<S>, S) {
    let mut files = HashMap::new();
    let located: Vec<Located<'_, S>> = stacks
        .iter()
        .map(|(stack, count)| {
            let image = images.of(stack, stacks);
            let user = image.map(|image| locate(image, &stack.user, &mut files));
            Located { stack, count, user }
        })
        .collect();
    let names = Names::of(&located, symbols);
    let (mut table, mut shallow) = (Table::default(), S::default());
    for one in &located {
        if one.user.as_ref().map_or(one.stack.user.len(), Vec::len) == 1 {
            shallow.grow(one.count);
        }
        table.add(frames(one, &names, depth), one.count);
    }
    if stacks.more != S::default() {
        table.add([without_place("[more stacks]")], stacks.more);
    }
    (table, shallow)
}

/// Finds the files of a stack's addresses. An address that is no code is where the walk along frame pointers
/// went wrong: it and its callers are left out.
fn locate(image: &Image, addresses: &[u64], files: &mut HashMap<(u32, u64), Option<Place>>) -> Vec<Spot> {
    let mut spots = Vec::new();
    for (position, address) in addresses.iter().enumerate() {
        // Callers are known by where they go on, which may be another function already.
        let address = if position == 0 { *address } else { address.saturating_sub(1) };
        match image.region(address) {
            Some(region) => spots.push(spot(image, region, address, files)),
            // What ran is kept, although its memory is gone.
            None if position == 0 => spots.push(Spot::Module(String::new())),
            None => break,
        }
    }
    spots
}

fn spot(
    image: &Image,
    region: &Region,
    address: u64,
    files: &mut HashMap<(u32, u64), Option<Place>>,
) -> Spot {
    let module = clean(&region.path);
    if region.path == "[vdso]" {
        return Spot::Place(Place::Vdso(image.process), address, module);
    }
    if !region.is_file() {
        return Spot::Made(image.process, address, module);
    }
    let key = (image.process, region.start);
    match files.entry(key).or_insert_with(|| region.file(image.process).map(Place::File)) {
        Some(place) => Spot::Place(place.clone(), region.file_offset(address), module),
        None => Spot::Module(module),
    }
}

/// The names of all spots.
struct Names {
    found: HashMap<Place, Found>,
    made: HashMap<u32, HashMap<u64, String>>,
}

impl Names {
    fn of<S>(located: &[Located<'_, S>], symbols: &mut Symbols) -> Self {
        let mut places: HashMap<Place, HashSet<u64>> = HashMap::new();
        let mut made: HashMap<u32, HashSet<u64>> = HashMap::new();
        for one in located {
            if !one.stack.kernel.is_empty() {
                places.entry(Place::Kernel).or_default().extend(kernel(one.stack));
            }
            for spot in one.user.iter().flatten() {
                match spot {
                    Spot::Place(place, address, _) => {
                        places.entry(place.clone()).or_default().insert(*address)
                    }
                    Spot::Made(process, address, _) => made.entry(*process).or_default().insert(*address),
                    Spot::Module(_) => false,
                };
            }
        }
        let made = made.into_iter().map(|(process, addresses)| {
            jvm::write_map(process);
            (process, perf_map::names(process, &addresses.into_iter().collect::<Vec<_>>()))
        });
        let made = made.collect();
        let wanted = places.into_iter().map(|(place, addresses)| (place, addresses.into_iter().collect()));
        Self { found: symbols.find(wanted.collect()), made }
    }

    fn functions(&self, place: &Place, address: u64) -> &[Function] {
        self.found.get(place).and_then(|found| found.get(&address)).map_or(&[], Vec::as_slice)
    }
}

/// The kernel's addresses of a stack. As in user space, callers are known by where they go on.
fn kernel(stack: &Addresses) -> impl Iterator<Item = u64> {
    stack.kernel.iter().enumerate().map(|(position, address)| address.saturating_sub(u64::from(position > 0)))
}

/// The frames of a stack, from the root to the leaf.
fn frames<S>(one: &Located<'_, S>, names: &Names, depth: u16) -> Vec<Frame> {
    let mut frames = Vec::new();
    let seen = one.stack.user.len().saturating_add(one.stack.kernel.len());
    if seen >= usize::from(depth) || one.stack.cut {
        frames.push(without_place("[deeper frames]"));
    }
    match &one.user {
        Some(spots) => spots.iter().rev().for_each(|spot| of_spot(spot, names, &mut frames)),
        None => frames.push(without_place("[ended]")),
    }
    let kernel: Vec<u64> = kernel(one.stack).collect();
    for address in kernel.into_iter().rev() {
        of_place(names.functions(&Place::Kernel, address), KERNEL, Kind::Kernel, &mut frames);
    }
    frames
}

fn of_spot(spot: &Spot, names: &Names, frames: &mut Vec<Frame>) {
    match spot {
        Spot::Place(place, address, module) => {
            of_place(names.functions(place, *address), module, Kind::User, frames);
        }
        Spot::Made(process, address, module) => {
            let module = if module.is_empty() { "[anonymous]" } else { module };
            match names.made.get(process).and_then(|made| made.get(address)) {
                Some(name) => frames.push(bracketed(name, module, Kind::Runtime)),
                None => frames.push(bracketed("[unknown]", module, Kind::Unknown)),
            }
        }
        Spot::Module(module) => frames.push(bracketed("[unknown]", module, Kind::Unknown)),
    }
}

fn of_place(functions: &[Function], module: &str, kind: Kind, frames: &mut Vec<Frame>) {
    if functions.is_empty() {
        let kind = if kind == Kind::Kernel { kind } else { Kind::Unknown };
        frames.push(bracketed("[unknown]", module, kind));
    }
    frames.extend(functions.iter().map(|function| Frame {
        name: function.name.clone(),
        module: module.to_owned(),
        kind,
        inlined: function.inlined,
        file: function.file.clone(),
        line: function.line,
    }));
}

/// A frame that stands for what has no place in a process.
pub(crate) fn without_place(name: &str) -> Frame {
    bracketed(name, "", Kind::Unknown)
}

/// A frame of which only a name and a module are known.
fn bracketed(name: &str, module: &str, kind: Kind) -> Frame {
    Frame { name: name.to_owned(), module: module.to_owned(), kind, inlined: false, file: None, line: None }
}
