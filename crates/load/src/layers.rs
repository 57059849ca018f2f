//! What lies between a protocol and its connections: the header of the PROXY protocol, with which each connection first says
//! its own addresses as a proxy would say those of its client, and TLS. Each has an opening. The inner session is created
//! when the opening has ended, because only then is it known what was agreed on.
//!
//! Which layers there are is a value, so that the driver is compiled twice for each protocol: with layers and without. One
//! copy would do, but it costs a request without layers 34 instructions of 930 (docs/decisions/0019-exchanges.md).

use std::sync::Arc;
use std::time::SystemTime;

use reactor::{Ends, Payload, SharedBytes};
use tls::{ClientChannel, Dialer, Handshake, Line};
use wire::proxy::{self, Version};

use crate::fault::{ErrorClass, Fault, Seen};
use crate::protocol::{Next, Outcomes, Protocol, Standing};
use crate::tally::Decoded;

/// A protocol inside its layers.
pub(crate) struct Layered<P> {
    inner: P,
    /// The version of the PROXY protocol's header, if connections begin with one.
    header: Option<Version>,
    secured: Option<Secured>,
}

/// What the connections of a thread share for TLS.
struct Secured {
    /// One client for each lane: each keeps its own sessions, if they are asked for.
    lines: Vec<Line>,
    /// Certificates must be valid at this time, for the whole drive.
    now: SystemTime,
    /// The bytes that arrived, which are decrypted in place.
    arrived: Vec<u8>,
    /// Memory of payloads that were sent.
    spare: Vec<Vec<u8>>,
}

/// A session inside its layers.
pub(crate) struct Session<S> {
    lane: usize,
    /// The header, until it is sent. Nobody answers it, so a connection needs no more than that.
    header: Option<Payload>,
    /// With TLS: the connection, or why there can be none.
    channel: Option<Result<Box<ClientChannel>, tls::Fault>>,
    /// There is one when the opening has ended.
    inner: Option<S>,
}

impl<P: Protocol> Layered<P> {
    /// A protocol whose connections begin with this header, if there is one.
    pub(crate) fn new(inner: P, header: Option<Version>) -> Self {
        Self { inner, header, secured: None }
    }

    /// Connections are encrypted, of this many lanes.
    pub(crate) fn secured(self, dialer: &Dialer, lanes: usize, now: SystemTime) -> Self {
        let lines = (0..lanes).map(|_| dialer.line()).collect();
        Self { secured: Some(Secured { lines, now, arrived: Vec::new(), spare: Vec::new() }), ..self }
    }
}

impl<P: Protocol> Protocol for Layered<P> {
    type Session = Session<P::Session>;
    type Request = P::Request;

    const IN_ORDER: bool = P::IN_ORDER;

    fn keeps_connections(&self) -> bool {
        self.inner.keeps_connections()
    }

    fn asks_for_ends(&self) -> bool {
        self.header.is_some()
    }

    /// Inside TLS what arrives is ciphertext.
    fn is_legible(&self) -> bool {
        self.secured.is_none() && self.inner.is_legible()
    }

    fn repeated(&self) -> Option<(&SharedBytes, usize)> {
        if self.secured.is_some() { None } else { self.inner.repeated() }
    }

    #[expect(clippy::indexing_slicing, reason = "there is a line for each lane")]
    fn open(&mut self, lane: usize, ends: Option<Ends>) -> Self::Session {
        let header = self.header.map(|version| {
            let header = proxy::header(version, ends.map(|ends| (ends.own, ends.peer)));
            // The inner protocol uses the memory of payloads again that are not shared, and it did not make this one.
            let whole = 0..header.len();
            SharedBytes::new(Arc::new(header)).slice(whole)
        });
        let open = |secured: &mut Secured| secured.lines[lane].open(secured.now).map(Box::new);
        let channel = self.secured.as_mut().map(open);
        let inner = channel.is_none().then(|| self.inner.open(lane, None));
        Session { lane, header, channel, inner }
    }

    fn standing(&self, session: &Self::Session) -> Standing {
        let opening = Standing { ready: false, ..Standing::ready(usize::MAX) };
        let inner = session.inner.as_ref().map_or(opening, |inner| self.inner.standing(inner));
        match &session.channel {
            None => inner,
            // Asked what to send, it says why there is nothing.
            Some(Err(_)) => Standing { speaks: true, ..inner },
            Some(Ok(channel)) => Standing {
                speaks: inner.speaks || channel.has_output(),
                // A close of TLS ends an answer as a close of the connection does, which the peer may delay until it sees
                // ours.
                over: inner.over || channel.ended(),
                ..inner
            },
        }
    }

    fn hindrance(&self, session: &Self::Session) -> Seen {
        session.inner.as_ref().map_or(Seen::Unready("the TLS handshake did not end in time"), |inner| {
            self.inner.hindrance(inner)
        })
    }

    fn handshake(&self, session: &Self::Session) -> Option<Handshake> {
        session.channel.as_ref()?.as_ref().ok()?.handshake()
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

    fn begin(&mut self, session: &mut Self::Session, request: P::Request) {
        if let Some(inner) = &mut session.inner {
            self.inner.begin(inner, request);
        }
    }

    fn cancel(&mut self, session: &mut Self::Session, id: u64) -> bool {
        session.inner.as_mut().is_some_and(|inner| self.inner.cancel(inner, id))
    }

    fn next(&mut self, session: &mut Self::Session, closing: bool) -> Next {
        if let Some(header) = session.header.take() {
            return Next::Send(header);
        }
        let (channel, secured) = match (&mut session.channel, &mut self.secured) {
            (Some(Ok(channel)), Some(secured)) => (channel, secured),
            (Some(Err(fault)), _) => return Next::Fail(failed(*fault)),
            _ => {
                return session.inner.as_mut().map_or(Next::Nothing, |inner| self.inner.next(inner, closing));
            }
        };
        let mut out = secured.spare.pop().unwrap_or_default();
        channel.take_output(&mut out);
        let next = match session.inner.as_mut().map(|inner| self.inner.next(inner, closing)) {
            Some(Next::Send(payload)) => {
                let sealed = channel.send(payload.bytes(), &mut out);
                self.inner.sent(payload);
                sealed.map_or_else(|fault| Next::Fail(failed(fault)), |()| Next::Nothing)
            }
            Some(other) => other,
            None => Next::Nothing,
        };
        match next {
            Next::Nothing if !out.is_empty() => Next::Send(Payload::Owned(out)),
            next => {
                out.clear();
                secured.spare.push(out);
                next
            }
        }
    }

    fn sent(&mut self, payload: Payload) {
        match (&mut self.secured, payload) {
            (Some(secured), Payload::Owned(mut bytes)) => {
                bytes.clear();
                secured.spare.push(bytes);
            }
            (Some(_), _) => {}
            (None, payload) => self.inner.sent(payload),
        }
    }

    fn receive(
        &mut self,
        session: &mut Self::Session,
        bytes: &[u8],
        outcomes: &mut Outcomes,
    ) -> Result<(), Box<Fault>> {
        let Session { lane, channel, inner, .. } = session;
        let (channel, secured) = match (channel, &mut self.secured) {
            (Some(Ok(channel)), Some(secured)) => (channel, secured),
            (Some(Err(fault)), _) => return Err(failed(*fault).into()),
            _ => {
                let Some(inner) = inner else { return Ok(()) };
                return receive(&mut self.inner, inner, bytes, outcomes);
            }
        };
        secured.arrived.clear();
        secured.arrived.extend_from_slice(bytes);
        let mut judged = Ok(());
        let opened = channel.receive(&mut secured.arrived, |plain| {
            let inner = inner.get_or_insert_with(|| self.inner.open(*lane, None));
            if judged.is_ok() {
                judged = receive(&mut self.inner, inner, plain, outcomes);
            }
        });
        if channel.ready() {
            inner.get_or_insert_with(|| self.inner.open(*lane, None));
        }
        judged.and(opened.map_err(|fault| failed(fault).into()))
    }

    /// A body that lasts until the close is complete only if the close is announced (RFC 8446 section 6.1). Whoever can
    /// reset a connection could shorten it otherwise.
    fn end(&mut self, session: &mut Self::Session, outcomes: &mut Outcomes) -> Fault {
        let left = match &mut session.inner {
            Some(inner) => self.inner.end(inner, outcomes),
            None => Fault::new(ErrorClass::ClosedEarly, Seen::Nothing),
        };
        let ended = match &mut session.channel {
            Some(Ok(channel)) => channel.end(),
            Some(Err(fault)) => Err(*fault),
            None => return left,
        };
        let Err(fault) = ended else { return left };
        for end in outcomes.ends.iter_mut().filter(|end| end.result.is_ok()) {
            end.result = Err(failed(fault));
        }
        // Where a close alone is missing, what is incomplete without TLS says more.
        if fault == tls::Fault::Truncated { left } else { failed(fault) }
    }

    fn take_decoded(&mut self) -> Decoded {
        self.inner.take_decoded()
    }

    fn nudge(&mut self, session: &mut Self::Session, last: u64) -> bool {
        session.inner.as_mut().is_some_and(|inner| self.inner.nudge(inner, last))
    }

    fn progressed(&mut self, session: &mut Self::Session) -> Option<u64> {
        self.inner.progressed(session.inner.as_mut()?)
    }
}

/// What an inner protocol receives. It is compiled once, however many layers are around it.
#[inline(never)]
fn receive<P: Protocol>(
    inner: &mut P,
    session: &mut P::Session,
    bytes: &[u8],
    outcomes: &mut Outcomes,
) -> Result<(), Box<Fault>> {
    inner.receive(session, bytes, outcomes)
}

fn failed(fault: tls::Fault) -> Fault {
    Fault::new(ErrorClass::Tls, Seen::Tls(fault))
}
