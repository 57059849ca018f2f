//! The protocol state of one connection. Pure: bytes in, bytes and deadlines out. `server` has the sockets.

use std::time::Instant;

use wire::frames::{FrameCounter, Prefix, put_prefix};

use crate::http::{Dialogue, Rules, Wants};
use crate::http2::Conversation;
use crate::{Counters, Speaks};

/// The protocol state of one connection.
pub(crate) enum Peer {
    /// So few bytes have arrived that they do not say which protocol it is.
    Unknown(Speaks, Vec<u8>),
    Http(Box<Dialogue>),
    Http2(Box<Conversation>),
    Frames(FrameCounter),
}

impl Peer {
    pub(crate) fn new(speaks: Speaks) -> Self {
        match speaks {
            Speaks::Frames => Self::Frames(FrameCounter::new(Prefix::Four)),
            Speaks::Http | Speaks::Https | Speaks::Either => Self::Unknown(speaks, Vec::new()),
        }
    }

    /// Speaks HTTP/2 from the beginning, because both sides have agreed on it.
    pub(crate) fn agree_on_http2(&mut self, rules: &Rules) {
        if let Self::Unknown(_, held) = self
            && held.is_empty()
        {
            *self = Self::Http2(Box::new(Conversation::new(rules)));
        }
    }

    /// The protocol that begins with these bytes. None if they are too few.
    fn of(speaks: Speaks, bytes: &[u8], rules: &Rules) -> Option<Self> {
        if speaks == Speaks::Either && bytes.first().is_some_and(|first| !first.is_ascii_alphabetic()) {
            return Some(Self::new(Speaks::Frames));
        }
        // Of the methods that begin with P, none goes on as the preface of HTTP/2 does.
        match bytes {
            [b'P', b'R', b'I', ..] => Some(Self::Http2(Box::new(Conversation::new(rules)))),
            [] | [b'P'] | [b'P', b'R'] => None,
            _ => Some(Self::Http(Box::default())),
        }
    }

    /// Handles bytes that arrived.
    pub(crate) fn hear(&mut self, bytes: &[u8], now: Instant, rules: &Rules, counts: &Counters) -> Wants {
        if let Self::Unknown(speaks, held) = self {
            if held.is_empty()
                && let Some(peer) = Self::of(*speaks, bytes, rules)
            {
                *self = peer;
                return self.hear(bytes, now, rules, counts);
            }
            held.extend_from_slice(bytes);
            let held = std::mem::take(held);
            let Some(peer) = Self::of(*speaks, &held, rules) else {
                *self = Self::Unknown(*speaks, held);
                return Wants::default();
            };
            *self = peer;
            return self.hear(&held, now, rules, counts);
        }
        match self {
            Self::Unknown(..) => Wants::default(),
            Self::Http(dialogue) => dialogue.hear(bytes, now, rules, counts),
            Self::Http2(conversation) => conversation.hear(bytes, now, rules, counts),
            Self::Frames(counter) => {
                let before = counter.frames();
                counter.push(bytes);
                Wants { bulk: true, whole: counter.frames() > before }
            }
        }
    }

    /// Handles the end of the peer's side. Appends the answer to it, if there is one.
    pub(crate) fn ended(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Unknown(..) => {}
            Self::Http(dialogue) => dialogue.ended(),
            Self::Http2(conversation) => conversation.ended(),
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
            Self::Http2(conversation) => conversation.answers(now, out),
            Self::Unknown(..) | Self::Frames(_) => 0,
        }
    }

    /// The bytes of the answers that wait, and those that are kept of the request being read.
    pub(crate) fn held(&self) -> (usize, usize) {
        match self {
            Self::Http(dialogue) => dialogue.held(),
            Self::Http2(conversation) => conversation.held(),
            Self::Unknown(..) | Self::Frames(_) => (0, 0),
        }
    }

    /// Whether what was appended since the last call brings the peer further. Of a connection without answers of its own, such as
    /// one that sends nothing but PING, this is false, so that it does not stay for ever.
    pub(crate) fn take_moved(&mut self) -> bool {
        match self {
            Self::Http2(conversation) => conversation.take_moved(),
            Self::Unknown(..) | Self::Http(_) | Self::Frames(_) => true,
        }
    }

    /// Until when the server lets the peer wait for its next answer, or for the next piece of one.
    pub(crate) fn waits_until(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::Http(dialogue) => dialogue.waits_until(now),
            Self::Http2(conversation) => conversation.waits_until(now),
            Self::Unknown(..) | Self::Frames(_) => None,
        }
    }

    /// Whether the peer may still be sending when the server closes.
    pub(crate) fn is_cut_short(&self) -> bool {
        match self {
            Self::Http(dialogue) => dialogue.is_cut_short(),
            Self::Http2(conversation) => conversation.is_cut_short(),
            Self::Unknown(..) | Self::Frames(_) => false,
        }
    }

    /// Whether the connection ends once all answers are sent. `heard_all` means that the peer has ended its side.
    pub(crate) fn over(&self, heard_all: bool) -> bool {
        match self {
            Self::Http(dialogue) => dialogue.over(),
            Self::Http2(conversation) => conversation.over(),
            Self::Unknown(..) | Self::Frames(_) => heard_all,
        }
    }
}
