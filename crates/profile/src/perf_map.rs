//! Names of code that a runtime made while it ran, from the map that it writes
//! (tools/perf/Documentation/jit-interface.txt of Linux): a line for each function, `START SIZE NAME`, in hexadecimal.
//!
//! blazesym reads such maps, too. It refuses a whole map for one line that it cannot read, and a runtime may be writing the last line;
//! and it takes the first of two functions at one address, where the runtime has replaced the first by the second.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};

use crate::names;
use crate::tasks::own_number;

/// How much of a map is read, in bytes, and how long a line may be. Node writes some MB.
const LONGEST_MAP: u64 = 64 << 20;
const LONGEST_LINE: u64 = 64 << 10;

/// The names of these addresses of a process, as far as its map has them.
pub(crate) fn names(process: u32, addresses: &[u64]) -> HashMap<u64, String> {
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    open(process).map(|file| search(BufReader::new(file), &sorted)).unwrap_or_default()
}

/// A process names its map after its own number, in the `/tmp` of its own root.
fn open(process: u32) -> Option<File> {
    let own = own_number(process)?;
    let path = PathBuf::from(format!("/proc/{process}/root/tmp/perf-{own}.map"));
    // A pipe of this name would keep us waiting for a writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(&path, flags, Mode::empty()).ok()?);
    file.metadata().ok()?.is_file().then_some(file)
}

/// The names of sorted addresses. Of several functions at an address, the last one is there. Lines that cannot be read are left out.
fn search(map: impl BufRead, addresses: &[u64]) -> HashMap<u64, String> {
    // Each with its addresses and its name, as ranges. A map may have millions of functions at one address.
    let (mut found, mut text_of_names) = (Vec::<(Range<u32>, Range<u32>)>::new(), String::new());
    let mut map = map.take(LONGEST_MAP);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut map).take(LONGEST_LINE).read_until(b'\n', &mut line) {
        let text = String::from_utf8_lossy(&line);
        if let Some((start, size, name)) = function(&text) {
            let place = |end: u64| addresses.partition_point(|address| *address < end) as u32;
            let there = place(start)..place(start.saturating_add(size));
            if !there.is_empty() {
                let begin = text_of_names.len() as u32;
                text_of_names.push_str(name);
                found.push((there, begin..text_of_names.len() as u32));
            }
        }
        line.clear();
    }
    // From the last one on, so that each address is named once, however many functions are there.
    let (mut names, mut nameless) = (HashMap::new(), (0..addresses.len() as u32).collect::<BTreeSet<_>>());
    for (there, name) in found.into_iter().rev() {
        let name = text_of_names.get(name.start as usize..name.end as usize).unwrap_or_default();
        while let Some(place) = nameless.range(there.clone()).next().copied() {
            nameless.remove(&place);
            names.extend(addresses.get(place as usize).map(|address| (*address, names::function(name))));
        }
    }
    names
}

fn function(line: &str) -> Option<(u64, u64, &str)> {
    let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok();
    let mut words = line.trim_end().splitn(3, ' ');
    let (start, size, name) = (hex(words.next()?)?, hex(words.next()?)?, words.next()?.trim());
    (!name.is_empty()).then_some((start, size, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_function_at_an_address_counts() {
        let map = "1000 10 JS:~at /a.js:1\n\
                   0x2000 20 py::f:/b.py\n\
                   1000 10 JS:*at /a.js:1\n\
                   3000 zz broken\n\
                   \n\
                   ffffffffffffffff ffffffffffffffff end\n\
                   4000 8 half of a na";
        let names = search(map.as_bytes(), &[0xfff, 0x1000, 0x100f, 0x1010, 0x2004, 0x3000, 0x4001]);
        let mut found: Vec<_> = names.iter().map(|(address, name)| (*address, name.as_str())).collect();
        found.sort_unstable();
        let expected = [
            (0x1000, "JS:*at /a.js:1"),
            (0x100f, "JS:*at /a.js:1"),
            (0x2004, "py::f:/b.py"),
            (0x4001, "half of a na"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_map_costs_what_its_length_says_however_many_functions_are_at_an_address() {
        cost::is_near_linear(2000, |count| {
            let line = |number: usize| format!("{number:x} ffffff f{number}\n");
            let (map, addresses) =
                ((0..count).map(line).collect::<String>(), (0..count as u64).collect::<Vec<_>>());
            move || {
                let names = search(map.as_bytes(), &addresses);
                assert_eq!((names.len(), names[&7].as_str()), (count, "f7"));
            }
        });
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let names = search(&b"10 1 a\xff\x1bb\n"[..], &[0x10]);
        assert_eq!(names[&0x10], "a\u{fffd}\u{fffd}b");
    }

    #[test]
    fn a_process_without_a_map_has_no_names() {
        assert!(names(std::process::id(), &[1]).is_empty());
        assert!(names(u32::MAX, &[1]).is_empty());
    }
}
