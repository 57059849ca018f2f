//! Decodes responses for the generator (RFC 9112 section 4; body length by section 6.3).
//!
//! Knows the head of a response. The caller must say when it answers a HEAD request. CONNECT is not supported.

use super::decoder::{Machine, Parsed, Raw, Syntax};
use super::head::{Fields, Span, line_break, text_end, version};
use super::{BodyLength, Decoded, HttpError, HttpEvent, Limits, WholeMessage};

/// What the head of a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead<'a> {
    /// The three digits, 100 to 999.
    pub status: u16,
    /// Whether the connection may carry another request after this response.
    pub keep_alive: bool,
    /// How the body is delimited.
    pub body: BodyLength,
    /// The value of the watched header, without surrounding blanks. If there are several, the first.
    pub watched: Option<&'a [u8]>,
    /// The head as it was received.
    pub bytes: &'a [u8],
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
        // The watched header is an id: this head will not be received again.
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
        #[expect(clippy::arithmetic_side_effects, reason = "three digits are at most 999")]
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
        if start.iter().zip(HTTP).all(|(byte, right)| byte == right) {
            Ok(())
        } else {
            Err(HttpError::BadVersion)
        }
    }

    fn negligible(bytes: &[u8]) -> bool {
        bytes.is_empty()
    }
}

/// Decodes the responses of one connection from arbitrary pieces.
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

    /// A decoder that also hands out the value of this header. The name must be in lower case.
    #[must_use]
    pub fn watching(header: &'static str) -> Self {
        Self { machine: Machine::new(header) }
    }

    /// Replaces the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.machine.limits = limits;
        self
    }

    /// Sets whether the responses answer HEAD requests and so have no bodies. Takes effect at the end of the next head.
    pub fn answers_head(&mut self, yes: bool) {
        self.machine.bodiless = yes;
    }

    /// Takes bytes. Returns how many were consumed and what was found in them. Call again with the rest until everything is
    /// consumed and the event is `NeedMore`. A 1xx response is a `Head` and an `End` like any other.
    ///
    /// # Errors
    /// What is wrong with the message. Every later call returns the same error.
    #[inline]
    pub fn push<'a>(&'a mut self, input: &'a [u8]) -> Result<Decoded<'a, ResponseHead<'a>>, HttpError> {
        let bodiless = self.machine.bodiless;
        let Decoded { consumed, event } = self.machine.push(input)?;
        let event = match event {
            HttpEvent::Head(raw) => HttpEvent::Head(present(&raw, bodiless)),
            HttpEvent::Body(data) => HttpEvent::Body(data),
            HttpEvent::NeedMore => HttpEvent::NeedMore,
            HttpEvent::End => HttpEvent::End,
        };
        Ok(Decoded { consumed, event })
    }

    /// The common case in one call: a whole response of known length at the beginning of the input. `None` means nothing
    /// and changes nothing: `push` the same bytes instead.
    #[inline]
    pub fn whole<'a>(&'a mut self, input: &'a [u8]) -> Option<WholeMessage<'a, ResponseHead<'a>>> {
        let bodiless = self.machine.bodiless;
        let WholeMessage { consumed, head, body } = self.machine.whole(input)?;
        Some(WholeMessage { consumed, head: present(&head, bodiless), body })
    }

    /// Tells the decoder that the peer closed. `Ok(true)` if the close completed a response, `Ok(false)` if it came between
    /// messages.
    ///
    /// # Errors
    /// `ClosedEarly` if it cut a response short.
    pub fn finish(&mut self) -> Result<bool, HttpError> {
        self.machine.finish()
    }

    /// Whether the decoder is between messages, with nothing buffered.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.machine.idle()
    }

    /// Whether more of a chunk, or of a body without chunks, is still to come.
    #[must_use]
    pub fn is_amid_chunk(&self) -> bool {
        self.machine.is_amid_chunk()
    }

    /// Starts over for a new connection. Keeps the buffers.
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
        watched: parsed.watched.map(|span| span.slice(raw.bytes)),
        // Never longer than the bytes. An index that could panic would cost those who do not ask for it.
        bytes: raw.bytes.get(..parsed.len).unwrap_or_default(),
    }
}
