//! The protocol of HTTP/2 requests: many exchanges at once on a connection, each of which may fail alone. A source says which
//! requests are sent, and what a right answer is was decided for HTTP/1.1 ([`crate::http::answer`]).

use std::sync::Arc;

use reactor::{Ends, Payload};

use crate::error::LoadError;
use crate::fault::{ErrorClass, Fault, Seen};
use crate::http::answer::Judge;
use crate::list::List;
use crate::protocol::{Next, Outcomes, Protocol, Standing};
use crate::tally::Decoded;
use crate::target::{Allowance, Http};
use session::{Session, State};
use source::{Listed, Same, Source};
use upload::Body;

mod hearing;
mod session;
mod source;
mod upload;

/// When so many bytes are to be sent together, further requests wait for the next send.
const BATCH: usize = 16 * 1024;
/// Payloads larger than this do not stay.
const SPARE: usize = 512 * 1024;
/// What a peer may send on a connection before it hears that more is welcome. The window of a stream is the user's.
const WINDOW: u32 = Allowance::WINDOW;
/// The most interim answers that are accepted before an answer, and the most empty frames within one.
const INTERIM: u32 = 100;
const EMPTY: u32 = 1000;
/// The most answers to pings and settings that wait to be sent.
const ANSWERS: u32 = 1000;
/// Ids end at 2^31 - 1. This is less than an hour on one connection.
const MOST_EXCHANGES: u32 = 1 << 30;

pub(crate) struct Requests<S> {
    source: S,
    /// The body that all requests have, if they are not a list's.
    body: Body,
    keep_alive: bool,
    allowance: Allowance,
    judge: Judge,
    /// Whether answers must repeat an id.
    ids: bool,
    /// Memory of payloads that were sent.
    spare: Vec<Vec<u8>>,
}

impl Requests<Same> {
    /// Requests that are all the same.
    pub(crate) fn new(target: &Http, first_id: u64) -> Result<Self, LoadError> {
        Ok(Self {
            source: Same::new(target, first_id)?,
            body: Body::new(&target.body),
            keep_alive: target.keep_alive,
            allowance: target.allowance,
            judge: Judge::new(target),
            ids: target.ids,
            spare: Vec::new(),
        })
    }
}

impl Requests<Listed> {
    /// Requests of a list, for one of several threads.
    pub(crate) fn listed(target: &Http, list: &Arc<List>, thread: (usize, usize)) -> Self {
        Self {
            source: Listed::new(target, list, thread),
            body: Body::default(),
            keep_alive: target.keep_alive,
            allowance: target.allowance,
            judge: Judge::new(target),
            ids: false,
            spare: Vec::new(),
        }
    }
}

impl<S: Source> Protocol for Requests<S> {
    type Session = Session<S::Request>;
    type Request = S::Request;

    const IN_ORDER: bool = false;

    fn keeps_connections(&self) -> bool {
        self.keep_alive
    }

    /// Frames are not text.
    fn is_legible(&self) -> bool {
        false
    }

    fn open(&mut self, _lane: usize, _ends: Option<Ends>) -> Self::Session {
        Session::new(if self.ids { source::ID } else { "" }, self.keep_alive, self.allowance)
    }

    #[inline]
    fn standing(&self, session: &Self::Session) -> Standing {
        session.state.standing()
    }

    fn hindrance(&self, session: &Self::Session) -> Seen {
        Seen::Unready(match session.state.greeted {
            true => "the server allows no requests: its SETTINGS_MAX_CONCURRENT_STREAMS is 0",
            false => "the server sent no SETTINGS in time",
        })
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
    fn begin(&mut self, session: &mut Self::Session, request: S::Request) {
        session.state.begin(request);
    }

    /// The peer hears of it, and the connection's other exchanges do not.
    fn cancel(&mut self, session: &mut Self::Session, id: u64) -> bool {
        session.state.cancel(id);
        true
    }

    #[inline]
    fn next(&mut self, session: &mut Self::Session, _closing: bool) -> Next {
        let state = &mut session.state;
        if state.unsent == 0 && state.control.is_empty() && !state.may_upload() {
            return Next::Nothing;
        }
        let mut out = self.spare.pop().unwrap_or_default();
        state.take_control(&mut out);
        while state.may_begin() && out.len() < BATCH {
            self.send_head(state, &mut out);
        }
        if state.ready && state.may_upload() {
            if out.is_empty()
                && let Some(block) = state.upload_block(&mut self.body)
            {
                self.spare.push(out);
                return Next::Send(Payload::Owned(block));
            }
            state.upload(&self.body, &mut out);
        }
        if out.is_empty() {
            self.spare.push(out);
            return Next::Nothing;
        }
        Next::Send(Payload::Owned(out))
    }

    fn sent(&mut self, payload: Payload) {
        if let Payload::Owned(bytes) = payload
            && let Some(mut bytes) = self.body.take_back(bytes)
            && bytes.capacity() <= SPARE
        {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    #[inline]
    fn receive(
        &mut self,
        session: &mut Self::Session,
        bytes: &[u8],
        outcomes: &mut Outcomes,
    ) -> Result<(), Box<Fault>> {
        self.hear_all(session, bytes, outcomes)
    }

    fn end(&mut self, session: &mut Self::Session, _outcomes: &mut Outcomes) -> Fault {
        match session.state.parting {
            Some(seen) => Fault::new(ErrorClass::Reset, seen),
            None => Fault::new(ErrorClass::ClosedEarly, Seen::Nothing),
        }
    }

    fn take_decoded(&mut self) -> Decoded {
        let mut decoded = self.judge.take_decoded();
        decoded.add(&self.source.take_decoded());
        decoded
    }

    fn nudge(&mut self, session: &mut Self::Session, last: u64) -> bool {
        session.state.release(last)
    }

    #[inline]
    fn progressed(&mut self, session: &mut Self::Session) -> Option<u64> {
        session.state.progressed.pop().map(u64::from)
    }
}

impl<S: Source> Requests<S> {
    /// Appends the head of the oldest exchange that is not sent.
    #[inline]
    fn send_head(&mut self, state: &mut State<S::Request>, out: &mut Vec<u8>) {
        let State { streams, unsent, table, initial, .. } = state;
        let place = streams.len() - *unsent;
        let Some(stream) = streams.get_mut(place) else { return };
        self.source.head(stream.request, table, stream.id(), out, &mut stream.sending);
        stream.sending.window = wire::h2::SendWindow::new(*initial);
        *unsent -= 1;
        // Most requests have no body.
        if stream.sending.is_left() {
            state.queue(place);
        }
    }
}

#[cfg(test)]
mod tests;
