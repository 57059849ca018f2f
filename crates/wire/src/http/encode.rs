//! Heads as bytes: requests for the generator, responses for the reference server (RFC 9112 sections 3 and 4).
//!
//! Whatever is written here can be read by the decoders: nothing that could end a line early, frame a body differently
//! from what follows, or say a thing twice gets through.

use super::head::{is_token, text_end};

/// The interim response that a client with `Expect: 100-continue` waits for.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Why a request cannot be written. It names what the user gave.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The method is not a token.
    #[error("the method {0:?} is not a token")]
    Method(String),
    /// The path is empty or holds blanks, controls or characters outside ASCII.
    #[error(
        "the path {0:?} is empty, or holds blanks, control characters or characters that must be percent-encoded"
    )]
    Path(String),
    /// The host is empty or holds characters that no host has.
    #[error("the host {0:?} is empty or holds illegal characters")]
    Host(String),
    /// The header name is not a token.
    #[error("the header name {0:?} is not a token")]
    HeaderName(String),
    /// The header's value holds control characters.
    #[error("the value of header {0:?} holds control characters")]
    HeaderValue(String),
    /// A header that may stand once is given twice.
    #[error("the header {0:?} is given twice")]
    Repeated(String),
    /// The header says something else about the body than what is sent.
    #[error("the header {0:?} does not agree with the body that is sent")]
    Framing(String),
}

/// A request's head, to be written.
#[derive(Clone, Copy, Debug)]
pub struct RequestLine<'a> {
    /// The method, as it is sent.
    pub method: &'a str,
    /// The value of Host: name or address, with the port unless it is 80.
    pub host: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// The user's headers, written as they are; they replace the defaults (Host, User-Agent, Content-Length, Connection,
    /// Expect) of the same name.
    pub headers: &'a [(String, String)],
    /// How many body bytes follow.
    pub body: Option<u64>,
    /// Without this the request says `Connection: close`.
    pub keep_alive: bool,
    /// Say `Expect: 100-continue`.
    pub expect_continue: bool,
}

impl RequestLine<'_> {
    /// Appends the head's bytes to `out`.
    ///
    /// # Errors
    /// The first thing that is illegal; then `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.check()?;
        let mut line = |parts: &[&str]| {
            for part in parts {
                out.extend_from_slice(part.as_bytes());
            }
            out.extend_from_slice(b"\r\n");
        };
        line(&[self.method, " ", self.path, " HTTP/1.1"]);
        if !self.has("host") {
            line(&["Host: ", self.host]);
        }
        if !self.has("user-agent") {
            line(&["User-Agent: narrows/", env!("CARGO_PKG_VERSION")]);
        }
        if let Some(length) = self.length().filter(|_| !self.has("content-length")) {
            line(&["Content-Length: ", &length.to_string()]);
        }
        if !self.keep_alive && !self.has("connection") {
            line(&["Connection: close"]);
        }
        if self.expect_continue && !self.has("expect") {
            line(&["Expect: 100-continue"]);
        }
        for (name, value) in self.headers {
            line(&[name, ": ", value]);
        }
        line(&[]);
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name))
    }

    /// The length to announce. Methods that expect a body say so even when there is none (RFC 9110 section 8.6).
    fn length(&self) -> Option<u64> {
        self.body.or(matches!(self.method, "POST" | "PUT" | "PATCH").then_some(0))
    }

    fn check(&self) -> Result<(), EncodeError> {
        if !is_token(self.method.as_bytes()) {
            return Err(EncodeError::Method(self.method.to_owned()));
        }
        if self.path.is_empty() || !self.path.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(EncodeError::Path(self.path.to_owned()));
        }
        let hostly = |b: u8| b.is_ascii_graphic() && !matches!(b, b'/' | b'?' | b'#' | b'@' | b',');
        if self.host.is_empty() || !self.host.bytes().all(hostly) {
            return Err(EncodeError::Host(self.host.to_owned()));
        }
        self.headers.iter().enumerate().try_for_each(|(at, (name, value))| self.check_header(at, name, value))
    }

    fn check_header(&self, at: usize, name: &str, value: &str) -> Result<(), EncodeError> {
        if !is_token(name.as_bytes()) {
            return Err(EncodeError::HeaderName(name.to_owned()));
        }
        if text_end(value.as_bytes(), 0) != value.len() {
            return Err(EncodeError::HeaderValue(name.to_owned()));
        }
        let single = ["host", "content-length", "user-agent", "expect"];
        if single.iter().any(|one| name.eq_ignore_ascii_case(one))
            && self.headers[..at].iter().any(|(before, _)| before.eq_ignore_ascii_case(name))
        {
            return Err(EncodeError::Repeated(name.to_owned()));
        }
        // The generator sends exactly `body` bytes and never chunks; any other announcement would desynchronize it.
        let disagrees = name.eq_ignore_ascii_case("transfer-encoding")
            || (name.eq_ignore_ascii_case("content-length")
                && value.trim_ascii() != self.length().unwrap_or(0).to_string());
        if disagrees { Err(EncodeError::Framing(name.to_owned())) } else { Ok(()) }
    }
}

/// What a response says about its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Nothing: to an HTTP/1.1 client that means it lasts.
    Implied,
    /// `keep-alive`, which an HTTP/1.0 client needs to hear.
    KeepAlive,
    /// `close`.
    Close,
}

/// Appends a response with a small body: status, at most one extra header, and the connection's fate.
///
/// An extra header that is not legal is left out; one that a decoder handed out always is.
pub fn encode_response(
    out: &mut Vec<u8>,
    status: u16,
    keep_alive: bool,
    extra: Option<(&str, &[u8])>,
    body: &[u8],
) {
    let connection = if keep_alive { Connection::Implied } else { Connection::Close };
    encode_response_head(out, status, connection, extra, body.len() as u64);
    if has_body(status) {
        out.extend_from_slice(body);
    }
}

/// Appends a response's head, for a body of `length` bytes that follows (or, after HEAD, does not).
pub fn encode_response_head(
    out: &mut Vec<u8>,
    status: u16,
    connection: Connection,
    extra: Option<(&str, &[u8])>,
    length: u64,
) {
    if status == 200 {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    } else {
        out.extend_from_slice(b"HTTP/1.1 ");
        // Three digits, or the reader could not find its place.
        put_decimal(out, u64::from(status.clamp(100, 999)));
        out.extend_from_slice(b" ");
        out.extend_from_slice(reason(status).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if has_body(status) {
        out.extend_from_slice(b"Content-Length: ");
        put_decimal(out, length);
        out.extend_from_slice(b"\r\n");
    }
    match connection {
        Connection::Implied => {}
        Connection::KeepAlive => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        Connection::Close => out.extend_from_slice(b"Connection: close\r\n"),
    }
    if let Some((name, value)) = extra
        && is_token(name.as_bytes())
        && text_end(value, 0) == value.len()
    {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Statuses whose responses end with their head (RFC 9112 section 6.3).
fn has_body(status: u16) -> bool {
    !matches!(status, 0..=199 | 204 | 304)
}

/// Decimal digits without an allocation.
fn put_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        417 => "Expectation Failed",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}
