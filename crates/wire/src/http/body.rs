//! Chunked bodies (RFC 9112 section 7.1). Hands out the payload; skips framing, extensions and trailers.
//!
//! Knows nothing of heads. A body of known length needs only a counter, which the decoder keeps.

use super::head::of_token;
use super::{HttpError, Limits};

/// What the decoder found in a piece of a chunked body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    More,
    Data(&'a [u8]),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    /// In the digits of a size; true after the first digit.
    Size(bool),
    /// After blanks behind the size: only an extension or the end of the line may follow.
    Blank,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the beginning of a trailer line.
    Trailer,
    TrailerName,
    TrailerValue,
    TrailerLf,
    LastLf,
}

/// The decoder of one chunked body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunked {
    state: ChunkState,
    /// The chunk size while it is being read, then the bytes left in the chunk.
    left: u64,
    /// Length so far of the current size line, or of all trailers.
    line: usize,
}

impl Chunked {
    pub(super) fn new() -> Self {
        Self { state: ChunkState::Size(false), left: 0, line: 0 }
    }

    /// Whether more of a chunk is still to come.
    pub(super) fn is_amid(&self) -> bool {
        self.state == ChunkState::Data
    }

    /// Returns how many bytes were consumed, and what was in them.
    #[expect(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "`pos` is that of a byte of the input, and `take` at most the length of the rest and of what is left"
    )]
    pub(super) fn push<'a>(
        &mut self,
        input: &'a [u8],
        limits: &Limits,
    ) -> Result<(usize, Piece<'a>), HttpError> {
        let mut pos = 0;
        while let Some(&byte) = input.get(pos) {
            if self.state == ChunkState::Data {
                let rest = &input[pos..];
                // A chunk may be longer than the address space; the input is not.
                let take = usize::try_from(self.left).unwrap_or(usize::MAX).min(rest.len());
                self.left -= take as u64;
                if self.left == 0 {
                    self.state = ChunkState::DataCr;
                }
                return Ok((pos + take, Piece::Data(&rest[..take])));
            }
            pos += 1;
            if self.framing(byte, limits)? {
                return Ok((pos, Piece::End));
            }
        }
        Ok((pos, Piece::More))
    }

    /// Takes one byte of framing. Returns true if it was the last byte of the body.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "a line over its limit is an error, and a state without a limit takes one byte"
    )]
    fn framing(&mut self, byte: u8, limits: &Limits) -> Result<bool, HttpError> {
        self.line += 1;
        self.state = match self.state {
            ChunkState::Size(_) | ChunkState::Blank | ChunkState::Extension => {
                self.size_line(byte, limits)?
            }
            ChunkState::SizeLf => {
                expect(byte, b'\n', HttpError::BareCr)?;
                self.line = 0;
                if self.left == 0 { ChunkState::Trailer } else { ChunkState::Data }
            }
            ChunkState::DataCr => expect(byte, b'\r', HttpError::BadChunkEnd).map(|()| ChunkState::DataLf)?,
            ChunkState::DataLf => {
                expect(byte, b'\n', HttpError::BadChunkEnd)?;
                self.line = 0;
                ChunkState::Size(false)
            }
            ChunkState::Trailer | ChunkState::TrailerName | ChunkState::TrailerValue => {
                self.trailer_line(byte, limits)?
            }
            ChunkState::TrailerLf => expect(byte, b'\n', HttpError::BareCr).map(|()| ChunkState::Trailer)?,
            ChunkState::LastLf => {
                expect(byte, b'\n', HttpError::BareCr)?;
                return Ok(true);
            }
            // Unreachable: `push` handles payload itself.
            ChunkState::Data => ChunkState::Data,
        };
        Ok(false)
    }

    fn size_line(&mut self, byte: u8, limits: &Limits) -> Result<ChunkState, HttpError> {
        if self.line > limits.chunk_line {
            return Err(HttpError::ChunkLineTooLong);
        }
        if let ChunkState::Size(_) = self.state
            && let Some(digit) = (byte as char).to_digit(16)
        {
            let size = self.left.checked_mul(16).and_then(|left| left.checked_add(u64::from(digit)));
            self.left = size.ok_or(HttpError::BadChunkSize)?;
            return Ok(ChunkState::Size(true));
        }
        match (self.state, byte) {
            (ChunkState::Size(false), _) => Err(HttpError::BadChunkSize),
            (_, b'\r') => Ok(ChunkState::SizeLf),
            (ChunkState::Extension, _) => text(byte).map(|()| ChunkState::Extension),
            (_, b';') => Ok(ChunkState::Extension),
            (_, b' ' | b'\t') => Ok(ChunkState::Blank),
            (_, b'\n') => Err(HttpError::BareLf),
            _ => Err(HttpError::BadChunkSize),
        }
    }

    /// Trailers are skipped, but each line must be a field line (section 7.1.2), as in a head.
    fn trailer_line(&mut self, byte: u8, limits: &Limits) -> Result<ChunkState, HttpError> {
        if self.line > limits.head {
            return Err(HttpError::ChunkLineTooLong);
        }
        match (self.state, byte) {
            (ChunkState::TrailerValue, b'\r') => Ok(ChunkState::TrailerLf),
            (ChunkState::TrailerValue, _) => text(byte).map(|()| ChunkState::TrailerValue),
            (ChunkState::Trailer, b'\r') => Ok(ChunkState::LastLf),
            (ChunkState::Trailer, b'\n') => Err(HttpError::BareLf),
            (ChunkState::Trailer, b' ' | b'\t') => Err(HttpError::FoldedHeader),
            (ChunkState::TrailerName, b':') => Ok(ChunkState::TrailerValue),
            _ if of_token(byte) => Ok(ChunkState::TrailerName),
            _ => Err(HttpError::BadHeaderName),
        }
    }
}

fn expect(byte: u8, wanted: u8, error: HttpError) -> Result<(), HttpError> {
    if byte == wanted { Ok(()) } else { Err(error) }
}

/// Checks a byte of skipped text. A control character there could end the message where its sender did not intend.
fn text(byte: u8) -> Result<(), HttpError> {
    match byte {
        b'\n' => Err(HttpError::BareLf),
        b'\t' | 0x20..=0x7e | 0x80.. => Ok(()),
        _ => Err(HttpError::ControlCharacter),
    }
}
