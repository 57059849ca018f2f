//! The format of pprof: <https://github.com/google/pprof/blob/main/proto/profile.proto>, protocol buffers without compression,
//! which its readers accept, too. The few messages are written by hand; a field is its number and kind, then a varint or bytes.

use std::collections::HashMap;

use crate::profile::{Frame, Profile};

/// A profile for `go tool pprof` and what else reads its format. Each sample has two values: how often it was seen, and its CPU time
/// in nanoseconds. Inlined functions are locations of their own. The time of day is not in it.
pub fn pprof(profile: &Profile) -> Vec<u8> {
    let mut tables = Tables::default();
    let mut out = Vec::new();
    // The first string of the table has to be empty.
    tables.string("");
    for (kind, unit) in [("samples", "count"), ("cpu", "nanoseconds")] {
        let value = tables.value_type(kind, unit);
        bytes(&mut out, 1, &value);
    }
    for stack in &profile.stacks {
        let locations: Vec<u64> =
            profile.frames_of(stack).rev().map(|frame| tables.location(frame)).collect();
        let mut sample = Vec::new();
        packed(&mut sample, 1, &locations);
        packed(&mut sample, 2, &[signed(stack.count), signed(stack.count.saturating_mul(profile.period_ns))]);
        bytes(&mut out, 2, &sample);
    }
    let period = tables.value_type("cpu", "nanoseconds");
    let nanoseconds = (profile.seconds * 1e9) as u64;
    out.append(&mut tables.out);
    for text in &tables.texts {
        bytes(&mut out, 6, text.as_bytes());
    }
    number(&mut out, 10, signed(nanoseconds));
    bytes(&mut out, 11, &period);
    number(&mut out, 12, signed(profile.period_ns));
    out
}

/// What samples refer to by number. Each entry is written when it is first needed.
#[derive(Default)]
struct Tables {
    strings: HashMap<String, u64>,
    texts: Vec<String>,
    mappings: HashMap<String, u64>,
    functions: HashMap<(u64, u64), u64>,
    locations: HashMap<(u64, u64, u64), u64>,
    /// The mappings, locations and functions, as fields of the profile.
    out: Vec<u8>,
}

impl Tables {
    fn string(&mut self, text: &str) -> u64 {
        if let Some(index) = self.strings.get(text) {
            return *index;
        }
        let index = self.texts.len() as u64;
        self.texts.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> Vec<u8> {
        let mut message = Vec::new();
        number(&mut message, 1, self.string(kind));
        number(&mut message, 2, self.string(unit));
        message
    }

    fn location(&mut self, frame: &Frame) -> u64 {
        let (mapping, function) = (self.mapping(&frame.module), self.function(frame));
        let line = u64::from(frame.line.unwrap_or(0));
        let next = next(self.locations.len());
        let id = *self.locations.entry((mapping, function, line)).or_insert(next);
        if id == next {
            let (mut message, mut place) = (Vec::new(), Vec::new());
            number(&mut place, 1, function);
            number(&mut place, 2, line);
            number(&mut message, 1, id);
            number(&mut message, 2, mapping);
            bytes(&mut message, 4, &place);
            bytes(&mut self.out, 4, &message);
        }
        id
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let (name, file) = (self.string(&frame.name), self.string(frame.file.as_deref().unwrap_or_default()));
        let next = next(self.functions.len());
        let id = *self.functions.entry((name, file)).or_insert(next);
        if id == next {
            let mut message = Vec::new();
            for (field, value) in [(1, id), (2, name), (3, name), (4, file)] {
                number(&mut message, field, value);
            }
            bytes(&mut self.out, 5, &message);
        }
        id
    }

    fn mapping(&mut self, module: &str) -> u64 {
        let (file, next) = (self.string(module), next(self.mappings.len()));
        let id = *self.mappings.entry(module.to_owned()).or_insert(next);
        if id == next {
            let mut message = Vec::new();
            // The last four say that names, files, lines and inlined functions are known: pprof then does not look for them.
            for (field, value) in [(1, id), (5, file), (7, 1), (8, 1), (9, 1), (10, 1)] {
                number(&mut message, field, value);
            }
            bytes(&mut self.out, 3, &message);
        }
        id
    }
}

/// The number of the next entry of a table, from 1: 0 means none.
fn next(len: usize) -> u64 {
    (len as u64).saturating_add(1)
}

/// The format's numbers are signed.
fn signed(value: u64) -> u64 {
    value.min(i64::MAX.cast_unsigned())
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn packed(out: &mut Vec<u8>, field: u64, values: &[u64]) {
    let mut all = Vec::new();
    values.iter().for_each(|value| varint(&mut all, *value));
    bytes(out, field, &all);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::formats::tests::varied;

    #[test]
    fn the_bytes_of_a_small_profile() {
        let profile = crate::profile::tests::profile(&[(&["f"], 300)]);
        let expected = b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04\
            \x12\x0c\x0a\x01\x01\x12\x07\xac\x02\x80\xc6\x86\x8f\x01\
            \x1a\x0c\x08\x01\x28\x05\x38\x01\x40\x01\x48\x01\x50\x01\
            \x2a\x08\x08\x01\x10\x06\x18\x06\x20\x00\
            \x22\x0a\x08\x01\x10\x01\x22\x04\x08\x01\x10\x00\
            \x32\x00\x32\x07samples\x32\x05count\x32\x03cpu\x32\x0bnanoseconds\x32\x0b/bin/server\x32\x01f\
            \x50\x80\x94\xeb\xdc\x03\x5a\x04\x08\x03\x10\x04\x60\xc0\x84\x3d";
        assert_eq!(pprof(&profile).escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    #[test]
    fn go_reads_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), pprof(&varied())).unwrap();
        let pprof =
            Command::new("go").args(["tool", "pprof", "-top", "-nodecount=9"]).arg(file.path()).output();
        let Ok(output) = pprof else { return println!("skipped: there is no go") };
        if !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("no such tool") {
            return println!("skipped: this Go has no pprof");
        }
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let line = |name: &str| -> Vec<String> {
            let line =
                text.lines().find(|line| line.ends_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
            line.split_whitespace().take(5).map(str::to_owned).collect()
        };
        assert_eq!(line("__x64_sys_read"), ["4ms", "40.00%", "40.00%", "4ms", "40.00%"]);
        assert_eq!(line(" f")[..2], ["3ms", "30.00%"]);
        assert_eq!(line("main")[3..], ["7ms", "70.00%"]);
    }
}
