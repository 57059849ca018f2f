//! The state machine under both decoders: head, body, end, and again (RFC 9112 section 6).
//!
//! The machine tracks the position in the stream; a [`Syntax`] parses the heads. A head that is complete in the input is
//! parsed in place; a head that arrives in pieces is gathered first. Two rules make the result independent of how the
//! stream is cut. An error in a head counts only after the end of the head has been found. The errors that can be found
//! earlier (not HTTP, a bare LF, too long) are checked in the same order on every path.

use super::body::{Chunked, Piece};
use super::head::{Scan, find_end};
use super::{BodyLength, Decoded, HttpError, HttpEvent, Limits, WholeMessage};

/// Heads longer than this are not remembered, because each of 10,000 connections keeps one.
const MEMO: usize = 512;

/// Heads are gathered in pieces of this size. A large read that contains the rest of a head is not copied as a whole.
const PIECE: usize = 512;

/// What the machine needs to know about a parsed head.
pub(super) trait Parsed: Copy {
    /// Its length in bytes, including the empty line.
    fn len(&self) -> usize;
    /// How its body is delimited.
    fn body(&self) -> BodyLength;
    /// Whether the same head is likely to be received again.
    fn memorable(&self) -> bool;
}

/// Parses one kind of head.
pub(super) trait Syntax {
    /// A parsed head.
    type Parsed: Parsed;
    /// Parses the head at the beginning of `bytes`.
    fn parse(bytes: &[u8], watch: &[u8]) -> Result<Self::Parsed, HttpError>;
    /// Reports an error that is already visible in the first bytes of a head.
    fn early(start: &[u8]) -> Result<(), HttpError>;
    /// Whether these bytes at the end of a stream may be ignored: they do not begin a message.
    fn negligible(bytes: &[u8]) -> bool;
}

/// A parsed head with the bytes its spans point into.
pub(super) struct Raw<'a, P> {
    pub(super) parsed: P,
    pub(super) bytes: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
enum State {
    Head,
    /// Body bytes left; never zero.
    Exact(u64),
    Chunked(Chunked),
    UntilClose,
    End,
    Failed(HttpError),
}

#[derive(Debug)]
pub(super) struct Machine<S: Syntax> {
    state: State,
    /// The messages have no bodies, regardless of their heads.
    pub(super) bodiless: bool,
    pub(super) watch: &'static str,
    pub(super) limits: Limits,
    /// The beginning of a head that arrives in pieces, then the whole head until its message ends.
    gathered: Vec<u8>,
    /// The bytes of the last parsed head; `remembered` is the result. Servers send identical heads (Date changes once a
    /// second). A head ends at its only empty line, so if the first bytes are equal, the heads are equal.
    memo: Vec<u8>,
    remembered: Option<S::Parsed>,
}

impl<S: Syntax> Machine<S> {
    pub(super) fn new(watch: &'static str) -> Self {
        let (gathered, memo) = (Vec::new(), Vec::new());
        let limits = Limits::default();
        Self { state: State::Head, bodiless: false, watch, limits, gathered, memo, remembered: None }
    }

    /// Forgets the stream, for a new connection; keeps buffers and the memo.
    pub(super) fn reset(&mut self) {
        self.state = State::Head;
        self.gathered.clear();
    }

    pub(super) fn idle(&self) -> bool {
        matches!(self.state, State::Head) && S::negligible(&self.gathered)
    }

    pub(super) fn is_amid_chunk(&self) -> bool {
        match &self.state {
            State::Chunked(chunked) => chunked.is_amid(),
            State::Exact(_) | State::UntilClose => true,
            State::Head | State::End | State::Failed(_) => false,
        }
    }

    #[expect(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "`take` is at most the length of the input, and at most what is left of the body"
    )]
    #[inline]
    pub(super) fn push<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<Decoded<'a, Raw<'a, S::Parsed>>, HttpError> {
        match &mut self.state {
            State::Head => self.head(input),
            State::Exact(left) => {
                if input.is_empty() {
                    return Ok(Decoded { consumed: 0, event: HttpEvent::NeedMore });
                }
                let take = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= take as u64;
                if *left == 0 {
                    self.state = State::End;
                }
                Ok(Decoded { consumed: take, event: HttpEvent::Body(&input[..take]) })
            }
            State::End => {
                self.reset();
                Ok(Decoded { consumed: 0, event: HttpEvent::End })
            }
            State::UntilClose if input.is_empty() => Ok(Decoded { consumed: 0, event: HttpEvent::NeedMore }),
            State::UntilClose => Ok(Decoded { consumed: input.len(), event: HttpEvent::Body(input) }),
            State::Chunked(_) => self.chunked(input),
            State::Failed(error) => Err(*error),
        }
    }

    fn chunked<'a>(&mut self, input: &'a [u8]) -> Result<Decoded<'a, Raw<'a, S::Parsed>>, HttpError> {
        let State::Chunked(chunked) = &mut self.state else {
            return Ok(Decoded { consumed: 0, event: HttpEvent::NeedMore });
        };
        let (consumed, piece) = match chunked.push(input, &self.limits) {
            Ok(found) => found,
            Err(error) => return self.fail(error),
        };
        let event = match piece {
            Piece::More => HttpEvent::NeedMore,
            Piece::Data(data) => HttpEvent::Body(data),
            Piece::End => {
                self.reset();
                HttpEvent::End
            }
        };
        Ok(Decoded { consumed, event })
    }

    /// Decodes a whole message at the beginning of the input. `None`, without any effect, if there is none, if a message
    /// is pending, or if the head does not tell the length.
    #[inline]
    pub(super) fn whole<'a>(&'a mut self, input: &'a [u8]) -> Option<WholeMessage<'a, Raw<'a, S::Parsed>>> {
        if !matches!(self.state, State::Head) || !self.gathered.is_empty() {
            return None;
        }
        let parsed = self.recall(input).ok()?;
        let rest = input.get(parsed.len()..)?;
        let length = match parsed.body() {
            _ if self.bodiless => 0,
            BodyLength::None => 0,
            BodyLength::Exact(length) => usize::try_from(length).ok()?,
            BodyLength::Chunked | BodyLength::UntilClose => return None,
        };
        let body = rest.get(..length)?;
        #[expect(clippy::arithmetic_side_effects, reason = "both are parts of the input")]
        let consumed = parsed.len() + length;
        Some(WholeMessage { consumed, head: Raw { parsed, bytes: input }, body })
    }

    pub(super) fn finish(&mut self) -> Result<bool, HttpError> {
        let result = match self.state {
            State::Head if S::negligible(&self.gathered) => Ok(false),
            State::UntilClose | State::End => Ok(true),
            State::Failed(error) => Err(error),
            State::Head | State::Exact(_) | State::Chunked(_) => Err(HttpError::ClosedEarly),
        };
        match result {
            Ok(_) => self.reset(),
            Err(error) => self.state = State::Failed(error),
        }
        result
    }

    #[inline]
    fn head<'a>(&'a mut self, input: &'a [u8]) -> Result<Decoded<'a, Raw<'a, S::Parsed>>, HttpError> {
        if input.is_empty() {
            return Ok(Decoded { consumed: 0, event: HttpEvent::NeedMore });
        }
        if self.gathered.is_empty()
            && let Ok(parsed) = self.recall(input)
        {
            self.enter(&parsed);
            return Ok(Decoded {
                consumed: parsed.len(),
                event: HttpEvent::Head(Raw { parsed, bytes: input }),
            });
        }
        self.gather(input)
    }

    /// Parses the head at the beginning of `bytes`, or takes the remembered result if the head is the same as the last.
    #[inline]
    fn recall(&mut self, bytes: &[u8]) -> Result<S::Parsed, HttpError> {
        if let Some(parsed) = self.remembered
            && begin_with(bytes, &self.memo)
        {
            return Ok(parsed);
        }
        self.parse(bytes)
    }

    #[expect(clippy::indexing_slicing, reason = "a head that was parsed is not longer than its bytes")]
    fn parse(&mut self, bytes: &[u8]) -> Result<S::Parsed, HttpError> {
        let parsed = S::parse(bytes, self.watch.as_bytes())?;
        if parsed.len() > self.limits.head {
            return Err(HttpError::HeadTooLong);
        }
        if parsed.len() <= MEMO && parsed.memorable() {
            self.memo.clear();
            self.memo.extend_from_slice(&bytes[..parsed.len()]);
            self.remembered = Some(parsed);
        }
        Ok(parsed)
    }

    /// The slow path: heads that arrive in pieces, are too long or are wrong.
    #[expect(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "`take` is at most what is left of the input; the head ends behind what was gathered before"
    )]
    #[cold]
    #[inline(never)]
    fn gather<'a>(&'a mut self, input: &'a [u8]) -> Result<Decoded<'a, Raw<'a, S::Parsed>>, HttpError> {
        let mut consumed = 0;
        while consumed < input.len() {
            let before = self.gathered.len();
            let room = self.limits.head.saturating_sub(before);
            let take = room.min(PIECE).min(input.len() - consumed);
            self.gathered.extend_from_slice(&input[consumed..consumed + take]);
            if let Err(error) = S::early(&self.gathered) {
                return self.fail(error);
            }
            match find_end(&self.gathered, before) {
                Scan::BareLf => return self.fail(HttpError::BareLf),
                Scan::End(end) => {
                    consumed += end - before;
                    self.gathered.truncate(end);
                    return self.gathered_head(consumed);
                }
                Scan::Unfinished if self.gathered.len() >= self.limits.head => {
                    return self.fail(HttpError::HeadTooLong);
                }
                Scan::Unfinished => consumed += take,
            }
        }
        Ok(Decoded { consumed, event: HttpEvent::NeedMore })
    }

    fn gathered_head(&mut self, consumed: usize) -> Result<Decoded<'_, Raw<'_, S::Parsed>>, HttpError> {
        let bytes = std::mem::take(&mut self.gathered);
        let result = self.recall(&bytes);
        self.gathered = bytes;
        match result {
            Ok(parsed) => {
                self.enter(&parsed);
                Ok(Decoded { consumed, event: HttpEvent::Head(Raw { parsed, bytes: &self.gathered }) })
            }
            Err(error) => self.fail(error),
        }
    }

    #[inline]
    fn enter(&mut self, parsed: &S::Parsed) {
        self.state = match parsed.body() {
            _ if self.bodiless => State::End,
            BodyLength::None | BodyLength::Exact(0) => State::End,
            BodyLength::Exact(length) => State::Exact(length),
            BodyLength::Chunked => State::Chunked(Chunked::new()),
            BodyLength::UntilClose => State::UntilClose,
        };
    }

    #[cold]
    fn fail<T>(&mut self, error: HttpError) -> Result<T, HttpError> {
        self.state = State::Failed(error);
        Err(error)
    }
}

/// Whether `bytes` begin with `start`. It compares blocks and calls no `memcmp`, because that of musl goes byte by byte.
fn begin_with(bytes: &[u8], start: &[u8]) -> bool {
    const BLOCK: usize = 16;
    let Some(head) = bytes.get(..start.len()) else { return false };
    let (Some(last), Some(expected)) = (head.last_chunk::<BLOCK>(), start.last_chunk::<BLOCK>()) else {
        return head == start;
    };
    // The last block overlaps the one before it.
    let mut blocks = head.as_chunks::<BLOCK>().0.iter().zip(start.as_chunks::<BLOCK>().0);
    last == expected && blocks.all(|(block, expected)| block == expected)
}

#[cfg(test)]
mod tests {
    use super::begin_with;

    #[test]
    fn a_beginning_is_told_from_one_that_differs_in_any_byte() {
        let bytes: Vec<u8> = (0..100).collect();
        for length in 0..=100 {
            let start = &bytes[..length];
            assert!(begin_with(&bytes, start) && begin_with(start, start), "{length}");
            assert!(length == 0 || !begin_with(&bytes[..length - 1], start), "{length}");
            for at in 0..length {
                let mut other = start.to_vec();
                other[at] ^= 1;
                assert!(!begin_with(&bytes, &other), "{at} of {length}");
            }
        }
    }
}
