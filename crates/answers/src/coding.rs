//! The codings in which bodies are compressed (RFC 9110 section 8.4).
//!
//! A body is decoded when it is whole, and never to more than a limit: a small body can stand for a very large one.

use std::borrow::Cow;
use std::fmt;
use std::io::{ErrorKind, Read};

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::found::Excerpt;
use crate::head::Head;

/// The value of `Accept-Encoding`: all codings that [`decode`] knows.
pub const ACCEPTED: &str = "gzip, deflate, br, zstd";

/// Adds to the headers of a request that all these codings are accepted, unless they say what is.
pub fn accept(headers: &mut Vec<(String, String)>) {
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept-encoding")) {
        headers.push(("Accept-Encoding".to_owned(), ACCEPTED.to_owned()));
    }
}

/// The largest window of zstd that HTTP allows (RFC 9659).
const WINDOW: u64 = 8 << 20;
/// More codings than this around one body are refused.
const MOST: usize = 4;
/// Bytes that are decoded at a time.
const PIECE: usize = 16 * 1024;

/// A coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// `gzip` (RFC 1952).
    Gzip,
    /// `deflate`: zlib (RFC 1950). Some servers send deflate without zlib's frame, which is accepted, too.
    Deflate,
    /// `br` (RFC 7932).
    Brotli,
    /// `zstd` (RFC 8878).
    Zstd,
}

impl Coding {
    /// The name in `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    fn from_name(name: &[u8]) -> Option<Self> {
        if name.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Self::Gzip);
        }
        let all = [Self::Gzip, Self::Deflate, Self::Brotli, Self::Zstd];
        all.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.name().as_bytes()))
    }
}

/// Why a body cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// It has a coding that was not asked for.
    Unknown(Excerpt),
    /// It has more codings than anyone needs.
    Many,
    /// It is not what its coding says.
    Damaged(Coding),
    /// It ends before its coding does.
    Short(Coding),
    /// It goes on after the end of its coding.
    Long(Coding),
    /// Decoded, it is longer than the limit.
    Limit,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "the body has the coding \"{name}\", which was not asked for"),
            Self::Many => write!(f, "the body has more than {MOST} codings"),
            Self::Damaged(coding) => write!(f, "the body cannot be decoded: it is not {}", coding.name()),
            Self::Short(coding) => write!(f, "the body cannot be decoded: its {} ends early", coding.name()),
            Self::Long(coding) => {
                write!(f, "the body cannot be decoded: it goes on after its {} ends", coding.name())
            }
            Self::Limit => f.write_str("the decoded body is longer than the limit"),
        }
    }
}

/// The codings of a body, in the order in which they were applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Encodings {
    codings: [Option<Coding>; MOST],
    count: usize,
}

impl Encodings {
    /// What the `Content-Encoding` lines of a head say.
    ///
    /// # Errors
    /// There are unknown codings, or too many.
    pub fn of(head: Head<'_>) -> Result<Self, Broken> {
        let mut found = Self::default();
        let names = head.values("content-encoding").flat_map(|value| value.split(|byte| *byte == b','));
        let names = names.map(<[u8]>::trim_ascii);
        for name in names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case(b"identity")) {
            let coding = Coding::from_name(name).ok_or_else(|| Broken::Unknown(Excerpt::of(name)))?;
            *found.codings.get_mut(found.count).ok_or(Broken::Many)? = Some(coding);
            found.count = found.count.saturating_add(1);
        }
        Ok(found)
    }

    /// Whether the body is as it is.
    pub fn is_empty(self) -> bool {
        self.count == 0
    }
}

/// Decodes a body of at most `limit` decoded bytes.
///
/// # Errors
/// The body is not what its codings say, or too long.
pub fn decode(encodings: Encodings, body: &[u8], limit: u64) -> Result<Vec<u8>, Broken> {
    let mut decoded = Cow::Borrowed(body);
    // An empty body is no empty stream: servers leave the coding's name in the head of an answer without content.
    if !body.is_empty() {
        for coding in encodings.codings.into_iter().rev().flatten() {
            decoded = Cow::Owned(undo(coding, &decoded, limit)?);
        }
    }
    Ok(decoded.into_owned())
}

fn undo(coding: Coding, body: &[u8], limit: u64) -> Result<Vec<u8>, Broken> {
    let mut out = Out { coding, limit, bytes: Vec::new() };
    let rest = match coding {
        Coding::Gzip => {
            let mut reader = MultiGzDecoder::new(body);
            out.fill(&mut reader)?;
            reader.into_inner()
        }
        Coding::Deflate if is_zlib(body) => {
            let mut reader = ZlibDecoder::new(body);
            out.fill(&mut reader)?;
            reader.into_inner()
        }
        Coding::Deflate => {
            let mut reader = DeflateDecoder::new(body);
            out.fill(&mut reader)?;
            reader.into_inner()
        }
        Coding::Brotli => out.brotli(body)?,
        Coding::Zstd => out.zstd(body)?,
    };
    if rest.is_empty() { Ok(out.bytes) } else { Err(Broken::Long(coding)) }
}

/// Whether a body begins with the frame of zlib: its method is deflate, and its first 16 bits are a multiple of 31.
fn is_zlib(body: &[u8]) -> bool {
    matches!(body, [method, flags, ..] if method & 15 == 8 && u16::from_be_bytes([*method, *flags]) % 31 == 0)
}

/// What is decoded.
struct Out {
    coding: Coding,
    limit: u64,
    bytes: Vec<u8>,
}

impl Out {
    fn add(&mut self, piece: &[u8]) -> Result<(), Broken> {
        self.bytes.extend_from_slice(piece);
        if self.bytes.len() as u64 > self.limit { Err(Broken::Limit) } else { Ok(()) }
    }

    #[expect(clippy::indexing_slicing, reason = "a reader fills in no more than the piece has")]
    fn fill(&mut self, reader: &mut impl Read) -> Result<(), Broken> {
        let mut piece = [0; PIECE];
        loop {
            match reader.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(count) => self.add(&piece[..count])?,
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Err(Broken::Short(self.coding));
                }
                Err(_) => return Err(Broken::Damaged(self.coding)),
            }
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "the decoder counts what it read of the body and wrote to the piece"
    )]
    fn brotli<'a>(&mut self, body: &'a [u8]) -> Result<&'a [u8], Broken> {
        let memory = StandardAlloc::default;
        // Strict: without the large windows that are no part of the standard.
        let mut state = BrotliState::new_strict(memory(), memory(), memory());
        let mut piece = [0; PIECE];
        let (mut left, mut at, mut total) = (body.len(), 0, 0);
        loop {
            let (mut room, mut filled) = (piece.len(), 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut at,
                body,
                &mut room,
                &mut filled,
                &mut piece,
                &mut total,
                &mut state,
            );
            self.add(&piece[..filled])?;
            match result {
                BrotliResult::ResultSuccess => return Ok(&body[at..]),
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::NeedsMoreInput => return Err(Broken::Short(self.coding)),
                BrotliResult::ResultFailure => return Err(Broken::Damaged(self.coding)),
            }
        }
    }

    /// Decodes frame after frame, with one decoder, because each has a window.
    fn zstd<'a>(&mut self, mut body: &'a [u8]) -> Result<&'a [u8], Broken> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW);
        while !body.is_empty() {
            let mut reader = StreamingDecoder::new_with_decoder(&mut body, &mut decoder)
                .map_err(|_| Broken::Damaged(self.coding))?;
            let filled = self.fill(&mut reader);
            // The library does not say whether the bytes were wrong or too few.
            let short = reader.get_ref().is_empty();
            filled.map_err(|broken| match broken {
                Broken::Damaged(coding) if short => Broken::Short(coding),
                broken => broken,
            })?;
            let sent = decoder.get_checksum_from_data();
            if sent.is_some() && sent != decoder.get_calculated_checksum() {
                return Err(Broken::Damaged(self.coding));
            }
        }
        Ok(body)
    }
}
