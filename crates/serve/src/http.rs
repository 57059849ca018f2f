//! The HTTP side of the reference endpoints: requests in, answers out in the order of the requests, each when it is due.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use wire::http::{
    BodyLength, CONTINUE, Connection, HttpEvent, Method, RequestDecoder, RequestHead, encode_response_head,
};

use crate::{Counts, Farewell};

/// The header that is echoed.
const ID: &str = "x-request-id";
/// Bodies that `/echo` holds; longer ones are refused.
const ECHO_LIMIT: usize = 16 * 1024 * 1024;
/// Requests that may wait for their answers on one connection; a peer that sends more without reading is let go.
const PIPELINE_LIMIT: usize = 65_536;
/// The longest `/wait`.
const WAIT_LIMIT: Duration = Duration::from_secs(3600);
/// From this length on an upload is worth larger buffers.
const BULK: u64 = 64 * 1024;

/// What holds for every connection of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub max_keepalive: Option<u64>,
    pub farewell: Farewell,
}

/// What a peer wants done after it has been told something.
#[derive(Default)]
pub(crate) struct Wants {
    /// A look at this connection at that time.
    pub wake: Option<Instant>,
    /// Larger buffers.
    pub bulk: bool,
    /// An end to it: nothing of what it said makes sense.
    pub abort: bool,
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq)]
enum Route {
    Hello,
    Echo(Vec<u8>),
    Upload,
    Wait(Duration),
    /// Refused with this status.
    Refused(u16),
}

/// A request being read.
struct Asking {
    route: Route,
    head_only: bool,
    connection: Connection,
    id: Option<Vec<u8>>,
    received: u64,
}

/// An answer that waits for its turn or its time.
struct Answer {
    due: Instant,
    bytes: Vec<u8>,
}

pub(crate) struct Dialogue {
    decoder: RequestDecoder,
    asking: Option<Asking>,
    answers: VecDeque<Answer>,
    served: u64,
    /// No further request is read; the connection ends with the answers that wait.
    last: bool,
    /// The peer knows that, and sends nothing more: it asked for it, or has ended its side.
    told: bool,
}

impl Default for Dialogue {
    fn default() -> Self {
        Self {
            decoder: RequestDecoder::watching(ID),
            asking: None,
            answers: VecDeque::new(),
            served: 0,
            last: false,
            told: false,
        }
    }
}

impl Dialogue {
    pub(crate) fn hear(&mut self, bytes: &[u8], now: Instant, rules: &Rules, counts: &Counts) -> Wants {
        let mut wants = Wants::default();
        let mut rest = bytes;
        while !self.last {
            let Ok(step) = self.decoder.push(rest) else {
                self.refuse(400, now);
                break;
            };
            rest = &rest[step.consumed..];
            match step.event {
                HttpEvent::NeedMore => break,
                HttpEvent::Head(head) => {
                    wants.bulk |= matches!(head.body, BodyLength::Exact(len) if len >= BULK);
                    let interim = head.expect_continue && head.body != BodyLength::None;
                    self.asking = Some(Asking::new(&head));
                    if interim {
                        self.answers.push_back(Answer { due: now, bytes: CONTINUE.to_vec() });
                    }
                }
                HttpEvent::Body(data) => {
                    if let Some(asking) = &mut self.asking {
                        asking.body(data);
                    }
                }
                HttpEvent::End => {
                    counts.requested(1);
                    self.answer(now, rules, &mut wants);
                }
            }
            wants.abort |= self.answers.len() > PIPELINE_LIMIT;
        }
        wants
    }

    /// A request is whole: its answer takes its place in the queue.
    fn answer(&mut self, now: Instant, rules: &Rules, wants: &mut Wants) {
        let Some(asking) = self.asking.take() else { return };
        self.served += 1;
        let spent = rules.max_keepalive.is_some_and(|most| self.served >= most);
        let connection = match rules.farewell {
            Farewell::Announced if spent => Connection::Close,
            _ => asking.connection,
        };
        self.told = asking.connection == Connection::Close;
        self.last = spent || self.told;
        let wait = if let Route::Wait(wait) = asking.route { wait } else { Duration::ZERO };
        let due = now + wait;
        if !wait.is_zero() {
            wants.wake = Some(wants.wake.map_or(due, |earlier| earlier.min(due)));
        }
        self.answers.push_back(Answer { due, bytes: asking.encode(connection) });
    }

    fn refuse(&mut self, status: u16, now: Instant) {
        let mut bytes = Vec::new();
        encode_response_head(&mut bytes, status, Connection::Close, None, 0);
        self.answers.push_back(Answer { due: now, bytes });
        self.last = true;
    }

    pub(crate) fn ended(&mut self) {
        (self.last, self.told) = (true, true);
    }

    pub(crate) fn answers(&mut self, now: Instant, out: &mut Vec<u8>) -> u64 {
        let mut count = 0;
        while self.answers.front().is_some_and(|answer| answer.due <= now) {
            let Some(answer) = self.answers.pop_front() else { break };
            count += u64::from(answer.bytes != CONTINUE);
            if out.is_empty() {
                *out = answer.bytes;
            } else {
                out.extend_from_slice(&answer.bytes);
            }
        }
        count
    }

    /// Whether the peer may still be sending when the connection is over.
    pub(crate) fn is_cut_short(&self) -> bool {
        !self.told
    }

    pub(crate) fn over(&self) -> bool {
        self.last && self.answers.is_empty()
    }
}

impl Asking {
    fn new(head: &RequestHead<'_>) -> Self {
        Self {
            route: Route::of(head.path),
            head_only: head.method == Method::Head,
            connection: head.connection(),
            id: head.watched.map(<[u8]>::to_vec),
            received: 0,
        }
    }

    fn body(&mut self, data: &[u8]) {
        self.received += data.len() as u64;
        if let Route::Echo(held) = &mut self.route {
            if held.len() + data.len() > ECHO_LIMIT {
                self.route = Route::Refused(413);
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

    const LOOSE: Rules = Rules { max_keepalive: None, farewell: Farewell::Announced };

    fn talk(said: &[u8], rules: Rules, wait: Duration) -> (String, Dialogue, Counts) {
        let (mut dialogue, counts, now) = (Dialogue::default(), Counts::default(), Instant::now());
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
            let rules = Rules { max_keepalive: Some(2), farewell };
            let (answers, dialogue, counts) = talk(&said, rules, Duration::ZERO);
            assert_eq!(answers.matches("HTTP/1.1 200").count(), 2);
            assert_eq!(answers.to_lowercase().contains("connection: close"), announced);
            assert!(dialogue.over());
            assert_eq!(counts.read().requests, 2, "what comes after the last request is not read");
        }
    }
}
