//! Parses comma-separated fields with their positions, so that an error can point at them (RFC 4180, without line
//! breaks in quotes). Does not know what the fields mean.

use std::ops::Range;

use systems::{InputError, Source};

/// A field: its text without quotes, and its position including them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub text: String,
    pub span: Range<usize>,
}

/// The fields of every line that is not empty.
pub(super) fn lines(source: &Source) -> Result<Vec<Vec<Field>>, InputError> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in source.text.split_inclusive('\n') {
        let text = line.trim_end_matches(['\r', '\n']);
        if !text.trim().is_empty() {
            lines.push(fields(source, text, start)?);
        }
        start += line.len();
    }
    Ok(lines)
}

#[expect(
    clippy::string_slice,
    reason = "positions are those of commas and quotes in this line, which are one byte each"
)]
fn fields(source: &Source, line: &str, start: usize) -> Result<Vec<Field>, InputError> {
    let mut fields = Vec::new();
    let mut offset = 0;
    loop {
        let length = match line[offset..].strip_prefix('"') {
            None => line[offset..].find(',').unwrap_or(line.len() - offset),
            Some(rest) => match closing(rest) {
                Some(end) if rest[end + 1..].is_empty() || rest[end + 1..].starts_with(',') => end + 2,
                Some(end) => {
                    let behind = start + offset + end + 2;
                    let help = "a comma, or the quote written twice where it belongs to the text";
                    return Err(source.error(behind..behind + 1, "text behind a closing quote", help));
                }
                None => {
                    let help = "end the field with a quote on its line";
                    return Err(source.error(
                        start + offset..start + line.len(),
                        "a quote that is not closed",
                        help,
                    ));
                }
            },
        };
        let raw = &line[offset..offset + length];
        let inner = raw.strip_prefix('"').and_then(|r| r.strip_suffix('"'));
        let text = inner.map_or_else(|| raw.trim().to_owned(), |inner| inner.replace("\"\"", "\""));
        fields.push(Field { text, span: start + offset..start + offset + length });
        offset += length + 1;
        if offset > line.len() {
            return Ok(fields);
        }
    }
}

/// The position of the quote that ends a text. Skips doubled quotes.
#[expect(
    clippy::string_slice,
    reason = "positions are those of quotes in this text, which are one byte each"
)]
fn closing(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let end = from + text[from..].find('"')?;
        if !text[end + 1..].starts_with('"') {
            return Some(end);
        }
        from = end + 2;
    }
}
