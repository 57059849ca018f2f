//! The HTTP reference endpoints. Requests go in; answers come out in the order of the requests, each when it is due.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use wire::http::{
    BodyLength, CONTINUE, Connection, HttpEvent, Limits, Method, RequestDecoder, RequestHead, Version,
    encode_response_end, encode_response_head,
};

use crate::limits::{HEAD, UNSENT};
use crate::route::Route;
use crate::stream::{Script, put_chunk};
use crate::{CloseStyle, Counters, Http2};

/// The header that answers repeat.
pub(crate) const ID: &str = "x-request-id";
/// An upload of at least this length is worth larger buffers.
const BULK: u64 = 64 * 1024;

/// The rules for every connection of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub max_keepalive: Option<u64>,
    pub farewell: CloseStyle,
    /// The longest body in bytes.
    pub body: u64,
    /// How many bytes more may be held for `/echo`.
    pub room: usize,
    /// What connections of HTTP/2 do.
    pub http2: Http2,
    /// The longest `/wait`.
    pub patience: Duration,
}

/// What the server must do for a connection after bytes arrived.
#[derive(Default)]
pub(crate) struct Wants {
    /// Use larger buffers.
    pub bulk: bool,
    /// A request or a frame became complete.
    pub whole: bool,
}

impl Wants {
    /// Adds what further bytes want.
    pub(crate) fn add(&mut self, more: Self) {
        self.bulk |= more.bulk;
        self.whole |= more.whole;
    }
}

/// A request being read.
struct PendingRequest {
    route: Route,
    head_only: bool,
    connection: Connection,
    version: Version,
    id: Option<Vec<u8>>,
    received: u64,
}

/// An answer that waits for its turn, or until it is due.
struct QueuedAnswer {
    due: Instant,
    bytes: Vec<u8>,
    /// What follows the bytes, piece by piece.
    stream: Option<Box<Playing>>,
}

/// A stream that has begun.
struct Playing {
    script: Box<Script>,
    began: Instant,
    /// The number of the answer on its connection, from 1.
    answer: u64,
    /// The next piece.
    next: u32,
    chunked: bool,
}

impl Playing {
    /// When the next piece is due.
    fn due(&self) -> Instant {
        self.began + self.script.due(self.next, self.answer)
    }

    /// Appends the pieces that are due, as long as there is little to send. Returns whether the stream has ended.
    fn play(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        while self.next < self.script.pieces() {
            if self.due() > now || out.len() >= UNSENT {
                return false;
            }
            let piece = self.script.piece(self.next);
            if self.chunked {
                put_chunk(out, &piece);
            } else {
                out.extend_from_slice(piece.as_bytes());
            }
            self.next += 1;
        }
        if self.chunked {
            out.extend_from_slice(b"0\r\n\r\n");
        }
        true
    }
}

pub(crate) struct Dialogue {
    decoder: RequestDecoder,
    request: Option<PendingRequest>,
    answers: VecDeque<QueuedAnswer>,
    /// The bytes of all answers that wait.
    waiting: usize,
    served: u64,
    /// Whether the last request has been read. The connection ends after the waiting answers.
    last: bool,
    /// Whether the peer sends nothing more: it asked for the close, or has ended its side.
    told: bool,
}

impl Default for Dialogue {
    fn default() -> Self {
        Self {
            decoder: RequestDecoder::watching(ID).with_limits(Limits { head: HEAD, ..Limits::default() }),
            request: None,
            answers: VecDeque::new(),
            waiting: 0,
            served: 0,
            last: false,
            told: false,
        }
    }
}

impl Dialogue {
    pub(crate) fn hear(&mut self, bytes: &[u8], now: Instant, rules: &Rules, counts: &Counters) -> Wants {
        let mut wants = Wants::default();
        let mut rest = bytes;
        while !self.last {
            let Ok(step) = self.decoder.push(rest) else {
                self.refuse(400, now);
                break;
            };
            rest = rest.get(step.consumed..).unwrap_or_default();
            match step.event {
                HttpEvent::NeedMore => break,
                HttpEvent::Head(head) => {
                    wants.bulk |= matches!(head.body, BodyLength::Exact(len) if len >= BULK);
                    let interim = head.expect_continue && head.body != BodyLength::None;
                    let request = PendingRequest::new(&head);
                    if matches!(head.body, BodyLength::Exact(length) if length > rules.body) {
                        self.refuse(413, now);
                        break;
                    }
                    self.request = Some(request);
                    if interim {
                        self.queue(now, CONTINUE.to_vec());
                    }
                }
                HttpEvent::Body(data) => {
                    if let Some(request) = &mut self.request {
                        request.body(data, rules.room);
                        if request.received > rules.body {
                            self.refuse(413, now);
                        }
                    }
                }
                HttpEvent::End => {
                    counts.requested(1);
                    wants.whole = true;
                    self.answer(now, rules);
                }
            }
        }
        wants
    }

    /// Queues the answer to a complete request.
    fn answer(&mut self, now: Instant, rules: &Rules) {
        let Some(mut request) = self.request.take() else { return };
        self.served += 1;
        let spent = rules.max_keepalive.is_some_and(|most| self.served >= most);
        let connection = match rules.farewell {
            CloseStyle::Announced if spent => Connection::Close,
            _ => request.connection,
        };
        self.told = request.connection == Connection::Close;
        self.last = spent || self.told;
        request.route.complete(rules.patience);
        let wait = request.route.wait();
        request.route.limit(rules.room.saturating_sub(self.waiting));
        match request.route.script() {
            None => self.queue(now + wait, request.encode(connection)),
            Some(script) => self.begin(now, script, &request, connection),
        }
    }

    /// Queues an answer that a script times.
    fn begin(&mut self, now: Instant, script: Box<Script>, request: &PendingRequest, connection: Connection) {
        let answer = self.served;
        if !script.streams() {
            let (body, last) = (script.whole(), script.pieces().saturating_sub(1));
            let mut bytes = request.head(script.content_type(), connection, Some(body.len()));
            bytes.extend_from_slice(body.as_bytes());
            return self.queue(now + script.due(last, answer), bytes);
        }
        let chunked = request.version == Version::Http11;
        // The end of a stream without chunks is that of the connection.
        let connection = if chunked { connection } else { Connection::Close };
        self.last |= !chunked;
        let bytes = request.head(script.content_type(), connection, None);
        self.waiting += bytes.len();
        let playing = Playing { script, began: now, answer, next: 0, chunked };
        let stream = (!request.head_only).then(|| Box::new(playing));
        self.answers.push_back(QueuedAnswer { due: now, bytes, stream });
    }

    fn queue(&mut self, due: Instant, bytes: Vec<u8>) {
        self.waiting += bytes.len();
        self.answers.push_back(QueuedAnswer { due, bytes, stream: None });
    }

    fn refuse(&mut self, status: u16, now: Instant) {
        let mut bytes = Vec::new();
        encode_response_head(&mut bytes, status, Connection::Close, None, 0);
        self.queue(now, bytes);
        self.request = None;
        self.last = true;
    }

    pub(crate) fn ended(&mut self) {
        (self.last, self.told) = (true, true);
    }

    pub(crate) fn answers(&mut self, now: Instant, out: &mut Vec<u8>) -> u64 {
        let mut count = 0;
        while let Some(answer) = self.answers.front_mut().filter(|answer| answer.due <= now) {
            let bytes = std::mem::take(&mut answer.bytes);
            self.waiting -= bytes.len();
            let is_answer = bytes != CONTINUE;
            if out.is_empty() {
                *out = bytes;
            } else {
                out.extend_from_slice(&bytes);
            }
            if let Some(playing) = &mut answer.stream
                && !playing.play(now, out)
            {
                answer.due = playing.due();
                break;
            }
            self.answers.pop_front();
            count += u64::from(is_answer);
        }
        count
    }

    /// The bytes of the answers that wait, and those that are kept of the request being read.
    pub(crate) fn held(&self) -> (usize, usize) {
        let kept = match &self.request {
            Some(request) => request.route.held(),
            None => 0,
        };
        (self.waiting, kept)
    }

    /// When the next answer or piece is due, if it is not due yet: the server lets the peer wait.
    pub(crate) fn waits_until(&self, now: Instant) -> Option<Instant> {
        self.answers.front().map(|answer| answer.due).filter(|due| *due > now)
    }

    /// Whether the peer may still be sending when the server closes.
    pub(crate) fn is_cut_short(&self) -> bool {
        !self.told
    }

    pub(crate) fn over(&self) -> bool {
        self.last && self.answers.is_empty()
    }
}

impl PendingRequest {
    fn new(head: &RequestHead<'_>) -> Self {
        Self {
            route: Route::of(head.path),
            head_only: head.method == Method::Head,
            connection: head.connection(),
            version: head.version,
            id: head.watched.map(<[u8]>::to_vec),
            received: 0,
        }
    }

    fn body(&mut self, data: &[u8], room: usize) {
        self.received += data.len() as u64;
        self.route.add(data, room);
    }

    /// The head of an answer that a script times: of so many bytes, or of a stream.
    fn head(&self, content_type: &str, connection: Connection, length: Option<usize>) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n").into_bytes();
        match length {
            Some(length) => head.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes()),
            None => head.extend_from_slice(b"Cache-Control: no-cache\r\n"),
        }
        if length.is_none() && self.version == Version::Http11 {
            head.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        encode_response_end(&mut head, connection, self.id.as_deref().map(|id| (ID, id)));
        head
    }

    fn encode(self, connection: Connection) -> Vec<u8> {
        let (status, body) = self.route.answer(self.received);
        let mut bytes = Vec::with_capacity(128 + body.len());
        let id = self.id.as_deref().map(|id| (ID, id));
        encode_response_head(&mut bytes, status, connection, id, body.len() as u64);
        if !self.head_only {
            bytes.extend_from_slice(&body);
        }
        bytes
    }
}

#[cfg(test)]
mod tests;
