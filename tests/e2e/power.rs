//! The power fails: whatever of the unsynced writes reached the disk, the store is intact, has the first of the trials, and the run
//! can be resumed.
//!
//! A library that is loaded first (`power.c`) logs what Narrows does to the files of the store. A test cuts the log at many places
//! and makes the files that a disk may have then: all that was synced, and any part of what was not, down to sectors. Files that
//! were created or removed are so on the disk only after their folder was synced, in their order.

use std::collections::BTreeMap;
use std::fs;

use stats::SplitMix64;

use crate::preloaded::library;
use crate::support::fake::Lab;
use crate::support::run;

/// What a disk writes at once, in bytes.
const SECTOR: usize = 512;

/// What was done to a file.
#[derive(Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

impl Change {
    fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Self::Write(at, bytes) => {
                let end = at + bytes.len();
                file.resize(file.len().max(end), 0);
                file[*at..end].copy_from_slice(bytes);
            }
            Self::Truncate(size) => file.resize(*size, 0),
        }
    }

    /// The parts of it that reach the disk on their own.
    fn sectors(&self) -> Vec<Self> {
        match self {
            Self::Write(at, bytes) => {
                let first = SECTOR - at % SECTOR;
                let (head, rest) = bytes.split_at(first.min(bytes.len()));
                let mut parts = vec![Self::Write(*at, head.to_vec())];
                let rest = rest.chunks(SECTOR).enumerate();
                parts.extend(rest.map(|(n, part)| Self::Write(at + first + n * SECTOR, part.to_vec())));
                parts
            }
            Self::Truncate(_) => vec![self.clone()],
        }
    }
}

/// A file on the disk, and what was done to it since it was last synced.
#[derive(Clone, Default)]
struct File {
    synced: Vec<u8>,
    pending: Vec<Change>,
}

/// A disk before its power fails.
#[derive(Default)]
struct Disk {
    files: Vec<File>,
    /// The files by name, as they were when the folder was synced.
    synced: BTreeMap<String, usize>,
    /// The files by name now, and how they got there since.
    names: BTreeMap<String, usize>,
    pending: Vec<(String, Option<usize>)>,
}

impl Disk {
    /// Carries out a line of the log.
    fn carry_out(&mut self, line: &str) {
        let mut words = line.split(' ');
        let (what, name) = (words.next().expect("a call"), words.next().expect("a file"));
        let at = words.next().map_or(0, |at| at.parse().expect("an offset"));
        let file = self.names.get(name).copied();
        match (what, file) {
            ("create", _) => {
                self.files.push(File::default());
                self.name(name, Some(self.files.len() - 1));
            }
            ("unlink", _) => self.name(name, None),
            ("sync", _) if name == "/" => {
                self.synced.clone_from(&self.names);
                self.pending.clear();
            }
            ("sync", Some(file)) => {
                let File { synced, pending } = &mut self.files[file];
                pending.drain(..).for_each(|change| change.apply(synced));
            }
            ("write", Some(file)) => {
                let hex = words.next().expect("bytes").as_bytes().chunks(2);
                let byte = |two: &[u8]| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap();
                self.files[file].pending.push(Change::Write(at, hex.map(byte).collect()));
            }
            ("truncate", Some(file)) => self.files[file].pending.push(Change::Truncate(at)),
            // The file was removed while it was open.
            (_, None) => {}
            _ => panic!("{what} {name}"),
        }
    }

    fn name(&mut self, name: &str, file: Option<usize>) {
        self.pending.push((name.to_owned(), file));
        match file {
            Some(file) => self.names.insert(name.to_owned(), file),
            None => self.names.remove(name),
        };
    }

    /// The files after a failure, in which each unsynced part has reached the disk if `reached` says so. Names reach it in order.
    fn after(&self, mut reached: impl FnMut() -> bool) -> BTreeMap<String, Vec<u8>> {
        let mut names = self.synced.clone();
        for (name, file) in &self.pending {
            if !reached() {
                break;
            }
            match file {
                Some(file) => names.insert(name.clone(), *file),
                None => names.remove(name),
            };
        }
        let mut content = |file: &usize| {
            let File { synced, pending } = &self.files[*file];
            let mut bytes = synced.clone();
            let parts = pending.iter().flat_map(Change::sectors);
            parts.filter(|_| reached()).for_each(|part| part.apply(&mut bytes));
            bytes
        };
        names.iter().map(|(name, file)| (name.clone(), content(file))).collect()
    }
}

#[test]
fn whatever_a_power_cut_leaves_is_a_store_with_the_first_trials() {
    let Some(library) = library("power") else { return };
    let lab = Lab::new();
    let words = ["run", "e", "--fake", "truth.toml", "--seed", "1", "--rounds", "2"];
    let (store, log) = (lab.home.path("narrows.db"), lab.home.path("calls"));
    let mut command = lab.home.narrows(words);
    command.env("LD_PRELOAD", &library).env("NARROWS_POWER_STORE", &store).env("NARROWS_POWER_LOG", &log);
    run(&mut command).code(0);
    let (findings, all) = (lab.report("json"), lab.home.observations());
    let log = fs::read_to_string(&log).expect("a log");
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines.len() > 50 && lines.iter().any(|line| line.starts_with("sync")), "{}", lines.len());
    let mut rng = SplitMix64::new(11);
    let mut cuts: Vec<usize> = (0..12).map(|_| rng.below(lines.len() as u64) as usize).collect();
    cuts.push(lines.len());
    cuts.sort_unstable();
    let (mut disk, mut done, mut most) = (Disk::default(), 0, 0);
    for cut in cuts {
        lines[done..cut].iter().for_each(|line| disk.carry_out(line));
        done = cut;
        for share in [0, 50, 100] {
            for name in
                ["narrows.db", "narrows.db-wal", "narrows.db-shm", "narrows.db-journal", "narrows.html"]
            {
                let _ = fs::remove_file(lab.home.path(name));
            }
            for (name, bytes) in disk.after(|| rng.below(100) < share) {
                fs::write(lab.home.path(&name), bytes).unwrap();
            }
            let case = format!("cut at {cut} of {}, {share} % reached the disk", lines.len());
            let listed = lab.home.run(["report", "--store", "narrows.db"]);
            assert!(matches!(listed.status.code(), Some(0 | 1)), "{case}: {listed:#?}");
            assert!(
                !listed.stderr.contains("damaged") && !listed.stderr.contains("malformed"),
                "{case}: {listed:#?}"
            );
            if !lab.home.has_run() {
                continue;
            }
            let kept = lab.home.observations();
            assert_eq!(kept, all[..kept.len()], "{case}");
            most = most.max(kept.len());
            lab.home.run(["run", "--resume", "last", "--fake", "truth.toml"]).code(0);
            assert_eq!(lab.report("json"), findings, "{case}");
        }
    }
    assert_eq!(most, all.len(), "the last cut is after all trials");
}
