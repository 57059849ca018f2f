//! Makes heads of header blocks, and checks them (RFC 9113 section 8.3).
//!
//! A response's head is written as text, a line for each field, so that whoever reads heads of HTTP/1.1 can read it. A server
//! sends nearly the same block again and again: [`ResponseHeads`] remembers the last one, with what it meant and did.

use std::ops::Range;

use super::decoder::{Decoder, Facts};
use super::fields::{check, check_value, content_length};
use super::{BLOCK, Broken, Malformed, TABLE};

/// The longest block that is remembered.
const MEMO: usize = 512;

/// What the head of a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The three digits, 100 to 999.
    pub status: u16,
    /// The content-length.
    pub length: Option<u64>,
    /// The value of the watched field. If there are several, the first.
    pub watched: Option<&'a [u8]>,
    /// The head as text.
    pub text: &'a [u8],
}

/// What a head was read as.
#[derive(Clone, Debug, Default)]
struct Parsed {
    status: Option<u16>,
    length: Option<u64>,
    watched: Option<Range<usize>>,
    wrong: Option<Malformed>,
    /// Whether a field that is no pseudo-header has come.
    fields: bool,
}

/// The last block that was decoded.
#[derive(Debug, Default)]
struct Memo {
    block: Vec<u8>,
    facts: Facts,
    /// The generation of the table in which it was decoded.
    generation: u64,
    /// How often it came again without being decoded, although it inserts.
    pending: u32,
}

/// Reads the heads of responses, and their trailers, of one connection.
#[derive(Debug)]
pub struct ResponseHeads {
    decoder: Decoder,
    watch: &'static str,
    parsed: Parsed,
    text: Vec<u8>,
    memo: Memo,
}

impl ResponseHeads {
    /// A reader that also hands out the value of this field, if it has a name.
    #[must_use]
    pub fn watching(watch: &'static str) -> Self {
        Self::with_table(watch, TABLE)
    }

    /// The same for a peer that has heard of this size of the table before its first block.
    #[must_use]
    pub fn with_table(watch: &'static str, most: usize) -> Self {
        let (decoder, text) = (Decoder::new(most), Vec::new());
        Self { decoder, watch, parsed: Parsed::default(), text, memo: Memo::default() }
    }

    /// What the entries of the table count, of those that are in it already.
    #[must_use]
    pub fn table_size(&self) -> usize {
        self.decoder.size()
    }

    /// Reads the head of a response.
    ///
    /// # Errors
    /// The block breaks the connection. The inner error is of this message alone.
    #[inline]
    pub fn response(&mut self, block: &[u8]) -> Result<Result<Response<'_>, Malformed>, Broken> {
        if self.remembers(block) {
            self.repeat();
        } else {
            self.read(block)?;
        }
        let Self { parsed, text, .. } = self;
        let status = match (parsed.wrong, parsed.status) {
            (Some(wrong), _) => return Ok(Err(wrong)),
            (None, None) => return Ok(Err(Malformed("a response has no status"))),
            (None, Some(status)) => status,
        };
        let watched = parsed.watched.clone().and_then(|range| text.get(range));
        Ok(Ok(Response { status, length: parsed.length, watched, text }))
    }

    /// Whether this is the block of the last head again, means the same, and is right. Whoever accepts it calls
    /// [`ResponseHeads::repeat`] next; whoever does not, [`ResponseHeads::response`].
    #[inline]
    #[must_use]
    pub fn again(&self, block: &[u8]) -> bool {
        self.parsed.wrong.is_none() && self.remembers(block)
    }

    /// The status and the content-length of the last head. The status is 0 if it has none.
    #[inline]
    #[must_use]
    pub fn last(&self) -> (u16, Option<u64>) {
        (self.parsed.status.unwrap_or_default(), self.parsed.length)
    }

    /// The last block has come again.
    #[inline]
    pub fn repeat(&mut self) {
        // If it inserts, it reads nothing that was inserted. What it inserts matters when somebody does.
        self.memo.pending = self.memo.pending.saturating_add(u32::from(self.memo.facts.inserted > 0));
    }

    /// Whether this is the last block again, and means and does the same.
    #[inline]
    fn remembers(&self, block: &[u8]) -> bool {
        let memo = &self.memo;
        if memo.block.is_empty() || memo.block != block {
            return false;
        }
        !memo.facts.reads || memo.generation == self.decoder.generation()
    }

    /// Makes the insertions that are due, no more of them than the table can hold.
    fn catch_up(&mut self) -> Result<(), Broken> {
        let pending = std::mem::take(&mut self.memo.pending);
        let enough =
            self.decoder.most().checked_div(self.memo.facts.inserted).unwrap_or_default().saturating_add(1);
        for _ in 0..enough.min(pending as usize) {
            self.decoder.decode(&self.memo.block, |_, _| {})?;
        }
        Ok(())
    }

    fn read(&mut self, block: &[u8]) -> Result<(), Broken> {
        if self.memo.pending > 0 {
            self.catch_up()?;
        }
        self.memo.block.clear();
        let (watch, parsed, text) = (self.watch.as_bytes(), &mut self.parsed, &mut self.text);
        *parsed = Parsed::default();
        text.clear();
        let facts = self.decoder.decode(block, |name, value| {
            if let Err(wrong) = parsed.field(name, value, watch, text) {
                parsed.wrong.get_or_insert(wrong);
            }
        })?;
        text.extend_from_slice(b"\r\n");
        if facts.too_long {
            parsed.wrong = Some(TOO_LONG);
        }
        let changes = facts.resizes || (facts.reads && facts.inserted > 0);
        if block.len() <= MEMO && !changes && !facts.too_long {
            let memo = &mut self.memo;
            memo.block.extend_from_slice(block);
            (memo.facts, memo.generation) = (facts, self.decoder.generation());
        }
        Ok(())
    }

    /// Reads trailers.
    ///
    /// # Errors
    /// The block breaks the connection. The inner error is of this message alone.
    pub fn trailers(&mut self, block: &[u8]) -> Result<Result<(), Malformed>, Broken> {
        if self.memo.pending > 0 {
            self.catch_up()?;
        }
        trailers(&mut self.decoder, block)
    }
}

const TOO_LONG: Malformed = Malformed("a list of fields is longer than 64 KiB");

/// Reads trailers: fields without pseudo-headers.
fn trailers(decoder: &mut Decoder, block: &[u8]) -> Result<Result<(), Malformed>, Broken> {
    let mut result = Ok(());
    let facts = decoder.decode(block, |name, value| {
        let field = match name {
            [b':', ..] => Err(Malformed("a pseudo-header is among the trailers")),
            _ => check(name, value),
        };
        result = result.and(field);
    })?;
    Ok(if facts.too_long { result.and(Err(TOO_LONG)) } else { result })
}

impl Parsed {
    fn field(
        &mut self,
        name: &[u8],
        value: &[u8],
        watch: &[u8],
        text: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        if name.first() == Some(&b':') {
            if name != b":status" {
                return Err(Malformed("a response has a pseudo-header other than :status"));
            }
            if self.status.is_some() || self.fields {
                return Err(Malformed("the status is not the first field, or not the only one"));
            }
            let digits: [u8; 3] = value.try_into().map_err(|_| BAD_STATUS)?;
            if !digits.iter().all(u8::is_ascii_digit) || digits.first() == Some(&b'0') {
                return Err(BAD_STATUS);
            }
            let status = digits.iter().fold(0_u16, |sum, digit| {
                sum.wrapping_mul(10).wrapping_add(u16::from(digit.wrapping_sub(b'0')))
            });
            self.status = Some(status);
            text.extend_from_slice(b"HTTP/2 ");
            text.extend_from_slice(value);
            text.extend_from_slice(b"\r\n");
            return Ok(());
        }
        self.fields = true;
        check(name, value)?;
        text.extend_from_slice(name);
        text.extend_from_slice(b": ");
        let start = text.len();
        text.extend_from_slice(value);
        if name == watch && self.watched.is_none() {
            self.watched = Some(start..text.len());
        }
        text.extend_from_slice(b"\r\n");
        if name == b"content-length" {
            self.length = Some(content_length(value, self.length)?);
        }
        Ok(())
    }
}

const BAD_STATUS: Malformed = Malformed("the status is not three digits from 100 up");

/// What the head of a request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a [u8],
    /// Path and query.
    pub path: &'a [u8],
    /// The content-length.
    pub length: Option<u64>,
    /// The value of the watched field. If there are several, the first.
    pub watched: Option<&'a [u8]>,
    /// Whether the client waits for 100 before it sends the body.
    pub expect_continue: bool,
}

/// Reads the heads of requests, and their trailers, of one connection.
#[derive(Debug)]
pub struct RequestHeads {
    decoder: Decoder,
    watch: &'static str,
    bytes: Vec<u8>,
}

/// The parts of a request, which lie in `bytes`.
#[derive(Default)]
struct Parts {
    method: Option<Range<usize>>,
    path: Option<Range<usize>>,
    scheme: bool,
    authority: bool,
    length: Option<u64>,
    watched: Option<Range<usize>>,
    expect_continue: bool,
    fields: bool,
}

impl RequestHeads {
    /// A reader that also hands out the value of this field, if it has a name.
    #[must_use]
    pub fn watching(watch: &'static str) -> Self {
        Self { decoder: Decoder::default(), watch, bytes: Vec::new() }
    }

    /// Reads the head of a request.
    ///
    /// # Errors
    /// The block breaks the connection. The inner error is of this message alone.
    pub fn request(&mut self, block: &[u8]) -> Result<Result<Request<'_>, Malformed>, Broken> {
        let Self { decoder, watch, bytes } = self;
        bytes.clear();
        let (mut parts, mut result) = (Parts::default(), Ok(()));
        let facts = decoder.decode(block, |name, value| {
            if result.is_ok() {
                result = parts.field(name, value, watch.as_bytes(), bytes);
            }
        })?;
        if facts.too_long {
            result = Err(TOO_LONG);
        }
        Ok(result.and_then(|()| parts.finish(bytes)))
    }

    /// Reads trailers.
    ///
    /// # Errors
    /// The block breaks the connection. The inner error is of this message alone.
    pub fn trailers(&mut self, block: &[u8]) -> Result<Result<(), Malformed>, Broken> {
        trailers(&mut self.decoder, block)
    }
}

impl Parts {
    fn field(
        &mut self,
        name: &[u8],
        value: &[u8],
        watch: &[u8],
        bytes: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let mut keep = || {
            let start = bytes.len();
            bytes.extend_from_slice(value);
            start..bytes.len()
        };
        if name.first() != Some(&b':') {
            self.fields = true;
            check(name, value)?;
            match name {
                b"content-length" => self.length = Some(content_length(value, self.length)?),
                b"expect" => self.expect_continue = value.eq_ignore_ascii_case(b"100-continue"),
                _ if name == watch && self.watched.is_none() => self.watched = Some(keep()),
                _ => {}
            }
            return Ok(());
        }
        if self.fields {
            return Err(Malformed("a pseudo-header comes after other fields"));
        }
        check_value(value)?;
        let again = match name {
            b":method" => self.method.replace(keep()).is_some(),
            b":path" => self.path.replace(keep()).is_some(),
            b":scheme" => std::mem::replace(&mut self.scheme, true),
            b":authority" => std::mem::replace(&mut self.authority, true),
            _ => return Err(Malformed("a request has an unknown pseudo-header")),
        };
        if again { Err(Malformed("a request has a pseudo-header twice")) } else { Ok(()) }
    }

    fn finish(self, bytes: &[u8]) -> Result<Request<'_>, Malformed> {
        let slice = |range: Option<Range<usize>>| range.and_then(|range| bytes.get(range));
        let (Some(method), Some(path), true) = (slice(self.method), slice(self.path), self.scheme) else {
            return Err(Malformed("a request lacks :method, :path or :scheme"));
        };
        if path.is_empty() || method.is_empty() {
            return Err(Malformed("a request's :method or :path is empty"));
        }
        let watched = slice(self.watched);
        Ok(Request { method, path, length: self.length, watched, expect_continue: self.expect_continue })
    }
}

// A list of fields is never longer than what `BLOCK` allows, and so is its text.
const _: () = assert!(TABLE < BLOCK);
