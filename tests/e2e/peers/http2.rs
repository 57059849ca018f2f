//! Hostile servers of HTTP/2, which `narrows load --http2` drives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{MEMORY, Row, assert_documented, rows};
use crate::load_http2::drive;
use crate::support::peer::{Connection, Peer};
use crate::support::{Guarded, Served, assert_adds_up, backends, load_json, narrows, until};

/// What a server does when the generator's preface has come, and the options beside the usual ones.
struct Case {
    peer: &'static str,
    class: &'static str,
    words: &'static [&'static str],
    treat: fn(Connection),
}

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const CONTINUATION: u8 = 9;
pub(super) const RESET: u8 = 3;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;
/// `:status: 200`
const OK: &[u8] = &[0x88];

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A right answer without a body.
fn answer(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, OK)
}

/// Sends the settings, and, when the first request has come, these bytes.
fn begin(connection: &mut Connection, bytes: &[u8]) {
    // The preface is one send. The first request comes when the settings have come, together with their acknowledgement.
    connection.wait_unread();
    connection.take_some();
    connection.send(frame(SETTINGS, 0, 0, &[]));
    connection.wait_unread();
    connection.send(bytes);
}

/// The frame after which no further requests come on the connection.
fn last() -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0])
}

/// Settings that allow no streams.
fn no_streams() -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 0])
}

/// Sends these bytes again and again, and reads nothing.
fn flood(mut connection: Connection, first: &[u8], again: &[u8]) {
    begin(&mut connection, first);
    let again = again.repeat(64);
    while !connection.abandoned() {
        connection.send(&again);
    }
}

/// Sends these bytes, and then waits for the end.
fn say(mut connection: Connection, bytes: &[u8]) {
    begin(&mut connection, bytes);
    connection.wait_end();
}

/// A block with these first fields that inserts a field of 3,000 bytes, and then names it 16,000 times.
pub(super) fn bomb(first: &[u8]) -> Vec<u8> {
    let mut block = [first, &[0x40, 1, b'a', 0x7f, 0xb9, 0x16]].concat();
    block.extend([b'v'; 3000]);
    block.extend([0xbe; 12_000]);
    block
}

const SOON: &[&str] = &["--timeout", "400ms"];

const fn case(peer: &'static str, class: &'static str, treat: fn(Connection)) -> Case {
    Case { peer, class, words: &[], treat }
}

const CASES: &[Case] = &[
    case("CONTINUATION without end", "protocol", |c| {
        flood(c, &frame(HEADERS, 0, 1, OK), &frame(CONTINUATION, 0, 1, &[]));
    }),
    case("a header block of 80,000 bytes", "protocol", |c| {
        let parts = frame(CONTINUATION, 0, 1, &[0x88; 16_000]).repeat(5);
        say(c, &[frame(HEADERS, 0, 1, OK), parts].concat());
    }),
    case("a header block of 15,000 bytes that means 36 MB", "protocol", |c| {
        say(c, &[frame(HEADERS, END_HEADERS, 1, &bomb(OK)), last()].concat());
    }),
    case("PING without end, and nothing is read", "protocol", |c| flood(c, &[], &frame(PING, 0, 0, &[0; 8]))),
    case("SETTINGS without end, and nothing is read", "protocol", |c| {
        flood(c, &[], &frame(SETTINGS, 0, 0, &[]))
    }),
    case("empty DATA without end", "protocol", |c| {
        flood(c, &frame(HEADERS, END_HEADERS, 1, OK), &frame(DATA, 0, 1, &[]));
    }),
    case("DATA of padding without end", "protocol", |c| {
        let padding = [&[255][..], &[0; 255]].concat();
        flood(c, &frame(HEADERS, END_HEADERS, 1, OK), &frame(DATA, PADDED, 1, &padding));
    }),
    case("103, 200 times", "protocol", |c| {
        let hint = frame(HEADERS, END_HEADERS, 1, b"\x08\x03103");
        say(c, &[hint.repeat(200), last()].concat());
    }),
    case("a frame of 16 MB", "protocol", |c| say(c, &[255, 255, 255, DATA, 0, 0, 0, 0, 1])),
    case("an answer to a request that nobody made", "protocol", |c| {
        say(c, &frame(HEADERS, END_HEADERS | 1, 99, OK));
    }),
    case("a push", "protocol", |c| say(c, &frame(5, END_HEADERS, 1, &[0, 0, 0, 2, 0x82]))),
    case("a window of 2^31", "protocol", |c| say(c, &frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]))),
    case("an answer whose head has a capital letter", "protocol", |c| {
        say(c, &[frame(HEADERS, END_HEADERS | 1, 1, b"\x88\x00\x01X\x01y"), last()].concat());
    }),
    case("GOAWAY at once", "closed_early", |c| say(c, &frame(GOAWAY, 0, 0, &[0; 8]))),
    case("GOAWAY with a code, and a close", "reset", |mut c| {
        let away = frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 11]);
        begin(&mut c, &away);
        c.half_close();
        c.wait_end();
    }),
    case("a reset of the stream", "reset", |c| say(c, &[frame(RESET, 0, 1, &[0, 0, 0, 2]), last()].concat())),
    case("a refusal of the stream", "busy", |c| {
        say(c, &[frame(RESET, 0, 1, &[0, 0, 0, 7]), last()].concat())
    }),
    Case {
        peer: "frames of an unknown kind without end",
        class: "request_timeout",
        words: SOON,
        treat: |c| flood(c, &[], &frame(0xbe, 0, 0, &[0; 100])),
    },
    Case {
        peer: "updates of a window without end",
        class: "request_timeout",
        words: SOON,
        treat: |c| flood(c, &[], &frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])),
    },
    Case { peer: "no SETTINGS, ever", class: "connect_timeout", words: SOON, treat: |mut c| c.wait_end() },
    Case {
        peer: "SETTINGS that allow no streams",
        class: "connect_timeout",
        words: SOON,
        treat: |mut c| {
            c.send(no_streams());
            c.wait_end();
        },
    },
    Case { peer: "SETTINGS, and no answer", class: "request_timeout", words: SOON, treat: |c| say(c, &[]) },
    Case {
        peer: "a window that never opens",
        class: "request_timeout",
        words: &["--timeout", "400ms", "--body-size", "1M"],
        treat: |c| say(c, &[]),
    },
];

/// Treats the first connection well, and the others as the case says, once the first was answered.
fn attempt(case: &Case, right: &str) -> Row {
    let (mut most, mut longest) = (0, Duration::ZERO);
    for io in backends() {
        let answered = Arc::new(AtomicU64::new(0));
        let (first, count, right, treat) =
            (AtomicBool::new(true), Arc::clone(&answered), right.to_owned(), case.treat);
        let peer = Peer::new(move |connection| {
            if first.swap(false, Ordering::Relaxed) {
                return connection.relay(&right, || _ = count.fetch_add(1, Ordering::Relaxed));
            }
            until(|| count.load(Ordering::Relaxed) > 0);
            treat(connection);
        });
        let url = peer.url("http") + "/echo";
        let usual = ["load", &url, "--http2", "-n", "60", "-c", "2", "-t", "1", "--json", "--reactor", io];
        let (ended, peak) = Guarded::spawn(&mut narrows([&usual, case.words].concat())).end_with_peak();
        assert!(peak < MEMORY, "{}, {io}: {peak} bytes", case.peer);
        let json = ended.json();
        assert_adds_up(&json);
        let errors = json["errors"].as_object().expect("errors");
        let classes: Vec<&str> = errors.keys().map(String::as_str).collect();
        assert_eq!(classes, [case.class], "{}, {io}: {json}", case.peer);
        let failed: u64 = errors.values().filter_map(Value::as_u64).sum();
        let completed = json["completed"].as_u64().expect("a number");
        // No failure is the healthy connection's: one request at a time is open on each.
        assert!(completed > 0 && completed + failed == 60, "{}, {io}: {json}", case.peer);
        let took = Duration::from_secs_f64(json["elapsed_s"].as_f64().expect("a number"));
        (most, longest) = (most.max(peak), longest.max(took));
    }
    Row::new(case.peer, &format!("`{}`", case.class), longest, Some(most))
}

#[test]
fn frames_of_hostile_servers_of_http2() {
    let server = Served::start(&[]);
    let right = server.http.replace("http://", "");
    let rows = rows(CASES, |case| attempt(case, &right));
    assert_documented("HTTP/2 to the generator", &["the server", "class", "time", "memory"], &rows);
}

/// Answers the first request of a connection never, and so many others at once. Then no more is processed, and the connection
/// ends, with which the stuck one fails.
fn stick(mut connection: Connection, others: u64) {
    connection.http2_preface();
    connection.send(frame(SETTINGS, 0, 0, &[]));
    let (mut answers, mut answered) = (Vec::new(), 0);
    while answered < others {
        let Some((kind, _, stream, _)) = connection.http2_frame() else { return };
        if kind == HEADERS && stream > 1 {
            answers.extend(answer(stream));
            answered += 1;
        }
        if connection.is_drained() || answered == others {
            connection.send(std::mem::take(&mut answers));
        }
    }
    connection.send(last());
    connection.half_close();
    connection.wait_end();
}

/// Drives a server with one stuck stream. Returns how long the longer backend took, and the larger peak of memory in bytes.
fn stuck(others: u64) -> (Duration, u64) {
    let (mut longest, mut most) = (Duration::ZERO, 0);
    let server = Served::start(&[]);
    let right = server.http.replace("http://", "");
    for io in backends() {
        let (first, right) = (AtomicBool::new(true), right.clone());
        let peer = Peer::new(move |connection| match first.swap(false, Ordering::Relaxed) {
            true => stick(connection, others),
            false => connection.relay(&right, || ()),
        });
        let url = peer.url("http") + "/echo";
        // More than the others, so that the drive goes on when the connection has ended.
        let all = others + 2000;
        let count = all.to_string();
        let words = ["load", &url, "--http2", "-n", &count, "-c", "1", "-t", "1", "--streams", "100"];
        let words = [&words[..], &["--timeout", "1h", "--json", "--reactor", io]].concat();
        let (ended, peak) = Guarded::spawn(&mut narrows(words)).end_with_peak();
        let json = ended.json();
        assert_adds_up(&json);
        assert_eq!(json["errors"], serde_json::json!({ "closed_early": 1 }), "{io}: {json}");
        assert_eq!(json["completed"], all - 1, "{io}: {json}");
        assert!(peak < MEMORY, "{io}: {peak} bytes");
        let took = Duration::from_secs_f64(json["elapsed_s"].as_f64().expect("a number"));
        (longest, most) = (longest.max(took), most.max(peak));
    }
    (longest, most)
}

#[test]
fn one_of_many_streams_is_never_answered() {
    let (longest, most) = stuck(100_000);
    let row = Row::new("one request is never answered", "`closed_early`", longest, Some(most));
    let columns = &["the server", "class", "time", "memory"];
    assert_documented("A stuck stream among 100,000 to the generator", columns, &[row]);
}

#[test]
#[ignore = "a million exchanges take minutes"]
fn one_of_a_million_streams_is_never_answered() {
    let (longest, most) = stuck(1_000_000);
    println!("{} s, {} MiB", longest.as_secs(), most >> 20);
}

#[test]
fn a_connection_on_which_no_request_can_begin_says_why() {
    for (settings, why) in
        [(no_streams(), "the server allows no requests"), (Vec::new(), "the server sent no SETTINGS")]
    {
        let peer = Peer::new(move |mut connection| {
            connection.send(settings.clone());
            connection.wait_end();
        });
        for io in backends() {
            let words = ["--http2", "-n", "1", "-c", "1", "--timeout", "2s", "--reactor", io];
            let (_, json) = load_json(&[&[&*peer.url("http")], &words[..]].concat());
            let first = json["first_errors"]["connect_timeout"].as_str().expect("an example");
            assert!(first.contains(why), "{json}");
        }
    }
}

#[test]
fn a_body_is_no_timeout_while_its_window_goes_on_opening() {
    let peer = Peer::new(|mut connection| {
        connection.http2_preface();
        // No window.
        connection.send(frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]));
        while let Some((kind, flags, stream, _)) = connection.http2_frame() {
            match kind {
                HEADERS => (0..14).for_each(|_| {
                    thread::sleep(Duration::from_millis(250));
                    connection.send(frame(WINDOW_UPDATE, 0, stream, &1000_u32.to_be_bytes()));
                }),
                DATA if flags & END_STREAM != 0 => connection.send(answer(stream)),
                _ => {}
            }
        }
    });
    for io in backends() {
        let words = ["-n", "1", "-c", "1", "--body-size", "14000", "--timeout", "2s", "--reactor", io];
        let json = drive(&peer.url("http"), &words);
        assert_eq!(json["completed"], 1, "{json}");
    }
}

#[test]
fn a_body_goes_out_a_second_after_its_head_whatever_other_streams_do() {
    let peer = Peer::new(|mut connection| {
        connection.http2_preface();
        connection.send(frame(SETTINGS, 0, 0, &[]));
        let mut quick = false;
        while let Some((kind, flags, stream, _)) = connection.http2_frame() {
            match kind {
                // `100 Continue` for all but the first.
                HEADERS if stream > 1 => connection.send(frame(HEADERS, END_HEADERS, stream, b"\x08\x03100")),
                DATA if flags & END_STREAM != 0 => {
                    quick |= stream == 1;
                    if !quick {
                        thread::sleep(Duration::from_millis(100));
                    }
                    connection.send(answer(stream));
                }
                _ => {}
            }
        }
    });
    for io in backends() {
        let words = ["-n", "300", "-c", "1", "--streams", "4", "--body-size", "10", "--expect-continue"];
        let more = ["--timeout", "10s", "--reactor", io];
        let json = drive(&peer.url("http"), &[&words[..], &more].concat());
        assert_eq!(json["completed"], 300, "{json}");
        assert!(json["no_continue"].as_u64() >= Some(1), "{json}");
    }
}
