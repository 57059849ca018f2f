//! The requests of a file, prepared before the drive: in one piece of memory, so that sending one is sending a part of it.

mod builder;
mod parts;
mod script;
mod template;

use std::sync::Arc;

use requests::Rows;
use stats::SplitMix64;

use crate::target::Expect;
pub use builder::{ListBuilder, ListError};
pub use script::{Message, Script};
pub(crate) use template::{Filler, Template};

/// In which order requests are taken from a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they are listed, and then from the beginning again. Each thread begins at its own share.
    InOrder,
    /// At random, by their weights, from this seed.
    Random,
    /// As they are listed, each exactly once.
    Once,
    /// As they were recorded: the arrival with a number sends the request with this number.
    Recorded,
}

/// Prepared requests.
#[derive(Debug)]
pub struct List {
    /// The heads and bodies of all requests, one after the other.
    bytes: Arc<Vec<u8>>,
    entries: Vec<Entry>,
    templates: Vec<Template>,
    rows: Arc<Rows>,
    /// What answers must be, for requests that say so.
    expects: Vec<Expect>,
    names: Vec<String>,
    /// The sums of the weights up to each request; empty if all weights are equal.
    chances: Vec<f64>,
    order: Order,
    seed: u64,
    /// The bytes of the longest request.
    longest: usize,
}

/// One request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    start: u32,
    len: u32,
    /// The number of its template; `NONE` if it is sent as it is.
    template: u32,
    /// What its answers must be, by number; `ANY` if it does not say so.
    expect: u16,
    name: u16,
    /// Whether it is a HEAD request, whose answer has no body.
    pub(crate) head: bool,
}

const NONE: u32 = u32::MAX;
const ANY: u16 = u16::MAX;

impl List {
    /// The most bytes of all requests together.
    pub const MOST_BYTES: usize = 256 << 20;
    /// The most requests.
    pub const MOST_REQUESTS: usize = 10_000_000;
    /// The most names under which requests are counted.
    pub const MOST_NAMES: usize = 100;

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The names under which requests are counted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The order in which they are taken.
    pub fn order(&self) -> Order {
        self.order
    }

    pub(crate) fn bytes(&self) -> &Arc<Vec<u8>> {
        &self.bytes
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The bytes of the longest request; none if a request has a length of its own each time.
    pub(crate) fn longest(&self) -> Option<usize> {
        self.templates.is_empty().then_some(self.longest)
    }

    #[expect(clippy::indexing_slicing, reason = "callers have the number of one of the requests")]
    #[inline]
    pub(crate) fn entry(&self, number: usize) -> Entry {
        self.entries[number]
    }

    #[inline]
    pub(crate) fn template(&self, entry: Entry) -> Option<&Template> {
        self.templates.get(entry.template as usize)
    }

    pub(crate) fn expects(&self) -> &[Expect] {
        &self.expects
    }

    /// The number of what the answers to a request must be, if it says so.
    #[inline]
    pub(crate) fn expected(&self, number: usize) -> Option<usize> {
        let expect = self.entry(number).expect;
        (expect != ANY).then_some(usize::from(expect))
    }

    /// Appends a request as it is sent.
    #[expect(clippy::indexing_slicing, reason = "the range is where the list has put the entry's bytes")]
    pub(crate) fn append(&self, number: usize, filler: &mut Filler, out: &mut Vec<u8>) {
        let entry = self.entry(number);
        let prepared = &self.bytes[entry.range()];
        match self.template(entry) {
            Some(template) => filler.fill(template, prepared, &self.rows, out),
            None => out.extend_from_slice(prepared),
        }
    }

    /// The number of a request taken at random.
    pub(crate) fn at_random(&self, random: &mut SplitMix64) -> usize {
        let bits = random.next_u64();
        let Some(all) = self.chances.last() else {
            // The high half of the product is a number below the length.
            return ((u128::from(bits) * self.entries.len() as u128) >> 64) as usize;
        };
        let point = (bits >> 11) as f64 / (1_u64 << 53) as f64 * all;
        self.chances.partition_point(|sum| *sum <= point).min(self.entries.len() - 1)
    }
}

impl Entry {
    /// Where it is in the memory of all.
    #[inline]
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }

    /// Whether it is sent as it is.
    #[inline]
    pub(crate) fn is_ready(self) -> bool {
        self.template == NONE
    }

    #[inline]
    pub(crate) fn name(self) -> usize {
        usize::from(self.name)
    }
}

#[cfg(test)]
mod tests;
