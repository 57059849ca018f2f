//! The protocol state of one connection. Pure: bytes in, bytes and deadlines out. `server` has the sockets.

use std::time::Instant;

use wire::frames::{FrameCounter, Prefix, put_prefix};

use crate::http::{Dialogue, Rules, Wants};
use crate::{Counters, Speaks};

/// The protocol state of one connection.
pub(crate) enum Peer {
    /// A port for both protocols, and no byte has arrived.
    Unknown,
    Http(Box<Dialogue>),
    Frames(FrameCounter),
}

impl Peer {
    pub(crate) fn new(speaks: Speaks) -> Self {
        match speaks {
            Speaks::Http | Speaks::Https => Self::Http(Box::default()),
            Speaks::Frames => Self::Frames(FrameCounter::new(Prefix::Four)),
            Speaks::Either => Self::Unknown,
        }
    }

    /// Handles bytes that arrived.
    pub(crate) fn hear(&mut self, bytes: &[u8], now: Instant, rules: &Rules, counts: &Counters) -> Wants {
        if let (Self::Unknown, Some(first)) = (&self, bytes.first()) {
            *self = Self::new(if first.is_ascii_alphabetic() { Speaks::Http } else { Speaks::Frames });
        }
        match self {
            Self::Unknown => Wants::default(),
            Self::Http(dialogue) => dialogue.hear(bytes, now, rules, counts),
            Self::Frames(counter) => {
                let before = counter.frames();
                counter.push(bytes);
                Wants { bulk: true, whole: counter.frames() > before, ..Wants::default() }
            }
        }
    }

    /// Handles the end of the peer's side. Appends the answer to it, if there is one.
    pub(crate) fn ended(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Unknown => {}
            Self::Http(dialogue) => dialogue.ended(),
            Self::Frames(counter) => {
                let answer = counter.summary().encode();
                // Cannot fail: sixteen bytes fit any prefix.
                let _ = put_prefix(out, Prefix::Four, answer.len());
                out.extend_from_slice(&answer);
            }
        }
    }

    /// Appends every answer that is due at `now`. Returns how many.
    pub(crate) fn answers(&mut self, now: Instant, out: &mut Vec<u8>) -> u64 {
        match self {
            Self::Http(dialogue) => dialogue.answers(now, out),
            Self::Unknown | Self::Frames(_) => 0,
        }
    }

    /// The bytes of the answers that wait, and those that are kept of the request being read.
    pub(crate) fn held(&self) -> (usize, usize) {
        match self {
            Self::Http(dialogue) => dialogue.held(),
            Self::Unknown | Self::Frames(_) => (0, 0),
        }
    }

    /// Until when the server lets the peer wait for its next answer, or for the next piece of one.
    pub(crate) fn waits_until(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::Http(dialogue) => dialogue.waits_until(now),
            Self::Unknown | Self::Frames(_) => None,
        }
    }

    /// Whether the peer may still be sending when the server closes.
    pub(crate) fn is_cut_short(&self) -> bool {
        matches!(self, Self::Http(dialogue) if dialogue.is_cut_short())
    }

    /// Whether the connection ends once all answers are sent. `heard_all` means that the peer has ended its side.
    pub(crate) fn over(&self, heard_all: bool) -> bool {
        match self {
            Self::Http(dialogue) => dialogue.over(),
            Self::Unknown | Self::Frames(_) => heard_all,
        }
    }
}
