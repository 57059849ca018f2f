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

/// The head of an HTTP answer.
struct Head {
    /// Its length in bytes, with the blank line.
    end: usize,
    status: String,
    content_length: Option<String>,
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
        let lengths = lines.filter_map(|line| line.split_once(':'));
        let length = lengths
            .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map(|(_, value)| value.trim().to_owned());
        Ok(Head { end, status, content_length: length.last() })
    }

    /// Reads the next complete answer.
    pub(super) fn answer(&mut self) -> Result<Response, String> {
        let Head { end, status, content_length } = self.head()?;
        let Some(length) = content_length else { return Err("an answer without Content-Length".to_owned()) };
        let length: usize = length.parse().map_err(|_| format!("Content-Length is {length:?}"))?;
        self.receive_until(|bytes| bytes.len() >= end.saturating_add(length))?;
        let body = self.held[end..end + length].to_vec();
        self.held.drain(..end + length);
        Ok(Response { status, body })
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

/// Formats bytes for a message.
pub(super) fn shown(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes[..bytes.len().min(60)].escape_ascii())
}
