//! The protocol of frame streams. One stream is one exchange. The receiver answers the half-close with its counts, which
//! must equal what was sent.

use std::sync::Arc;

use reactor::{Ends, Payload, SharedBytes};
use wire::frames::{FrameReader, Prefix, Summary, put_prefix};

use crate::error::LoadError;
use crate::fault::{ErrorClass, Fault, Seen};
use crate::protocol::{Next, Outcomes, Protocol, Standing, Success, unasked};
use crate::target::FrameStream;

/// Bytes per send. Small frames are batched up to this size; large frames are cut into pieces of this size. With two frames
/// of 100,000 bytes per send instead of three, a frame costs 2.4 times as much.
const PIECE: usize = 256 * 1024;

pub(crate) struct Streams {
    size: u64,
    /// The total number of frames and the connections that share them, if the number is fixed.
    count: Option<(u64, u64)>,
    /// How many streams have begun.
    begun: u64,
    pieces: Pieces,
}

/// How a stream is cut into sends.
enum Pieces {
    /// A block of many identical whole frames.
    Batch { block: SharedBytes, frame: usize, frames: u64 },
    /// Parts of a frame: `first` starts with the prefix, all further parts come from `block`.
    Cut { first: SharedBytes, prefix: usize, block: SharedBytes },
}

pub(crate) struct State {
    /// An exchange has begun, and its stream has not ended.
    streaming: bool,
    ended: bool,
    answered: bool,
    /// The number of frames of this stream, if it is fixed.
    count: Option<u64>,
    frames: u64,
    /// Bytes of the current frame that are still to be sent, including the prefix.
    left: u64,
    answer: FrameReader,
}

impl Streams {
    /// `count` is the total number of frames over all `connections`, if it is fixed.
    pub(crate) fn new(target: &FrameStream, count: Option<u64>, connections: u64) -> Result<Self, LoadError> {
        let FrameStream { size, prefix, .. } = *target;
        let mut head = Vec::new();
        put_prefix(&mut head, prefix, usize::try_from(size).unwrap_or(usize::MAX))?;
        let frame = head.len() as u64 + size;
        let pieces = if frame <= PIECE as u64 {
            head.extend_from_slice(&wire::pattern::block(size, size as usize));
            let frames = PIECE.div_ceil(head.len()) as u64;
            let frame = head.len();
            Pieces::Batch { block: SharedBytes::new(Arc::new(head.repeat(frames as usize))), frame, frames }
        } else {
            let block = wire::pattern::block(size, PIECE);
            let prefix = head.len();
            head.extend_from_slice(&block);
            head.truncate(PIECE);
            Pieces::Cut {
                first: SharedBytes::new(Arc::new(head)),
                prefix,
                block: SharedBytes::new(Arc::new(block)),
            }
        };
        let count = count.map(|count| (count, connections.max(1)));
        Ok(Self { size, count, begun: 0, pieces })
    }

    /// The next piece: whole frames, or a part of the current frame.
    fn piece(&self, state: &mut State) -> Payload {
        let open = state.count.map_or(u64::MAX, |count| count - state.frames);
        match &self.pieces {
            Pieces::Batch { block, frame, frames } => {
                let count = open.min(*frames);
                state.frames += count;
                block.slice(0..*frame * count as usize)
            }
            Pieces::Cut { first, prefix, block } => {
                let whole = *prefix as u64 + self.size;
                let source = if state.left == 0 {
                    state.frames += 1;
                    state.left = whole;
                    first
                } else {
                    block
                };
                let len = state.left.min(PIECE as u64);
                state.left -= len;
                source.slice(0..len as usize)
            }
        }
    }
}

impl Protocol for Streams {
    type Session = State;
    type Request = ();

    fn keeps_connections(&self) -> bool {
        false
    }

    fn open(&mut self, _lane: usize, _ends: Option<Ends>) -> State {
        let answer = FrameReader::new(Prefix::Four, 16);
        State { streaming: false, ended: false, answered: false, count: None, frames: 0, left: 0, answer }
    }

    /// A stream is one exchange.
    fn standing(&self, state: &State) -> Standing {
        Standing::ready(usize::from(!state.answered))
    }

    fn pick(&mut self) {}

    fn begin(&mut self, state: &mut State, (): ()) {
        state.streaming = true;
        state.count =
            self.count.map(|(count, streams)| count / streams + u64::from(self.begun < count % streams));
        self.begun += 1;
    }

    fn next(&mut self, state: &mut State, closing: bool) -> Next {
        if !state.streaming {
            return Next::Nothing;
        }
        let enough = state.count.is_some_and(|count| state.frames >= count);
        // Send at least one frame, however short the time, and finish a frame that has begun.
        if state.left == 0 && (enough || (closing && state.count.is_none() && state.frames > 0)) {
            state.streaming = false;
            state.ended = true;
            return Next::HalfClose;
        }
        Next::Send(self.piece(state))
    }

    fn sent(&mut self, _payload: Payload) {}

    fn receive(
        &mut self,
        state: &mut State,
        bytes: &[u8],
        outcomes: &mut Outcomes,
    ) -> Result<(), Box<Fault>> {
        let mut rest = bytes;
        while !rest.is_empty() {
            // The answer came before the end of the stream, or it is a second one.
            if !state.ended || state.answered {
                return unasked(rest, outcomes);
            }
            let unreadable = |_| Fault::new(ErrorClass::Protocol, Seen::bytes(bytes));
            let (consumed, frame) = state.answer.push(rest).map_err(unreadable)?;
            rest = rest.get(consumed..).unwrap_or_default();
            let Some(frame) = frame else { continue };
            let got =
                Summary::decode(frame).ok_or_else(|| Fault::new(ErrorClass::Protocol, Seen::bytes(frame)))?;
            let sent = Summary { frames: state.frames, bytes: state.frames * self.size };
            state.answered = true;
            outcomes.end(0, compare(sent, got));
        }
        Ok(())
    }

    fn end(&mut self, _state: &mut State, _outcomes: &mut Outcomes) -> Fault {
        Fault::new(ErrorClass::ClosedEarly, Seen::Nothing)
    }
}

fn compare(sent: Summary, got: Summary) -> Result<Success, Fault> {
    let wrong = |expected, got| Err(Fault::new(ErrorClass::Length, Seen::Count { expected, got }));
    if got.frames != sent.frames {
        return wrong(sent.frames, got.frames);
    }
    if got.bytes != sent.bytes {
        return wrong(sent.bytes, got.bytes);
    }
    Ok(Success { units: got.frames, payload: got.bytes })
}

#[cfg(test)]
mod tests;
