//! What the driver needs from a protocol: bytes to send, and a judgement of bytes received. No sockets, no clocks.

use reactor::{Ends, Payload, SharedBytes};
use tls::Handshake;

use crate::fault::{ErrorClass, Fault, Seen};
use crate::stream::Brought;
use crate::tally::Decoded;

/// What a connection has to send next.
pub(crate) enum Next {
    /// Send these bytes, then ask again.
    Send(Payload),
    /// Half-close: the connection will send nothing more.
    HalfClose,
    /// Nothing can be sent any more: the connection is of no more use.
    Fail(Fault),
    /// Send nothing until something is received or another exchange begins.
    Nothing,
}

/// A verified success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Success {
    /// What the workload counts: 1 for a request or upload, the number of frames for a stream.
    pub units: u64,
    /// Payload bytes: of bodies, or of frames without their prefixes.
    pub payload: u64,
}

/// The end of one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    /// The exchange's id.
    pub id: u64,
    /// A verified success, or what was wrong. A failure does not harm the connection's other exchanges.
    pub result: Result<Success, Fault>,
}

/// What became of an exchange that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// An interim answer arrived, and the answer itself is still to come.
    Interim,
    /// A part of the answer arrived.
    Answering,
    /// A part of an answer that is a stream arrived. It may be its last part, whose end follows.
    Streaming(Brought),
    /// The peer has not processed the exchange and will not. It begins anew.
    Refused,
}

/// What a session makes of bytes that arrived. Ends and marks have their own lists, because nearly every call brings one end
/// and no mark, and then marks cost one comparison.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    /// Exchanges that have ended, in any order.
    pub ends: Vec<End>,
    /// Exchanges that have not ended, by their ids, in the order of the events.
    pub marks: Vec<(u64, Mark)>,
}

impl Outcomes {
    /// An exchange has ended.
    #[inline(always)]
    pub(crate) fn end(&mut self, id: u64, result: Result<Success, Fault>) {
        self.ends.push(End { id, result });
    }
}

/// What a session says of itself between two events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    /// The opening has ended: exchanges may begin. Until then [`Protocol::next`] says what the opening has to send.
    pub ready: bool,
    /// How many exchanges may be open at once. 0 means that nothing further begins: the connection is of no more use when
    /// its open exchanges have ended.
    pub capacity: usize,
    /// There is something to send that belongs to no exchange.
    pub speaks: bool,
    /// The peer has said that it will send nothing more, although the connection has not ended.
    pub over: bool,
    /// Enough data is still to come to be worth larger buffers.
    pub bulk: bool,
}

impl Standing {
    /// A session that is ready, with room for this many exchanges.
    #[inline(always)]
    pub(crate) fn ready(capacity: usize) -> Self {
        Self { ready: true, capacity, speaks: false, over: false, bulk: false }
    }
}

/// A protocol that the driver can drive. There is one value per thread, and a session for each connection. Exchanges have
/// ids: they count from 0 in the order in which they begin on their connection.
pub(crate) trait Protocol {
    /// What is known of one connection.
    type Session;
    /// Says which request an exchange sends, if they differ.
    type Request: Copy + Default;

    /// Whether answers arrive in the order of their requests, and requests are sent one after the other. Then whatever is sent
    /// or received concerns all open exchanges; otherwise only marks tell how far one has come.
    const IN_ORDER: bool = true;

    /// Whether connections outlive their exchanges. If not, connecting is part of the exchange.
    fn keeps_connections(&self) -> bool;

    /// Whether each connection carries exactly one send and one answer.
    fn is_one_exchange(&self) -> bool {
        false
    }

    /// Whether a connection's addresses are needed to open its session.
    fn asks_for_ends(&self) -> bool {
        false
    }

    /// Whether what arrives can be shown as evidence as it is.
    fn is_legible(&self) -> bool {
        true
    }

    /// Bytes of which parts are sent repeatedly, and how many of them at most at once on a connection.
    fn repeated(&self) -> Option<(&SharedBytes, usize)> {
        None
    }

    /// The session of a connection that was just made, of the lane with this number. The addresses are there if they were
    /// asked for and it is TCP.
    fn open(&mut self, lane: usize, ends: Option<Ends>) -> Self::Session;

    /// How the session stands. It is asked again after each event.
    fn standing(&self, session: &Self::Session) -> Standing;

    /// Why a session is not ready, if that is known.
    fn hindrance(&self, _session: &Self::Session) -> Seen {
        Seen::Nothing
    }

    /// What the opening agreed on, when the session is ready.
    fn handshake(&self, _session: &Self::Session) -> Option<Handshake> {
        None
    }

    /// Chooses what the next exchange sends.
    fn pick(&mut self) -> Self::Request;

    /// The number of the name under which an exchange is counted, besides the total.
    fn name(&self, _request: Self::Request) -> Option<usize> {
        None
    }

    /// How many names there are.
    fn names(&self) -> usize {
        0
    }

    /// Begins an exchange on a session that is ready and has room.
    fn begin(&mut self, session: &mut Self::Session, request: Self::Request);

    /// Gives up one exchange, because it has taken too long. Returns whether the connection still is of use: a protocol
    /// whose answers arrive in order can only end it.
    fn cancel(&mut self, _session: &mut Self::Session, _id: u64) -> bool {
        false
    }

    /// What to send next. `closing` means that no further exchanges will begin: a stream ends at the next frame boundary.
    fn next(&mut self, session: &mut Self::Session, closing: bool) -> Next;

    /// The id of an exchange of whose body `next` has given a further part, until there is none. The first parts that are given with the
    /// head do not count. Only where exchanges have no order.
    fn progressed(&mut self, _session: &mut Self::Session) -> Option<u64> {
        None
    }

    /// Takes back a payload that was sent.
    fn sent(&mut self, payload: Payload);

    /// Takes bytes that arrived, and says what became of the exchanges.
    ///
    /// # Errors
    /// The fault of the open exchanges, if the connection is of no more use. It is boxed, so that the usual result fits into a
    /// register.
    fn receive(
        &mut self,
        session: &mut Self::Session,
        bytes: &[u8],
        outcomes: &mut Outcomes,
    ) -> Result<(), Box<Fault>>;

    /// Handles the peer's close. Says which exchange it ends, if there is one, and returns the fault of those that are left.
    fn end(&mut self, session: &mut Self::Session, outcomes: &mut Outcomes) -> Fault;

    /// The bodies that were decoded since the last call.
    fn take_decoded(&mut self) -> Decoded {
        Decoded::default()
    }

    /// Stops waiting for an interim answer: on a connection that has sent nothing for a second, or where exchanges have no order, those up
    /// to this id, which began a second ago. Returns whether an exchange was waiting for one.
    fn nudge(&mut self, _session: &mut Self::Session, _last: u64) -> bool {
        false
    }
}

/// Handles bytes that no exchange asked for. If they directly follow an answer, they make that exchange fail. The connection
/// is of no more use.
///
/// # Errors
/// The fault, if there is no answer before the bytes.
pub(crate) fn unasked(rest: &[u8], outcomes: &mut Outcomes) -> Result<(), Box<Fault>> {
    let fault = Fault::new(ErrorClass::Protocol, Seen::bytes(rest));
    match outcomes.ends.last_mut() {
        Some(end) => {
            end.result = Err(fault);
            Ok(())
        }
        None => Err(fault.into()),
    }
}
