//! Responses, as the generator reads them (RFC 9112 section 4, body length by section 6.3).
//!
//! Knows a response's head; that it answers a HEAD request must be told. CONNECT is not supported: nothing here tunnels.

use super::decoder::{Machine, Parsed, Raw, Syntax};
use super::head::{Fields, Span, line_break, text_end, version};
use super::{BodyLength, Event, HttpError, Limits, Step, Whole};

/// What the head of a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead<'a> {
    /// The three digits, 100 to 999.
    pub status: u16,
    /// Whether the connection may carry another request after this response.
    pub keep_alive: bool,
    /// How its body is delimited.
    pub body: BodyLength,
    /// The value of the watched header without surrounding blanks; of several the first.
    pub watched: Option<&'a [u8]>,
}

#[derive(Clone, Copy, Debug)]
struct ParsedResponse {
    len: usize,
    status: u16,
    keep_alive: bool,
    body: BodyLength,
    watched: Option<Span>,
}

impl Parsed for ParsedResponse {
    fn len(&self) -> usize {
        self.len
    }

    fn body(&self) -> BodyLength {
        self.body
    }

    fn memorable(&self) -> bool {
        // What is watched is an id: it will not come again.
        self.watched.is_none()
    }
}

#[derive(Debug)]
struct ResponseSyntax;

impl Syntax for ResponseSyntax {
    type Parsed = ParsedResponse;

    #[inline]
    fn parse(bytes: &[u8], watch: &[u8]) -> Result<ParsedResponse, HttpError> {
        let Some((line, _)) = bytes.split_first_chunk::<13>() else {
            return Err(HttpError::ClosedEarly);
        };
        let [v0, v1, v2, v3, v4, v5, v6, v7, blank, hundreds, tens, ones, after] = *line;
        let version = version([v0, v1, v2, v3, v4, v5, v6, v7])?;
        let digits = [hundreds, tens, ones].map(|byte| byte.wrapping_sub(b'0'));
        if blank != b' ' || digits.iter().any(|&digit| digit > 9) || digits[0] == 0 {
            return Err(HttpError::BadStatus);
        }
        let status = digits.iter().fold(0, |sum, &digit| sum * 10 + u16::from(digit));
        let reason = match after {
            b' ' => 13,
            b'\r' => 12,
            _ => return Err(HttpError::BadStatus),
        };
        let next = line_break(bytes, text_end(bytes, reason))?;
        let fields = Fields::read::<false>(bytes, next, watch)?;
        let body = match status {
            100..=199 | 204 | 304 => BodyLength::None,
            _ => fields.body(version, BodyLength::UntilClose)?,
        };
        let keep_alive = fields.keeps_alive(version);
        Ok(ParsedResponse { len: fields.end, status, keep_alive, body, watched: fields.watched })
    }

    fn early(start: &[u8]) -> Result<(), HttpError> {
        const HTTP: &[u8] = b"HTTP/1.";
        let known = start.len().min(HTTP.len());
        if start[..known] == HTTP[..known] { Ok(()) } else { Err(HttpError::BadVersion) }
    }

    fn negligible(bytes: &[u8]) -> bool {
        bytes.is_empty()
    }
}

/// Decodes the responses of one connection, however they are cut.
#[derive(Debug)]
pub struct ResponseDecoder {
    machine: Machine<ResponseSyntax>,
}

impl Default for ResponseDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl ResponseDecoder {
    /// A decoder between messages, with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self { machine: Machine::new("") }
    }

    /// One that also hands out the value of this header (give its name in lower case).
    #[must_use]
    pub fn watching(header: &'static str) -> Self {
        Self { machine: Machine::new(header) }
    }

    /// The same with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.machine.limits = limits;
        self
    }

    /// Whether the responses that begin from now on answer HEAD requests, and so have no bodies. Asked when a head ends.
    pub fn answers_head(&mut self, yes: bool) {
        self.machine.bodiless = yes;
    }

    /// Feed bytes; returns how many were consumed and what they brought. Call again with the rest, until everything is
    /// consumed and the event is `NeedMore`. A 1xx response is a `Head` and an `End` like any other.
    ///
    /// # Errors
    /// What is wrong with the message; the same again on every later call.
    #[inline]
    pub fn push<'a>(&'a mut self, input: &'a [u8]) -> Result<Step<'a, ResponseHead<'a>>, HttpError> {
        let bodiless = self.machine.bodiless;
        let Step { consumed, event } = self.machine.push(input)?;
        let event = match event {
            Event::Head(raw) => Event::Head(present(&raw, bodiless)),
            Event::Body(data) => Event::Body(data),
            Event::NeedMore => Event::NeedMore,
            Event::End => Event::End,
        };
        Ok(Step { consumed, event })
    }

    /// The common case in one call: a whole response with a known length at the beginning of the input. `None` says
    /// nothing and changes nothing: `push` the same bytes then.
    #[inline]
    pub fn whole<'a>(&'a mut self, input: &'a [u8]) -> Option<Whole<'a, ResponseHead<'a>>> {
        let bodiless = self.machine.bodiless;
        let Whole { consumed, head, body } = self.machine.whole(input)?;
        Some(Whole { consumed, head: present(&head, bodiless), body })
    }

    /// The peer closed: `Ok(true)` if that completed a response, `Ok(false)` if it came between messages.
    ///
    /// # Errors
    /// `ClosedEarly` if it cut a response short.
    pub fn finish(&mut self) -> Result<bool, HttpError> {
        self.machine.finish()
    }

    /// Between messages, and nothing buffered.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.machine.idle()
    }

    /// Begin again, for a new connection, with the buffers of the old one.
    pub fn reset(&mut self) {
        self.machine.reset();
    }
}

#[inline]
fn present<'a>(raw: &Raw<'a, ParsedResponse>, bodiless: bool) -> ResponseHead<'a> {
    let parsed = raw.parsed;
    let body = if bodiless { BodyLength::None } else { parsed.body };
    ResponseHead {
        status: parsed.status,
        keep_alive: parsed.keep_alive && body != BodyLength::UntilClose,
        body,
        watched: parsed.watched.map(|span| span.of(raw.bytes)),
    }
}
