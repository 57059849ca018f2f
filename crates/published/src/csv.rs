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
        start = line.len().saturating_add(start);
    }
    Ok(lines)
}

fn fields(source: &Source, line: &str, start: usize) -> Result<Vec<Field>, InputError> {
    let mut fields = Vec::new();
    let mut rest = Some(line);
    // Where a rest of the line begins in the text.
    let place = |rest: &str| start.saturating_add(line.len()).saturating_sub(rest.len());
    while let Some(begun) = rest {
        let (text, behind) = match begun.strip_prefix('"') {
            None => match begun.split_once(',') {
                Some((raw, _)) => (raw.trim().to_owned(), begun.get(raw.len()..).unwrap_or_default()),
                None => (begun.trim().to_owned(), ""),
            },
            Some(quoted) => quotation(quoted).ok_or_else(|| {
                let help = "end the field with a quote on its line";
                source.error(place(begun)..place(""), "a quote that is not closed", help)
            })?,
        };
        rest = behind.strip_prefix(',');
        if rest.is_none() && !behind.is_empty() {
            let help = "a comma, or the quote written twice where it belongs to the text";
            let at = place(behind);
            return Err(source.error(at..at.saturating_add(1), "text behind a closing quote", help));
        }
        fields.push(Field { text, span: place(begun)..place(behind) });
    }
    Ok(fields)
}

/// The text up to the quote that ends it, and what is behind that quote. A doubled quote is one of the text.
fn quotation(quoted: &str) -> Option<(String, &str)> {
    let (mut text, mut rest) = (String::new(), quoted);
    loop {
        let (before, behind) = rest.split_once('"')?;
        text.push_str(before);
        match behind.strip_prefix('"') {
            None => return Some((text, behind)),
            Some(after) => {
                text.push('"');
                rest = after;
            }
        }
    }
}
