//! A connection to a server under check. Sends bytes, reads HTTP answers and notices a close. Parses answers
//! itself, so that the generator's codec does not check itself.

use std::io::{self, ErrorKind};
use std::time::Duration;

use systems::contact::{Access, Contact};

/// How long a server may take for a small answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for something that must not happen.
const GLANCE: Duration = Duration::from_millis(150);

/// A connection.
pub(super) struct RawConnection {
    contact: Contact,
    /// Bytes that were received but not yet consumed.
    held: Vec<u8>,
}

/// An HTTP answer.
pub(super) struct Response {
    pub(super) status: String,
    pub(super) body: Vec<u8>,
}

/// An answer that came piece by piece.
pub(super) struct Stream {
    pub(super) status: String,
    pub(super) content_type: String,
    /// The body, with line feeds only.
    pub(super) body: String,
    /// How many reads brought ends of events.
    pub(super) reads: usize,
}

/// The head of an HTTP answer.
struct Head {
    /// Its length in bytes, with the blank line.
    end: usize,
    status: String,
    content_length: Option<String>,
    content_type: String,
    chunked: bool,
}

impl RawConnection {
    pub(super) fn open(access: &Access) -> Result<Self, String> {
        let contact = Contact::open(access, PATIENCE).map_err(|e| format!("cannot connect: {e}"))?;
        Ok(Self { contact, held: Vec::new() })
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.contact.write_all(bytes).map_err(|e| format!("it does not read: {e}"))
    }

    pub(super) fn half_close(&mut self) -> Result<(), String> {
        self.contact.half_close().map_err(|e| e.to_string())
    }

    /// Receives more bytes and returns how many. 0 means that the server closed.
    fn receive(&mut self, patience: Duration) -> io::Result<usize> {
        let mut buffer = [0; 4096];
        loop {
            match self.contact.read_within(&mut buffer, patience) {
                Ok(n) => {
                    self.held.extend_from_slice(&buffer[..n]);
                    return Ok(n);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    let message = format!("nothing within {} ms", patience.as_millis());
                    return Err(io::Error::new(ErrorKind::TimedOut, message));
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Receives until there are enough bytes.
    fn receive_until(&mut self, enough: impl Fn(&[u8]) -> bool) -> Result<(), String> {
        while !enough(&self.held) {
            if self.held.len() > 1 << 20 {
                return Err("more than a megabyte of an answer".to_owned());
            }
            if self.receive(PATIENCE).map_err(|e| e.to_string())? == 0 {
                return Err(format!("closed after {} bytes: {}", self.held.len(), shown(&self.held)));
            }
        }
        Ok(())
    }

    /// Receives the head of the next answer, and leaves it unconsumed.
    fn head(&mut self) -> Result<Head, String> {
        let end = |bytes: &[u8]| bytes.windows(4).position(|window| window == b"\r\n\r\n");
        self.receive_until(|bytes| end(bytes).is_some())?;
        let end = end(&self.held).unwrap_or_default() + 4;
        let head = String::from_utf8_lossy(&self.held[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        if !first.starts_with("HTTP/1.") {
            return Err(format!("not HTTP/1: {}", shown(first.as_bytes())));
        }
        let status = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
        let last = |wanted: &str| {
            let named = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
            named.map(|(_, value)| value.trim().to_owned()).next_back()
        };
        let chunked = last("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
        let content_type = last("content-type").unwrap_or_default();
        Ok(Head { end, status, content_length: last("content-length"), content_type, chunked })
    }

    /// Reads the next complete answer.
    pub(super) fn answer(&mut self) -> Result<Response, String> {
        let Head { end, status, content_length, .. } = self.head()?;
        let Some(length) = content_length else { return Err("an answer without Content-Length".to_owned()) };
        let length: usize = length.parse().map_err(|_| format!("Content-Length is {length:?}"))?;
        self.receive_until(|bytes| bytes.len() >= end.saturating_add(length))?;
        let body = self.held[end..end + length].to_vec();
        self.held.drain(..end + length);
        Ok(Response { status, body })
    }

    /// Reads the next answer to its end, and counts the reads that brought ends of events.
    pub(super) fn stream(&mut self) -> Result<Stream, String> {
        let Head { end, status, content_length, content_type, chunked } = self.head()?;
        self.held.drain(..end);
        let length = content_length.and_then(|length| length.parse::<usize>().ok());
        let (mut events, mut reads, mut closed) = (0, 0, false);
        loop {
            let (body, rest) = match length {
                _ if chunked => unchunked(&self.held)?,
                Some(length) if self.held.len() >= length => (self.held[..length].to_vec(), Some(length)),
                None if closed => (self.held.clone(), Some(self.held.len())),
                _ => (self.held.clone(), None),
            };
            let body = String::from_utf8_lossy(&body).replace("\r\n", "\n");
            let now = body.matches("\n\n").count();
            reads += usize::from(now > events);
            events = now;
            if let Some(rest) = rest {
                self.held.drain(..rest);
                return Ok(Stream { status, content_type, body, reads });
            }
            if closed {
                return Err(format!("closed in the middle of the answer, after {events} events"));
            }
            closed = self.receive(PATIENCE).map_err(|e| format!("after {events} events: {e}"))? == 0;
        }
    }

    /// Waits for the next answer, and consumes it if it is `100 Continue`. Returns the status of any other answer, which is
    /// left for [`answer`](Self::answer).
    pub(super) fn continues(&mut self) -> Result<Option<String>, String> {
        let Head { end, status, .. } = self.head()?;
        if status != "100" {
            return Ok(Some(status));
        }
        self.held.drain(..end);
        Ok(None)
    }

    /// Reads exactly `length` bytes.
    pub(super) fn read_exactly(&mut self, length: usize) -> Result<Vec<u8>, String> {
        self.receive_until(|bytes| bytes.len() >= length)?;
        Ok(self.held.drain(..length).collect())
    }

    /// Checks that the server sends nothing for a moment and does not close.
    pub(super) fn stays_silent(&mut self) -> Result<(), String> {
        match self.held.is_empty().then(|| self.receive(GLANCE)) {
            Some(Err(_)) => Ok(()),
            Some(Ok(0)) => Err("it closed".to_owned()),
            _ => Err(format!("it sent {}", shown(&self.held))),
        }
    }

    /// Checks that the server closes and sends nothing more.
    pub(super) fn closes(&mut self) -> Result<(), String> {
        while self.held.is_empty() {
            match self.receive(PATIENCE) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                // The kernel resets a connection that is closed with unread data. Many servers end TLS without a word.
                Err(e) if matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof) => {
                    return Ok(());
                }
                Err(_) => return Err(format!("the connection is still open after {} s", PATIENCE.as_secs())),
            }
        }
        Err(format!("unexpected bytes after the answer: {}", shown(&self.held)))
    }
}

/// The body that chunks carry, as far as it has come, and where it ends if it has.
fn unchunked(bytes: &[u8]) -> Result<(Vec<u8>, Option<usize>), String> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let left = &bytes[at..];
        let Some(line) = left.windows(2).position(|pair| pair == b"\r\n") else { return Ok((body, None)) };
        let word = String::from_utf8_lossy(&left[..line]).into_owned();
        let size = word.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| format!("`{word}` is no size of a chunk"))?;
        let end = size.checked_add(line + 4).filter(|end| left.len() >= *end);
        let Some(end) = end else { return Ok((body, None)) };
        if &left[end - 2..end] != b"\r\n" {
            return Err("a chunk, or what follows the last one, does not end with an empty line".to_owned());
        }
        if size == 0 {
            return Ok((body, Some(at + end)));
        }
        body.extend_from_slice(&left[line + 2..end - 2]);
        at += end;
    }
}

/// Formats bytes for a message.
pub(super) fn shown(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes[..bytes.len().min(60)].escape_ascii())
}
