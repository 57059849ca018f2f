//! What an error shows of its text: the lines around its place. A long line is cut around the place, because a screen of values would
//! hide what is wrong with one of them. Pure.

use std::ops::Range;
use std::sync::Arc;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

/// The longest line that is shown whole, and the most that is shown of a longer one, in bytes.
const LONGEST_LINE: usize = 200;

/// How much of a longer line is shown before the place, in bytes.
const BEFORE: usize = 60;

/// The most lines of a place that are marked. Of a longer one only the first line is.
const MOST_LINES: usize = 10;

/// The longest message that is shown whole, in bytes. A message may quote what a person wrote, and list what it may be.
const LONGEST_MESSAGE: usize = 2000;

/// A part of a text, with a place in it.
#[derive(Clone)]
pub(super) struct Excerpt {
    name: String,
    text: Arc<str>,
    /// The place in this text.
    pub span: Range<usize>,
    /// How many lines of the whole text are before this one.
    lines: usize,
    /// How many bytes of its line are before the place in the whole text.
    column: usize,
}

impl Excerpt {
    /// What is shown of a text for a place in it, which begins and ends between characters.
    pub(super) fn new(name: &str, text: &Arc<str>, span: Range<usize>) -> Self {
        let (name, text) = (printable::printable(name), &harmless(text));
        let part = |range: Range<usize>| text.get(range).unwrap_or_default();
        let begin = |at: usize| part(0..at).rfind('\n').map_or(0, |newline| newline.saturating_add(1));
        let end = |at: usize| {
            part(at..text.len()).find('\n').map_or(text.len(), |length| at.saturating_add(length))
        };
        let first = begin(span.start);
        let column = span.start.saturating_sub(first);
        let many = part(span.clone()).split('\n').count() > MOST_LINES;
        let span = if many { span.start..end(span.start) } else { span };
        // The lines before and behind are shown, too.
        let from = begin(first.saturating_sub(1));
        let to = end(end(span.end).saturating_add(1).min(text.len()));
        let region = part(from..to);
        if region.split('\n').all(|line| line.len() <= LONGEST_LINE) {
            return Self { name, text: Arc::clone(text), span, lines: 0, column };
        }
        let (mut shown, mut marked, mut at) = (String::new(), None::<Range<usize>>, from);
        for line in region.split('\n') {
            let has_part = span.start <= at.saturating_add(line.len()) && span.end >= at;
            let within = |place: usize| place.saturating_sub(at).min(line.len());
            let own = if has_part { within(span.start)..within(span.end) } else { 0..0 };
            if at > from {
                shown.push('\n');
            }
            let begins = shown.len();
            let place = shorten(line, own, &mut shown);
            if has_part {
                let place = begins.saturating_add(place.start)..begins.saturating_add(place.end);
                marked = Some(marked.map_or(place.start, |marked| marked.start)..place.end);
            }
            at = at.saturating_add(line.len()).saturating_add(1);
        }
        let lines = part(0..from).split('\n').count().saturating_sub(1);
        Self { name, text: shown.into(), span: marked.unwrap_or(0..0), lines, column }
    }
}

/// Appends a line, or the part of a longer one around a place in it. Returns where the place is in what was appended.
fn shorten(line: &str, place: Range<usize>, to: &mut String) -> Range<usize> {
    const CUT: &str = "…";
    if line.len() <= LONGEST_LINE {
        to.push_str(line);
        return place;
    }
    let from = super::floor(line, place.start.saturating_sub(BEFORE));
    let end = super::floor(line, from.saturating_add(LONGEST_LINE));
    let lead = if from > 0 { CUT } else { "" };
    to.push_str(lead);
    to.push_str(line.get(from..end).unwrap_or_default());
    to.push_str(if end < line.len() { CUT } else { "" });
    let new = |at: usize| at.min(end).saturating_sub(from).saturating_add(lead.len());
    new(place.start)..new(place.end)
}

/// A text whose characters have their places, and none of which changes how others look.
fn harmless(text: &Arc<str>) -> Arc<str> {
    let changes = |c: char| printable::is_hidden(c) && !matches!(c, '\n' | '\t');
    if !text.contains(changes) {
        return Arc::clone(text);
    }
    let shown = |c: char| match c.len_utf8() {
        _ if !changes(c) => c,
        1 => ' ',
        2 => '\u{a0}',
        _ => '\u{fffd}',
    };
    text.chars().map(shown).collect::<String>().into()
}

/// A message that is printable, and of one that is too long, its beginning and its end.
pub(super) fn message(text: String) -> String {
    let text = printable::printable_lines(&text);
    if text.len() <= LONGEST_MESSAGE {
        return text;
    }
    let half = LONGEST_MESSAGE / 2;
    let (begin, end) = (super::floor(&text, half), super::floor(&text, text.len().saturating_sub(half)));
    format!("{} … {}", text.get(..begin).unwrap_or_default(), text.get(end..).unwrap_or_default())
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let read = self.text.read_span(span, before, after)?;
        // What is read without the lines around it begins at the place.
        let column = if before == 0 { self.column } else { read.column() };
        let line = read.line().saturating_add(self.lines);
        let name = self.name.clone();
        Ok(Box::new(MietteSpanContents::new_named(
            name,
            read.data(),
            *read.span(),
            line,
            column,
            read.line_count(),
        )))
    }
}
