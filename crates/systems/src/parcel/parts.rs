//! Parcels of one folder that are sent one after the other, because together they are more than one parcel may be.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Entry, MOST_BYTES, MOST_ENTRIES, Parcel, paths};

/// The named files of a folder, in parcels. [`Parcel::add_to`] puts them together again, in the same order.
#[derive(Debug)]
pub struct Parts<'a> {
    top: &'a Path,
    names: std::slice::Iter<'a, String>,
    /// A file that did not fit into the last parcel, with its rest.
    open: Option<(&'a str, File)>,
    /// Links that lead out of the folder, or down and up again. They are in no parcel.
    pub left_out: Vec<&'a str>,
}

impl<'a> Parts<'a> {
    /// `names` are relative to the folder `top`. A folder that is named becomes an empty one.
    pub fn of(top: &'a Path, names: &'a [String]) -> Self {
        Self { top, names: names.iter(), open: None, left_out: Vec::new() }
    }

    /// Adds the file or link of this name. Returns how many bytes it took, of at most `room`.
    fn add(
        &mut self,
        entries: &mut BTreeMap<String, Entry>,
        name: &'a str,
        room: usize,
    ) -> io::Result<usize> {
        let path = self.top.join(name);
        let meta = fs::symlink_metadata(&path)?;
        if meta.is_dir() {
            entries.insert(name.to_owned(), Entry::Folder);
        } else if meta.is_symlink() {
            match fs::read_link(&path)?.to_str().filter(|to| paths::led_to(name, to).is_ok()) {
                Some(to) => drop(entries.insert(name.to_owned(), Entry::Link(to.to_owned()))),
                None => self.left_out.push(name),
            }
        } else {
            let executable = meta.permissions().mode() & 0o111 != 0;
            let mut file = File::open(&path)?;
            let content = some(&mut file, room)?;
            let length = content.len();
            entries.insert(name.to_owned(), Entry::File { content, executable });
            self.open = Some((name, file)).filter(|_| length == room);
            return Ok(length);
        }
        Ok(0)
    }

    /// Adds more of the file that is open.
    fn go_on(&mut self, entries: &mut BTreeMap<String, Entry>) -> io::Result<usize> {
        let Some((name, mut file)) = self.open.take() else { return Ok(0) };
        let content = some(&mut file, MOST_BYTES)?;
        let length = content.len();
        if length > 0 {
            entries.insert(name.to_owned(), Entry::Rest(content));
        }
        self.open = Some((name, file)).filter(|_| length == MOST_BYTES);
        Ok(length)
    }

    fn next_part(&mut self) -> Result<Parcel, String> {
        let mut entries = BTreeMap::new();
        let mut bytes = match self.open.as_ref().map(|(name, _)| *name) {
            Some(name) => self.go_on(&mut entries).map_err(|why| format!("{name}: {why}"))?,
            None => 0,
        };
        while bytes < MOST_BYTES && entries.len() < MOST_ENTRIES {
            let Some(name) = self.names.next() else { break };
            paths::check(name)?;
            let took = self.add(&mut entries, name, MOST_BYTES.saturating_sub(bytes));
            bytes = bytes.saturating_add(took.map_err(|why| format!("{name}: {why}"))?);
        }
        Parcel::try_from(entries)
    }
}

impl Iterator for Parts<'_> {
    type Item = Result<Parcel, String>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_part() {
            Ok(part) if part.entries.is_empty() => None,
            part => Some(part),
        }
    }
}

/// At most so many bytes of a file.
fn some(file: &mut File, most: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(most as u64).read_to_end(&mut content)?;
    Ok(content)
}
