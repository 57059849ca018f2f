//! Requests of which parts are filled in each time.

use std::io::Write;

use requests::{Rows, Slot};
use stats::SplitMix64;

/// What is filled into a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    /// In ascending order of places.
    pub(super) holes: Vec<Hole>,
}

/// Something to fill in, and its place: before this byte of the prepared request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) at: u32,
    pub(super) fill: Fill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    /// A value as it is.
    Plain(Slot),
    /// A value in the path, where a request's line must not end early.
    InPath(Slot),
    /// The length of the body: so many bytes and the values from the hole with this number on.
    Length { literal: u32, from: u32 },
}

/// Fills templates in. Its memory is reused.
#[derive(Debug)]
pub(crate) struct Filler {
    random: SplitMix64,
    /// The number of the next request, which no other thread gives.
    number: u64,
    step: u64,
    values: Vec<u8>,
    /// Where each value ends in `values`.
    ends: Vec<usize>,
}

impl Filler {
    /// The filler of one of several threads.
    pub(crate) fn new(random: SplitMix64, thread: usize, threads: usize) -> Self {
        Self { random, number: thread as u64, step: threads as u64, values: Vec::new(), ends: Vec::new() }
    }

    /// Appends a request to `out`. `prepared` is what does not change.
    #[expect(
        clippy::indexing_slicing,
        reason = "the holes are in order and within the request, and each value has an end"
    )]
    pub(crate) fn fill(&mut self, template: &Template, prepared: &[u8], rows: &Rows, out: &mut Vec<u8>) {
        self.values.clear();
        self.ends.clear();
        let number = self.number;
        self.number += self.step;
        for hole in &template.holes {
            match hole.fill {
                Fill::Plain(slot) => self.value(slot, number, rows),
                Fill::InPath(slot) => {
                    let start = self.values.len();
                    self.value(slot, number, rows);
                    self.escape(start);
                }
                Fill::Length { .. } => {}
            }
            self.ends.push(self.values.len());
        }
        let mut done = 0;
        for (index, hole) in template.holes.iter().enumerate() {
            out.extend_from_slice(&prepared[done..hole.at as usize]);
            done = hole.at as usize;
            if let Fill::Length { literal, from } = hole.fill {
                let length = self.values.len() - self.start(from as usize) + literal as usize;
                decimal(out, length as u64);
            } else {
                out.extend_from_slice(&self.values[self.start(index)..self.ends[index]]);
            }
        }
        out.extend_from_slice(&prepared[done..]);
    }

    /// Where the value of a hole begins.
    #[expect(clippy::indexing_slicing, reason = "`fill` has put an end of each value")]
    fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Appends a value.
    fn value(&mut self, slot: Slot, number: u64, rows: &Rows) {
        match slot {
            Slot::Column(column) => {
                let row = (number % rows.len() as u64) as usize;
                self.values.extend_from_slice(rows.value(row, column));
            }
            Slot::Counter => decimal(&mut self.values, number + 1),
            Slot::Random(from, to) => {
                let bits = u128::from(self.random.next_u64());
                let choices = u128::from(to - from) + 1;
                decimal(&mut self.values, from + ((bits * choices) >> 64) as u64);
            }
            Slot::Uuid => {
                let bits = (u128::from(self.random.next_u64()) << 64) | u128::from(self.random.next_u64());
                // Version 4, variant 1 (RFC 9562).
                let bits = (bits & !(0xf << 76) & !(0b11 << 62)) | (4 << 76) | (0b10 << 62);
                let [a, b, c, d] =
                    [bits >> 96, bits >> 80 & 0xffff, bits >> 64 & 0xffff, bits >> 48 & 0xffff];
                let last = bits & 0xffff_ffff_ffff;
                // Writing to memory does not fail.
                let _ = write!(self.values, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{last:012x}");
            }
        }
    }

    /// Percent-encodes what must not be in a request's line, from `start` on.
    fn escape(&mut self, start: usize) {
        if self.values.iter().skip(start).all(u8::is_ascii_graphic) {
            return;
        }
        let value = self.values.split_off(start);
        for byte in value {
            if byte.is_ascii_graphic() {
                self.values.push(byte);
            } else {
                let _ = write!(self.values, "%{byte:02X}");
            }
        }
    }
}

fn decimal(out: &mut Vec<u8>, number: u64) {
    // Writing to memory does not fail.
    let _ = write!(out, "{number}");
}
