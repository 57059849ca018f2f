//! The machine under both decoders: head, body, end, and again (RFC 9112 section 6).
//!
//! It knows where the stream stands; what a head looks like is its [`Syntax`]'s. A head that is whole in the input is
//! parsed where it lies; one that is cut is gathered first. Two rules keep the answer independent of the cuts: an error in
//! a head counts only once the head's end has been found, and the errors that can be told before (not HTTP at all, a bare
//! LF, too long) are looked for in the same order on every path.

use super::body::{Chunked, Piece};
use super::head::{Scan, find_end};
use super::{BodyLength, Event, HttpError, Limits, Step, Whole};

/// Heads longer than this are not remembered: 10,000 connections each keep one.
const MEMO: usize = 512;

/// Heads are gathered in pieces of this size, so that a large read behind a cut head is not copied with it.
const PIECE: usize = 512;

/// What the machine needs to know of a parsed head.
pub(super) trait Parsed: Copy {
    /// Its length, the empty line included.
    fn len(&self) -> usize;
    /// How its body is delimited.
    fn body(&self) -> BodyLength;
    /// Whether the same head is likely to come again.
    fn memorable(&self) -> bool;
}

/// How one kind of head is read.
pub(super) trait Syntax {
    /// What a head says.
    type Parsed: Parsed;
    /// Reads the head at the beginning of `bytes`.
    fn parse(bytes: &[u8], watch: &[u8]) -> Result<Self::Parsed, HttpError>;
    /// An error that the first bytes of a head already show.
    fn early(start: &[u8]) -> Result<(), HttpError>;
    /// Whether these bytes, at the end of a stream, are no message at all.
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
    /// Never zero.
    Exact(u64),
    Chunked(Chunked),
    UntilClose,
    End,
    Failed(HttpError),
}

#[derive(Debug)]
pub(super) struct Machine<S: Syntax> {
    state: State,
    /// The messages have no bodies, whatever their heads say.
    pub(super) bodiless: bool,
    pub(super) watch: &'static str,
    pub(super) limits: Limits,
    /// The beginning of a cut head, then the whole of it until its message ends.
    gathered: Vec<u8>,
    /// The last head that was parsed, and what it said. Servers repeat themselves to the byte (Date changes once a
    /// second), and a head ends in the only empty line it has, so equal first bytes mean an equal head.
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

    #[inline]
    pub(super) fn push<'a>(&'a mut self, input: &'a [u8]) -> Result<Step<'a, Raw<'a, S::Parsed>>, HttpError> {
        match &mut self.state {
            State::Head => self.head(input),
            State::Exact(left) => {
                if input.is_empty() {
                    return Ok(Step { consumed: 0, event: Event::NeedMore });
                }
                let take = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= take as u64;
                if *left == 0 {
                    self.state = State::End;
                }
                Ok(Step { consumed: take, event: Event::Body(&input[..take]) })
            }
            State::End => {
                self.reset();
                Ok(Step { consumed: 0, event: Event::End })
            }
            State::UntilClose if input.is_empty() => Ok(Step { consumed: 0, event: Event::NeedMore }),
            State::UntilClose => Ok(Step { consumed: input.len(), event: Event::Body(input) }),
            State::Chunked(_) => self.chunked(input),
            State::Failed(error) => Err(*error),
        }
    }

    fn chunked<'a>(&mut self, input: &'a [u8]) -> Result<Step<'a, Raw<'a, S::Parsed>>, HttpError> {
        let State::Chunked(chunked) = &mut self.state else {
            return Ok(Step { consumed: 0, event: Event::NeedMore });
        };
        let (consumed, piece) = match chunked.push(input, &self.limits) {
            Ok(found) => found,
            Err(error) => return self.fail(error),
        };
        let event = match piece {
            Piece::More => Event::NeedMore,
            Piece::Data(data) => Event::Body(data),
            Piece::End => {
                self.reset();
                Event::End
            }
        };
        Ok(Step { consumed, event })
    }

    /// A whole message at the beginning of the input, if there is one, nothing is pending and its length is told by its
    /// head; otherwise nothing has happened.
    #[inline]
    pub(super) fn whole<'a>(&'a mut self, input: &'a [u8]) -> Option<Whole<'a, Raw<'a, S::Parsed>>> {
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
        Some(Whole { consumed: parsed.len() + length, head: Raw { parsed, bytes: input }, body })
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
    fn head<'a>(&'a mut self, input: &'a [u8]) -> Result<Step<'a, Raw<'a, S::Parsed>>, HttpError> {
        if input.is_empty() {
            return Ok(Step { consumed: 0, event: Event::NeedMore });
        }
        if self.gathered.is_empty()
            && let Ok(parsed) = self.recall(input)
        {
            self.enter(&parsed);
            return Ok(Step { consumed: parsed.len(), event: Event::Head(Raw { parsed, bytes: input }) });
        }
        self.gather(input)
    }

    /// The parse of the head at the beginning of `bytes`, from memory if it is the last one again.
    #[inline]
    fn recall(&mut self, bytes: &[u8]) -> Result<S::Parsed, HttpError> {
        if let Some(parsed) = self.remembered
            && bytes.starts_with(&self.memo)
        {
            return Ok(parsed);
        }
        self.parse(bytes)
    }

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

    /// The way of heads that are cut, too long or wrong.
    #[cold]
    #[inline(never)]
    fn gather<'a>(&'a mut self, input: &'a [u8]) -> Result<Step<'a, Raw<'a, S::Parsed>>, HttpError> {
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
        Ok(Step { consumed, event: Event::NeedMore })
    }

    fn gathered_head(&mut self, consumed: usize) -> Result<Step<'_, Raw<'_, S::Parsed>>, HttpError> {
        let bytes = std::mem::take(&mut self.gathered);
        let result = self.recall(&bytes);
        self.gathered = bytes;
        match result {
            Ok(parsed) => {
                self.enter(&parsed);
                Ok(Step { consumed, event: Event::Head(Raw { parsed, bytes: &self.gathered }) })
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
