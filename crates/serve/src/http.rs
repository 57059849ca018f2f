//! The HTTP reference endpoints. Requests go in; answers come out in the order of the requests, each when it is due.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use wire::http::{
    BodyLength, CONTINUE, Connection, HttpEvent, Limits, Method, RequestDecoder, RequestHead,
    encode_response_head,
};

use crate::limits::HEAD;
use crate::{Counters, Farewell};

/// The header that answers repeat.
const ID: &str = "x-request-id";
/// The longest body that `/echo` accepts, in bytes.
const ECHO_LIMIT: usize = 16 * 1024 * 1024;
/// The longest `/wait`.
const WAIT_LIMIT: Duration = Duration::from_secs(3600);
/// An upload of at least this length is worth larger buffers.
const BULK: u64 = 64 * 1024;

/// The rules for every connection of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub max_keepalive: Option<u64>,
    pub farewell: Farewell,
    /// The longest body in bytes.
    pub body: u64,
    /// How many bytes more may be held for `/echo`.
    pub room: usize,
}

/// What the server must do for a connection after bytes arrived.
#[derive(Default)]
pub(crate) struct Wants {
    /// Look at the connection again at this time.
    pub wake: Option<Instant>,
    /// Use larger buffers.
    pub bulk: bool,
    /// A request or a frame became complete.
    pub whole: bool,
    /// Close the connection: nothing more can be understood.
    pub abort: bool,
}

impl Wants {
    /// Adds what further bytes want.
    pub(crate) fn add(&mut self, more: Self) {
        self.wake = match (self.wake, more.wake) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.bulk |= more.bulk;
        self.whole |= more.whole;
        self.abort |= more.abort;
    }
}

/// The endpoint that a request addresses.
#[derive(Debug, Clone, PartialEq)]
enum Route {
    Hello,
    Echo(Vec<u8>),
    Upload,
    Wait(Duration),
    /// None: refused with this status.
    Refused(u16),
}

/// A request being read.
struct PendingRequest {
    route: Route,
    head_only: bool,
    connection: Connection,
    id: Option<Vec<u8>>,
    received: u64,
}

/// An answer that waits for its turn, or until it is due.
struct QueuedAnswer {
    due: Instant,
    bytes: Vec<u8>,
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
                    self.answer(now, rules, &mut wants);
                }
            }
        }
        wants
    }

    /// Queues the answer to a complete request.
    fn answer(&mut self, now: Instant, rules: &Rules, wants: &mut Wants) {
        let Some(request) = self.request.take() else { return };
        self.served += 1;
        let spent = rules.max_keepalive.is_some_and(|most| self.served >= most);
        let connection = match rules.farewell {
            Farewell::Announced if spent => Connection::Close,
            _ => request.connection,
        };
        self.told = request.connection == Connection::Close;
        self.last = spent || self.told;
        let wait = if let Route::Wait(wait) = request.route { wait } else { Duration::ZERO };
        let due = now + wait;
        if !wait.is_zero() {
            wants.add(Wants { wake: Some(due), ..Wants::default() });
        }
        self.queue(due, request.encode(connection));
    }

    fn queue(&mut self, due: Instant, bytes: Vec<u8>) {
        self.waiting += bytes.len();
        self.answers.push_back(QueuedAnswer { due, bytes });
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
        while self.answers.front().is_some_and(|answer| answer.due <= now) {
            let Some(answer) = self.answers.pop_front() else { break };
            self.waiting -= answer.bytes.len();
            count += u64::from(answer.bytes != CONTINUE);
            if out.is_empty() {
                *out = answer.bytes;
            } else {
                out.extend_from_slice(&answer.bytes);
            }
        }
        count
    }

    /// The bytes of the answers that wait, and those that are kept of the request being read.
    pub(crate) fn held(&self) -> (usize, usize) {
        let kept = match &self.request {
            Some(PendingRequest { route: Route::Echo(held), .. }) => held.len(),
            _ => 0,
        };
        (self.waiting, kept)
    }

    /// Whether the next answer is not due yet: the server lets the peer wait.
    pub(crate) fn keeps_waiting(&self, now: Instant) -> bool {
        self.answers.front().is_some_and(|answer| answer.due > now)
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
            id: head.watched.map(<[u8]>::to_vec),
            received: 0,
        }
    }

    fn body(&mut self, data: &[u8], room: usize) {
        self.received += data.len() as u64;
        if let Route::Echo(held) = &mut self.route {
            if held.len() + data.len() > ECHO_LIMIT {
                self.route = Route::Refused(413);
            } else if data.len() > room {
                self.route = Route::Refused(503);
            } else {
                held.extend_from_slice(data);
            }
        }
    }

    fn encode(self, connection: Connection) -> Vec<u8> {
        let (status, body) = match self.route {
            Route::Hello | Route::Wait(_) => (200, b"ok".to_vec()),
            Route::Echo(held) => (200, held),
            Route::Upload => (200, self.received.to_string().into_bytes()),
            Route::Refused(status) => (status, Vec::new()),
        };
        let mut bytes = Vec::with_capacity(128 + body.len());
        let id = self.id.as_deref().map(|id| (ID, id));
        encode_response_head(&mut bytes, status, connection, id, body.len() as u64);
        if !self.head_only {
            bytes.extend_from_slice(&body);
        }
        bytes
    }
}

impl Route {
    fn of(path: &[u8]) -> Self {
        let path = path.split(|byte| *byte == b'?').next().unwrap_or_default();
        match path {
            b"/" => Self::Hello,
            b"/echo" => Self::Echo(Vec::new()),
            b"/upload" => Self::Upload,
            _ => match path.strip_prefix(b"/wait/").map(millis) {
                Some(Some(wait)) if wait <= WAIT_LIMIT => Self::Wait(wait),
                Some(_) => Self::Refused(400),
                None => Self::Refused(404),
            },
        }
    }
}

fn millis(digits: &[u8]) -> Option<Duration> {
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    all_digits.then_some(Duration::from_millis(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOSE: Rules = Rules { max_keepalive: None, farewell: Farewell::Announced, body: 10, room: 1000 };

    fn talk(said: &[u8], rules: Rules, wait: Duration) -> (String, Dialogue, Counters) {
        let (mut dialogue, counts, now) = (Dialogue::default(), Counters::default(), Instant::now());
        dialogue.hear(said, now, &rules, &counts);
        let mut out = Vec::new();
        dialogue.answers(now + wait, &mut out);
        (String::from_utf8(out).expect("answers are text"), dialogue, counts)
    }

    #[test]
    fn each_endpoint_answers_as_documented() {
        let table: [(&[u8], u16, &str); 9] = [
            (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200, "ok"),
            (b"GET /?a=b HTTP/1.1\r\nHost: x\r\n\r\n", 200, "ok"),
            (b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", 200, ""),
            (b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde", 200, "5"),
            (b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 200, "0"),
            (
                b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                200,
                "abc",
            ),
            (b"GET /wait/x HTTP/1.1\r\nHost: x\r\n\r\n", 400, ""),
            (b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 404, ""),
            (b"nonsense\r\n\r\n", 400, ""),
        ];
        for (said, status, body) in table {
            let (answer, _, _) = talk(said, LOOSE, Duration::ZERO);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
        }
    }

    #[test]
    fn answers_keep_the_order_of_requests_and_wait_their_time() {
        let said = b"GET /wait/10 HTTP/1.1\r\nHost: x\r\nx-request-id: slow\r\n\r\n\
            GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: fast\r\n\r\n";
        assert_eq!(talk(said, LOOSE, Duration::from_millis(9)).0, "");
        let (answers, _, counts) = talk(said, LOOSE, Duration::from_millis(10));
        let place = |word| answers.find(word).expect(word);
        assert!(place("slow") < place("fast"));
        assert_eq!(counts.read().requests, 2);
    }

    #[test]
    fn the_last_request_of_a_connection_is_announced_or_silent() {
        let said = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3);
        let table = [(Farewell::Announced, true), (Farewell::Silent, false)];
        for (farewell, announced) in table {
            let rules = Rules { max_keepalive: Some(2), farewell, ..LOOSE };
            let (answers, dialogue, counts) = talk(&said, rules, Duration::ZERO);
            assert_eq!(answers.matches("HTTP/1.1 200").count(), 2);
            assert_eq!(answers.to_lowercase().contains("connection: close"), announced);
            assert!(dialogue.over());
            assert_eq!(counts.read().requests, 2, "what comes after the last request is not read");
        }
    }
}
