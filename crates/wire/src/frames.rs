//! Length-prefixed frames: a big-endian length of one, two or four bytes, then that many bytes.
//!
//! Knows nothing of what is in them, except the 16-byte [`Summary`] that ends a stream. Counting is the hot path: the
//! aim is 10-byte frames at 100 million a second on one core.

/// How long the length is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// One byte: up to 255.
    One,
    /// Two bytes, big-endian.
    Two,
    /// Four bytes, big-endian.
    Four,
}

impl Prefix {
    /// Bytes of the prefix.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // a prefix is never empty
    pub const fn len(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// The longest payload it can announce.
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
    /// The frame is longer than the reader takes.
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
/// If `len` does not fit; then `out` is as it was.
pub fn put_prefix(out: &mut Vec<u8>, prefix: Prefix, len: usize) -> Result<(), FrameError> {
    if len as u64 > prefix.max() {
        return Err(FrameError::DoesNotFit { len, prefix: prefix.len() });
    }
    out.extend_from_slice(&(len as u64).to_be_bytes()[8 - prefix.len()..]);
    Ok(())
}

/// A prefix that may arrive in pieces.
#[derive(Clone, Copy, Debug, Default)]
struct Partial {
    value: u64,
    have: usize,
}

impl Partial {
    /// Takes what is missing from `input`; returns how much it took, and the length once it is known.
    fn take(&mut self, prefix: Prefix, input: &[u8]) -> (usize, Option<u64>) {
        let taken = (prefix.len() - self.have).min(input.len());
        for &byte in &input[..taken] {
            self.value = self.value << 8 | u64::from(byte);
        }
        self.have += taken;
        if self.have < prefix.len() {
            return (taken, None);
        }
        (taken, Some(std::mem::take(self).value))
    }
}

/// Counts frames in a stream that may be cut anywhere, without keeping payloads.
#[derive(Clone, Debug)]
pub struct FrameCounter {
    prefix: Prefix,
    partial: Partial,
    /// Payload bytes of the current frame that are still to come.
    left: u64,
    /// Payload bytes of the current frame altogether.
    current: u64,
    frames: u64,
    bytes: u64,
}

impl FrameCounter {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(prefix: Prefix) -> Self {
        Self { prefix, partial: Partial::default(), left: 0, current: 0, frames: 0, bytes: 0 }
    }

    /// Counts what arrived.
    pub fn push(&mut self, input: &[u8]) {
        let mut at = 0;
        // First what the last push left open, then whole frames, then what this one leaves open.
        if self.partial() {
            at = self.close_open(input);
        }
        let rest = &input[at..];
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

    /// Both counts.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary { frames: self.frames, bytes: self.bytes }
    }

    /// Goes on with the open frame; returns how much of the input belongs to it.
    fn close_open(&mut self, input: &[u8]) -> usize {
        let mut at = 0;
        if self.partial.have > 0 {
            let (taken, length) = self.partial.take(self.prefix, input);
            at = taken;
            match length {
                None => return at,
                Some(length) => (self.current, self.left) = (length, length),
            }
        }
        let take = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len() - at);
        self.left -= take as u64;
        if self.left == 0 {
            self.frames += 1;
            self.bytes += self.current;
        }
        at + take
    }

    /// Begins a frame that does not end in `input`, which is shorter than the frame.
    fn open(&mut self, input: &[u8]) {
        if let (taken, Some(length)) = self.partial.take(self.prefix, input) {
            self.current = length;
            self.left = length - (input.len() - taken) as u64;
        }
    }

    /// Counts the whole frames at the beginning of `input`; returns how many bytes they are.
    fn count<const P: usize>(&mut self, input: &[u8]) -> usize {
        // Each length tells where the next one is, a chain of loads that the processor must wait for. Streams of equal
        // frames are the rule, so guess that the next ones are as long as the last: four guesses are independent loads.
        let (mut at, mut frames, mut length) = (0, 0u64, 0);
        while let Some(found) = length_at::<P>(input, at) {
            let step = P + found;
            if found == length {
                while at + 4 * step <= input.len()
                    && [at, at + step, at + 2 * step, at + 3 * step]
                        .iter()
                        .all(|&place| length_at::<P>(input, place) == Some(length))
                {
                    at += 4 * step;
                    frames += 4;
                }
                match length_at::<P>(input, at) {
                    Some(next) => length = next,
                    None => break,
                }
            } else {
                length = found;
            }
            if input.len() - at - P < length {
                break;
            }
            at += P + length;
            frames += 1;
        }
        self.frames += frames;
        self.bytes += at as u64 - frames * P as u64;
        at
    }
}

#[inline]
fn length_at<const P: usize>(input: &[u8], at: usize) -> Option<usize> {
    let bytes = input.get(at..)?.first_chunk::<P>()?;
    Some(bytes.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte)))
}

/// Collects whole frames no longer than a limit.
#[derive(Clone, Debug)]
pub struct FrameReader {
    prefix: Prefix,
    limit: usize,
    partial: Partial,
    /// The length of the current frame, once its prefix is whole.
    length: Option<usize>,
    /// The beginning of a frame that was cut.
    gathered: Vec<u8>,
    failed: Option<FrameError>,
}

impl FrameReader {
    /// Takes frames of up to `limit` payload bytes.
    #[must_use]
    pub fn new(prefix: Prefix, limit: usize) -> Self {
        let partial = Partial::default();
        Self { prefix, limit, partial, length: None, gathered: Vec::new(), failed: None }
    }

    /// Returns how many bytes were consumed, and a frame if they completed one. Call again with the rest.
    ///
    /// # Errors
    /// If a frame announces more than the limit; the same again on every later call.
    pub fn push<'a>(&'a mut self, input: &'a [u8]) -> Result<(usize, Option<&'a [u8]>), FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut at = 0;
        let length = match self.length {
            Some(length) => length,
            None => {
                self.gathered.clear();
                let (taken, found) = self.partial.take(self.prefix, input);
                at = taken;
                match found {
                    None => return Ok((at, None)),
                    Some(found) => self.admit(found)?,
                }
            }
        };
        let missing = length - self.gathered.len();
        let Some(piece) = input[at..].get(..missing) else {
            self.length = Some(length);
            self.gathered.extend_from_slice(&input[at..]);
            return Ok((input.len(), None));
        };
        self.length = None;
        if self.gathered.is_empty() {
            return Ok((at + missing, Some(piece)));
        }
        self.gathered.extend_from_slice(piece);
        Ok((at + missing, Some(&self.gathered)))
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

/// The answer that ends a stream of frames: what its receiver counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Whole frames.
    pub frames: u64,
    /// Their payload bytes, without prefixes.
    pub bytes: u64,
}

impl Summary {
    /// Both numbers, big-endian.
    #[must_use]
    pub fn encode(self) -> [u8; 16] {
        (u128::from(self.frames) << 64 | u128::from(self.bytes)).to_be_bytes()
    }

    /// Reads them back; `None` unless there are exactly 16 bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let both = u128::from_be_bytes(bytes.try_into().ok()?);
        Some(Self { frames: (both >> 64) as u64, bytes: both as u64 })
    }
}
