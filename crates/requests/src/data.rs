//! Data for placeholders: CSV with a header line, or JSON lines.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::{self, BufRead, Read};

use serde_json::Value;

use crate::bounded::{Bound, Bounded};
use crate::lines::{LONGEST, Lines, as_text, beginning};
use crate::{Error, InLine};

/// The most bytes of values: 256 MiB.
const MOST: usize = 256 << 20;
/// The most rows.
const MOST_ROWS: usize = 10_000_000;
/// The most values, which may all be empty.
const MOST_VALUES: usize = 50_000_000;
/// The most columns.
const MOST_COLUMNS: usize = 10_000;

/// Rows of values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// The file that they come from, for messages.
    pub file: String,
    /// The names of the columns.
    pub columns: Vec<String>,
    bytes: Vec<u8>,
    /// Where each value ends in `bytes`, row by row.
    ends: Vec<u32>,
    /// The line that each row begins in.
    lines: Vec<u32>,
}

impl Rows {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// A value.
    ///
    /// # Panics
    /// If there is no such row or column.
    #[expect(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "it says that it panics; callers have the row from `len` and the column from the names"
    )]
    #[inline]
    pub fn value(&self, row: usize, column: usize) -> &[u8] {
        let at = row * self.columns.len() + column;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.bytes[start..self.ends[at] as usize]
    }

    /// The line of the first row whose value in this column is not right.
    pub fn find(&self, column: usize, right: impl Fn(&[u8]) -> bool) -> Option<u64> {
        (0..self.len())
            .find(|row| !right(self.value(*row, column)))
            .and_then(|row| self.lines.get(row))
            .map(|line| u64::from(*line))
    }

    fn push<'v>(&mut self, line: u64, values: impl Iterator<Item = &'v [u8]>) -> Result<(), InLine> {
        for value in values {
            self.bytes.extend_from_slice(value);
            self.ends.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
        }
        self.lines.push(u32::try_from(line).unwrap_or(u32::MAX));
        if self.bytes.len() > MOST || self.lines.len() > MOST_ROWS || self.ends.len() > MOST_VALUES {
            let limits = format!("{} MiB, {MOST_ROWS} rows or {MOST_VALUES} values", MOST >> 20);
            return Err((1, format!("the data is more than {limits}: use a part of it")));
        }
        Ok(())
    }
}

/// Reads data. `file` is its name, for messages.
///
/// # Errors
/// The first thing that is wrong, and its place; data without a row is wrong, too.
pub fn read_data(input: &mut dyn BufRead, file: &str) -> Result<Rows, Error> {
    let error = |line, (column, why): InLine| Error { file: file.to_owned(), line, column, why };
    let start = beginning(input).map_err(|why| error(0, (1, format!("cannot read it: {why}"))))?;
    let is_json = start.trim_ascii_start().starts_with(b"{");
    let mut input = start.as_slice().chain(input);
    let mut rows = if is_json { json(&mut input, error) } else { csv(&mut input, error) }?;
    if rows.is_empty() {
        return Err(error(
            0,
            (
                1,
                "it has no row of data: write the names of the columns in the first line, and rows below"
                    .to_owned(),
            ),
        ));
    }
    file.clone_into(&mut rows.file);
    Ok(rows)
}

/// Where in its value the last byte of a CSV stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// At the beginning.
    Outside,
    /// In one without quotes. Quotes mean themselves there.
    Plain,
    /// Within quotes.
    Within,
    /// Behind a quote that ends the value, or is the first half of one that means itself.
    Behind,
}

/// Follows the quotes of a CSV. The parser takes the end of the file for the end of a quoted value, and what follows a closing quote
/// for a part of it, so a quote that is missing would join rows.
#[derive(Debug, Clone, Copy)]
struct Quotes {
    quoting: Quoting,
    line: u64,
    /// The line in which the last quoted value began.
    opened: u64,
    /// The line in which something follows a closing quote.
    followed: Option<u64>,
}

impl Quotes {
    fn pass(&mut self, byte: u8) {
        // What stands behind a mistake says nothing.
        if self.followed.is_some() {
            return;
        }
        self.quoting = match (self.quoting, byte) {
            (Quoting::Within, b'"') => Quoting::Behind,
            (Quoting::Within, _) | (Quoting::Behind, b'"') => Quoting::Within,
            (Quoting::Outside, b'"') => {
                self.opened = self.line;
                Quoting::Within
            }
            (_, b',' | b'\n' | b'\r') => Quoting::Outside,
            (Quoting::Behind, _) => {
                self.followed = Some(self.line);
                Quoting::Plain
            }
            _ => Quoting::Plain,
        };
        self.line = self.line.saturating_add(u64::from(byte == b'\n'));
    }

    /// Why what has passed is no CSV, and the line of the value. `ended`: nothing more comes.
    fn wrong(self, ended: bool) -> Option<(u64, InLine)> {
        const REMEDY: &str = "write \"\" for a quote within a quoted value, and one quote at its end";
        let why = match self.followed {
            Some(line) if line == self.opened => {
                format!("more than a comma follows the quote that ends a value: {REMEDY}")
            }
            Some(line) => format!(
                "the value that begins with a quote here ends at a quote in line {line}, and more than a comma follows it: {REMEDY}"
            ),
            None if ended && self.quoting == Quoting::Within => {
                format!("a quoted value has no end: {REMEDY}")
            }
            None => return None,
        };
        Some((self.opened, (1, why)))
    }
}

/// A CSV whose quotes are followed.
struct Watched<'a> {
    input: &'a mut dyn BufRead,
    quotes: &'a Cell<Quotes>,
}

impl Read for Watched<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        let mut quotes = self.quotes.get();
        into.get(..count).unwrap_or_default().iter().for_each(|byte| quotes.pass(*byte));
        self.quotes.set(quotes);
        // What is wrong is said by whoever reads.
        if quotes.followed.is_some() { Err(io::ErrorKind::InvalidData.into()) } else { Ok(count) }
    }
}

fn csv(input: &mut dyn BufRead, error: impl Fn(u64, InLine) -> Error) -> Result<Rows, Error> {
    let mut rows = Rows::default();
    let bound = Bound::new(LONGEST as u64, "the row");
    let quotes = Cell::new(Quotes { quoting: Quoting::Outside, line: 1, opened: 1, followed: None });
    let watched = Watched { input, quotes: &quotes };
    let mut reader = csv::ReaderBuilder::new().from_reader(Bounded::new(watched, &bound));
    // `start` is the line that the row begins in.
    let broken = |start: u64, why: csv::Error| {
        if let Some((line, wrong)) = quotes.get().wrong(false) {
            return error(line, wrong);
        }
        let line = why.position().map_or(start, csv::Position::line);
        let said = match why.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                format!("{len} values where there are {expected_len} columns")
            }
            _ => why.to_string(),
        };
        error(line, (1, said))
    };
    let names = reader.headers().map_err(|why| broken(1, why))?;
    rows.columns = names.iter().take(MOST_COLUMNS + 1).map(|name| name.trim().to_owned()).collect();
    check_names(&rows.columns).map_err(|why| error(1, (1, why)))?;
    let mut record = csv::ByteRecord::new();
    loop {
        bound.renew();
        let read = reader.read_byte_record(&mut record);
        let line = record.position().map_or(0, csv::Position::line);
        if !read.map_err(|why| broken(line, why))? {
            return quotes.get().wrong(true).map_or(Ok(rows), |(line, wrong)| Err(error(line, wrong)));
        }
        rows.push(line, record.iter()).map_err(|why| error(line, why))?;
    }
}

fn check_names(names: &[String]) -> Result<(), String> {
    if names.len() > MOST_COLUMNS {
        return Err(format!("there are more than {MOST_COLUMNS} columns, which is the limit"));
    }
    let mut known = HashSet::new();
    for name in names {
        if name.is_empty() || name.contains(['{', '}']) {
            return Err(format!("{name:?} cannot be the name of a column"));
        }
        if !known.insert(name) {
            return Err(format!("two columns are called {name:?}"));
        }
    }
    Ok(())
}

fn json(input: &mut dyn BufRead, error: impl Fn(u64, InLine) -> Error) -> Result<Rows, Error> {
    let mut rows = Rows::default();
    let mut lines = Lines::new(input);
    loop {
        let at = lines.coming();
        let added = match lines.next() {
            Ok(None) => return Ok(rows),
            Ok(Some(line)) if line.trim_ascii().is_empty() => continue,
            Ok(Some(line)) => as_text(line).and_then(|line| add(&mut rows, at, line)),
            Err(why) => Err(why),
        };
        added.map_err(|why| error(at, why))?;
    }
}

/// Adds a line of JSON. The first line names the columns.
fn add(rows: &mut Rows, at: u64, line: &str) -> Result<(), InLine> {
    let row: serde_json::Map<String, Value> = serde_json::from_str(line)
        .map_err(|error| (error.column().max(1), crate::json::without_place(&error)))?;
    if rows.columns.is_empty() {
        if row.is_empty() {
            return Err((1, "the first row has no columns".to_owned()));
        }
        rows.columns = row.keys().take(MOST_COLUMNS + 1).cloned().collect();
        check_names(&rows.columns).map_err(|why| (1, why))?;
    }
    let values = rows.columns.iter().map(|column| match row.get(column) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Null) | None => Err((1, format!("the column {column:?} of the first row is missing"))),
        Some(other) => Ok(other.to_string()),
    });
    let values = values.collect::<Result<Vec<_>, _>>()?;
    rows.push(at, values.iter().map(String::as_bytes))
}
