//! What a check found instead of what it demands. Small and `Copy`, because a broken server lets millions of checks fail.

use std::fmt::{self, Write};

/// How many bytes an excerpt keeps.
const KEPT: usize = 40;

/// The first bytes of something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Excerpt {
    bytes: [u8; KEPT],
    len: u8,
    /// Whether there were more.
    cut: bool,
}

impl Excerpt {
    /// The first bytes of these.
    pub fn of(bytes: &[u8]) -> Self {
        let mut kept = [0; KEPT];
        let len = bytes.len().min(KEPT);
        kept.iter_mut().zip(bytes).for_each(|(kept, byte)| *kept = *byte);
        Self { bytes: kept, len: len as u8, cut: len < bytes.len() }
    }

    /// The first bytes of a text that is written.
    pub(crate) fn written(value: impl fmt::Display) -> Self {
        let mut kept = Self::of(b"");
        // It is full if this fails.
        kept.cut = write!(kept, "{value}").is_err();
        kept
    }
}

impl Write for Excerpt {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            *self.bytes.get_mut(usize::from(self.len)).ok_or(fmt::Error)? = byte;
            self.len = self.len.saturating_add(1);
        }
        Ok(())
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.cut { "…" } else { "" };
        write!(f, "{}{more}", self.bytes.get(..usize::from(self.len)).unwrap_or_default().escape_ascii())
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actual {
    /// What it asks for is not there.
    Missing,
    /// This value: a number, `true`, `an array`.
    Value(Excerpt),
    /// This text.
    Text(Excerpt),
    /// A body that begins like this.
    Body(Excerpt),
    /// This, which should not be in the body.
    Within(Excerpt),
    /// A body that is not JSON, and where.
    NotJson {
        /// The line, from 1.
        line: u32,
        /// The byte in this line, from 1.
        column: u32,
    },
    /// A body with this digest.
    Digest([u8; 32]),
}

impl fmt::Display for Actual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("it is missing"),
            Self::Value(value) => write!(f, "it is {value}"),
            Self::Text(text) => write!(f, "it is \"{text}\""),
            Self::Body(body) if *body == Excerpt::of(b"") => f.write_str("the body is empty"),
            Self::Body(body) => write!(f, "the body begins \"{body}\""),
            Self::Within(text) => write!(f, "the body has \"{text}\""),
            Self::NotJson { line, column } => {
                write!(f, "the body is not JSON (line {line}, column {column})")
            }
            Self::Digest(digest) => {
                f.write_str("it is ")?;
                digest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}
