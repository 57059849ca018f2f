//! Hostile servers, which `narrows load` drives.

use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{MEMORY, Row, allow_mute, assert_documented, rows};
use crate::support::peer::{Connection, Peer, count};
use crate::support::{Guarded, Served, assert_adds_up, backends, narrows, until};

/// How a server treats a connection, after it has a request.
type Treat = fn(Connection);

/// What a server does, and the options that the generator has beside the usual ones.
#[derive(Clone, Copy)]
struct Case {
    scheme: &'static str,
    peer: &'static str,
    words: &'static [&'static str],
    treat: Treat,
    /// The class of its failures; none if its answers are right.
    class: Option<&'static str>,
}

const COLUMNS: &[&str] = &["the server", "class", "time", "memory"];
const HEAD: &str = "HTTP/1.1 200 OK\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const ENDLESS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
const SOON: &[&str] = &["--timeout", "1s"];
const SHORT: &[&str] = &["--max-answer", "100K"];

const fn http(peer: &'static str, class: &'static str, treat: Treat) -> Case {
    Case { scheme: "http", peer, words: &[], treat, class: Some(class) }
}

const fn within(
    peer: &'static str,
    class: &'static str,
    words: &'static [&'static str],
    treat: Treat,
) -> Case {
    Case { scheme: "http", peer, words, treat, class: Some(class) }
}

const fn right(peer: &'static str, treat: Treat) -> Case {
    Case { scheme: "http", peer, words: &[], treat, class: None }
}

const fn frames(
    peer: &'static str,
    class: &'static str,
    words: &'static [&'static str],
    treat: Treat,
) -> Case {
    Case { scheme: "frames", peer, words, treat, class: Some(class) }
}

const fn tls(peer: &'static str, class: &'static str, words: &'static [&'static str], treat: Treat) -> Case {
    Case { scheme: "https", peer, words, treat, class: Some(class) }
}

/// Answers each request with these bytes, and closes only when the generator does.
fn say(mut connection: Connection, answer: &str) {
    while connection.request().is_some() {
        connection.send(answer);
    }
}

/// Answers one request with a head and then one piece again and again.
fn on(mut connection: Connection, head: &str, piece: &str, pause_ms: u64) {
    connection.request();
    connection.send_on(head, piece, Duration::from_millis(pause_ms));
}

fn bytewise(mut connection: Connection, answer: &[u8]) {
    while connection.request().is_some() {
        answer.chunks(1).for_each(|byte| {
            connection.send(byte);
            thread::sleep(Duration::from_millis(1));
        });
    }
}

/// Sends a part of an answer, and then resets the connection.
fn cut(mut connection: Connection, part: &str) {
    connection.request();
    connection.send(part);
    connection.reset();
}

const HEADS: &[Case] = &[
    right("a right answer, one byte at a time", |c| bytewise(c, OK.as_bytes())),
    right("a right answer in chunks, one byte at a time", |c| {
        bytewise(c, format!("{CHUNKED}1;x=y\r\no\r\n1\r\nk\r\n0\r\nX: y\r\n\r\n").as_bytes());
    }),
    right("103 before each answer", |c| say(c, &format!("HTTP/1.1 103 Early Hints\r\n\r\n{OK}"))),
    http("something other than HTTP", "protocol", |c| say(c, "220 mail.example ESMTP\r\n\r\n")),
    http("a version 2.0", "protocol", |c| say(c, "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok")),
    http("a status of two digits", "protocol", |c| say(c, "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok")),
    http("a head of 100,000 bytes", "protocol", |c| {
        say(c, &format!("{HEAD}X: {}\r\nContent-Length: 2\r\n\r\nok", "x".repeat(100_000)));
    }),
    http("a head that never ends", "protocol", |c| on(c, HEAD, "X-More: and more\r\n", 0)),
    http("lines that end in LF alone", "protocol", |c| say(c, "HTTP/1.1 200 OK\nContent-Length: 2\n\nok")),
    http("a CR without LF in a head", "protocol", |c| {
        say(c, &format!("{HEAD}X: a\rb\r\nContent-Length: 2\r\n\r\nok"));
    }),
    http("a NUL in a head", "protocol", |c| say(c, &format!("{HEAD}X: a\0b\r\nContent-Length: 2\r\n\r\nok"))),
    http("a folded header line", "protocol", |c| {
        say(c, &format!("{HEAD}X: a\r\n b\r\nContent-Length: 2\r\n\r\nok"));
    }),
    http("a blank before a colon", "protocol", |c| say(c, &format!("{HEAD}Content-Length : 2\r\n\r\nok"))),
    within("a head, one byte now and then", "request_timeout", SOON, |c| on(c, "HTTP/1.1 200 ", "O", 50)),
];

const BODIES: &[Case] = &[
    http("two lengths that differ", "protocol", |c| {
        say(c, &format!("{HEAD}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok"));
    }),
    http("a length and chunks", "protocol", |c| {
        say(c, &format!("{HEAD}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"));
    }),
    http("a length below zero", "protocol", |c| say(c, &format!("{HEAD}Content-Length: -2\r\n\r\nok"))),
    http("a length of 2^64", "protocol", |c| {
        say(c, &format!("{HEAD}Content-Length: 18446744073709551616\r\n\r\nok"));
    }),
    http("a length of 2^64 - 1, above the default of --max-answer", "length", |c| {
        say(c, &format!("{HEAD}Content-Length: 18446744073709551615\r\n\r\nok"));
    }),
    within("a length above --max-answer", "length", SHORT, |c| {
        say(c, &format!("{HEAD}Content-Length: 102401\r\n\r\n"));
    }),
    // Any faster, it may reach the limit of an answer before the timeout.
    within("a body without end, 64 KiB now and then", "request_timeout", SOON, |c| {
        on(c, ENDLESS, &"x".repeat(1 << 16), 1);
    }),
    within("a body without end, above --max-answer", "length", SHORT, |c| {
        on(c, ENDLESS, &"x".repeat(1 << 16), 0);
    }),
    within("a body, one byte now and then", "request_timeout", SOON, |c| on(c, ENDLESS, "x", 50)),
    http("a chunk's size that is no number", "protocol", |c| {
        say(c, &format!("{CHUNKED}x\r\nok\r\n0\r\n\r\n"))
    }),
    http("a chunk of 2^64 bytes", "protocol", |c| say(c, &format!("{CHUNKED}10000000000000000\r\nok\r\n"))),
    within("a chunk of 2^64 - 1 bytes, and two bytes", "request_timeout", SOON, |c| {
        say(c, &format!("{CHUNKED}ffffffffffffffff\r\nok"));
    }),
    http("a chunk longer than its size", "protocol", |c| say(c, &format!("{CHUNKED}1\r\nok\r\n0\r\n\r\n"))),
    http("a chunk's size without end", "protocol", |c| on(c, CHUNKED, "0", 0)),
    http("a chunk's extension without end", "protocol", |c| on(c, &format!("{CHUNKED}1;"), "x", 0)),
    http("trailers without end", "protocol", |c| on(c, &format!("{CHUNKED}0\r\n"), "X-More: y\r\n", 0)),
    within("chunks without end, above --max-answer", "length", SHORT, |c| on(c, CHUNKED, "2\r\nok\r\n", 0)),
];

const ORDER: &[Case] = &[
    within("an answer before the request has been sent", "protocol", &["--body-size", "64M"], |mut c| {
        c.head();
        c.send(OK);
        until(|| c.abandoned());
    }),
    http("two answers to each request", "protocol", |c| say(c, &OK.repeat(2))),
    http("a byte after each answer", "protocol", |c| say(c, &format!("{OK}!"))),
    http("a byte before each answer", "protocol", |c| say(c, &format!("!{OK}"))),
    within("an answer after the timeout", "request_timeout", SOON, |mut c| {
        while c.request().is_some() {
            until(|| c.abandoned());
            c.ok();
        }
    }),
    http("100 without end", "protocol", |c| on(c, "", "HTTP/1.1 100 Continue\r\n\r\n", 0)),
    http("101, and another protocol", "protocol", |c| {
        say(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nxx");
    }),
    http("another status", "status", |c| say(c, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")),
    http("a redirect to another machine", "status", |c| {
        say(c, "HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n");
    }),
];

const ENDS: &[Case] = &[
    http("a close instead of an answer", "closed_early", |mut c| drop(c.request())),
    http("a close within a head", "closed_early", |mut c| {
        c.request();
        c.send("HTTP/1.1 200 O");
    }),
    http("a close within a body", "closed_early", |mut c| {
        c.request();
        c.send(format!("{HEAD}Content-Length: 10\r\n\r\nhalf"));
    }),
    http("a close within a chunk", "closed_early", |mut c| {
        c.request();
        c.send(format!("{CHUNKED}a\r\nhalf"));
    }),
    http("a half-close instead of an answer", "closed_early", |mut c| {
        c.request();
        c.half_close();
        c.wait_end();
    }),
    http("a half-close within a body", "closed_early", |mut c| {
        c.request();
        c.send(format!("{HEAD}Content-Length: 10\r\n\r\nhalf"));
        c.half_close();
        c.wait_end();
    }),
    http("a reset when a request has come", "reset", |mut c| {
        c.wait_unread();
        c.reset();
    }),
    http("a reset within a head", "reset", |c| cut(c, "HTTP/1.1 200 O")),
    http("a reset within a body", "reset", |c| cut(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")),
    within("nothing, ever", "request_timeout", SOON, |mut c| c.wait_end()),
    within(
        "nothing is read, and the window stays shut",
        "request_timeout",
        // Time enough for the other connection's bodies, also beside other tests.
        &["--timeout", "2s", "--body-size", "16M"],
        |mut c| {
            until(|| c.abandoned());
        },
    ),
];

/// The head of a stream of events in chunks.
const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
/// A part of an answer of OpenAI's interface, and the event that ends one.
const DELTA: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// A whole stream of these events.
fn stream(events: &str) -> String {
    format!("{EVENTS}{:x}\r\n{events}\r\n0\r\n\r\n", events.len())
}

const STREAMS: &[Case] = &[
    right("events, one byte at a time", |c| bytewise(c, stream("id: 1\r\ndata: x\r\n\r\n").as_bytes())),
    right("broken UTF-8 in an event", |mut c| {
        while c.request().is_some() {
            c.send([EVENTS.as_bytes(), b"a\r\ndata: \xff\xfe\n\n\r\n0\r\n\r\n"].concat());
        }
    }),
    right("events after a head of HTTP/1.0, until the connection ends", |mut c| {
        c.request();
        c.send("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: x\n\n");
    }),
    right("a compressed stream, which is taken for a plain answer", |mut c| {
        while c.request().is_some() {
            let head = EVENTS.replace("\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n");
            c.send([head.as_bytes(), b"2\r\n\x1f\x8b\r\n0\r\n\r\n"].concat());
        }
    }),
    right("a stream of OpenAI's interface", |c| say(c, &stream(&format!("{DELTA}{DONE}")))),
    http("the same without its last event", "length", |c| say(c, &stream(DELTA))),
    http("the same with its last event twice", "length", |c| {
        say(c, &stream(&format!("{DELTA}{DONE}{DONE}")))
    }),
    http("an event after the last one", "length", |c| say(c, &stream(&format!("{DELTA}{DONE}{DELTA}")))),
    http("an event of an error in the middle", "wrong_content", |c| {
        say(c, &stream("data: x\n\nevent: error\ndata: no\n\ndata: x\n\n"));
    }),
    http("an error of OpenAI's interface", "wrong_content", |c| {
        say(c, &stream(&format!("{DELTA}data: {{\"error\":{{}}}}\n\n{DONE}")));
    }),
    http("an end in the middle of an event", "length", |c| say(c, &stream("data: x\n\ndata: y"))),
    http("a close in the middle of an event", "closed_early", |mut c| {
        c.request();
        c.send(format!("{EVENTS}9\r\ndata: x\n\n\r\n"));
    }),
    within("events without end", "request_timeout", SOON, |c| on(c, EVENTS, "9\r\ndata: x\n\n\r\n", 1)),
    within("events without end, above --max-answer", "length", SHORT, |c| {
        on(c, EVENTS, "9\r\ndata: x\n\n\r\n", 0);
    }),
    within("an event without end", "length", SHORT, |c| on(c, EVENTS, "9\r\ndata: xyz\r\n", 0)),
    within("a stream that stands still", "request_timeout", &["--idle-timeout", "300ms"], |mut c| {
        c.request();
        c.send(format!("{EVENTS}9\r\ndata: x\n\n\r\n"));
        until(|| c.abandoned());
    }),
];

const FRAMES: &[Case] = &[
    frames("a count of 4 GiB of bytes", "protocol", &[], |mut c| {
        c.frames();
        c.send([0xff; 20]);
    }),
    frames("a count of two bytes", "protocol", &[], |mut c| {
        c.frames();
        c.send([0, 0, 0, 2, 1, 1]);
    }),
    frames("a wrong count", "length", &[], |mut c| {
        let (frames, bytes) = c.frames();
        c.count(frames + 1, bytes);
    }),
    frames("two counts", "protocol", &[], |mut c| {
        let (frames, bytes) = c.frames();
        c.send(count(frames, bytes).repeat(2));
    }),
    frames("a count before the end", "protocol", &["--frame-size", "64M"], |mut c| {
        c.count(1, 1 << 26);
        c.wait_end();
    }),
    frames("a close instead of a count", "closed_early", &[], |mut c| {
        c.frames();
    }),
    frames("a close within a count", "closed_early", &[], |mut c| {
        c.frames();
        c.send([0, 0, 0, 16, 1]);
    }),
    frames("a reset instead of a count", "reset", &[], |mut c| {
        c.frames();
        c.reset();
    }),
    frames("no count, ever", "request_timeout", SOON, |mut c| {
        c.frames();
        until(|| c.abandoned());
    }),
    frames(
        "no frame is read, and the window stays shut",
        "request_timeout",
        // Time enough for the other connection's frames, also beside other tests.
        &["--timeout", "3s", "--frame-size", "64M"],
        |mut c| {
            until(|| c.abandoned());
        },
    ),
];

const TLS: &[Case] = &[
    tls("plain text", "tls", &[], |mut c| {
        c.send("HTTP/1.1 400 Bad Request\r\n\r\n");
        c.wait_end();
    }),
    tls("a record of 65,535 bytes", "tls", &[], |mut c| {
        c.send([0x16, 3, 3, 0xff, 0xff]);
        c.wait_end();
    }),
    tls("random bytes in a record of the handshake", "tls", &[], |mut c| {
        c.send([&[0x16, 3, 3, 0, 64][..], &[0xa5; 64]].concat());
        c.wait_end();
    }),
    tls("a close within the handshake", "tls", &[], |mut c| c.take_some()),
    tls("a reset within the handshake", "reset", &[], |mut c| {
        c.wait_unread();
        c.reset();
    }),
    tls("a handshake that never goes on", "connect_timeout", SOON, |mut c| {
        until(|| c.abandoned());
    }),
];

/// Treats a connection as a right server does. Returns after the generator has closed it.
fn well(scheme: &str, mut connection: Connection, secured: &str, answered: &AtomicU64) {
    match scheme {
        "https" => connection.relay(secured, || {
            answered.fetch_add(1, Ordering::Relaxed);
        }),
        "frames" => {
            let (frames, bytes) = connection.frames();
            connection.count(frames, bytes);
            answered.fetch_add(1, Ordering::Relaxed);
        }
        _ => {
            while connection.request().is_some() {
                thread::sleep(Duration::from_millis(1));
                connection.ok();
                answered.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// What a case came to.
struct Driven {
    json: Value,
    /// How many connections there were.
    connections: u64,
    /// How often the first one was answered.
    answers: u64,
    took: Duration,
    /// The most memory of the generator, in bytes.
    peak: u64,
}

/// Treats the first connection well, and the others as the case says, once the first was answered.
fn drive(case: &Case, io: &str, secured: &str) -> Driven {
    let answers = Arc::new(AtomicU64::new(0));
    let (first, answered, secured) = (AtomicBool::new(true), Arc::clone(&answers), secured.to_owned());
    let (scheme, treat) = (case.scheme, case.treat);
    let peer = Peer::new(move |connection| {
        if first.swap(false, Ordering::Relaxed) {
            return well(scheme, connection, &secured, &answered);
        }
        // There is one answer to all frames of a connection, and it comes last.
        until(|| scheme == "frames" || answered.load(Ordering::Relaxed) > 0);
        treat(connection);
    });
    let n = if case.scheme == "frames" { "2" } else { "100" };
    let url = peer.url(case.scheme);
    let usual = ["load", &url, "-n", n, "-c", "2", "-t", "1", "--json", "--reactor", io];
    let trust: &[&str] = if case.scheme == "https" { &["--insecure"] } else { &[] };
    let mut command = narrows([&usual, case.words, trust].concat());
    let (ended, peak) = Guarded::spawn(&mut command).end_with_peak();
    assert!(peak < MEMORY, "{}, {io}: {peak} bytes", case.peer);
    let json = ended.json();
    let took = Duration::from_secs_f64(json["elapsed_s"].as_f64().expect("a number"));
    Driven { json, connections: peer.connections(), answers: answers.load(Ordering::Relaxed), took, peak }
}

fn attempt(case: &Case, secured: &str) -> Row {
    let (mut most, mut longest) = (0, Duration::ZERO);
    for io in backends() {
        let Driven { json, connections, answers, took, peak } = drive(case, io, secured);
        (most, longest) = (most.max(peak), longest.max(took));
        assert_adds_up(&json);
        let errors = json["errors"].as_object().expect("errors");
        let classes: Vec<&str> = errors.keys().map(String::as_str).collect();
        let failed: u64 = errors.values().filter_map(Value::as_u64).sum();
        let completed = json["completed"].as_u64().expect("a number");
        assert_eq!(classes, case.class.map_or(vec![], |class| vec![class]), "{}, {io}: {json}", case.peer);
        // No failure is the healthy connection's: all its answers count, or there are fewer failures than other connections.
        let healthy = if case.scheme == "http" { completed >= answers } else { failed < connections };
        assert!(completed > 0 && (healthy || case.class.is_none()), "{}, {io}: {json}", case.peer);
    }
    let class = case.class.map_or("none".to_owned(), |class| format!("`{class}`"));
    Row::new(case.peer, &class, longest, Some(most))
}

fn assert_table(heading: &str, cases: &[&[Case]]) {
    let server = Served::start(&["--tls"]);
    let secured = server.http.replace("https://", "");
    let rows = rows(&cases.concat(), |case| attempt(case, &secured));
    assert_documented(heading, COLUMNS, &rows);
}

#[test]
fn heads_and_bodies_of_hostile_servers() {
    assert_table("Answers to the generator", &[HEADS, BODIES]);
}

#[test]
fn orders_and_ends_of_hostile_servers() {
    assert_table("Order and ends of answers", &[ORDER, ENDS]);
}

#[test]
fn streams_of_hostile_servers() {
    assert_table("Streams", &[STREAMS]);
}

#[test]
fn frames_and_handshakes_of_hostile_servers() {
    assert_table("Frames and TLS", &[FRAMES, TLS]);
}

/// One connection is answered; all others never are. The generator makes all connections before it sends.
#[test]
fn ten_thousand_servers_never_speak() {
    const MUTE: usize = 10_000;
    if !allow_mute(MUTE) {
        return;
    }
    let (mut most, mut longest) = (0, Duration::ZERO);
    for io in backends() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        // All of them come at once. The kernel shortens the queue to what it allows.
        // SAFETY: the call takes no pointers.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), MUTE as i32) }, 0);
        let url = format!("http://{}/", listener.local_addr().expect("its address"));
        let number = (MUTE + 1).to_string();
        let words = ["load", &url, "-n", &number, "-c", &number, "-t", "1", "--json", "--reactor", io];
        let load = Guarded::spawn(&mut narrows([&words[..], &["--timeout", "4s"]].concat()));
        let listening = listener.as_raw_fd();
        let (first, _) = listener.accept().expect("a connection");
        let beside = thread::spawn(move || {
            let mut connection = Connection::new(first);
            let mut answered = 0_u64;
            while connection.request().is_some() {
                connection.ok();
                answered += 1;
            }
            answered
        });
        let mute = thread::spawn(move || {
            let mut accepted = Vec::new();
            while let Ok(connection) = listener.accept() {
                accepted.push(connection);
            }
            accepted
        });
        let (ended, peak) = load.end_with_peak();
        // SAFETY: the call takes no pointers, and the thread keeps the socket until the call has woken it.
        assert_eq!(unsafe { libc::shutdown(listening, libc::SHUT_RD) }, 0);
        let mute = mute.join().expect("it accepts until it is woken");
        let json = ended.json();
        assert_adds_up(&json);
        assert!(peak < MEMORY, "{io}: {peak} bytes");
        assert_eq!(
            json["completed"].as_u64(),
            Some(beside.join().expect("no error beside mute servers")),
            "{io}: {json}"
        );
        // A machine that is busy with other work does not accept all of them in time.
        let classes = json["errors"].as_object().expect("errors");
        let timeouts = ["connect_timeout", "request_timeout"];
        assert!(classes.keys().all(|class| timeouts.contains(&class.as_str())), "{io}: {json}");
        assert!(classes.contains_key("request_timeout"), "{io}: {json}");
        let lost: u64 = classes.values().filter_map(Value::as_u64).sum();
        assert_eq!(lost, MUTE as u64, "{io}: {json}");
        drop(mute);
        longest = longest.max(Duration::from_secs_f64(json["elapsed_s"].as_f64().expect("a number")));
        most = most.max(peak);
    }
    let row = Row::new("nothing, ever", "`request_timeout`", longest, Some(most));
    assert_documented("10,000 servers that never speak", COLUMNS, &[row]);
}
