//! A stream of which only so much is read at a time, so that nothing in it fills the memory.

use std::cell::Cell;
use std::io::{self, Read};

/// How much may still be read.
pub(crate) struct Bound {
    most: u64,
    left: Cell<u64>,
    /// What must not be longer, for the message.
    what: &'static str,
}

impl Bound {
    /// At most `most` bytes, which is a number of MiB.
    pub(crate) fn new(most: u64, what: &'static str) -> Self {
        Self { most, left: Cell::new(most), what }
    }

    /// One of the things that are bounded is complete, and the next one begins.
    pub(crate) fn renew(&self) {
        self.left.set(self.most);
    }
}

/// A stream that fails where its bound is reached.
pub(crate) struct Bounded<'a, R> {
    input: R,
    bound: &'a Bound,
}

impl<'a, R: Read> Bounded<'a, R> {
    pub(crate) fn new(input: R, bound: &'a Bound) -> Self {
        Self { input, bound }
    }
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(out)?;
        let Some(left) = self.bound.left.get().checked_sub(read as u64) else {
            let (what, most) = (self.bound.what, self.bound.most >> 20);
            return Err(io::Error::other(format!("{what} is longer than {most} MiB")));
        };
        self.bound.left.set(left);
        Ok(read)
    }
}
