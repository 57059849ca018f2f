//! The bodies of requests, as far as the peer's windows let them be sent.

use std::sync::Arc;

use wire::h2::{FRAME, Flags, Kind, SendWindow, put_frame_head};

use super::session::State;
use crate::target;

/// The most bytes of bodies that are sent together.
const SEND: usize = 256 * 1024;

/// What the bodies of requests are made of.
#[derive(Default)]
pub(crate) struct Body {
    bytes: Arc<Vec<u8>>,
    /// Whether `bytes` are repeated; otherwise they are the whole body.
    repeats: bool,
}

impl Body {
    pub(super) fn new(body: &target::Body) -> Self {
        match body {
            target::Body::None => Self::default(),
            target::Body::Bytes(bytes) => Self { bytes: Arc::clone(bytes), repeats: false },
            target::Body::Pattern(length) => {
                // Any frame of a body lies in it, wherever windows have cut.
                let block = wire::pattern::block(*length, wire::pattern::PERIOD + FRAME);
                Self { bytes: Arc::new(block), repeats: true }
            }
        }
    }

    /// Bytes of a body from this place on.
    fn piece(&self, at: u64, length: usize) -> &[u8] {
        let at = if self.repeats { at % wire::pattern::PERIOD as u64 } else { at } as usize;
        self.bytes.get(at..at + length).unwrap_or_default()
    }
}

/// What of a request is still to be sent after its head.
pub(crate) struct Sending {
    /// The length of the body, and how much of it is sent.
    pub length: u64,
    pub sent: u64,
    /// Its bytes, if it has its own.
    pub own: Option<Box<[u8]>>,
    /// Whether the body waits for `100 Continue`.
    pub awaits: bool,
    /// What the peer lets the stream send.
    pub window: SendWindow,
    /// The id that the answer must repeat.
    pub id: Option<u64>,
    /// Whether it is a HEAD request, whose answer has no body.
    pub head_only: bool,
}

impl Sending {
    #[inline(always)]
    pub(super) fn new() -> Self {
        let window = SendWindow::new(0);
        Self { length: 0, sent: 0, own: None, awaits: false, window, id: None, head_only: false }
    }

    /// Whether bytes of the body are still to be sent.
    #[inline]
    pub(super) fn is_left(&self) -> bool {
        self.sent < self.length
    }

    /// Appends a frame of the body, no longer than the windows allow. Returns how many bytes of it there are.
    fn put_frame(&mut self, stream: u32, body: &Body, connection: SendWindow, out: &mut Vec<u8>) -> u64 {
        let left = (self.length - self.sent).min(FRAME as u64);
        let length = self.window.allows(connection.allows(left));
        if length == 0 || self.awaits {
            return 0;
        }
        let ends = self.sent + length == self.length;
        let flags = if ends { Flags::END_STREAM } else { Flags::NONE };
        put_frame_head(out, length as usize, Kind::Data, flags, stream);
        let at = self.sent as usize;
        let piece = match &self.own {
            Some(own) => own.get(at..at + length as usize).unwrap_or_default(),
            None => body.piece(self.sent, length as usize),
        };
        out.extend_from_slice(piece);
        self.sent += length;
        self.window.take(length);
        length
    }
}

impl<R: Copy> State<R> {
    /// Appends as much of the bodies as the windows allow, a frame of each stream in turn.
    pub(super) fn upload(&mut self, body: &Body, out: &mut Vec<u8>) {
        let (sent, mut still) = (self.streams.len() - self.unsent, 0);
        let mut place = if self.turn < sent { self.turn } else { 0 };
        while self.uploads > 0 && still < sent && out.len() < SEND {
            let Some(stream) = self.streams.get_mut(place) else { break };
            let length = match stream.sending.is_left() {
                true => stream.sending.put_frame(stream.id(), body, self.connection, out),
                false => 0,
            };
            self.connection.take(length);
            self.uploads -= usize::from(length > 0 && !stream.sending.is_left());
            still = if length > 0 { 0 } else { still + 1 };
            place = if place + 1 < sent { place + 1 } else { 0 };
        }
        self.turn = place;
    }
}
