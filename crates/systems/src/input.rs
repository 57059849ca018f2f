//! Reads the TOML files that people write, and makes errors that show the place, the reason and the remedy.
//!
//! Knows text and spans; knows nothing of what the files mean. Both manifests and experiments are read here.

mod excerpt;

use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, SourceCode};
use serde::de::DeserializeOwned;

use excerpt::Excerpt;

/// The size limit in bytes. Larger than any file that a person writes; keeps a mistyped path from filling the memory.
const LARGEST_FILE: u64 = 1 << 20;

/// A text and its origin.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file, as messages name it.
    pub path: PathBuf,
    /// Its text.
    pub text: Arc<str>,
}

impl Source {
    /// A text with the name that messages show for it.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<Arc<str>>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// Reads a file of at most 1 MiB of UTF-8.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let nowhere = Self::new(path, "");
        let refuse = |message: String, help: &str| nowhere.error(0..0, message, help);
        let cannot = |e: std::io::Error| refuse(format!("cannot read it: {e}"), "check the path");
        // A FIFO or a device would block or never end.
        if !path.metadata().map_err(cannot)?.is_file() {
            return Err(refuse("not a regular file".to_owned(), "name a file"));
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(cannot)?;
        file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(cannot)?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(refuse("longer than 1 MiB".to_owned(), "is it the right file?"));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(path, text)),
            Err(e) => {
                let valid = e.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(e.as_bytes()).into_owned();
                Err(Self::new(path, text).error(
                    valid..valid.saturating_add(1),
                    "not UTF-8 from here on",
                    "save the file as UTF-8",
                ))
            }
        }
    }

    /// An error at a place in this text. An empty `help` is left out.
    pub fn error(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> InputError {
        let [message, help] = [message.into(), help.into()].map(excerpt::message);
        // A span that ends past the text or inside a character would make the renderer fail.
        let start = floor(&self.text, span.start);
        let end = floor(&self.text, span.end.max(start));
        InputError(Box::new(Detail {
            message,
            help: (!help.is_empty()).then_some(help),
            path: self.path.clone(),
            shown: Excerpt::new(&self.path.to_string_lossy(), &self.text, start..end),
            text: Arc::clone(&self.text),
            span: start..end,
        }))
    }
}

/// The nearest character boundary at or below `index`.
fn floor(text: &str, index: usize) -> usize {
    let index = index.min(text.len());
    (0..=index).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

/// What is wrong in a file, where, and what to do about it.
///
/// `Display` shows the message alone. miette's renderer adds place, excerpt and help. [`InputError::one_line`] has
/// everything in one line, for logs.
#[derive(Clone)]
pub struct InputError(Box<Detail>);

#[derive(Clone)]
struct Detail {
    message: String,
    help: Option<String>,
    path: PathBuf,
    shown: Excerpt,
    text: Arc<str>,
    span: Range<usize>,
}

impl InputError {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Line and column, both from 1, columns in characters; `None` if the file itself could not be read.
    pub fn position(&self) -> Option<(usize, usize)> {
        let before = self.0.text.get(..self.0.span.start).unwrap_or_default();
        let last = before.rsplit('\n').next().unwrap_or_default();
        let line = before.split('\n').count();
        (!self.0.text.is_empty()).then(|| (line, last.chars().count().saturating_add(1)))
    }

    /// `path:line:column: message (help)`.
    pub fn one_line(&self) -> String {
        let place = match self.position() {
            Some((line, column)) => format!("{}:{line}:{column}", self.0.path.display()),
            None => self.0.path.display().to_string(),
        };
        match &self.0.help {
            Some(help) => format!("{place}: {} ({help})", self.0.message),
            None => format!("{place}: {}", self.0.message),
        }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.one_line())
    }
}

impl std::error::Error for InputError {}

impl Diagnostic for InputError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.help.as_ref().map(|help| Box::new(help) as _)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        (!self.0.text.is_empty()).then_some(&self.0.shown as _)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_with_span(Some("here".to_owned()), self.0.shown.span.clone());
        (!self.0.text.is_empty()).then(|| Box::new(std::iter::once(label)) as _)
    }
}

/// Parses a TOML text as `T`. The error for an unknown field suggests the nearest known one.
pub fn parse<T: DeserializeOwned>(source: &Source) -> Result<T, InputError> {
    toml::from_str(&source.text).map_err(|e| {
        let span = e.span().unwrap_or(0..0);
        let message = e.message().trim().replace('\n', "; ");
        let help = remedy(&message);
        source.error(span, message, help)
    })
}

/// The help for a message of the TOML parser or of serde.
fn remedy(message: &str) -> String {
    // serde says "unknown field `x`, expected one of `a`, `b`" and "unknown variant `x`, expected `a` or `b`".
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if message.starts_with("unknown field") || message.starts_with("unknown variant") {
        if let Some(near) =
            quoted.split_first().and_then(|(word, known)| nearest(word, known.iter().copied()))
        {
            return format!("did you mean `{near}`?");
        }
        return "docs/contracts.md lists every field".to_owned();
    }
    match (message.strip_prefix("missing field"), quoted.first()) {
        (Some(_), Some(field)) => format!("add `{field} = …`; docs/contracts.md says what it is"),
        _ => String::new(),
    }
}

/// The help for an unknown word: the nearest known one, or the list of all.
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are: {}", known.join(", ")),
    }
}

/// The longest name that others are compared with, in bytes.
const LONGEST_NAME: usize = 200;

/// The candidate that is most likely meant by `word`, if any is near enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    let near = candidates.into_iter().filter_map(|known| {
        // Time and memory of a distance are the product of both lengths. Nobody types names of this length.
        if known.len().max(word.len()) > LONGEST_NAME {
            return None;
        }
        let lower = known.to_lowercase();
        // A common prefix counts as near: "cowboy" for "cowboy2", "conn" for "connections".
        let begins = word.len() >= 3 && (lower.starts_with(&word) || word.starts_with(&lower));
        let distance = strsim::damerau_levenshtein(&word, &lower);
        let near = (known.chars().count().max(length) / 3).clamp(1, 3);
        (begins || distance <= near).then_some((known, distance))
    });
    near.min_by_key(|(_, distance)| *distance).map(|(known, _)| known)
}

#[cfg(test)]
mod tests;
