//! TLS around another protocol. The driver sees a protocol whose connections are not ready at first.

use std::time::SystemTime;

use reactor::Payload;
use tls::{ClientChannel, Dialer, Handshake, Line};

use crate::fault::{ErrorClass, Fault, Seen};
use crate::protocol::{Next, Protocol, Reply};
use crate::tally::Decoded;

/// A protocol inside TLS.
pub(crate) struct Secured<P> {
    inner: P,
    /// One client for each lane: each keeps its own sessions, if they are asked for.
    lines: Vec<Line>,
    /// Certificates must be valid at this time, for the whole drive.
    now: SystemTime,
    /// The bytes that arrived, which are decrypted in place.
    arrived: Vec<u8>,
    /// Memory of payloads that were sent.
    spare: Vec<Vec<u8>>,
}

pub(crate) struct State<S> {
    /// The connection, or why there can be none.
    channel: Result<Box<ClientChannel>, tls::Fault>,
    inner: S,
}

impl<P: Protocol> Secured<P> {
    pub(crate) fn new(inner: P, dialer: &Dialer, lanes: usize, now: SystemTime) -> Self {
        let lines = (0..lanes).map(|_| dialer.line()).collect();
        Self { inner, lines, now, arrived: Vec::new(), spare: Vec::new() }
    }

    /// Encrypts what the inner protocol has to send.
    fn encrypt(&mut self, state: &mut State<P::State>, closing: bool, out: &mut Vec<u8>) -> Next {
        let channel = match &mut state.channel {
            Ok(channel) => channel,
            Err(fault) => return Next::Fail(failed(*fault)),
        };
        channel.take_output(out);
        if !channel.ready() {
            return Next::Nothing;
        }
        match self.inner.next(&mut state.inner, closing) {
            Next::Send(payload) => {
                let sealed = channel.send(payload.bytes(), out);
                self.inner.sent(payload);
                sealed.map_or_else(|fault| Next::Fail(failed(fault)), |()| Next::Nothing)
            }
            other => other,
        }
    }
}

impl<P: Protocol> Protocol for Secured<P> {
    type State = State<P::State>;
    type Request = P::Request;

    /// What arrives is ciphertext.
    const LEGIBLE: bool = false;

    fn keeps_connections(&self) -> bool {
        self.inner.keeps_connections()
    }

    #[expect(clippy::indexing_slicing, reason = "there is a line for each lane")]
    fn open(&mut self, lane: usize) -> Self::State {
        State { channel: self.lines[lane].open(self.now).map(Box::new), inner: self.inner.open(lane) }
    }

    fn is_ready(&self, state: &Self::State) -> bool {
        state.channel.as_ref().is_ok_and(|channel| channel.ready())
    }

    fn handshake(&self, state: &Self::State) -> Option<Handshake> {
        state.channel.as_ref().ok()?.handshake()
    }

    fn has_to_speak(&self, state: &Self::State) -> bool {
        state.channel.as_ref().map_or(true, |channel| channel.has_output())
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

    /// A close of TLS ends an answer as a close of the connection does, which the peer may delay until it sees ours.
    fn is_over(&self, state: &Self::State) -> bool {
        state.channel.as_ref().is_ok_and(|channel| channel.ended())
    }

    fn begin(&mut self, state: &mut Self::State, request: P::Request) {
        self.inner.begin(&mut state.inner, request);
    }

    fn next(&mut self, state: &mut Self::State, closing: bool) -> Next {
        let mut out = self.spare.pop().unwrap_or_default();
        let next = self.encrypt(state, closing, &mut out);
        match next {
            Next::Nothing if !out.is_empty() => Next::Send(Payload::Owned(out)),
            next => {
                out.clear();
                self.spare.push(out);
                next
            }
        }
    }

    fn sent(&mut self, payload: Payload) {
        if let Payload::Owned(mut bytes) = payload {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    fn receive(
        &mut self,
        state: &mut Self::State,
        bytes: &[u8],
        replies: &mut Vec<Reply>,
    ) -> Result<(), Fault> {
        let channel = match &mut state.channel {
            Ok(channel) => channel,
            Err(fault) => return Err(failed(*fault)),
        };
        self.arrived.clear();
        self.arrived.extend_from_slice(bytes);
        let mut judged = Ok(());
        let opened = channel.receive(&mut self.arrived, |plain| {
            if judged.is_ok() {
                judged = self.inner.receive(&mut state.inner, plain, replies);
            }
        });
        judged.and(opened.map_err(failed))
    }

    fn expects_bulk(&self, state: &Self::State) -> bool {
        self.inner.expects_bulk(&state.inner)
    }

    /// A body that lasts until the close is complete only if the close is announced (RFC 8446 section 6.1). Whoever can
    /// reset a connection could shorten it otherwise.
    fn end(&mut self, state: &mut Self::State, replies: &mut Vec<Reply>) -> Fault {
        let left = self.inner.end(&mut state.inner, replies);
        let ended = match &mut state.channel {
            Ok(channel) => channel.end(),
            Err(fault) => Err(*fault),
        };
        let Err(fault) = ended else { return left };
        for reply in replies.iter_mut().filter(|reply| reply.result.is_ok()) {
            reply.result = Err(failed(fault));
        }
        // Where a close alone is missing, what is incomplete without TLS says more.
        if fault == tls::Fault::Truncated { left } else { failed(fault) }
    }

    fn take_decoded(&mut self) -> Decoded {
        self.inner.take_decoded()
    }

    fn nudge(&mut self, state: &mut Self::State) -> bool {
        self.inner.nudge(&mut state.inner)
    }
}

fn failed(fault: tls::Fault) -> Fault {
    Fault::new(ErrorClass::Tls, Seen::Tls(fault))
}
