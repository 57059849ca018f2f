//! What the driver needs of a protocol: bytes to send, and a verdict on bytes received. No sockets, no clocks.

use reactor::{Payload, SharedBytes};

use crate::fault::{ErrorClass, Fault, Seen};

/// What a connection has to send next.
pub(crate) enum Next {
    /// These bytes; then ask again.
    Send(Payload),
    /// Nothing more for ever: half-close.
    HalfClose,
    /// Nothing until something is received or begun.
    Nothing,
}

/// A verified success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Success {
    /// What the workload counts: 1 for a request or an upload, the number of frames for a stream.
    pub units: u64,
    /// Payload bytes: bodies, frames without their prefixes.
    pub payload: u64,
}

/// The end of one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply {
    /// Verified, or what was wrong.
    pub result: Result<Success, Fault>,
    /// Whether the connection can carry another exchange.
    pub keep: bool,
}

/// A protocol under the driver. One value per thread; what belongs to a connection is in its `State`.
pub(crate) trait Protocol {
    /// What a connection remembers.
    type State;

    /// Whether connections outlive their exchanges. Where they do not, connecting is part of the exchange.
    fn keeps_connections(&self) -> bool;

    /// Whether a connection carries one send and one answer.
    fn is_one_exchange(&self) -> bool {
        false
    }

    /// Bytes that are sent again and again.
    fn repeated(&self) -> Option<&SharedBytes> {
        None
    }

    /// A new connection's state.
    fn open(&mut self) -> Self::State;

    /// One more exchange is wanted on this connection.
    fn begin(&mut self, state: &mut Self::State);

    /// What to send next. `closing`: no further exchange is wanted; a stream ends itself at its next boundary.
    fn next(&mut self, state: &mut Self::State, closing: bool) -> Next;

    /// A payload came back from the kernel.
    fn sent(&mut self, payload: Payload);

    /// Bytes arrived; every exchange that they end is appended to `replies`, oldest first.
    ///
    /// # Errors
    /// The connection is of no more use: the fault of its oldest open exchange.
    fn receive(
        &mut self,
        state: &mut Self::State,
        bytes: &[u8],
        replies: &mut Vec<Reply>,
    ) -> Result<(), Fault>;

    /// Whether so much is still to come on this connection that larger buffers are worth asking for.
    fn expects_bulk(&self, _state: &Self::State) -> bool {
        false
    }

    /// The peer closed. The last exchange may have ended by that.
    fn end(&mut self, state: &mut Self::State) -> Option<Reply>;

    /// The oldest exchange has waited for a second: go on without what it may be waiting for.
    fn nudge(&mut self, _state: &mut Self::State) {}
}

/// Bytes that no exchange asked for. Behind an answer they are part of what that exchange received, and spoil it.
pub(crate) fn unasked(rest: &[u8], replies: &mut [Reply]) -> Result<(), Fault> {
    let fault = Fault::new(ErrorClass::Protocol, Seen::bytes(rest));
    match replies.last_mut() {
        Some(reply) => {
            *reply = Reply { result: Err(fault), keep: false };
            Ok(())
        }
        None => Err(fault),
    }
}
