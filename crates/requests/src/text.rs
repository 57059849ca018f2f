//! Texts with placeholders: `{{column}}`, `{{uuid}}`, `{{counter}}`, `{{random 1..100}}`. `{{{{` stands for `{{`.

use std::collections::HashMap;

use crate::InLine;

/// A text, some of which is filled in for each request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text {
    /// What does not change.
    pub literal: Vec<u8>,
    /// What is filled in, in ascending order of places.
    pub parts: Vec<Part>,
}

/// Something that is filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its place: before this byte of the literal.
    pub at: usize,
    /// What is filled in.
    pub slot: Slot,
}

/// What a placeholder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The column with this number, of the next row of the data.
    Column(usize),
    /// A random UUID (version 4).
    Uuid,
    /// A number that no other request of the drive has, from 1.
    Counter,
    /// A random number from the first to the last, both included.
    Random(u64, u64),
}

/// The columns of the data. There may be thousands of them, and each placeholder looks for its own.
pub(crate) struct Columns<'a> {
    names: &'a [String],
    numbers: HashMap<&'a str, usize>,
}

impl<'a> Columns<'a> {
    pub(crate) fn new(names: &'a [String]) -> Self {
        // If two had the same name, the first would count.
        let numbers = names.iter().enumerate().rev().map(|(number, name)| (name.as_str(), number));
        Self { names, numbers: numbers.collect() }
    }
}

impl Text {
    /// A text without placeholders.
    pub fn literal(bytes: impl Into<Vec<u8>>) -> Self {
        Self { literal: bytes.into(), parts: Vec::new() }
    }

    /// Whether nothing is filled in.
    pub fn is_literal(&self) -> bool {
        self.parts.is_empty()
    }

    /// The text with values in place of the columns from number `first` on. In a path a value must not end the line.
    pub fn with(&self, first: usize, values: &[&str], in_path: bool) -> Self {
        let (mut filled, mut done) = (Self::default(), 0);
        for part in &self.parts {
            filled.literal.extend_from_slice(self.literal.get(done..part.at).unwrap_or_default());
            done = part.at;
            let value = match part.slot {
                Slot::Column(column) => column.checked_sub(first).and_then(|number| values.get(number)),
                _ => None,
            };
            match value {
                Some(value) if in_path => {
                    for byte in value.bytes() {
                        match byte.is_ascii_graphic() {
                            true => filled.literal.push(byte),
                            false => filled.literal.extend_from_slice(format!("%{byte:02X}").as_bytes()),
                        }
                    }
                }
                Some(value) => filled.literal.extend_from_slice(value.as_bytes()),
                None => filled.parts.push(Part { at: filled.literal.len(), slot: part.slot }),
            }
        }
        filled.literal.extend_from_slice(self.literal.get(done..).unwrap_or_default());
        filled
    }

    /// Parses a text.
    pub(crate) fn parse(text: &[u8], columns: &Columns<'_>) -> Result<Self, InLine> {
        let mut parsed = Self::default();
        let mut rest = text;
        while let Some((before, inside)) = split(rest, b"{{") {
            parsed.literal.extend_from_slice(before);
            if let Some(behind) = inside.strip_prefix(b"{{") {
                parsed.literal.extend_from_slice(b"{{");
                rest = behind;
            } else if inside.starts_with(b"{") {
                parsed.literal.push(b'{');
                rest = rest.get(before.len().saturating_add(1)..).unwrap_or_default();
            } else {
                let column = text.len().saturating_sub(inside.len()).saturating_sub(1);
                let (name, behind) = split(inside, b"}}").ok_or_else(|| (column, UNCLOSED.to_owned()))?;
                let name = String::from_utf8_lossy(name);
                let slot = slot(name.trim(), columns).map_err(|why| (column, why))?;
                parsed.parts.push(Part { at: parsed.literal.len(), slot });
                rest = behind;
            }
        }
        parsed.literal.extend_from_slice(rest);
        Ok(parsed)
    }
}

const UNCLOSED: &str = "`{{` without `}}`; write `{{{{` where `{{` itself is meant";

/// What is before and behind the first of these two bytes.
fn split<'t>(text: &'t [u8], what: &[u8; 2]) -> Option<(&'t [u8], &'t [u8])> {
    let (before, behind) = text.split_at_checked(text.windows(2).position(|window| window == what)?)?;
    Some((before, behind.get(2..)?))
}

fn slot(name: &str, columns: &Columns<'_>) -> Result<Slot, String> {
    if let Some(column) = columns.numbers.get(name) {
        return Ok(Slot::Column(*column));
    }
    if let Some(range) = name.strip_prefix("random ") {
        let ends = range.split_once("..").and_then(|(from, to)| {
            let ends: (u64, u64) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
            (ends.0 <= ends.1).then_some(ends)
        });
        return ends
            .map(|(from, to)| Slot::Random(from, to))
            .ok_or_else(|| format!("`{{{{{name}}}}}` is not a range: write it as {{{{random 1..100}}}}"));
    }
    match name {
        "uuid" => Ok(Slot::Uuid),
        "counter" => Ok(Slot::Counter),
        _ => Err(unknown(name, columns.names)),
    }
}

fn unknown(name: &str, columns: &[String]) -> String {
    let known: Vec<String> = columns.iter().map(|column| format!("{{{{{column}}}}}")).collect();
    let data = match known.as_slice() {
        [] => "columns of a file that --data names".to_owned(),
        known => known.join(", "),
    };
    format!(
        "unknown placeholder `{{{{{name}}}}}`; known are {data}, {{{{uuid}}}}, {{{{counter}}}} and {{{{random 1..100}}}}; \
         write `{{{{{{{{` where `{{{{` itself is meant"
    )
}
