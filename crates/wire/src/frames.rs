//! Length-prefixed frames: a big-endian length of one, two or four bytes, then that many bytes.
//!
//! Does not look inside the payload, except for the 16-byte [`Summary`] that ends a stream. Counting is the hot path: the
//! goal is 100 million 10-byte frames per second on one core.

/// The size of the length prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// One byte: payloads of up to 255 bytes.
    One,
    /// Two bytes, big-endian.
    Two,
    /// Four bytes, big-endian.
    Four,
}

impl Prefix {
    /// The prefix's size in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // a prefix is never empty
    pub const fn len(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// The longest payload this prefix can announce, in bytes.
    #[must_use]
    pub const fn max(self) -> u64 {
        match self {
            Self::One => 0xff,
            Self::Two => 0xffff,
            Self::Four => 0xffff_ffff,
        }
    }
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The payload does not fit the prefix.
    #[error("a frame of {len} bytes does not fit a prefix of {prefix} bytes")]
    DoesNotFit {
        /// Bytes of payload.
        len: usize,
        /// Bytes of prefix.
        prefix: usize,
    },
    /// The frame is longer than the reader's limit.
    #[error("a frame announces {len} bytes; the limit is {limit}")]
    TooLong {
        /// Bytes announced.
        len: u64,
        /// Bytes allowed.
        limit: usize,
    },
}

/// Appends the prefix of a frame whose payload has `len` bytes.
///
/// # Errors
/// If `len` does not fit the prefix. `out` is then unchanged.
pub fn put_prefix(out: &mut Vec<u8>, prefix: Prefix, len: usize) -> Result<(), FrameError> {
    if len as u64 > prefix.max() {
        return Err(FrameError::DoesNotFit { len, prefix: prefix.len() });
    }
    match prefix {
        Prefix::One => out.push(len as u8),
        Prefix::Two => out.extend_from_slice(&(len as u16).to_be_bytes()),
        Prefix::Four => out.extend_from_slice(&(len as u32).to_be_bytes()),
    }
    Ok(())
}

/// A prefix that may arrive in pieces.
#[derive(Clone, Copy, Debug, Default)]
struct Partial {
    value: u64,
    have: usize,
}

impl Partial {
    /// Takes the missing bytes from `input`. Returns how many it took, and the length once the prefix is complete.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "it never has more bytes than the prefix, which has four"
    )]
    fn take(&mut self, prefix: Prefix, input: &[u8]) -> (usize, Option<u64>) {
        let taken = (prefix.len() - self.have).min(input.len());
        for &byte in input.iter().take(taken) {
            self.value = self.value << 8 | u64::from(byte);
        }
        self.have += taken;
        if self.have < prefix.len() {
            return (taken, None);
        }
        (taken, Some(std::mem::take(self).value))
    }
}

/// Counts the frames of a stream that arrives in arbitrary pieces. Keeps no payload.
#[derive(Clone, Debug)]
pub struct FrameCounter {
    prefix: Prefix,
    partial: Partial,
    /// Payload bytes of the current frame that have not arrived yet.
    left: u64,
    /// All payload bytes of the current frame.
    current: u64,
    frames: u64,
    bytes: u64,
}

impl FrameCounter {
    /// A counter at zero.
    #[must_use]
    pub fn new(prefix: Prefix) -> Self {
        Self { prefix, partial: Partial::default(), left: 0, current: 0, frames: 0, bytes: 0 }
    }

    /// Counts the bytes that arrived.
    #[expect(
        clippy::indexing_slicing,
        reason = "positions are those of bytes that were taken from the input"
    )]
    pub fn push(&mut self, input: &[u8]) {
        let mut pos = 0;
        // First finish the frame that the last push left open, then count whole frames, then open the last one.
        if self.partial() {
            pos = self.close_open(input);
        }
        let rest = &input[pos..];
        let whole = match self.prefix {
            Prefix::One => self.count::<1>(rest),
            Prefix::Two => self.count::<2>(rest),
            Prefix::Four => self.count::<4>(rest),
        };
        self.open(&rest[whole..]);
    }

    /// Whole frames so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Payload bytes of whole frames so far, without prefixes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a frame has begun and not ended.
    #[must_use]
    pub fn partial(&self) -> bool {
        self.partial.have > 0 || self.left > 0
    }

    /// Both counts, as the receiver answers them.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary { frames: self.frames, bytes: self.bytes }
    }

    /// Continues the open frame. Returns how many bytes of the input belong to it.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "`pos` and `take` are parts of the input, `take` is at most `left`, and no stream has 2^64 bytes"
    )]
    fn close_open(&mut self, input: &[u8]) -> usize {
        let mut pos = 0;
        if self.partial.have > 0 {
            let (taken, length) = self.partial.take(self.prefix, input);
            pos = taken;
            match length {
                None => return pos,
                Some(length) => (self.current, self.left) = (length, length),
            }
        }
        let take = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len() - pos);
        self.left -= take as u64;
        if self.left == 0 {
            self.frames += 1;
            self.bytes += self.current;
        }
        pos + take
    }

    /// Begins a frame that does not end in `input`: `input` is shorter than the frame.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "the prefix and what follows it are parts of the input"
    )]
    fn open(&mut self, input: &[u8]) {
        if let (taken, Some(length)) = self.partial.take(self.prefix, input) {
            self.current = length;
            self.left = length - (input.len() - taken) as u64;
        }
    }

    /// Counts the whole frames at the beginning of `input`. Returns their total size in bytes.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "a length has 32 bits and an address 64; `pos` stays in the input, and no stream has 2^64 bytes"
    )]
    fn count<const P: usize>(&mut self, input: &[u8]) -> usize {
        // Each length says where the next one is: a chain of dependent loads that stalls the processor. Most streams have
        // frames of equal size, so guess that the next four are as long as the last. The guesses are independent loads.
        let (mut pos, mut frames, mut length) = (0, 0u64, 0);
        while let Some(found) = length_at::<P>(input, pos) {
            let step = P + found;
            if found == length {
                while pos + 4 * step <= input.len()
                    && [pos, pos + step, pos + 2 * step, pos + 3 * step]
                        .iter()
                        .all(|&place| length_at::<P>(input, place) == Some(length))
                {
                    pos += 4 * step;
                    frames += 4;
                }
                match length_at::<P>(input, pos) {
                    Some(next) => length = next,
                    None => break,
                }
            } else {
                length = found;
            }
            if input.len() - pos - P < length {
                break;
            }
            pos += P + length;
            frames += 1;
        }
        self.frames += frames;
        self.bytes += pos as u64 - frames * P as u64;
        pos
    }
}

#[inline]
fn length_at<const P: usize>(input: &[u8], pos: usize) -> Option<usize> {
    let bytes = input.get(pos..)?.first_chunk::<P>()?;
    Some(bytes.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte)))
}

/// Collects whole frames no longer than a limit.
#[derive(Clone, Debug)]
pub struct FrameReader {
    prefix: Prefix,
    limit: usize,
    partial: Partial,
    /// The length of the current frame, once its prefix is complete.
    length: Option<usize>,
    /// The bytes so far of a frame that arrives in pieces.
    gathered: Vec<u8>,
    failed: Option<FrameError>,
}

impl FrameReader {
    /// A reader that accepts frames of up to `limit` payload bytes.
    #[must_use]
    pub fn new(prefix: Prefix, limit: usize) -> Self {
        let partial = Partial::default();
        Self { prefix, limit, partial, length: None, gathered: Vec::new(), failed: None }
    }

    /// Consumes bytes. Returns how many, and the frame that they completed, if any. Call again with the rest.
    ///
    /// # Errors
    /// If a frame announces more than the limit. Every later call returns the same error.
    #[expect(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "positions are those of bytes that were taken from the input; fewer are gathered than the frame has"
    )]
    pub fn push<'a>(&'a mut self, input: &'a [u8]) -> Result<(usize, Option<&'a [u8]>), FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut pos = 0;
        let length = match self.length {
            Some(length) => length,
            None => {
                self.gathered.clear();
                let (taken, found) = self.partial.take(self.prefix, input);
                pos = taken;
                match found {
                    None => return Ok((pos, None)),
                    Some(found) => self.admit(found)?,
                }
            }
        };
        let missing = length - self.gathered.len();
        let Some(piece) = input[pos..].get(..missing) else {
            self.length = Some(length);
            self.gathered.extend_from_slice(&input[pos..]);
            return Ok((input.len(), None));
        };
        self.length = None;
        if self.gathered.is_empty() {
            return Ok((pos + missing, Some(piece)));
        }
        self.gathered.extend_from_slice(piece);
        Ok((pos + missing, Some(&self.gathered)))
    }

    /// Whether a frame has begun and not ended.
    #[must_use]
    pub fn partial(&self) -> bool {
        self.partial.have > 0 || self.length.is_some()
    }

    fn admit(&mut self, len: u64) -> Result<usize, FrameError> {
        match usize::try_from(len) {
            Ok(length) if length <= self.limit => Ok(length),
            _ => {
                let error = FrameError::TooLong { len, limit: self.limit };
                self.failed = Some(error);
                Err(error)
            }
        }
    }
}

/// The answer that ends a stream of frames: the receiver's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Whole frames.
    pub frames: u64,
    /// Their payload bytes, without prefixes.
    pub bytes: u64,
}

impl Summary {
    /// The 16 bytes: both numbers, big-endian.
    #[must_use]
    pub fn encode(self) -> [u8; 16] {
        (u128::from(self.frames) << 64 | u128::from(self.bytes)).to_be_bytes()
    }

    /// Decodes the 16 bytes. `None` for any other number of bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let both = u128::from_be_bytes(bytes.try_into().ok()?);
        Some(Self { frames: (both >> 64) as u64, bytes: both as u64 })
    }
}
