//! Reads files of requests and files of data into values.
//!
//! Knows text; knows no sockets, no clock and no codec. What is read comes from the caller as a stream, and one request at a
//! time goes back to the caller. So reading requests needs only the memory of the longest one.

// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice, clippy::arithmetic_side_effects))]

mod access_log;
mod bounded;
mod data;
mod har;
mod json;
mod lines;
mod origin;
mod text;
mod vegeta;

use std::fmt;
use std::io::{self, BufRead, Read};

pub use data::{Rows, read_data};
pub use origin::Origin;
pub use text::{Part, Slot, Text};

use lines::{Lines, beginning};
use text::Columns;

/// One request of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The name under which it is counted.
    pub name: String,
    /// The method.
    pub method: String,
    /// Path and query. It begins with `/`.
    pub path: Text,
    /// Headers in the file's order.
    pub headers: Vec<(String, Text)>,
    /// The body; `None` if there is none.
    pub body: Option<Text>,
    /// How often it is taken at random, relative to the others. Above zero.
    pub weight: f64,
    /// What its answers must be, as text.
    pub expect: Vec<String>,
    /// When it arrived, in seconds since 1970, if the file says so.
    pub at: Option<i64>,
    /// The line of the file that it begins in.
    pub line: u64,
}

/// The format of a file of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `METHOD URL`, headers, `@FILE`, as vegeta reads them.
    Vegeta,
    /// One JSON object a line.
    Json,
    /// One JSON object a line as vegeta reads them, with `header` and a body in base64.
    VegetaJson,
    /// A HAR file, as browsers save it.
    Har,
    /// An access log in nginx's combined form.
    Log,
}

/// How a file is read.
pub struct Options<'a> {
    /// The file's name, for messages.
    pub file: &'a str,
    /// Its format; `None` recognises it.
    pub format: Option<Format>,
    /// The target.
    pub origin: &'a Origin,
    /// Whether requests to other targets are taken, too.
    pub rebase: bool,
    /// The columns of the data.
    pub columns: &'a [String],
}

/// Reads a file that a request names as its body.
pub type ReadBody<'a> = dyn FnMut(&str) -> io::Result<Vec<u8>> + 'a;

/// Takes a request. An error says what is wrong with it.
pub type Take<'a> = dyn FnMut(Request) -> Result<(), String> + 'a;

/// What was found in a file besides its requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The format.
    pub format: Format,
    /// How many requests.
    pub requests: u64,
    /// Requests of a log that were left out because a log does not have their bodies.
    pub bodiless: u64,
    /// Requests of a HAR file that were left out because they went elsewhere than its first one.
    pub elsewhere: u64,
    /// Lines of a log that are no requests.
    pub unreadable: u64,
    /// The first of them.
    pub first_unreadable: Option<Error>,
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// The file's name.
    pub file: String,
    /// The line, from 1; 0 if the file as a whole is wrong.
    pub line: u64,
    /// The column in bytes, from 1.
    pub column: usize,
    /// What is wrong, and what to do.
    pub why: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.why),
            line => write!(f, "{}:{line}:{}: {}", self.file, self.column, self.why),
        }
    }
}

/// What is wrong in a line, and its column, from 1.
type InLine = (usize, String);

impl Options<'_> {
    fn error(&self, line: u64, (column, why): InLine) -> Error {
        Error { file: self.file.to_owned(), line, column, why }
    }
}

/// Reads a file of requests, and hands them over one by one.
///
/// # Errors
/// The first thing that is wrong, and its place; a file without a request is wrong, too.
pub fn read(
    input: &mut dyn BufRead,
    options: &Options<'_>,
    read_body: &mut ReadBody<'_>,
    take: &mut Take<'_>,
) -> Result<Found, Error> {
    let whole = |why: String| options.error(0, (1, why));
    let start = beginning(input).map_err(|error| whole(format!("cannot read it: {error}")))?;
    let format = options.format.or_else(|| recognise(&start)).ok_or_else(|| {
        whole(format!("it is none of these formats: {FORMATS}; name it with --requests-format"))
    })?;
    let input = &mut start.as_slice().chain(input);
    let mut found =
        Found { format, requests: 0, bodiless: 0, elsewhere: 0, unreadable: 0, first_unreadable: None };
    let mut requests = 0_u64;
    let mut count = |request: Request| {
        requests = requests.saturating_add(1);
        take(request)
    };
    let columns = Columns::new(options.columns);
    let mut reading = Reading { options, columns, read_body, take: &mut count, found: &mut found };
    match format {
        Format::Har => har::read(input, &mut reading)?,
        Format::Vegeta => vegeta::read(&mut Lines::new(input), &mut reading)?,
        Format::Log => access_log::read(&mut Lines::new(input), &mut reading)?,
        Format::Json => json::read(&mut Lines::new(input), &mut reading, json::ours)?,
        Format::VegetaJson => json::read(&mut Lines::new(input), &mut reading, json::vegetas)?,
    }
    found.requests = requests;
    match (&found.first_unreadable, requests) {
        (Some(first), 0) => {
            Err(Error { why: format!("no line is a request; the first: {}", first.why), ..first.clone() })
        }
        (None, 0) => Err(whole("it has no request".to_owned())),
        _ => Ok(found),
    }
}

/// What the formats are called in messages.
const FORMATS: &str = "vegeta's targets, JSON lines, HAR, nginx's combined log";

/// What every format needs.
struct Reading<'a, 'b> {
    options: &'a Options<'b>,
    columns: Columns<'b>,
    read_body: &'a mut ReadBody<'b>,
    take: &'a mut dyn FnMut(Request) -> Result<(), String>,
    found: &'a mut Found,
}

impl Reading<'_, '_> {
    /// Parses a text with placeholders.
    fn text(&self, text: &[u8]) -> Result<Text, InLine> {
        Text::parse(text, &self.columns)
    }

    /// The path of a URL of the target.
    fn path<'t>(&self, url: &'t str) -> Result<&'t str, String> {
        let (origin, path) = Origin::split(url)?;
        if !self.options.rebase && origin != *self.options.origin {
            return Err(format!(
                "{origin} is not the target, {}; --rebase sends the request to the target all the same",
                self.options.origin
            ));
        }
        Ok(path)
    }

    /// The body in a file. Placeholders are filled in if it is text.
    fn body_file(&mut self, name: &str) -> Result<Text, InLine> {
        let bytes =
            (self.read_body)(name).map_err(|error| (1, format!("cannot read the body {name:?}: {error}")))?;
        if std::str::from_utf8(&bytes).is_err() {
            return Ok(Text::literal(bytes));
        }
        self.text(&bytes).map_err(|(column, why)| {
            let before = bytes.get(..column.saturating_sub(1)).unwrap_or(&bytes);
            let line = before.split(|byte| *byte == b'\n').count();
            let start = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
            (1, format!("{name}:{line}:{}: {why}", start.len().saturating_add(1)))
        })
    }

    /// Hands a request over.
    fn give(&mut self, request: Request) -> Result<(), Error> {
        let line = request.line;
        (self.take)(request).map_err(|why| self.options.error(line, (1, why)))
    }
}

/// Recognises a format by the beginning of a file.
fn recognise(start: &[u8]) -> Option<Format> {
    let text = String::from_utf8_lossy(start);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(first) = lines.next() else { return Some(Format::Vegeta) };
    if !first.starts_with('{') {
        return match () {
            () if first.contains("] \"") => Some(Format::Log),
            () if vegeta::begins(first) => Some(Format::Vegeta),
            () => None,
        };
    }
    let object = serde_json::from_str::<serde_json::Value>(first).ok();
    let has = |key: &str| object.as_ref().is_some_and(|object| object.get(key).is_some());
    let har = (object.is_none()
        && text.trim_start_matches(['{', ' ', '\r', '\n', '\t']).starts_with("\"log\""))
        || has("log");
    Some(match har {
        true => Format::Har,
        false if has("header") => Format::VegetaJson,
        false => Format::Json,
    })
}

#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod tests;
