//! Hostile clients of `narrows serve`. The server of the workload `clients` is the same code.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{MEMORY, Row, allow_mute, assert_documented, rows};
use crate::support::peer::reset;
use crate::support::{PATIENCE, Served, backends, narrows, peak_memory, run, until};

/// What a client does with its connection. Returns what it saw in the end.
pub(super) type Treat = fn(Client) -> String;

#[derive(Clone, Copy)]
pub(super) struct Case {
    scheme: &'static str,
    peer: &'static str,
    treat: Treat,
    /// What the client sees.
    sees: &'static str,
}

pub(super) const fn http(peer: &'static str, sees: &'static str, treat: Treat) -> Case {
    Case { scheme: "http", peer, treat, sees }
}

const fn frames(peer: &'static str, sees: &'static str, treat: Treat) -> Case {
    Case { scheme: "frames", peer, treat, sees }
}

const fn tls(peer: &'static str, sees: &'static str, treat: Treat) -> Case {
    Case { scheme: "https", peer, treat, sees }
}

/// A connection to the server.
pub(super) struct Client(pub TcpStream);

impl Client {
    pub(super) fn new(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Self(stream)
    }

    /// Reads what has arrived or arrives next. A read with a time limit is interrupted if the process stands still (signal(7)).
    pub(super) fn read(&mut self, piece: &mut [u8]) -> usize {
        loop {
            match self.0.read(piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read.expect("the server answers"),
            }
        }
    }

    /// Sends bytes. Ignores an error, because the server may have gone.
    pub(super) fn say(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.0.write_all(bytes.as_ref());
        self
    }

    /// Sends the same again and again, with a pause, until the server has gone.
    pub(super) fn say_on(&mut self, piece: impl AsRef<[u8]>, pause_ms: u64) -> &mut Self {
        while self.0.write_all(piece.as_ref()).is_ok() {
            thread::sleep(Duration::from_millis(pause_ms));
        }
        self
    }

    /// Ends its side.
    pub(super) fn finish(&mut self) -> &mut Self {
        let _ = self.0.shutdown(Shutdown::Write);
        self
    }

    /// Reads to the end, and says which answers came, and how the connection ended.
    fn hear(&mut self) -> String {
        let mut heard = Vec::new();
        // Whether a close arrives as an end or as a reset depends on what the kernel had not delivered yet.
        let _ = self.0.read_to_end(&mut heard);
        let text = String::from_utf8_lossy(&heard);
        let statuses = text.match_indices("HTTP/1.1 ").filter_map(|(at, _)| text.get(at + 9..at + 12));
        let mut seen: Vec<String> = statuses.map(str::to_owned).collect();
        seen.dedup();
        seen.push("closed".to_owned());
        seen.join(", ")
    }

    /// Whether the server has ended its side. Reads nothing.
    pub(super) fn is_left(&self) -> bool {
        use std::os::fd::AsRawFd;
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
        // SAFETY: one entry, which outlives the call.
        unsafe { libc::poll(&raw mut poll, 1, 0) > 0 }
    }

    /// Waits until the server has closed, without reading.
    pub(super) fn outlast(&mut self) -> String {
        let gone = until(|| self.is_left());
        assert!(gone, "the server lets a peer that takes nothing keep its connection");
        "closed".to_owned()
    }

    pub(super) fn reset(self) -> String {
        reset(self.0);
        "nothing".to_owned()
    }
}

/// Sends a request and reads to the end.
fn ask(mut client: Client, request: &str) -> String {
    client.say(request).hear()
}

const HOST: &str = "Host: x\r\n";

/// Sends a head with this line, and then a body that looks like another request.
fn line(client: Client, line: &str) -> String {
    ask(client, &format!("POST /upload HTTP/1.1\r\n{HOST}{line}\r\n\r\nGET / HTTP/1.1\r\n{HOST}\r\n"))
}

fn chunks(client: Client, chunks: &str) -> String {
    line(client, &format!("Transfer-Encoding: chunked\r\n\r\n{chunks}"))
}

const HEADS: &[Case] = &[
    http("a right request, one byte at a time", "200, closed", |mut c| {
        let request = format!(
            "POST /upload HTTP/1.1\r\n{HOST}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
        );
        for byte in request.as_bytes() {
            c.say([*byte]);
            thread::sleep(Duration::from_millis(1));
        }
        c.hear()
    }),
    http("something other than HTTP", "400, closed", |c| ask(c, "EHLO mail.example\r\n\r\n")),
    http("a head of 100,000 bytes", "400, closed", |c| line(c, &format!("X: {}", "x".repeat(100_000)))),
    http("a head that never ends", "closed", |mut c| {
        c.say(format!("GET / HTTP/1.1\r\n{HOST}")).say_on("X-More: y\r\n", 0).outlast()
    }),
    http("lines that end in LF alone", "400, closed", |c| ask(c, "GET / HTTP/1.1\nHost: x\n\n")),
    http("a CR without LF in a head", "400, closed", |c| line(c, "X: a\rb")),
    http("a NUL in a head", "400, closed", |c| line(c, "X: a\0b")),
    http("a folded header line", "400, closed", |c| line(c, "X: a\r\n b")),
    http("a blank before a colon", "400, closed", |c| line(c, "Content-Length : 2")),
    http("no Host", "400, closed", |c| ask(c, "GET / HTTP/1.1\r\n\r\n")),
    http("two Hosts", "400, closed", |c| line(c, "Host: y")),
];

const BODIES: &[Case] = &[
    http("two lengths that differ", "400, closed", |c| line(c, "Content-Length: 2\r\nContent-Length: 3")),
    http("a length and chunks", "400, closed", |c| {
        line(c, "Content-Length: 2\r\nTransfer-Encoding: chunked")
    }),
    http("chunks and a length", "400, closed", |c| {
        line(c, "Transfer-Encoding: chunked\r\nContent-Length: 2")
    }),
    http("chunked twice", "400, closed", |c| line(c, "Transfer-Encoding: chunked, chunked")),
    http("a coding that does not end the body", "400, closed", |c| line(c, "Transfer-Encoding: gzip")),
    http("chunks in HTTP/1.0", "400, closed", |c| {
        ask(c, "POST /upload HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    }),
    http("a length below zero", "400, closed", |c| line(c, "Content-Length: -2")),
    http("a length with a sign", "400, closed", |c| line(c, "Content-Length: +2")),
    http("a length of 2^64", "400, closed", |c| line(c, "Content-Length: 18446744073709551616")),
    http("a length of 2^64 - 1", "413, closed", |c| line(c, "Content-Length: 18446744073709551615")),
    http("chunks above --max-body", "413, closed", |mut c| {
        c.say(format!("POST /upload HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n"));
        (0..40).for_each(|_| {
            c.say("10000\r\n").say("x".repeat(1 << 16)).say("\r\n");
        });
        c.hear()
    }),
    http("a chunk's size that is no number", "400, closed", |c| chunks(c, "x\r\n")),
    http("a chunk of 2^64 bytes", "400, closed", |c| chunks(c, "10000000000000000\r\n")),
    http("a chunk longer than its size", "400, closed", |c| chunks(c, "1\r\nxy\r\n0\r\n\r\n")),
    http("a chunk's size that ends in LF alone", "400, closed", |c| chunks(c, "1\nx\r\n0\r\n\r\n")),
    http("a chunk's extension without end", "400, closed", |c| {
        chunks(c, &format!("1;{}", "x".repeat(100_000)))
    }),
    http("trailers without end", "400, closed", |c| {
        chunks(c, &format!("0\r\n{}", "X-More: y\r\n".repeat(10_000)))
    }),
    http("bytes after a request", "200, 400, closed", |c| {
        ask(c, &format!("GET / HTTP/1.1\r\n{HOST}\r\n!\r\n\r\n"))
    }),
];

const ENDS: &[Case] = &[
    http("a half-close after a request", "200, closed", |mut c| {
        c.say(format!("GET / HTTP/1.1\r\n{HOST}\r\n")).finish().hear()
    }),
    http("a half-close within a head", "closed", |mut c| c.say("GET / HTTP/1.1\r\n").finish().hear()),
    http("a half-close within a body", "closed", |mut c| {
        c.say(format!("POST /upload HTTP/1.1\r\n{HOST}Content-Length: 9\r\n\r\nhalf")).finish().hear()
    }),
    http("a reset at once", "nothing", Client::reset),
    http("a reset within a head", "nothing", |mut c| {
        c.say("GET / HT");
        c.reset()
    }),
    http("a reset within a body", "nothing", |mut c| {
        c.say(format!("POST /echo HTTP/1.1\r\n{HOST}Content-Length: 9\r\n\r\nhalf"));
        c.reset()
    }),
    http("a reset when its answer is due", "nothing", |mut c| {
        c.say(format!("GET /wait/200 HTTP/1.1\r\n{HOST}\r\n").repeat(1000));
        c.reset()
    }),
    frames("a reset within a frame", "nothing", |mut c| {
        c.say([0, 0, 0, 9, 1]);
        c.reset()
    }),
    frames("a half-close within a frame", "closed", |mut c| c.say([0xff; 1000]).finish().hear()),
    tls("plain text to a port with TLS", "closed", |c| ask(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")),
    tls("a TLS record of 65,535 bytes", "closed", |mut c| c.say([0x16, 3, 3, 0xff, 0xff]).hear()),
    tls("random bytes in a record of the handshake", "closed", |mut c| {
        c.say([&[0x16, 3, 3, 0, 64][..], &[0xa5; 64]].concat()).hear()
    }),
    tls("a reset within the handshake", "nothing", |mut c| {
        c.say([0x16, 3, 1, 1]);
        c.reset()
    }),
];

/// These end when the server's patience does.
const SLOW: &[Case] = &[
    http("nothing, ever", "closed", |mut c| c.hear()),
    http("nothing after an answer", "200, closed", |mut c| {
        c.say(format!("GET / HTTP/1.1\r\n{HOST}\r\n")).hear()
    }),
    http("a head, one byte now and then", "closed", |mut c| c.say_on("G", 100).hear()),
    http("a header, one line now and then", "closed", |mut c| {
        c.say(format!("GET / HTTP/1.1\r\n{HOST}")).say_on("X: y\r\n", 100).hear()
    }),
    http("a body, one byte now and then", "closed", |mut c| {
        c.say(format!("POST /echo HTTP/1.1\r\n{HOST}Content-Length: 99999\r\n\r\n")).say_on("x", 100).hear()
    }),
    http("an answer of 8 MiB is not read, and the window stays shut", "closed", |mut c| {
        let head = format!("POST /echo HTTP/1.1\r\n{HOST}Content-Length: 8388608\r\n\r\n");
        c.say(head).say(vec![b'x'; 8 << 20]).outlast()
    }),
    http("an answer of 16 MiB is not read, and events come behind it", "closed", |mut c| {
        let events = format!("GET /events/1000000?first=1s&gap=1s&size=0 HTTP/1.1\r\n{HOST}\r\n");
        c.say(format!("GET /bytes/16777216 HTTP/1.1\r\n{HOST}\r\n{events}")).outlast()
    }),
    http("requests without end, whose answers are not read", "closed", |mut c| {
        c.say_on(format!("GET / HTTP/1.1\r\n{HOST}\r\n").repeat(1000), 0).outlast()
    }),
    frames("a frame of 4 GiB that never comes", "closed", |mut c| c.say([0xff; 1000]).hear()),
    frames("a frame, one byte now and then", "closed", |mut c| c.say([0xff; 4]).say_on([0xff], 100).hear()),
    tls("a handshake that never goes on", "closed", |mut c| c.say([0x16, 3, 1, 1]).hear()),
];

/// A client that asks again and again on one connection. Returns how often it was answered; everything else is a failure.
pub(super) fn healthy(mut client: Client, over: &AtomicBool) -> u64 {
    let mut answered = 0;
    while !over.load(Ordering::Relaxed) || answered == 0 {
        client.0.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("the server reads");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\nok") {
            let mut piece = [0; 512];
            let length = client.read(&mut piece);
            assert!(length > 0, "the server closed a healthy connection");
            answer.extend_from_slice(&piece[..length]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
        answered += 1;
        thread::sleep(Duration::from_millis(5));
    }
    answered
}

/// The same with TLS, by one connection after the other.
fn healthy_with_tls(url: &str, over: &AtomicBool) {
    let words = ["load", url, "--insecure", "-c", "1", "-t", "1", "-n", "50", "--rate", "200", "--json"];
    while {
        let json = run(&mut narrows(words)).code(0).json();
        assert!(json["completed"] == 50 && json["handshakes"]["full"] == 1, "{json}");
        !over.load(Ordering::Relaxed)
    } {}
}

/// Lets the healthy clients end, also where an assertion fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(super) fn assert_table(heading: &str, words: &[&str], cases: &[&[Case]]) {
    let mut table = Vec::new();
    for io in backends() {
        let words = [words, &["--reactor", io, "-t", "1"]].concat();
        let plain = Served::start(&words);
        let secured = Served::start(&[&words[..], &["--tls"]].concat());
        let address = |url: &str| url.split_once("://").expect("a URL").1.to_owned();
        let (http, https, frames) = (address(&plain.http), address(&secured.http), address(&plain.frames));
        let over = AtomicBool::new(false);
        table = thread::scope(|scope| {
            let beside = Client::new(&http);
            let beside = scope.spawn(|| healthy(beside, &over));
            let secured_beside = scope.spawn(|| healthy_with_tls(&secured.http, &over));
            let ends = Ends(&over);
            let rows = rows(&cases.concat(), |case| {
                let to = match case.scheme {
                    "https" => &https,
                    "frames" => &frames,
                    _ => &http,
                };
                let began = Instant::now();
                let seen = (case.treat)(Client::new(to));
                assert_eq!(seen, case.sees, "{}, {io}", case.peer);
                Row::new(case.peer, &seen, began.elapsed(), None)
            });
            drop(ends);
            assert!(beside.join().expect("a healthy connection saw an error") > 0);
            secured_beside.join().expect("a healthy connection with TLS saw an error");
            rows
        });
        for server in [plain, secured] {
            let peak = peak_memory(server.pid());
            assert!(peak > 0 && peak < MEMORY, "{io}: {peak} bytes");
            server.counts();
        }
    }
    assert_documented(heading, &["the client", "sees", "time"], &table);
}

#[test]
fn heads_and_bodies_of_hostile_clients() {
    assert_table("Requests to the reference server", &["--max-body", "2M"], &[HEADS, BODIES]);
}

#[test]
fn ends_of_hostile_clients() {
    assert_table("Ends of requests", &[], &[ENDS]);
}

#[test]
fn clients_that_stand_still() {
    assert_table("Clients that stand still", &["--patience", "3s", "--max-body", "16M"], &[SLOW]);
}

/// Opens silent connections in a server that allows `most` of them, and one more than that. Returns how long the
/// longer backend took, and the larger peak of memory in bytes.
fn silent(most: usize) -> (Duration, u64) {
    let (mut longest, mut peak) = (Duration::ZERO, 0);
    for io in backends() {
        let number = (most + 1).to_string();
        let server = Served::start(&[
            "--max-connections",
            &number,
            "--patience",
            "1h",
            "--threads",
            "1",
            "--reactor",
            io,
        ]);
        let address = server.http.split_once("://").expect("a URL").1.to_owned();
        let over = AtomicBool::new(false);
        let began = Instant::now();
        thread::scope(|scope| {
            let beside = Client::new(&address);
            let beside = scope.spawn(|| healthy(beside, &over));
            let silent: Vec<Client> = (0..most).map(|_| Client::new(&address)).collect();
            assert_eq!(Client::new(&address).hear(), "closed", "{io}");
            drop(silent);
            over.store(true, Ordering::Relaxed);
            assert!(beside.join().expect("a healthy connection saw an error") > 0);
        });
        longest = longest.max(began.elapsed());
        peak = peak.max(peak_memory(server.pid()));
        assert!(peak < MEMORY, "{io}: {peak} bytes");
        assert_eq!(server.counts()[2], most as u64 + 1, "{io}");
    }
    (longest, peak)
}

#[test]
fn connections_that_never_speak_have_a_limit() {
    silent(100);
}

#[test]
fn connections_whose_client_has_ended_its_side_count_until_they_are_closed() {
    for io in backends() {
        let server = Served::start(&["--max-connections", "20", "--threads", "1", "--reactor", io]);
        let address = server.http.split_once("://").expect("a URL").1.to_owned();
        let waiting = || {
            let mut client = Client::new(&address);
            client.say("GET /wait/300000 HTTP/1.1\r\nHost: x\r\n\r\n").finish();
            client
        };
        let all: Vec<Client> = (0..20).map(|_| waiting()).collect();
        assert_eq!(Client::new(&address).hear(), "closed", "{io}");
        drop(all);
        server.counts();
    }
}

#[test]
fn ten_thousand_connections_never_speak() {
    if !allow_mute(10_000) {
        return;
    }
    let (longest, peak) = silent(10_000);
    let row = Row::new("nothing, ever", "nothing", longest, Some(peak));
    assert_documented("10,000 clients that never speak", &["the client", "sees", "time", "memory"], &[row]);
}
