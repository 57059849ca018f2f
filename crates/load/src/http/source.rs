//! Where the requests of a thread come from: one that is repeated, or a list.

use std::collections::VecDeque;
use std::sync::Arc;

use reactor::{Payload, SharedBytes};
use wire::http::{Method, RequestLine, ResponseDecoder};

use super::answer::Judge;
use super::{INLINE, State, inline};
use crate::error::LoadError;
use crate::tally::Decoded;
use crate::target::Http;

/// The header that carries a request's id, and that the answer repeats.
const ID: &str = "x-request-id";
/// The number of digits of an id, enough for any u64.
const ID_DIGITS: usize = 20;

/// Gives the requests that are sent.
pub(crate) trait Source {
    /// Says which request an exchange sends.
    type Request: Copy + Default;

    /// Chooses the request of the next exchange.
    fn pick(&mut self) -> Self::Request;

    /// Adds a request to those that a connection is to send.
    fn add(&mut self, state: &mut State, request: Self::Request);

    /// The next bytes of a connection: of one request if they are `alone`, otherwise of as many as can be sent together.
    fn take(&mut self, state: &mut State, alone: bool) -> Payload;

    /// Takes back a payload that was sent.
    fn sent(&mut self, payload: Payload);

    /// Bytes of which parts are sent, and how many of them at most at once on a connection.
    fn shared(&self) -> (&SharedBytes, usize);

    /// The decoder of a new connection.
    fn decoder(&self) -> ResponseDecoder;

    /// Prepares for the answer to the oldest open exchange.
    fn expect_answer(&self, _state: &mut State) {}

    /// The id that the next answer must have.
    fn id<'m>(&self, _marks: &'m VecDeque<u64>) -> Option<&'m u64> {
        None
    }

    /// Who judges the next answer.
    #[inline]
    fn judge<'j>(&'j mut self, usual: &'j mut Judge, _marks: &VecDeque<u64>) -> &'j mut Judge {
        usual
    }

    /// The bodies that its own judges have read since the last call.
    fn take_decoded(&mut self) -> Decoded {
        Decoded::default()
    }

    /// The number of the name under which a request is counted.
    fn name(&self, _request: Self::Request) -> Option<usize> {
        None
    }

    /// How many names there are.
    fn names(&self) -> usize {
        0
    }
}

/// The same request again and again, except for its id.
pub(crate) struct Same {
    /// Copies of the request, as many as the pipeline is deep, so that any number of them is one send. A large or waiting
    /// body is not part of the copies.
    requests: SharedBytes,
    /// The length of one copy in bytes.
    copy_length: usize,
    depth: usize,
    head_request: bool,
    ids: Option<Ids>,
}

/// The state of requests with ids. They are written one by one into memory that is reused after each send.
struct Ids {
    /// The position of the id's digits in the head.
    offset: usize,
    next: u64,
    spare: Vec<Vec<u8>>,
}

impl Same {
    pub(super) fn new(target: &Http, depth: usize, first_id: u64) -> Result<Self, LoadError> {
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
        if !is_large(target) {
            request.extend_from_slice(&inline(&target.body));
        }
        Ok(Self {
            copy_length: request.len(),
            requests: SharedBytes::new(Arc::new(request.repeat(depth))),
            depth,
            head_request: Method::from_name(target.method.as_bytes()) == Method::Head,
            ids: target.ids.then_some(Ids { offset, next: first_id, spare: Vec::new() }),
        })
    }
}

/// Whether the body is sent in pieces after the head.
pub(super) fn is_large(target: &Http) -> bool {
    target.body.len().unwrap_or(0) > INLINE || target.expect_continue
}

impl Source for Same {
    type Request = ();

    #[inline]
    fn pick(&mut self) {}

    #[inline]
    fn add(&mut self, _state: &mut State, (): ()) {}

    #[expect(
        clippy::indexing_slicing,
        reason = "the id stands in the copy, at the place where it was written"
    )]
    #[inline]
    fn take(&mut self, state: &mut State, alone: bool) -> Payload {
        let Some(ids) = &mut self.ids else {
            let count = if alone { 1 } else { state.unsent.min(self.depth) };
            state.unsent -= count;
            state.open += count;
            return self.requests.slice(0..self.copy_length * count);
        };
        let mut bytes = ids.spare.pop().unwrap_or_else(|| self.requests.bytes()[..self.copy_length].to_vec());
        let digits = format!("{:0ID_DIGITS$}", ids.next);
        bytes[ids.offset..ids.offset + ID_DIGITS].copy_from_slice(digits.as_bytes());
        state.marks.push_back(ids.next);
        ids.next += 1;
        state.unsent -= 1;
        state.open += 1;
        Payload::Owned(bytes)
    }

    fn sent(&mut self, payload: Payload) {
        if let (Some(ids), Payload::Owned(bytes)) = (&mut self.ids, payload) {
            ids.spare.push(bytes);
        }
    }

    fn shared(&self) -> (&SharedBytes, usize) {
        (&self.requests, self.requests.bytes().len())
    }

    fn decoder(&self) -> ResponseDecoder {
        let mut decoder =
            if self.ids.is_some() { ResponseDecoder::watching(ID) } else { ResponseDecoder::new() };
        decoder.answers_head(self.head_request);
        decoder
    }

    #[inline]
    fn id<'m>(&self, marks: &'m VecDeque<u64>) -> Option<&'m u64> {
        marks.front()
    }
}
