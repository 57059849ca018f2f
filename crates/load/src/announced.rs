//! The PROXY protocol in front of another protocol: each connection first says its own addresses, as a proxy would say
//! those of its client.

use std::sync::Arc;

use reactor::{Ends, Payload, SharedBytes};
use tls::Handshake;
use wire::proxy::{self, Version};

use crate::fault::Fault;
use crate::protocol::{Next, Protocol, Reply};
use crate::tally::Decoded;

/// A protocol behind a header.
pub(crate) struct Announced<P> {
    inner: P,
    version: Version,
}

pub(crate) struct State<S> {
    ends: Option<Ends>,
    /// Whether the header has been sent. Nobody answers it, so a connection needs no more than that.
    said: bool,
    inner: S,
}

impl<P> Announced<P> {
    pub(crate) fn new(inner: P, version: Version) -> Self {
        Self { inner, version }
    }
}

impl<P: Protocol> Protocol for Announced<P> {
    type State = State<P::State>;
    type Request = P::Request;

    const LEGIBLE: bool = P::LEGIBLE;
    const SAYS_ENDS: bool = true;

    fn keeps_connections(&self) -> bool {
        self.inner.keeps_connections()
    }

    fn repeated(&self) -> Option<(&SharedBytes, usize)> {
        self.inner.repeated()
    }

    fn open(&mut self, lane: usize) -> Self::State {
        State { ends: None, said: false, inner: self.inner.open(lane) }
    }

    fn connected(&mut self, state: &mut Self::State, ends: Option<Ends>) {
        state.ends = ends;
    }

    fn is_ready(&self, state: &Self::State) -> bool {
        self.inner.is_ready(&state.inner)
    }

    fn handshake(&self, state: &Self::State) -> Option<Handshake> {
        self.inner.handshake(&state.inner)
    }

    fn has_to_speak(&self, state: &Self::State) -> bool {
        self.inner.has_to_speak(&state.inner)
    }

    fn limit(&self, state: &Self::State) -> u64 {
        self.inner.limit(&state.inner)
    }

    fn pick(&mut self) -> P::Request {
        self.inner.pick()
    }

    fn name(&self, request: P::Request) -> Option<usize> {
        self.inner.name(request)
    }

    fn names(&self) -> usize {
        self.inner.names()
    }

    fn begin(&mut self, state: &mut Self::State, request: P::Request) {
        self.inner.begin(&mut state.inner, request);
    }

    fn next(&mut self, state: &mut Self::State, closing: bool) -> Next {
        if std::mem::replace(&mut state.said, true) {
            return self.inner.next(&mut state.inner, closing);
        }
        let header = proxy::header(self.version, state.ends.map(|ends| (ends.own, ends.peer)));
        // The inner protocol uses the memory of payloads again that are not shared, and it did not make this one.
        let whole = 0..header.len();
        Next::Send(SharedBytes::new(Arc::new(header)).slice(whole))
    }

    fn sent(&mut self, payload: Payload) {
        self.inner.sent(payload);
    }

    fn receive(
        &mut self,
        state: &mut Self::State,
        bytes: &[u8],
        replies: &mut Vec<Reply>,
    ) -> Result<(), Fault> {
        self.inner.receive(&mut state.inner, bytes, replies)
    }

    fn expects_bulk(&self, state: &Self::State) -> bool {
        self.inner.expects_bulk(&state.inner)
    }

    fn is_over(&self, state: &Self::State) -> bool {
        self.inner.is_over(&state.inner)
    }

    fn take_decoded(&mut self) -> Decoded {
        self.inner.take_decoded()
    }

    fn end(&mut self, state: &mut Self::State, replies: &mut Vec<Reply>) -> Fault {
        self.inner.end(&mut state.inner, replies)
    }

    fn nudge(&mut self, state: &mut Self::State) -> bool {
        self.inner.nudge(&mut state.inner)
    }
}
