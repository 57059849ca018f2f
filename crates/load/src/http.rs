//! The protocol of HTTP/1.1 requests. A source says which ones are sent, and every answer is parsed and checked.

use std::collections::VecDeque;
use std::sync::Arc;

use reactor::{Ends, Io, Payload, SharedBytes};
use wire::http::{HttpError, HttpEvent, ResponseDecoder};

use crate::error::LoadError;
use crate::fault::{ErrorClass, Fault, Seen};
use crate::list::List;
use crate::protocol::{Mark, Next, Outcomes, Protocol, Standing, Success, unasked};
use crate::stream::Stream;
use crate::tally::Decoded;
use crate::target::{Body, Http};
use answer::{Judge, ReceivedAnswer};
use inspect::{Kept, Message};
use listed::Listed;
use source::{Same, Source, is_large};

pub(crate) mod answer;
pub(crate) mod inspect;
pub(crate) mod listed;
pub(crate) mod source;

/// Bodies up to this size are sent together with their head.
const INLINE: u64 = 64 * 1024;
/// Bytes per send of a large body: nearly 256 KiB. These are whole periods of the pattern, so a body of many pieces repeats it
/// without a break.
const PIECE: usize = 4 * wire::pattern::PERIOD;
/// The most interim answers that are accepted before an answer.
const INTERIM: u64 = 100;

pub(crate) struct Requests<S> {
    source: S,
    body: Option<Large>,
    /// The length of the body in bytes, whether large or not.
    payload: Option<u64>,
    keep_alive: bool,
    expect_continue: bool,
    judge: Judge,
}

/// A body that is sent in pieces.
struct Large {
    bytes: SharedBytes,
    len: u64,
    /// If true, every piece begins at the start of `bytes` (a pattern). Otherwise `bytes` is the whole body.
    repeats: bool,
}

#[derive(Default)]
pub(crate) struct State {
    decoder: ResponseDecoder,
    /// Exchanges that have begun but are not sent yet.
    unsent: usize,
    /// Exchanges that are sent, at least in part, and not answered.
    open: usize,
    /// Exchanges that are answered; the id of the oldest open one.
    answered: u64,
    /// How many exchanges may be open; 0 if the connection carries no more.
    capacity: usize,
    /// The progress of the body that is being sent.
    body: BodyState,
    /// What the source remembers of exchanges: the ids of open ones, or the numbers of their requests in a list. Oldest first.
    marks: VecDeque<u64>,
    answer: ReceivedAnswer,
    /// Its bytes, if they are inspected.
    kept: Option<Box<Kept>>,
    /// Its parts, if it is a stream.
    stream: Option<Box<Stream>>,
    /// Interim answers since the last answer.
    interim: u64,
    /// The first bytes of an incomplete answer.
    came: Option<Seen>,
}

#[derive(Default, PartialEq)]
enum BodyState {
    #[default]
    None,
    /// The head is sent; the body waits for `100 Continue`.
    Awaiting,
    /// Bytes of the body that are still to be sent.
    Left(u64),
}

impl Requests<Same> {
    /// Requests that are all the same.
    pub(crate) fn new(target: &Http, depth: usize, first_id: u64) -> Result<Self, LoadError> {
        let body = if is_large(target) { Large::new(&target.body) } else { None };
        Ok(Self {
            source: Same::new(target, depth, first_id)?,
            body,
            payload: target.body.len(),
            keep_alive: target.keep_alive,
            expect_continue: target.expect_continue,
            judge: Judge::new(target),
        })
    }
}

impl Requests<Listed> {
    /// Requests of a list, for one of several threads.
    pub(crate) fn listed(target: &Http, list: &Arc<List>, depth: usize, thread: (usize, usize)) -> Self {
        Self {
            source: Listed::new(target, list, depth, thread),
            body: None,
            payload: None,
            keep_alive: target.keep_alive,
            expect_continue: false,
            judge: Judge::new(target),
        }
    }
}

impl<S: Source> Requests<S> {
    /// Handles the end of an answer.
    ///
    /// # Errors
    /// There are too many interim answers.
    fn complete(
        &mut self,
        state: &mut State,
        answer: ReceivedAnswer,
        message: Message<'_>,
        outcomes: &mut Outcomes,
    ) -> Result<(), Fault> {
        if answer.interim {
            return self.pass_over(state, answer.status, outcomes);
        }
        self.judge(state, &answer, message, outcomes);
        Ok(())
    }

    /// Handles the end of an interim answer.
    ///
    /// # Errors
    /// There are too many of them.
    #[cold]
    fn pass_over(&self, state: &mut State, status: u16, outcomes: &mut Outcomes) -> Result<(), Fault> {
        state.interim += 1;
        outcomes.marks.push((state.answered, Mark::Interim));
        if status == 100 {
            self.release(state);
        }
        let limit = Seen::Limit { of: INTERIM, what: "interim answers" };
        if state.interim > INTERIM { Err(Fault::new(ErrorClass::Protocol, limit)) } else { Ok(()) }
    }

    /// Handles the end of an answer that arrived in pieces.
    fn complete_pieces(&mut self, state: &mut State, outcomes: &mut Outcomes) -> Result<(), Fault> {
        let (answer, kept) = (std::mem::take(&mut state.answer), state.kept.take());
        let end = self.complete(state, answer, Kept::message(kept.as_deref()), outcomes);
        state.kept = kept;
        end
    }

    /// Lets a waiting body be sent. Returns whether there is one.
    fn release(&self, state: &mut State) -> bool {
        let waits = state.body == BodyState::Awaiting;
        if waits {
            state.body = BodyState::Left(self.body.as_ref().map_or(0, |body| body.len));
        }
        waits
    }

    /// Counts an answer that is surely right, with a body of this length.
    #[inline(always)]
    fn accept(&self, state: &mut State, length: usize, outcomes: &mut Outcomes) {
        let payload = self.payload.unwrap_or(length as u64);
        outcomes.end(state.next_answer(), Ok(Success { units: 1, payload }));
    }

    /// Judges a complete answer.
    fn judge(
        &mut self,
        state: &mut State,
        answer: &ReceivedAnswer,
        message: Message<'_>,
        outcomes: &mut Outcomes,
    ) {
        let judge = self.source.judge(&mut self.judge, &state.marks);
        let mut stream = state.stream.take();
        let verdict = judge.verdict(answer, message);
        let mut result = judge.with_stream(verdict, stream.as_deref_mut());
        if let Some(stream) = &mut stream {
            outcomes.marks.push((state.answered, Mark::Streaming(stream.brought())));
        }
        if state.body != BodyState::None && result.is_ok() {
            // The bytes that were not sent would count as work that was done.
            result = Err(Fault::new(ErrorClass::Protocol, Seen::Early));
        }
        let success = |length| Success { units: 1, payload: self.payload.unwrap_or(length) };
        outcomes.end(state.next_answer(), result.map(success));
        // A server that announces its close processes no further requests (RFC 9112 section 9.6). If the answer comes before
        // the whole body is sent, the connection is in the middle of a request.
        if !answer.keep || !self.keep_alive || state.body != BodyState::None {
            state.refuse(outcomes);
        }
    }
}

impl Large {
    fn new(body: &Body) -> Option<Self> {
        match body {
            Body::None => None,
            Body::Bytes(bytes) => {
                let len = bytes.len() as u64;
                Some(Self { bytes: SharedBytes::new(Arc::clone(bytes)), len, repeats: false })
            }
            Body::Pattern(len) => {
                let block = wire::pattern::block(*len, PIECE);
                Some(Self { bytes: SharedBytes::new(Arc::new(block)), len: *len, repeats: true })
            }
        }
    }

    /// The next piece of the body; `left` bytes are still to be sent.
    fn piece(&self, left: u64) -> Payload {
        let len = left.min(PIECE as u64) as usize;
        let start = if self.repeats { 0 } else { (self.len - left) as usize };
        self.bytes.slice(start..start + len)
    }
}

fn inline(body: &Body) -> Vec<u8> {
    match body {
        Body::None => Vec::new(),
        Body::Bytes(bytes) => bytes.to_vec(),
        Body::Pattern(len) => wire::pattern::block(*len, *len as usize),
    }
}

impl<S: Source> Protocol for Requests<S> {
    type Session = State;
    type Request = S::Request;

    fn keeps_connections(&self) -> bool {
        self.keep_alive
    }

    fn is_one_exchange(&self) -> bool {
        !self.keep_alive && self.body.is_none() && self.source.shared().1 <= Io::SILENT
    }

    fn repeated(&self) -> Option<(&SharedBytes, usize)> {
        Some(self.source.shared())
    }

    fn open(&mut self, _lane: usize, _ends: Option<Ends>) -> State {
        let capacity = if self.keep_alive { usize::MAX } else { 1 };
        State { decoder: self.source.decoder(), capacity, ..State::default() }
    }

    #[inline(always)]
    fn standing(&self, state: &State) -> Standing {
        Standing { bulk: state.answer.bulk, ..Standing::ready(state.capacity) }
    }

    #[inline]
    fn pick(&mut self) -> S::Request {
        self.source.pick()
    }

    fn name(&self, request: S::Request) -> Option<usize> {
        self.source.name(request)
    }

    fn names(&self) -> usize {
        self.source.names()
    }

    #[inline]
    fn begin(&mut self, state: &mut State, request: S::Request) {
        state.unsent += 1;
        self.source.add(state, request);
    }

    #[inline]
    fn next(&mut self, state: &mut State, _closing: bool) -> Next {
        match state.body {
            BodyState::Awaiting => Next::Nothing,
            BodyState::None if state.unsent == 0 => Next::Nothing,
            BodyState::None => {
                if let Some(body) = &self.body {
                    state.body = match (self.expect_continue, body.len) {
                        (_, 0) => BodyState::None,
                        (true, _) => BodyState::Awaiting,
                        (false, len) => BodyState::Left(len),
                    };
                }
                Next::Send(self.source.take(state, self.body.is_some()))
            }
            BodyState::Left(left) => {
                let Some(body) = &self.body else { return Next::Nothing };
                let piece = body.piece(left);
                let left = left - piece.bytes().len() as u64;
                state.body = if left == 0 { BodyState::None } else { BodyState::Left(left) };
                Next::Send(piece)
            }
        }
    }

    fn sent(&mut self, payload: Payload) {
        self.source.sent(payload);
    }

    // With layers or without, this is called in one place each.
    #[inline(always)]
    fn receive(
        &mut self,
        state: &mut State,
        bytes: &[u8],
        outcomes: &mut Outcomes,
    ) -> Result<(), Box<Fault>> {
        let mut rest = bytes;
        // The bytes from the start of the current answer on.
        let mut answer = rest;
        loop {
            if state.open == 0 && state.decoder.idle() {
                if rest.is_empty() {
                    return Ok(());
                }
                state.refuse(outcomes);
                return unasked(rest, outcomes);
            }
            self.source.expect_answer(state);
            // Fast path: nearly every answer is small and arrives in one piece.
            if let Some(whole) = state.decoder.whole(rest) {
                if state.body == BodyState::None
                    && self.source.id(&state.marks).is_none()
                    && self.source.judge(&mut self.judge, &state.marks).accepts(&whole.head, whole.body)
                {
                    let (consumed, length) = (whole.consumed, whole.body.len());
                    self.accept(state, length, outcomes);
                    rest = rest.get(consumed..).unwrap_or_default();
                    if rest.is_empty() {
                        return Ok(());
                    }
                    answer = rest;
                    continue;
                }
                let mut received = ReceivedAnswer::begin(&whole.head, self.source.id(&state.marks));
                let judge = self.source.judge(&mut self.judge, &state.marks);
                state.stream = judge.whole(&mut received, &whole.head, whole.body)?;
                let message = Message { from: rest, len: whole.consumed, body: whole.body.len() };
                rest = rest.get(message.len..).unwrap_or_default();
                self.complete(state, received, message, outcomes)?;
                if rest.is_empty() {
                    return Ok(());
                }
                answer = rest;
                continue;
            }
            let step = state.decoder.push(rest).map_err(|error| unreadable(error, rest))?;
            rest = rest.get(step.consumed..).unwrap_or_default();
            match step.event {
                HttpEvent::NeedMore => {
                    state.came_further(answer, outcomes);
                    return Ok(());
                }
                HttpEvent::Head(head) => {
                    state.answer = ReceivedAnswer::begin(&head, self.source.id(&state.marks));
                    let judge = self.source.judge(&mut self.judge, &state.marks);
                    state.stream = judge.begin(&head, &mut state.kept)?;
                }
                HttpEvent::Body(data) => {
                    let judge = self.source.judge(&mut self.judge, &state.marks);
                    judge.add(&mut state.answer, data, &mut state.kept, &mut state.stream)?;
                    state.end_chunk();
                }
                HttpEvent::End => {
                    self.complete_pieces(state, outcomes)?;
                    answer = rest;
                }
            }
        }
    }

    fn end(&mut self, state: &mut State, outcomes: &mut Outcomes) -> Fault {
        if state.decoder.finish() == Ok(true) {
            let (answer, kept) = (std::mem::take(&mut state.answer), state.kept.take());
            self.judge(state, &answer, Kept::message(kept.as_deref()), outcomes);
        }
        Fault::new(ErrorClass::ClosedEarly, state.came.take().unwrap_or(Seen::Nothing))
    }

    fn take_decoded(&mut self) -> Decoded {
        let mut decoded = self.judge.take_decoded();
        decoded.add(&self.source.take_decoded());
        decoded
    }

    fn nudge(&mut self, state: &mut State, _last: u64) -> bool {
        self.release(state)
    }
}

impl State {
    /// Goes on to the next answer. Returns the id of the exchange that has ended.
    #[inline]
    fn next_answer(&mut self) -> u64 {
        self.came = None;
        self.interim = 0;
        self.open = self.open.saturating_sub(1);
        if !self.marks.is_empty() {
            self.marks.pop_front();
        }
        self.answered += 1;
        self.answered - 1
    }

    /// Tells a stream that its chunk has ended, if it has.
    fn end_chunk(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.end_chunk_if(!self.decoder.is_amid_chunk());
        }
    }

    /// Takes note that these bytes of an answer arrived, and that it goes on.
    #[inline(never)]
    fn came_further(&mut self, answer: &[u8], outcomes: &mut Outcomes) {
        if !answer.is_empty() {
            self.came.get_or_insert_with(|| Seen::bytes(answer));
            let mark = self.stream.as_mut().map(|stream| Mark::Streaming(stream.brought()));
            outcomes.marks.push((self.answered, mark.unwrap_or(Mark::Answering)));
        }
    }

    /// Begins nothing further on this connection. The peer does not process what is open.
    #[inline(never)]
    fn refuse(&mut self, outcomes: &mut Outcomes) {
        self.capacity = 0;
        let open = (self.open + self.unsent) as u64;
        if open > 0 {
            outcomes.marks.extend((self.answered..self.answered + open).map(|id| (id, Mark::Refused)));
            (self.open, self.unsent) = (0, 0);
        }
    }
}

/// The beginning of an alert, with which a server that speaks TLS answers a plain request.
const ALERT: [u8; 2] = [21, 3];

fn unreadable(_error: HttpError, rest: &[u8]) -> Fault {
    let seen = if rest.starts_with(&ALERT) { Seen::SpeaksTls } else { Seen::bytes(rest) };
    Fault::new(ErrorClass::Protocol, seen)
}

#[cfg(test)]
mod tests;
