//! The protocol of HTTP/1.1 requests. They are identical except for their ids, and every answer is parsed and checked.

use std::collections::VecDeque;
use std::sync::Arc;

use reactor::{Io, Payload, SharedBytes};
use wire::http::{HttpError, HttpEvent, Method, RequestLine, ResponseDecoder};

use crate::error::LoadError;
use crate::fault::{ErrorClass, Fault, Seen};
use crate::protocol::{Next, Protocol, Reply, Success, unasked};
use crate::tally::Decoded;
use crate::target::{Body, Http};
use answer::{Judge, ReceivedAnswer};
use inspect::{Kept, Message};

mod answer;
mod inspect;

/// Bodies up to this size are sent together with their head.
const INLINE: u64 = 64 * 1024;
/// Bytes per send of a large body.
const PIECE: usize = 256 * 1024;
/// The most interim answers that are accepted before an answer.
const INTERIM: u64 = 100;
/// The header that carries a request's id, and that the answer repeats.
pub(crate) const ID: &str = "x-request-id";

pub(crate) struct Requests {
    /// Copies of the request, as many as the pipeline is deep, so that any number of them is one send. A large or waiting
    /// body is not part of the copies.
    requests: SharedBytes,
    /// The length of one copy in bytes.
    copy_length: usize,
    depth: usize,
    body: Option<Large>,
    /// The length of the body in bytes, whether large or not.
    payload: Option<u64>,
    keep_alive: bool,
    expect_continue: bool,
    head_request: bool,
    judge: Judge,
    ids: Option<Ids>,
}

/// A body that is sent in pieces.
struct Large {
    bytes: SharedBytes,
    len: u64,
    /// If true, every piece begins at the start of `bytes` (a pattern). Otherwise `bytes` is the whole body.
    repeats: bool,
}

/// The state of requests with ids. They are written one by one into memory that is reused after each send.
struct Ids {
    /// The position of the id's digits in the head.
    offset: usize,
    next: u64,
    spare: Vec<Vec<u8>>,
}

/// The number of digits of an id, enough for any u64.
const ID_DIGITS: usize = 20;

#[derive(Default)]
pub(crate) struct State {
    decoder: ResponseDecoder,
    /// Exchanges that have begun but are not sent yet.
    unsent: usize,
    /// Exchanges that are sent, at least in part, and not answered.
    open: usize,
    /// Exchanges that are answered; the number of the oldest open one.
    answered: u64,
    /// How many exchanges the connection carries.
    limit: u64,
    /// The progress of the body that is being sent.
    body: BodyState,
    /// Ids of the open exchanges, oldest first.
    ids: VecDeque<u64>,
    answer: ReceivedAnswer,
    /// Its bytes, if they are inspected.
    kept: Option<Box<Kept>>,
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

impl Requests {
    pub(crate) fn new(target: &Http, depth: usize, first_id: u64) -> Result<Self, LoadError> {
        let mut headers = target.headers.clone();
        let placeholder = "0".repeat(ID_DIGITS);
        if target.ids {
            headers.push((ID.to_owned(), placeholder.clone()));
        }
        let mut request = Vec::new();
        RequestLine {
            method: &target.method,
            host: &target.host,
            path: &target.path,
            headers: &headers,
            body: target.body.len(),
            keep_alive: target.keep_alive,
            expect_continue: target.expect_continue,
        }
        .encode(&mut request)?;
        let offset =
            request.windows(ID_DIGITS).position(|window| window == placeholder.as_bytes()).unwrap_or(0);
        let large = target.body.len().unwrap_or(0) > INLINE || target.expect_continue;
        let body = if large { Large::new(&target.body) } else { None };
        if body.is_none() {
            request.extend_from_slice(&inline(&target.body));
        }
        Ok(Self {
            copy_length: request.len(),
            requests: SharedBytes::new(Arc::new(request.repeat(depth))),
            depth,
            body,
            payload: target.body.len(),
            keep_alive: target.keep_alive,
            expect_continue: target.expect_continue,
            head_request: Method::from_name(target.method.as_bytes()) == Method::Head,
            judge: Judge::new(target),
            ids: target.ids.then_some(Ids { offset, next: first_id, spare: Vec::new() }),
        })
    }

    /// Handles the end of an answer. An interim answer only releases a waiting body.
    ///
    /// # Errors
    /// There are too many interim answers.
    #[inline(always)]
    fn complete(
        &mut self,
        state: &mut State,
        answer: ReceivedAnswer,
        message: Message<'_>,
        replies: &mut Vec<Reply>,
    ) -> Result<(), Fault> {
        if !answer.interim {
            state.interim = 0;
            replies.push(self.judge(state, &answer, message));
            return Ok(());
        }
        state.interim += 1;
        if answer.status == 100 {
            self.release(state);
        }
        let limit = Seen::Limit { of: INTERIM, what: "interim answers" };
        if state.interim > INTERIM { Err(Fault::new(ErrorClass::Protocol, limit)) } else { Ok(()) }
    }

    /// Handles the end of an answer that arrived in pieces.
    fn complete_pieces(&mut self, state: &mut State, replies: &mut Vec<Reply>) -> Result<(), Fault> {
        let (answer, kept) = (std::mem::take(&mut state.answer), state.kept.take());
        let end = self.complete(state, answer, Kept::message(kept.as_deref()), replies);
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

    /// Judges a complete answer.
    #[inline(always)]
    fn judge(&mut self, state: &mut State, answer: &ReceivedAnswer, message: Message<'_>) -> Reply {
        state.came = None;
        state.open = state.open.saturating_sub(1);
        state.ids.pop_front();
        let number = state.answered;
        state.answered += 1;
        // A server that announces its close processes no further requests (RFC 9112 section 9.6). If the answer comes before
        // the whole body is sent, the connection is in the middle of a request.
        if !answer.keep || state.body != BodyState::None {
            state.refuse();
        }
        let result = self.judge.verdict(answer, message);
        let success = |length| Success { units: 1, payload: self.payload.unwrap_or(length) };
        Reply { number, result: result.map(success) }
    }

    #[inline]
    fn request(&mut self, state: &mut State) -> Next {
        let Some(ids) = &mut self.ids else {
            let count = if self.body.is_some() { 1 } else { state.unsent.min(self.depth) };
            state.unsent -= count;
            state.open += count;
            return Next::Send(self.requests.slice(0..self.copy_length * count));
        };
        let mut bytes = ids.spare.pop().unwrap_or_else(|| self.requests.bytes()[..self.copy_length].to_vec());
        let digits = format!("{:0ID_DIGITS$}", ids.next);
        bytes[ids.offset..ids.offset + ID_DIGITS].copy_from_slice(digits.as_bytes());
        state.ids.push_back(ids.next);
        ids.next += 1;
        state.unsent -= 1;
        state.open += 1;
        Next::Send(Payload::Owned(bytes))
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

impl Protocol for Requests {
    type State = State;

    fn keeps_connections(&self) -> bool {
        self.keep_alive
    }

    fn is_one_exchange(&self) -> bool {
        !self.keep_alive && self.body.is_none() && self.requests.bytes().len() <= Io::SILENT
    }

    fn repeated(&self) -> Option<&SharedBytes> {
        Some(&self.requests)
    }

    fn open(&mut self, _lane: usize) -> State {
        let mut decoder =
            if self.ids.is_some() { ResponseDecoder::watching(ID) } else { ResponseDecoder::new() };
        decoder.answers_head(self.head_request);
        let limit = if self.keep_alive { u64::MAX } else { 1 };
        State { decoder, limit, ..State::default() }
    }

    #[inline]
    fn limit(&self, state: &State) -> u64 {
        state.limit
    }

    fn begin(&mut self, state: &mut State) {
        state.unsent += 1;
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
                self.request(state)
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
        if let (Some(ids), Payload::Owned(bytes)) = (&mut self.ids, payload) {
            ids.spare.push(bytes);
        }
    }

    #[inline]
    fn receive(&mut self, state: &mut State, bytes: &[u8], replies: &mut Vec<Reply>) -> Result<(), Fault> {
        let mut rest = bytes;
        // The bytes from the start of the current answer on.
        let mut answer = rest;
        loop {
            if state.open == 0 && state.decoder.idle() {
                if rest.is_empty() {
                    return Ok(());
                }
                state.refuse();
                return unasked(rest, replies);
            }
            // Fast path: nearly every answer is small and arrives in one piece.
            if let Some(whole) = state.decoder.whole(rest) {
                let mut received = ReceivedAnswer::begin(&whole.head, state.ids.front());
                self.judge.whole(&mut received, whole.body)?;
                let message = Message { from: rest, len: whole.consumed, body: whole.body.len() };
                rest = &rest[message.len..];
                self.complete(state, received, message, replies)?;
                if rest.is_empty() {
                    return Ok(());
                }
                answer = rest;
                continue;
            }
            let step = state.decoder.push(rest).map_err(|error| unreadable(error, rest))?;
            rest = &rest[step.consumed..];
            match step.event {
                HttpEvent::NeedMore => {
                    if !answer.is_empty() {
                        state.came.get_or_insert_with(|| Seen::bytes(answer));
                    }
                    return Ok(());
                }
                HttpEvent::Head(head) => {
                    state.answer = ReceivedAnswer::begin(&head, state.ids.front());
                    self.judge.admit(&head, &mut state.kept)?;
                }
                HttpEvent::Body(data) => self.judge.add(&mut state.answer, data, &mut state.kept)?,
                HttpEvent::End => {
                    self.complete_pieces(state, replies)?;
                    answer = rest;
                }
            }
        }
    }

    fn expects_bulk(&self, state: &State) -> bool {
        state.answer.bulk
    }

    fn end(&mut self, state: &mut State, replies: &mut Vec<Reply>) -> Fault {
        if state.decoder.finish() == Ok(true) {
            let (answer, kept) = (std::mem::take(&mut state.answer), state.kept.take());
            replies.push(self.judge(state, &answer, Kept::message(kept.as_deref())));
        }
        Fault::new(ErrorClass::ClosedEarly, state.came.take().unwrap_or(Seen::Nothing))
    }

    fn take_decoded(&mut self) -> Decoded {
        self.judge.take_decoded()
    }

    fn nudge(&mut self, state: &mut State) -> bool {
        self.release(state)
    }
}

impl State {
    /// Begins nothing further on this connection.
    #[inline(never)]
    fn refuse(&mut self) {
        self.limit = self.limit.min(self.answered);
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
