//! Encodes heads: requests for the generator, responses for the reference server (RFC 9112 sections 3 and 4).
//!
//! The decoders can read everything that is written here. The encoder rejects values that could end a line early,
//! contradict the body that follows, or repeat a header that may appear only once.

use super::head::{is_token, text_end};

/// The interim response that a client with `Expect: 100-continue` waits for.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Why a request cannot be written. Each error names the user's input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The method is not a token.
    #[error("the method {0:?} is not a token")]
    Method(String),
    /// The path is empty or contains spaces, control characters or characters outside ASCII.
    #[error(
        "the path {0:?} is empty, or contains spaces, control characters or characters that must be percent-encoded"
    )]
    Path(String),
    /// The host is empty or contains characters that are illegal in a host.
    #[error("the host {0:?} is empty or contains illegal characters")]
    Host(String),
    /// The header name is not a token.
    #[error("the header name {0:?} is not a token")]
    HeaderName(String),
    /// The header's value contains control characters.
    #[error("the value of header {0:?} contains control characters")]
    HeaderValue(String),
    /// A header that may appear only once is given twice.
    #[error("the header {0:?} is given twice")]
    Repeated(String),
    /// The header contradicts the body that is sent.
    #[error("the header {0:?} does not agree with the body that is sent")]
    Framing(String),
}

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestLine<'a> {
    /// The method, sent as it is.
    pub method: &'a str,
    /// The value of Host: a name or an address, with the port unless it is 80.
    pub host: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// The user's headers, sent as they are. They replace the default headers of the same name (Host, User-Agent,
    /// Content-Length, Connection, Expect).
    pub headers: &'a [(String, String)],
    /// The length of the body in bytes.
    pub body: Option<u64>,
    /// If false, the request says `Connection: close`.
    pub keep_alive: bool,
    /// Whether the request says `Expect: 100-continue`.
    pub expect_continue: bool,
}

impl RequestLine<'_> {
    /// Appends the head to `out`.
    ///
    /// # Errors
    /// The first illegal part. `out` is then unchanged.
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

    /// The Content-Length to send. Methods that expect a body send one even for an empty body (RFC 9110 section 8.6).
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
        self.headers
            .iter()
            .enumerate()
            .try_for_each(|(index, (name, value))| self.check_header(index, name, value))
    }

    fn check_header(&self, index: usize, name: &str, value: &str) -> Result<(), EncodeError> {
        if !is_token(name.as_bytes()) {
            return Err(EncodeError::HeaderName(name.to_owned()));
        }
        if text_end(value.as_bytes(), 0) != value.len() {
            return Err(EncodeError::HeaderValue(name.to_owned()));
        }
        let single = ["host", "content-length", "user-agent", "expect"];
        if single.iter().any(|one| name.eq_ignore_ascii_case(one))
            && self.headers.iter().take(index).any(|(before, _)| before.eq_ignore_ascii_case(name))
        {
            return Err(EncodeError::Repeated(name.to_owned()));
        }
        // The generator sends exactly `body` bytes and never chunks. Any other header would desynchronize the peer.
        let disagrees = name.eq_ignore_ascii_case("transfer-encoding")
            || (name.eq_ignore_ascii_case("content-length")
                && value.trim_ascii() != self.length().unwrap_or(0).to_string());
        if disagrees { Err(EncodeError::Framing(name.to_owned())) } else { Ok(()) }
    }
}

/// What a response says about its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Nothing. An HTTP/1.1 client then keeps the connection.
    Implied,
    /// `keep-alive`, which an HTTP/1.0 client needs in order to keep the connection.
    KeepAlive,
    /// `close`.
    Close,
}

/// Appends a response with a small body and at most one extra header.
///
/// An illegal extra header is left out. A header value that a decoder handed out is always legal.
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

/// Appends the head of a response whose body has `length` bytes. The body follows, except in an answer to HEAD.
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
        // A status has exactly three digits.
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
    encode_response_end(out, connection, extra);
}

/// Appends the end of a response's head: what it says about its connection, one extra header, and the empty line.
///
/// An illegal extra header is left out.
pub fn encode_response_end(out: &mut Vec<u8>, connection: Connection, extra: Option<(&str, &[u8])>) {
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

/// Whether a response with this status has a body (RFC 9112 section 6.3).
fn has_body(status: u16) -> bool {
    !matches!(status, 0..=199 | 204 | 304)
}

/// Appends a number in decimal, without an allocation.
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a number of 64 bits has at most 20 digits"
)]
fn put_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut pos = digits.len();
    loop {
        pos -= 1;
        digits[pos] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[pos..]);
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
