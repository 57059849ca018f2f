//! Server-sent events: the lines of a stream of `text/event-stream` (WHATWG HTML, section 9.2.6, "Interpreting an event stream").
//!
//! Lines end with CR LF, LF or CR. A line that begins with a colon is a comment. An empty line ends an event. An event without a
//! `data` field is none, and an event whose empty line never comes is none either, as the standard says.

/// What an event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The field `event`. Empty if there was none: its type is `message`.
    pub kind: &'a [u8],
    /// The values of the fields `data`, with a line feed between them.
    pub data: &'a [u8],
    /// The field `id` of this event. None if it has none, or one with a zero byte.
    pub id: Option<&'a [u8]>,
}

/// What bytes of a stream contained.
#[derive(Debug, PartialEq, Eq)]
pub struct EventStep<'a> {
    /// How many bytes were read. Push the others again.
    pub consumed: usize,
    /// The event that they ended. None if all bytes were read and none has ended.
    pub event: Option<Event<'a>>,
}

/// A line or an event has more bytes than the decoder keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLong;

/// The mark with which a stream of UTF-8 may begin.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Decodes one stream. It keeps at most `limit` bytes of a line, and as many of an event.
#[derive(Debug, Clone)]
pub struct EventDecoder {
    limit: usize,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    kind: Vec<u8>,
    data: Vec<u8>,
    id: Option<Vec<u8>>,
    /// Whether the event has a `data` field.
    has_data: bool,
    /// Whether the fields are those of an event that was handed out.
    is_over: bool,
    /// Whether the first line has been read, which may begin with a byte order mark.
    has_begun: bool,
    /// Whether the last line ended with CR, so that an LF that follows belongs to it.
    after_cr: bool,
}

impl EventDecoder {
    /// A decoder at the beginning of a stream. `limit` is in bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            kind: Vec::new(),
            data: Vec::new(),
            id: None,
            has_data: false,
            is_over: false,
            has_begun: false,
            after_cr: false,
        }
    }

    /// Whether an event or a line has begun and has not ended.
    pub fn is_amid(&self) -> bool {
        let fields = self.has_data || !self.kind.is_empty() || self.id.is_some();
        !self.line.is_empty() || (fields && !self.is_over)
    }

    /// Reads bytes up to the end of an event.
    ///
    /// # Errors
    /// A line or an event is longer than the limit. The stream cannot be read any further.
    pub fn push(&mut self, input: &[u8]) -> Result<EventStep<'_>, EventTooLong> {
        if std::mem::take(&mut self.is_over) {
            self.clear();
        }
        let mut rest = input;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, ending) = rest.split_at(end);
            let is_cr = ending.starts_with(b"\r");
            let after = ending.get(1..).unwrap_or_default();
            rest = if is_cr { after.strip_prefix(b"\n").unwrap_or(after) } else { after };
            self.after_cr = is_cr && after.is_empty();
            if self.end_line(line)? {
                self.is_over = true;
                let consumed = input.len().saturating_sub(rest.len());
                let event = Event { kind: &self.kind, data: &self.data, id: self.id.as_deref() };
                return Ok(EventStep { consumed, event: Some(event) });
            }
        }
        self.keep(rest)?;
        Ok(EventStep { consumed: input.len(), event: None })
    }

    /// Forgets the fields of an event.
    fn clear(&mut self) {
        self.kind.clear();
        self.data.clear();
        (self.id, self.has_data) = (None, false);
    }

    /// Keeps the beginning of a line.
    fn keep(&mut self, part: &[u8]) -> Result<(), EventTooLong> {
        if self.line.len().saturating_add(part.len()) > self.limit {
            return Err(EventTooLong);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// Reads a line that ends with these bytes. Returns whether it ends an event.
    fn end_line(&mut self, end: &[u8]) -> Result<bool, EventTooLong> {
        if self.line.is_empty() && end.len() <= self.limit {
            return self.read_line(end);
        }
        self.keep(end)?;
        let line = std::mem::take(&mut self.line);
        let ends = self.read_line(&line);
        // Its memory serves the next line.
        self.line = line;
        self.line.clear();
        ends
    }

    fn read_line(&mut self, mut line: &[u8]) -> Result<bool, EventTooLong> {
        if !std::mem::replace(&mut self.has_begun, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            if !self.has_data {
                self.clear();
            }
            return Ok(self.has_data);
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (line.get(..colon), line.get(colon..).and_then(|rest| rest.strip_prefix(b":"))),
            None => (Some(line), None),
        };
        let value = value.unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name.unwrap_or_default() {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                if self.data.len().saturating_add(value.len()) > self.limit {
                    return Err(EventTooLong);
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.kind.clear();
                self.kind.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => self.id = Some(value.to_vec()),
            // A comment, `retry`, which is for those who reconnect, or a field that the standard does not know.
            _ => {}
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Whole = (String, String, Option<String>);

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// The events of a stream that arrives in these pieces.
    fn decoded<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
        limit: usize,
    ) -> Result<Vec<Whole>, EventTooLong> {
        let (mut decoder, mut all) = (EventDecoder::new(limit), Vec::new());
        for mut piece in pieces {
            loop {
                let step = decoder.push(piece)?;
                piece = &piece[step.consumed..];
                match step.event {
                    Some(Event { kind, data, id }) => all.push((text(kind), text(data), id.map(text))),
                    None => break,
                }
            }
            assert!(piece.is_empty(), "without an event all bytes are read");
        }
        Ok(all)
    }

    /// An event without a type and an id.
    fn message(data: &str) -> Whole {
        (String::new(), data.to_owned(), None)
    }

    #[test]
    fn streams_are_read_as_the_standard_says_however_they_are_cut() {
        let named = |kind: &str, data: &str, id: Option<&str>| {
            (kind.to_owned(), data.to_owned(), id.map(str::to_owned))
        };
        let table: Vec<(&[u8], Vec<Whole>)> = vec![
            (b"data: a\n\n", vec![message("a")]),
            (b"data: a\r\rdata: b\r\r", vec![message("a"), message("b")]),
            (b"data: a\r\n\r\ndata: b\r\n\r\n", vec![message("a"), message("b")]),
            (b"data: YHOO\ndata: +2\ndata: 10\n\n", vec![message("YHOO\n+2\n10")]),
            (
                b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
                vec![
                    named("", "first event", Some("1")),
                    named("", "second event", Some("")),
                    message(" third event"),
                ],
            ),
            // The first two have data, which is empty; the third never ends.
            (b"data\n\ndata\ndata\n\ndata:", vec![message(""), message("\n")]),
            (b"data:test\n\ndata: test\n\n", vec![message("test"), message("test")]),
            (b"event: error\ndata: {}\n\n", vec![named("error", "{}", None)]),
            // A type without data is no event, and is not that of the next.
            (b"event: a\n\ndata: b\n\n", vec![message("b")]),
            (b"id: a\0b\ndata: c\n\n", vec![message("c")]),
            (b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", vec![message("a")]),
            (b"retry: 10\nunknown: x\ndata: a\n\n", vec![message("a")]),
            (b"\n\n\r\r\n", vec![]),
        ];
        for (stream, events) in table {
            assert_eq!(decoded([stream], 100).as_ref(), Ok(&events), "{}", stream.escape_ascii());
            assert_eq!(decoded(stream.chunks(1), 100).as_ref(), Ok(&events), "{}", stream.escape_ascii());
            for cut in 0..stream.len() {
                let (first, second) = stream.split_at(cut);
                assert_eq!(decoded([first, second], 100).as_ref(), Ok(&events), "{cut}");
            }
        }
    }

    #[test]
    fn lines_and_events_are_bounded() {
        assert_eq!(decoded([&b"data: 12345\n\n"[..]], 11), Ok(vec![message("12345")]));
        assert_eq!(decoded([&b"data: 123456\n\n"[..]], 11), Err(EventTooLong));
        assert_eq!(decoded([&b"data: 1"[..], b"23456"], 11), Err(EventTooLong));
        let many = b"data: 1234\n".repeat(3);
        assert_eq!(decoded([&many[..]], 13), Err(EventTooLong));
        assert_eq!(decoded([&many[..], b"\n"], 14), Ok(vec![message("1234\n1234\n1234")]));
    }

    #[test]
    fn a_stream_that_ends_amid_an_event_shows_it() {
        for (stream, amid) in [
            (&b""[..], false),
            (b"data: a\n\n", false),
            (b"data: a\n", true),
            (b"data: a", true),
            (b"event: a\n", true),
            (b": comment\n", false),
        ] {
            let mut decoder = EventDecoder::new(100);
            decoder.push(stream).unwrap();
            assert_eq!(decoder.is_amid(), amid, "{}", stream.escape_ascii());
        }
    }
}
