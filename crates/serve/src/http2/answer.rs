//! Answers: when they are due, and how much of them the windows let the server send.

use std::sync::LazyLock;
use std::time::Instant;

use wire::h2::{FRAME, Flags, Kind, SendWindow, put_field, put_frame_head, put_headers, put_status};

use super::{Request, State};
use crate::http::ID;
use crate::limits::UNSENT;
use crate::stream::Script;

/// The answer to a request.
pub(super) struct Answer {
    due: Instant,
    /// The header block, until it is sent.
    head: Vec<u8>,
    body: Body,
    /// How much of the body is sent.
    sent: usize,
    /// What follows the body, piece by piece.
    stream: Option<Playing>,
    /// Whether the request is not complete.
    pub early: bool,
}

/// What is sent after the head.
enum Body {
    Bytes(Vec<u8>),
    /// So many bytes of the pattern, which take no memory of their own.
    Pattern(usize),
}

/// Any frame of a body of the pattern lies in it.
static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let length = wire::pattern::PERIOD + FRAME;
    wire::pattern::block(length as u64, length)
});

impl Body {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Pattern(count) => *count,
        }
    }

    fn piece(&self, at: usize, length: usize) -> &[u8] {
        let (bytes, at) = match self {
            Self::Bytes(bytes) => (bytes, at),
            Self::Pattern(_) => (&*PATTERN, at % wire::pattern::PERIOD),
        };
        bytes.get(at..at + length).unwrap_or_default()
    }
}

/// A stream that has begun.
struct Playing {
    script: Box<Script>,
    began: Instant,
    /// The number of the answer on its connection, from 1.
    answer: u64,
    /// The next piece.
    next: u32,
}

impl Playing {
    fn due(&self) -> Instant {
        self.began + self.script.due(self.next, self.answer)
    }

    fn is_over(&self) -> bool {
        self.next >= self.script.pieces()
    }
}

impl Answer {
    pub(super) fn new(request: &mut Request, now: Instant, number: u64) -> Self {
        let (mut due, mut stream) = (now + request.route.wait(), None);
        let mut head = Vec::with_capacity(64);
        let (body, length, content_type) = match request.route.script() {
            None => {
                let route = std::mem::replace(&mut request.route, crate::route::Route::Hello);
                let (status, body) = match route {
                    crate::route::Route::Bytes(count) => (200, Body::Pattern(count)),
                    route => {
                        let (status, body) = route.answer(request.received);
                        (status, Body::Bytes(body))
                    }
                };
                put_status(&mut head, status);
                let length = body.len();
                (body, Some(length), None)
            }
            Some(script) if script.streams() => {
                put_status(&mut head, 200);
                let content_type = script.content_type();
                stream = Some(Playing { script, began: now, answer: number, next: 0 });
                (Body::Bytes(Vec::new()), None, Some(content_type))
            }
            Some(script) => {
                put_status(&mut head, 200);
                due = now + script.due(script.pieces().saturating_sub(1), number);
                let body = Body::Bytes(script.whole().into_bytes());
                let length = body.len();
                (body, Some(length), Some(script.content_type()))
            }
        };
        if let Some(content_type) = content_type {
            put_field(&mut head, b"content-type", content_type.as_bytes());
        }
        if let Some(length) = length {
            put_field(&mut head, b"content-length", length.to_string().as_bytes());
        }
        if let Some(id) = request.request_id.take() {
            put_field(&mut head, ID.as_bytes(), &id);
        }
        let (body, stream) = if request.head_only { (Body::Bytes(Vec::new()), None) } else { (body, stream) };
        Self { due, head, body, sent: 0, stream, early: false }
    }

    /// When it, or its next piece, is due.
    pub(super) fn due(&self) -> Instant {
        match &self.stream {
            Some(playing) if self.head.is_empty() && self.sent == self.body.len() => playing.due(),
            _ => self.due,
        }
    }

    /// Whether what is to be sent next takes from the windows.
    pub(super) fn needs_window(&self) -> bool {
        self.head.is_empty() && (self.sent < self.body.len() || !self.is_whole())
    }

    /// The bytes that it holds. A stream may hold a piece at any time.
    pub(super) fn held(&self) -> usize {
        let Body::Bytes(bytes) = &self.body else { return self.head.len() };
        let piece = self.stream.as_ref().map_or(0, |playing| playing.script.weight() as usize);
        self.head.len() + bytes.len().max(piece)
    }

    /// Whether everything has its place in the body.
    fn is_whole(&self) -> bool {
        self.stream.as_ref().is_none_or(Playing::is_over)
    }

    /// Adds the pieces that are due to the body, as long as there is little to send.
    fn play(&mut self, now: Instant) {
        let Some(playing) = &mut self.stream else { return };
        let Body::Bytes(body) = &mut self.body else { return };
        if self.sent == body.len() {
            body.clear();
            self.sent = 0;
        }
        while !playing.is_over() && playing.due() <= now && body.len() < UNSENT {
            body.extend_from_slice(playing.script.piece(playing.next).as_bytes());
            playing.next += 1;
        }
    }

    /// Appends the head and a frame of the body, as far as they are due and the windows allow it. Returns whether the answer has
    /// ended.
    fn put(
        &mut self,
        id: u32,
        now: Instant,
        (stream, connection): (&mut SendWindow, &mut SendWindow),
        out: &mut Vec<u8>,
    ) -> bool {
        if self.due > now {
            return false;
        }
        // A piece that cannot be sent is not made: a peer may have a thousand streams with closed windows.
        if stream.allows(connection.allows(1)) > 0 {
            self.play(now);
        }
        if !self.head.is_empty() {
            let ends = self.is_whole() && self.body.len() == 0;
            put_headers(out, id, &self.head, ends);
            self.head.clear();
            if ends {
                return true;
            }
        }
        let left = (self.body.len() - self.sent).min(FRAME);
        let length = stream.allows(connection.allows(left as u64)) as usize;
        let ends = self.is_whole() && self.sent + length == self.body.len();
        if length == 0 && !(ends && left == 0) {
            return false;
        }
        let flags = if ends { Flags::END_STREAM } else { Flags::NONE };
        put_frame_head(out, length, Kind::Data, flags, id);
        out.extend_from_slice(self.body.piece(self.sent, length));
        self.sent += length;
        stream.take(length as u64);
        connection.take(length as u64);
        ends
    }
}

impl State {
    /// Puts a stream where it waits.
    pub(super) fn queue(&mut self, place: usize, now: Instant) {
        let is_open = self.connection.allows(1) > 0;
        self.streams.queue(place, now, is_open);
    }

    /// Appends what is due of all answers, a frame of each stream in turn. Returns how many answers have ended.
    pub(super) fn answer(&mut self, now: Instant, out: &mut Vec<u8>) -> u64 {
        let Self { streams, connection, .. } = self;
        let (mut complete, mut early) = (0, Vec::new());
        streams.wake(now);
        while out.len() < UNSENT
            && let Some(place) = streams.next(connection.allows(1) > 0)
        {
            let put = streams.change(place, |stream| {
                let answer = stream.answer.as_mut()?;
                let ended = answer.put(stream.id, now, (&mut stream.send, connection), out);
                Some((ended, answer.early.then_some(stream.id)))
            });
            if let Some((true, was_early)) = put.flatten() {
                complete += 1;
                streams.remove(place);
                early.extend(was_early);
            } else {
                streams.queue(place, now, connection.allows(1) > 0);
            }
        }
        for id in early {
            // The rest of the request is not read.
            self.reset(id, wire::h2::Code::NO_ERROR);
            out.append(&mut self.control);
        }
        complete
    }
}
