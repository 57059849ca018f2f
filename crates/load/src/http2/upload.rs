//! The bodies of requests, as far as the peer's windows let them be sent.

use std::sync::Arc;

use wire::h2::{FRAME, Flags, HEAD, Kind, SendWindow, put_frame_head, set_stream};

use super::BATCH;
use super::session::State;
use crate::target;

/// The most bytes of bodies that are sent together.
const SEND: usize = 256 * 1024;

const PERIOD: u64 = wire::pattern::PERIOD as u64;

/// How many periods of the pattern a block has: more than is ever copied for one send, so that its length tells a block.
const PERIODS: u64 = 5;
/// How many bytes of a body a block is.
const BLOCK: u64 = PERIODS * PERIOD;
/// How many bytes a block is, with the heads of its frames.
const FRAMED: usize = (BLOCK + PERIODS * PERIOD.div_ceil(FRAME as u64) * HEAD as u64) as usize;
// The reactor may add what was posted before to what is sent.
const _: () = assert!(FRAMED > SEND + BATCH + 2 * FRAME + reactor::Io::POST);

/// What the bodies of requests are made of.
#[derive(Default)]
pub(crate) struct Body {
    bytes: Arc<Vec<u8>>,
    /// Whether `bytes` are repeated; otherwise they are the whole body.
    repeats: bool,
    /// Blocks: frames of whole periods, for any stream. Sending one needs no copy, only the stream's id in the frames' heads.
    pub(super) blocks: Vec<Vec<u8>>,
}

/// How long a frame of the pattern may be that begins here: frames end where the pattern begins anew.
fn frame_at(at: u64) -> u64 {
    (PERIOD - at % PERIOD).min(FRAME as u64)
}

impl Body {
    pub(super) fn new(body: &target::Body) -> Self {
        match body {
            target::Body::None => Self::default(),
            target::Body::Bytes(bytes) => Self { bytes: Arc::clone(bytes), ..Self::default() },
            target::Body::Pattern(length) => {
                // Any frame of a body lies in it, wherever windows have cut.
                let block = wire::pattern::block(*length, wire::pattern::PERIOD + FRAME);
                Self { bytes: Arc::new(block), repeats: true, blocks: Vec::new() }
            }
        }
    }

    /// Bytes of a body from this place on.
    fn piece(&self, at: u64, length: usize) -> &[u8] {
        let at = if self.repeats { at % PERIOD } else { at } as usize;
        self.bytes.get(at..at + length).unwrap_or_default()
    }

    /// A block for this stream.
    pub(super) fn block(&mut self, stream: u32) -> Vec<u8> {
        let mut block = self.blocks.pop().unwrap_or_else(|| self.new_block());
        let (mut at, mut place) = (0, 0);
        while at < BLOCK {
            set_stream(&mut block, place, stream);
            place += HEAD + frame_at(at) as usize;
            at += frame_at(at);
        }
        block
    }

    #[cold]
    fn new_block(&self) -> Vec<u8> {
        let (mut block, mut at) = (Vec::new(), 0);
        while at < BLOCK {
            let length = frame_at(at) as usize;
            put_frame_head(&mut block, length, Kind::Data, Flags::NONE, 0);
            block.extend_from_slice(self.piece(at, length));
            at += length as u64;
        }
        block
    }

    /// Takes back a payload that was a block. Returns any other.
    pub(super) fn take_back(&mut self, payload: Vec<u8>) -> Option<Vec<u8>> {
        // Nothing else that begins with DATA is as long, and a block behind something else is longer.
        let is_data = |at: usize| payload.get(at + 3) == Some(&(Kind::Data as u8));
        let last = FRAMED - HEAD - frame_at(PERIOD - PERIOD % FRAME as u64) as usize;
        let is_block = payload.len() == FRAMED && is_data(0) && is_data(last);
        if !is_block {
            return Some(payload);
        }
        self.blocks.push(payload);
        None
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
    /// Whether the stream waits for its turn to send.
    pub queued: bool,
    /// The id that the answer must repeat.
    pub id: Option<u64>,
    /// Whether it is a HEAD request, whose answer has no body.
    pub head_only: bool,
}

impl Sending {
    #[inline(always)]
    pub(super) fn new() -> Self {
        let window = SendWindow::new(0);
        Self {
            length: 0,
            sent: 0,
            own: None,
            awaits: false,
            window,
            queued: false,
            id: None,
            head_only: false,
        }
    }

    /// Whether bytes of the body are still to be sent.
    #[inline]
    pub(super) fn is_left(&self) -> bool {
        self.sent < self.length
    }

    /// Whether the next bytes of a body may be sent as a block, which is not its end.
    #[inline]
    fn takes_block(&self, body: &Body, connection: SendWindow) -> bool {
        body.repeats
            && self.own.is_none()
            && !self.awaits
            && self.sent.is_multiple_of(PERIOD)
            && self.length.saturating_sub(self.sent) > BLOCK
            && self.window.allows(connection.allows(BLOCK)) == BLOCK
    }

    /// Appends a frame of the body, no longer than the windows allow. Returns how many bytes of it there are.
    fn put_frame(&mut self, stream: u32, body: &Body, connection: SendWindow, out: &mut Vec<u8>) -> u64 {
        let most = if body.repeats { frame_at(self.sent) } else { FRAME as u64 };
        let left = (self.length - self.sent).min(most);
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
    /// Lets a stream wait for its turn if it may send more of its body. Anything that may let it send more calls this.
    pub(super) fn queue(&mut self, place: usize) {
        let Some(stream) = self.streams.get_mut(place) else { return };
        let (id, sending) = (stream.id(), &mut stream.sending);
        if !sending.is_left() || sending.queued || sending.awaits || sending.window.allows(1) == 0 {
            return;
        }
        sending.queued = true;
        self.senders.push_back(id);
        // A stream that has ended leaves the queue at its turn. While the connection's window is closed there are no turns, so the queue
        // is swept here.
        if self.senders.len() > 2 * self.streams.len() {
            let senders = std::mem::take(&mut self.senders);
            self.senders = senders.into_iter().filter(|id| self.find(*id).is_some()).collect();
        }
    }

    /// Whether more of a body may be sent.
    #[inline]
    pub(super) fn may_upload(&self) -> bool {
        !self.senders.is_empty() && self.connection.allows(1) > 0
    }

    /// The place of the stream whose turn it is.
    fn sender(&mut self) -> Option<usize> {
        loop {
            let place = self.find(*self.senders.front()?);
            if place.is_some() {
                return place;
            }
            self.senders.pop_front();
        }
    }

    /// Ends the turn of a stream. It gets another one if it may send more.
    fn end_turn(&mut self, place: usize) {
        self.senders.pop_front();
        if let Some(stream) = self.streams.get_mut(place) {
            stream.sending.queued = false;
        }
        self.queue(place);
    }

    /// The next part of a body, if it can be sent without a copy.
    pub(super) fn upload_block(&mut self, body: &mut Body) -> Option<Vec<u8>> {
        let place = self.sender()?;
        let stream = self.streams.get_mut(place)?;
        let (id, number) = (stream.id(), stream.number);
        if !stream.sending.takes_block(body, self.connection) {
            return None;
        }
        stream.sending.sent += BLOCK;
        stream.sending.window.take(BLOCK);
        self.connection.take(BLOCK);
        self.progressed.push(number);
        self.end_turn(place);
        Some(body.block(id))
    }

    /// Appends as much of the bodies as the windows allow, a frame of each stream in turn.
    pub(super) fn upload(&mut self, body: &Body, out: &mut Vec<u8>) {
        self.progressed.clear();
        while self.may_upload()
            && out.len() < SEND
            && let Some(place) = self.sender()
            && let Some(stream) = self.streams.get_mut(place)
        {
            let length = stream.sending.put_frame(stream.id(), body, self.connection, out);
            self.connection.take(length);
            // A short body goes out with its head.
            if length > 0 && (stream.sending.is_left() || stream.sending.sent > length) {
                self.progressed.push(stream.number);
            }
            if length > 0 && stream.sending.takes_block(body, self.connection) {
                // The rest needs no copy.
                break;
            }
            self.end_turn(place);
        }
    }
}
