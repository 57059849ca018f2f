//! The lines of a stream, of which only one is in memory.

use std::io::{self, BufRead, Read};

use crate::InLine;

/// The longest line: 16 MiB.
pub(crate) const LONGEST: usize = 16 << 20;
/// The longest line with its end.
const MOST_READ: u64 = LONGEST as u64 + 2;

/// The lines of a stream.
pub(crate) struct Lines<'a> {
    input: &'a mut dyn BufRead,
    line: Vec<u8>,
    /// The current line's number, from 1.
    number: u64,
    /// Whether the current line is to be returned again.
    again: bool,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(input: &'a mut dyn BufRead) -> Self {
        Self { input, line: Vec::new(), number: 0, again: false }
    }

    /// The number of the next line, from 1. It is wrong after a line was put back.
    pub(crate) fn coming(&self) -> u64 {
        self.number.saturating_add(1)
    }

    /// The current line's number, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the current line once more.
    pub(crate) fn put_back(&mut self) {
        self.again = true;
    }

    /// The next line, without its end; `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, InLine> {
        if !std::mem::take(&mut self.again) {
            self.line.clear();
            self.number = self.coming();
            let read = (&mut *self.input).take(MOST_READ).read_until(b'\n', &mut self.line);
            if read.map_err(|error| (1, format!("cannot read it: {error}")))? == 0 {
                return Ok(None);
            }
        }
        let mut line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > LONGEST {
            return Err((1, format!("the line is longer than {} MiB", LONGEST >> 20)));
        }
        Ok(Some(line))
    }

    /// The next line as text.
    pub(crate) fn next_text(&mut self) -> Result<Option<&str>, InLine> {
        self.next()?.map(as_text).transpose()
    }
}

/// Reads the beginning of a stream: to the end of the first line that says what the stream is, and at most 64 KiB. Empty
/// lines, comments and a bracket alone do not say it. A byte order mark is left out.
pub(crate) fn beginning(input: &mut dyn BufRead) -> io::Result<Vec<u8>> {
    const MOST: u64 = 64 << 10;
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let mut input = input.take(MOST);
    let mut start = Vec::new();
    loop {
        let from = start.len();
        let read = input.read_until(b'\n', &mut start)?;
        if from == 0 && start.starts_with(MARK) {
            start.drain(..MARK.len());
        }
        let line = start.get(from..).unwrap_or_default().trim_ascii();
        if read == 0 || !(line.is_empty() || line == b"{" || line.starts_with(b"#")) {
            return Ok(start);
        }
    }
}

/// A line as text.
pub(crate) fn as_text(line: &[u8]) -> Result<&str, InLine> {
    std::str::from_utf8(line)
        .map_err(|error| (error.valid_up_to().saturating_add(1), "it is not UTF-8 from here on".to_owned()))
}
