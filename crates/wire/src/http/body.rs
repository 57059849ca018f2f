//! Chunked bodies (RFC 9112 section 7.1): payload out, framing, extensions and trailers skipped.
//!
//! Knows where in a chunk it stands and nothing of heads; a body of known length needs no more than a counter, which the
//! decoder keeps.

use super::{HttpError, Limits};

/// What a piece of a chunked body brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    More,
    Data(&'a [u8]),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the digits of a size; true once there is at least one.
    Size(bool),
    /// Blanks after the size: only an extension or the line's end may follow.
    Blank,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the beginning of a trailer line.
    Trailer,
    TrailerText,
    TrailerLf,
    LastLf,
}

/// Where in a chunked body the stream stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunked {
    place: Place,
    /// The size being read, then what is left of the chunk.
    left: u64,
    /// Bytes of the current size line, or of all trailers.
    line: usize,
}

impl Chunked {
    pub(super) fn new() -> Self {
        Self { place: Place::Size(false), left: 0, line: 0 }
    }

    /// Returns how many bytes were consumed and what they brought.
    pub(super) fn push<'a>(
        &mut self,
        input: &'a [u8],
        limits: &Limits,
    ) -> Result<(usize, Piece<'a>), HttpError> {
        let mut at = 0;
        while let Some(&byte) = input.get(at) {
            if self.place == Place::Data {
                let rest = &input[at..];
                // A chunk longer than the address space still ends where the input does.
                let take = usize::try_from(self.left).unwrap_or(usize::MAX).min(rest.len());
                self.left -= take as u64;
                if self.left == 0 {
                    self.place = Place::DataCr;
                }
                return Ok((at + take, Piece::Data(&rest[..take])));
            }
            at += 1;
            if self.framing(byte, limits)? {
                return Ok((at, Piece::End));
            }
        }
        Ok((at, Piece::More))
    }

    /// Takes one byte that is not payload; true when it was the body's last.
    fn framing(&mut self, byte: u8, limits: &Limits) -> Result<bool, HttpError> {
        self.line += 1;
        self.place = match self.place {
            Place::Size(_) | Place::Blank | Place::Extension => self.size_line(byte, limits)?,
            Place::SizeLf => {
                expect(byte, b'\n', HttpError::BareCr)?;
                self.line = 0;
                if self.left == 0 { Place::Trailer } else { Place::Data }
            }
            Place::DataCr => expect(byte, b'\r', HttpError::BadChunkEnd).map(|()| Place::DataLf)?,
            Place::DataLf => {
                expect(byte, b'\n', HttpError::BadChunkEnd)?;
                self.line = 0;
                Place::Size(false)
            }
            Place::Trailer | Place::TrailerText => self.trailer_line(byte, limits)?,
            Place::TrailerLf => expect(byte, b'\n', HttpError::BareCr).map(|()| Place::Trailer)?,
            Place::LastLf => {
                expect(byte, b'\n', HttpError::BareCr)?;
                return Ok(true);
            }
            // `push` deals with payload itself.
            Place::Data => Place::Data,
        };
        Ok(false)
    }

    fn size_line(&mut self, byte: u8, limits: &Limits) -> Result<Place, HttpError> {
        if self.line > limits.chunk_line {
            return Err(HttpError::ChunkLineTooLong);
        }
        if let Place::Size(_) = self.place
            && let Some(digit) = (byte as char).to_digit(16)
        {
            let size = self.left.checked_mul(16).and_then(|left| left.checked_add(u64::from(digit)));
            self.left = size.ok_or(HttpError::BadChunkSize)?;
            return Ok(Place::Size(true));
        }
        match (self.place, byte) {
            (Place::Size(false), _) => Err(HttpError::BadChunkSize),
            (_, b'\r') => Ok(Place::SizeLf),
            (Place::Extension, _) => text(byte).map(|()| Place::Extension),
            (_, b';') => Ok(Place::Extension),
            (_, b' ' | b'\t') => Ok(Place::Blank),
            (_, b'\n') => Err(HttpError::BareLf),
            _ => Err(HttpError::BadChunkSize),
        }
    }

    fn trailer_line(&mut self, byte: u8, limits: &Limits) -> Result<Place, HttpError> {
        if self.line > limits.head {
            return Err(HttpError::ChunkLineTooLong);
        }
        match (self.place, byte) {
            (Place::Trailer, b'\r') => Ok(Place::LastLf),
            (_, b'\r') => Ok(Place::TrailerLf),
            _ => text(byte).map(|()| Place::TrailerText),
        }
    }
}

fn expect(byte: u8, wanted: u8, error: HttpError) -> Result<(), HttpError> {
    if byte == wanted { Ok(()) } else { Err(error) }
}

/// Text that is skipped must still be text, or a message could end where its sender did not mean it to.
fn text(byte: u8) -> Result<(), HttpError> {
    match byte {
        b'\n' => Err(HttpError::BareLf),
        b'\t' | 0x20..=0x7e | 0x80.. => Ok(()),
        _ => Err(HttpError::ControlCharacter),
    }
}
