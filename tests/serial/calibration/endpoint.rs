//! The endpoint with injected delays and faults: it treats every request as its plan says, and records what it really
//! did.
//!
//! A request's time begins when its bytes arrived in the endpoint's socket, by the kernel's stamp, so that a late
//! wake-up of the endpoint is part of the truth. It ends just before the last byte is given to the kernel.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::machine::{self, now};

/// How a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// `200 ok`.
    Whole,
    /// `200 ok`, one byte at a time.
    Drip,
    /// `500`.
    Status,
    /// Half of the answer, then a reset (`SO_LINGER` 0).
    Reset,
    /// Half of the answer, then the end of the stream.
    Truncated,
    /// A whole answer with the id of another request.
    WrongId,
    /// A whole answer with four bytes of body.
    WrongLength,
    /// A whole answer with two other bytes of body.
    WrongContent,
    /// A whole answer and one stray byte in the same segment.
    Stray,
    /// A whole answer and, once the next request is there, one stray byte.
    StrayLater,
    /// A whole answer after the stray byte of the previous one.
    Spoiled,
    /// A whole answer with `Connection: close`, then a close.
    CloseAnnounced,
    /// A whole answer, then a close without an announcement.
    CloseSilent,
}

/// What to do with one request.
pub type Act = (Duration, How);

/// When the whole server stalls: in every period `every` after the first request, between `from` and `until`.
#[derive(Debug, Clone, Copy)]
pub struct Stall {
    pub every: Duration,
    pub from: Duration,
    pub until: Duration,
}

/// One request. Times are nanoseconds of the real-time clock.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    pub how: How,
    /// When its bytes arrived in the endpoint's socket.
    pub arrived: u64,
    /// When the last byte of the answer was about to be sent.
    pub answered: u64,
    /// When the next thing on the connection arrived. The other side had this answer before it sent that.
    pub next: u64,
}

impl Exchange {
    /// The endpoint's own time. Nobody can have seen the answer sooner.
    pub fn inner(&self) -> u64 {
        self.answered.saturating_sub(self.arrived)
    }

    /// The time including everything that the machine added until the other side continued.
    pub fn outer(&self) -> u64 {
        self.next.saturating_sub(self.arrived)
    }
}

/// What the endpoint did.
#[derive(Debug, Default)]
pub struct Truth {
    pub exchanges: Vec<Exchange>,
    pub connections: u64,
    pub received: u64,
    pub sent: u64,
}

impl Truth {
    pub fn requests(&self) -> u64 {
        self.exchanges.len() as u64
    }

    /// The number of requests for each treatment.
    pub fn counts(&self) -> BTreeMap<How, u64> {
        let mut counts = BTreeMap::new();
        for exchange in &self.exchanges {
            *counts.entry(exchange.how).or_default() += 1;
        }
        counts
    }

    pub fn count(&self, how: How) -> u64 {
        self.counts().get(&how).copied().unwrap_or(0)
    }
}

/// The plan: a function of a request's number on the server (from 0) and on its connection (from 1).
type Plan = dyn Fn(u64, u64) -> Act + Send + Sync;

struct Shared {
    plan: Box<Plan>,
    stall: Option<Stall>,
    /// When the first request arrived.
    origin: OnceLock<u64>,
    requests: AtomicU64,
    stop: AtomicBool,
    truth: Mutex<Truth>,
}

/// A running endpoint. It has one thread per connection, all on one core.
pub struct Endpoint {
    pub url: String,
    address: std::net::SocketAddr,
    shared: Arc<Shared>,
    acceptor: JoinHandle<Vec<JoinHandle<()>>>,
}

impl Endpoint {
    pub fn new(plan: impl Fn(u64, u64) -> Act + Send + Sync + 'static) -> Self {
        Self::stalling(None, plan)
    }

    pub fn stalling(stall: Option<Stall>, plan: impl Fn(u64, u64) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        machine::stamp_arrivals(&listener);
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared {
            plan: Box::new(plan),
            stall,
            origin: OnceLock::new(),
            requests: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            truth: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        let acceptor = thread::spawn(move || {
            machine::steady(machine::cores().0);
            let mut threads = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                if serving.stop.load(Relaxed) {
                    break;
                }
                let shared = Arc::clone(&serving);
                threads.push(thread::spawn(move || Connection::new(stream, &shared).serve()));
            }
            threads
        });
        Self { url: format!("http://{address}/"), address, shared, acceptor }
    }

    /// Waits until every connection has ended, and returns the truth.
    pub fn truth(self) -> Truth {
        self.shared.stop.store(true, Relaxed);
        drop(TcpStream::connect(self.address));
        for thread in self.acceptor.join().expect("the acceptor") {
            thread.join().expect("a connection's thread");
        }
        std::mem::take(&mut *self.shared.truth.lock().expect("the truth"))
    }
}

struct Connection<'a> {
    stream: Option<TcpStream>,
    shared: &'a Shared,
    exchanges: Vec<Exchange>,
    received: u64,
    sent: u64,
}

/// The pause between two bytes of [`How::Drip`].
pub const DRIP: Duration = Duration::from_millis(10);

impl<'a> Connection<'a> {
    fn new(stream: TcpStream, shared: &'a Shared) -> Self {
        machine::steady(machine::cores().0);
        stream.set_nodelay(true).expect("no delay");
        Self { stream: Some(stream), shared, exchanges: Vec::new(), received: 0, sent: 0 }
    }

    fn serve(mut self) {
        let mut buffer = vec![0; 64 * 1024];
        let mut head = Vec::new();
        while let Some(stream) = &self.stream {
            let (length, arrived) = machine::receive(stream, &mut buffer);
            if let Some(last) = self.exchanges.last_mut().filter(|last| last.next == 0) {
                last.next = arrived;
            }
            if length == 0 {
                break;
            }
            self.received += length as u64;
            head.extend_from_slice(&buffer[..length]);
            if head.ends_with(b"\r\n\r\n") {
                self.answer(&head, arrived);
                head.clear();
            }
        }
        let mut truth = self.shared.truth.lock().expect("the truth");
        truth.connections += 1;
        truth.received += self.received;
        truth.sent += self.sent;
        truth.exchanges.append(&mut self.exchanges);
    }

    fn answer(&mut self, head: &[u8], arrived: u64) {
        let origin = *self.shared.origin.get_or_init(|| arrived);
        let number = self.shared.requests.fetch_add(1, Relaxed);
        let (wait, how) = (self.shared.plan)(number, self.exchanges.len() as u64 + 1);
        thread::sleep(wait);
        self.stand_still(origin);
        let answered = self.reply(how, &answer(how, head));
        self.exchanges.push(Exchange { how, arrived, answered, next: 0 });
    }

    /// Sleeps as long as the server stalls.
    fn stand_still(&self, origin: u64) {
        let Some(stall) = self.shared.stall else { return };
        loop {
            let into = Duration::from_nanos(now().saturating_sub(origin));
            let into = Duration::from_nanos((into.as_nanos() % stall.every.as_nanos()) as u64);
            if into < stall.from || into >= stall.until {
                return;
            }
            thread::sleep(stall.until - into);
        }
    }

    /// Sends an answer in its way, and returns when the last byte was sent.
    fn reply(&mut self, how: How, bytes: &[u8]) -> u64 {
        let half = &bytes[..bytes.len() / 2];
        match how {
            How::Drip => {
                for byte in &bytes[..bytes.len() - 1] {
                    self.send(&[*byte]);
                    thread::sleep(DRIP);
                }
                self.send(&bytes[bytes.len() - 1..])
            }
            How::Reset => {
                let sent = self.send(half);
                machine::reset(self.stream.take());
                sent
            }
            How::Truncated => {
                let sent = self.send(half);
                self.stream = None;
                sent
            }
            How::CloseAnnounced | How::CloseSilent => {
                let sent = self.send(bytes);
                self.stream = None;
                sent
            }
            How::StrayLater => {
                let sent = self.send(bytes);
                if let Some(stream) = &self.stream {
                    let _ = stream.peek(&mut [0]);
                }
                self.send(b"!");
                sent
            }
            _ => self.send(bytes),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> u64 {
        let sent = now();
        if let Some(stream) = &mut self.stream
            && stream.write_all(bytes).is_ok()
        {
            self.sent += bytes.len() as u64;
        }
        sent
    }
}

/// The bytes of an answer.
fn answer(how: How, head: &[u8]) -> Vec<u8> {
    let head = std::str::from_utf8(head).expect("a request's head");
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let id = lines.find(|(name, _)| name.eq_ignore_ascii_case("x-request-id")).map(|(_, id)| id.trim());
    let status = if how == How::Status { "500 Injected" } else { "200 OK" };
    let body = match how {
        How::WrongLength => "okok",
        How::WrongContent => "ko",
        _ => "ok",
    };
    let mut text = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
    if let Some(id) = id {
        // Ids are decimal, so a digit in front of one makes it another id.
        let other = if how == How::WrongId { "1" } else { "" };
        text += &format!("x-request-id: {other}{id}\r\n");
    }
    if how == How::CloseAnnounced {
        text += "Connection: close\r\n";
    }
    text += "\r\n";
    text += body;
    if how == How::Stray {
        text += "!";
    }
    text.into_bytes()
}
