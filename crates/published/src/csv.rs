//! Comma-separated fields and where each stands, so that an error can point at it (RFC 4180, without line breaks in
//! quotes). Knows nothing of what the fields mean.

use std::ops::Range;

use systems::{InputError, Source};

/// A field: its text without quotes, and its place with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub text: String,
    pub span: Range<usize>,
}

/// Every line that is not empty.
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

fn fields(source: &Source, line: &str, start: usize) -> Result<Vec<Field>, InputError> {
    let mut fields = Vec::new();
    let mut at = 0;
    loop {
        let length = match line[at..].strip_prefix('"') {
            None => line[at..].find(',').unwrap_or(line.len() - at),
            Some(rest) => match closing(rest) {
                Some(end) if rest[end + 1..].is_empty() || rest[end + 1..].starts_with(',') => end + 2,
                Some(end) => {
                    let behind = start + at + end + 2;
                    let help = "a comma, or the quote written twice where it belongs to the text";
                    return Err(source.error(behind..behind + 1, "text behind a closing quote", help));
                }
                None => {
                    let help = "end the field with a quote on its line";
                    return Err(source.error(
                        start + at..start + line.len(),
                        "a quote that is not closed",
                        help,
                    ));
                }
            },
        };
        let raw = &line[at..at + length];
        let inner = raw.strip_prefix('"').and_then(|r| r.strip_suffix('"'));
        let text = inner.map_or_else(|| raw.trim().to_owned(), |inner| inner.replace("\"\"", "\""));
        fields.push(Field { text, span: start + at..start + at + length });
        at += length + 1;
        if at > line.len() {
            return Ok(fields);
        }
    }
}

/// Where a quoted text ends, doubled quotes passed over.
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
