//! What the driver needs from a protocol: bytes to send, and a judgement of bytes received. No sockets, no clocks.

use reactor::{Ends, Payload, SharedBytes};
use tls::Handshake;

use crate::fault::{ErrorClass, Fault, Seen};
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
pub(crate) struct Reply {
    /// The exchange's number: the first that began on its connection has 0.
    pub number: u64,
    /// A verified success, or what was wrong. A failure does not harm the connection's other exchanges.
    pub result: Result<Success, Fault>,
}

/// A protocol that the driver can drive. There is one value per thread; the `State` belongs to one connection.
pub(crate) trait Protocol {
    /// The state of one connection.
    type State;
    /// Says which request an exchange sends, if they differ.
    type Request: Copy + Default;

    /// Whether connections outlive their exchanges. If not, connecting is part of the exchange.
    fn keeps_connections(&self) -> bool;

    /// Whether each connection carries exactly one send and one answer.
    fn is_one_exchange(&self) -> bool {
        false
    }

    /// Bytes of which parts are sent repeatedly, and how many of them at most at once on a connection.
    fn repeated(&self) -> Option<(&SharedBytes, usize)> {
        None
    }

    /// Whether what arrives can be shown as evidence as it is.
    const LEGIBLE: bool = true;

    /// Whether connections say their own addresses: see [`connected`](Self::connected).
    const SAYS_ENDS: bool = false;

    /// The state of a new connection of the lane with this number.
    fn open(&mut self, lane: usize) -> Self::State;

    /// Takes the addresses of a connection that was just made, if its protocol says them. `None` if it is not TCP.
    fn connected(&mut self, _state: &mut Self::State, _ends: Option<Ends>) {}

    /// Whether the connection can carry exchanges. If not, [`next`](Self::next) says what its *opening* has to send first.
    fn is_ready(&self, _state: &Self::State) -> bool {
        true
    }

    /// What the opening agreed on, when the connection is ready.
    fn handshake(&self, _state: &Self::State) -> Option<Handshake> {
        None
    }

    /// Whether there is something to send that belongs to no exchange.
    fn has_to_speak(&self, _state: &Self::State) -> bool {
        false
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

    /// How many exchanges the connection carries. From this number on the peer has not processed any, and takes no more:
    /// when those before it have ended, the others begin anew on another connection.
    fn limit(&self, state: &Self::State) -> u64;

    /// Whether the peer has said that it will send nothing more, before the connection has ended.
    fn is_over(&self, _state: &Self::State) -> bool {
        false
    }

    /// Adds an exchange to this connection. Their numbers count from 0.
    fn begin(&mut self, state: &mut Self::State, request: Self::Request);

    /// What to send next. `closing` means that no further exchanges will begin: a stream ends at the next frame boundary.
    fn next(&mut self, state: &mut Self::State, closing: bool) -> Next;

    /// Takes back a payload that was sent.
    fn sent(&mut self, payload: Payload);

    /// Takes bytes that arrived. Appends every exchange that they end to `replies`, in any order.
    ///
    /// # Errors
    /// The fault of the oldest open exchange, if the connection is of no more use.
    fn receive(
        &mut self,
        state: &mut Self::State,
        bytes: &[u8],
        replies: &mut Vec<Reply>,
    ) -> Result<(), Fault>;

    /// Whether enough data is still to come on this connection to be worth larger buffers.
    fn expects_bulk(&self, _state: &Self::State) -> bool {
        false
    }

    /// Handles the peer's close. Appends the exchange that it ends, if there is one, to `replies`, and returns the fault of the
    /// exchanges that are left.
    fn end(&mut self, state: &mut Self::State, replies: &mut Vec<Reply>) -> Fault;

    /// The bodies that were decoded since the last call.
    fn take_decoded(&mut self) -> Decoded {
        Decoded::default()
    }

    /// Stops waiting for an interim answer, on a connection that has sent nothing for a second. Returns whether an exchange
    /// was waiting for one.
    fn nudge(&mut self, _state: &mut Self::State) -> bool {
        false
    }
}

/// Handles bytes that no exchange asked for. If they directly follow an answer, they make that exchange fail. The connection
/// is of no more use.
///
/// # Errors
/// The fault, if there is no answer before the bytes.
pub(crate) fn unasked(rest: &[u8], replies: &mut [Reply]) -> Result<(), Fault> {
    let fault = Fault::new(ErrorClass::Protocol, Seen::bytes(rest));
    match replies.last_mut() {
        Some(reply) => {
            reply.result = Err(fault);
            Ok(())
        }
        None => Err(fault),
    }
}
