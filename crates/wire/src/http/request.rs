//! Decodes requests for the reference server (RFC 9112 section 3; body length by section 6.3).
//!
//! Knows the head of a request. The server does the routing and answering.

use super::decoder::{Machine, Parsed, Raw, Syntax};
use super::head::{Fields, Span, line_break, text_end, token_end, version};
use super::{BodyLength, Connection, Decoded, HttpError, HttpEvent, Limits, Method, Version, WholeMessage};

/// What the head of a request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: Method,
    /// The path and query, even if the target was an absolute URL. `*` and authorities are handed out unchanged.
    pub path: &'a [u8],
    /// HTTP/1.0 or HTTP/1.1.
    pub version: Version,
    /// Whether the client wants to keep the connection.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expect_continue: bool,
    /// How the body is delimited; never `UntilClose`.
    pub body: BodyLength,
    /// The value of the watched header, without surrounding blanks. If there are several, the first.
    pub watched: Option<&'a [u8]>,
}

impl RequestHead<'_> {
    /// What the response must say about the connection for this client to understand it.
    #[must_use]
    pub fn connection(&self) -> Connection {
        match (self.keep_alive, self.version) {
            (false, _) => Connection::Close,
            (true, Version::Http11) => Connection::Implied,
            (true, Version::Http10) => Connection::KeepAlive,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct ParsedRequest {
    len: usize,
    method: Method,
    path: Span,
    version: Version,
    keep_alive: bool,
    expect_continue: bool,
    body: BodyLength,
    watched: Option<Span>,
}

impl Parsed for ParsedRequest {
    fn len(&self) -> usize {
        self.len
    }

    fn body(&self) -> BodyLength {
        self.body
    }

    fn memorable(&self) -> bool {
        self.watched.is_none()
    }
}

#[derive(Debug)]
struct RequestSyntax;

impl Syntax for RequestSyntax {
    type Parsed = ParsedRequest;

    #[expect(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "`blank` is found behind `start`, and `pos` behind a byte that `target` found"
    )]
    #[inline]
    fn parse(bytes: &[u8], watch: &[u8]) -> Result<ParsedRequest, HttpError> {
        // One empty line before a request is ignored (RFC 9112 section 2.2).
        let start = if bytes.starts_with(b"\r\n") { 2 } else { 0 };
        let blank = token_end(bytes, start);
        if blank == start || bytes.get(blank) != Some(&b' ') {
            return Err(if blank == bytes.len() { HttpError::ClosedEarly } else { HttpError::BadMethod });
        }
        let (target, pos) = target(bytes, blank + 1)?;
        let Some(name) = bytes.get(pos..).and_then(|rest| rest.first_chunk::<8>()) else {
            return Err(if bytes.len() - pos < 8 { HttpError::BadVersion } else { HttpError::ClosedEarly });
        };
        let version = version(*name)?;
        let next = line_break(bytes, pos + 8).map_err(|error| match error {
            HttpError::ControlCharacter => HttpError::BadVersion,
            other => other,
        })?;
        let fields = Fields::read::<true>(bytes, next, watch)?;
        if fields.hosts > 1 || (fields.hosts == 0 && version == Version::Http11) {
            return Err(HttpError::BadHost);
        }
        let body = fields.body(version, BodyLength::None)?;
        // RFC 9110 section 10.1.1: the expectation of an HTTP/1.0 client is ignored. Without a body it means nothing.
        let waits = version == Version::Http11 && !matches!(body, BodyLength::None | BodyLength::Exact(0));
        Ok(ParsedRequest {
            len: fields.end,
            method: Method::from_name(&bytes[start..blank]),
            path: path(bytes, target),
            version,
            keep_alive: fields.keeps_alive(version),
            expect_continue: fields.expect_continue && waits,
            body,
            watched: fields.watched,
        })
    }

    fn early(_: &[u8]) -> Result<(), HttpError> {
        Ok(())
    }

    fn negligible(bytes: &[u8]) -> bool {
        matches!(bytes, b"" | b"\r" | b"\r\n")
    }
}

/// The target that begins at `start`, and the position after the space that follows it.
#[expect(clippy::arithmetic_side_effects, reason = "the space at `start + length` is one of these bytes")]
#[inline]
fn target(bytes: &[u8], start: usize) -> Result<((usize, usize), usize), HttpError> {
    let stop = text_end(bytes, start);
    let text = bytes.get(start..stop).unwrap_or_default();
    let Some(length) = text.iter().position(|&b| !b.is_ascii_graphic()) else {
        // The line, or the input, ended before the version.
        return Err(if stop < bytes.len() { HttpError::BadVersion } else { HttpError::ClosedEarly });
    };
    if length == 0 || text.get(length) != Some(&b' ') {
        return Err(HttpError::BadTarget);
    }
    Ok(((start, start + length), start + length + 1))
}

/// The path in a target: all of it, or in an absolute URL the part after the authority (RFC 9112 section 3.2.2).
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "`target` found both ends in these bytes, and the scheme is their beginning"
)]
fn path(bytes: &[u8], (start, end): (usize, usize)) -> Span {
    let target = &bytes[start..end];
    let absolute = [&b"http://"[..], b"https://"]
        .into_iter()
        .find(|scheme| target.get(..scheme.len()).is_some_and(|t| t.eq_ignore_ascii_case(scheme)));
    match absolute {
        None => Span::new(start, end),
        Some(scheme) => {
            let authority = &target[scheme.len()..];
            let slash = authority.iter().position(|&b| b == b'/').unwrap_or(authority.len());
            Span::new(start + scheme.len() + slash, end)
        }
    }
}

/// Decodes the requests of one connection from arbitrary pieces.
#[derive(Debug)]
pub struct RequestDecoder {
    machine: Machine<RequestSyntax>,
}

impl Default for RequestDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestDecoder {
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

    /// Takes bytes. Returns how many were consumed and what was found in them. Call again with the rest until everything is
    /// consumed and the event is `NeedMore`.
    ///
    /// # Errors
    /// What is wrong with the message. Every later call returns the same error.
    #[inline]
    pub fn push<'a>(&'a mut self, input: &'a [u8]) -> Result<Decoded<'a, RequestHead<'a>>, HttpError> {
        let Decoded { consumed, event } = self.machine.push(input)?;
        let event = match event {
            HttpEvent::Head(raw) => HttpEvent::Head(present(&raw)),
            HttpEvent::Body(data) => HttpEvent::Body(data),
            HttpEvent::NeedMore => HttpEvent::NeedMore,
            HttpEvent::End => HttpEvent::End,
        };
        Ok(Decoded { consumed, event })
    }

    /// The common case in one call: a whole request of known length at the beginning of the input. `None` means nothing
    /// and changes nothing: `push` the same bytes instead.
    #[inline]
    pub fn whole<'a>(&'a mut self, input: &'a [u8]) -> Option<WholeMessage<'a, RequestHead<'a>>> {
        let WholeMessage { consumed, head, body } = self.machine.whole(input)?;
        Some(WholeMessage { consumed, head: present(&head), body })
    }

    /// Tells the decoder that the peer closed. `Ok(true)` if the `End` of a complete request has not been fetched yet,
    /// `Ok(false)` if the close came between messages.
    ///
    /// # Errors
    /// `ClosedEarly` if it cut a request short.
    pub fn finish(&mut self) -> Result<bool, HttpError> {
        self.machine.finish()
    }

    /// Whether the decoder is between messages, with nothing buffered.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.machine.idle()
    }

    /// Starts over for a new connection. Keeps the buffers.
    pub fn reset(&mut self) {
        self.machine.reset();
    }
}

#[inline]
fn present<'a>(raw: &Raw<'a, ParsedRequest>) -> RequestHead<'a> {
    let parsed = raw.parsed;
    let path = parsed.path.slice(raw.bytes);
    RequestHead {
        method: parsed.method,
        // An absolute URL may have an empty path, which means the root.
        path: if path.is_empty() { b"/" } else { path },
        version: parsed.version,
        keep_alive: parsed.keep_alive,
        expect_continue: parsed.expect_continue,
        body: parsed.body,
        watched: parsed.watched.map(|span| span.slice(raw.bytes)),
    }
}
