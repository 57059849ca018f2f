//! Hostile clients of `narrows serve` that speak HTTP/2.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::clients::{Case, Client, assert_table, healthy, http};
use super::http2::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING, RESET, SETTINGS,
    WINDOW_UPDATE, bomb, frame,
};
use super::{MEMORY, Row, assert_documented};
use crate::support::{Served, backends, peak_memory};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// `GET /` and `POST /upload`. Both insert nothing into a table.
const GET: &[u8] = &[0x82, 0x86, 0x84, 1, 1, b'x'];
const POST: &[u8] = b"\x83\x86\x04\x07/upload\x01\x01x";
const BEGINS: u8 = END_HEADERS;
const WHOLE: u8 = END_HEADERS | END_STREAM;

const CODES: [&str; 12] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
];

/// A block that asks for this path.
fn get(path: &str) -> Vec<u8> {
    let length = u8::try_from(path.len()).expect("a short path");
    [&[0x82, 0x86, 4, length], path.as_bytes(), &[1, 1, b'x']].concat()
}

fn greeting(settings: &[u8]) -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, settings)].concat()
}

/// Reads frames to the end, and says which answers came, and how the connection ended.
fn hear(client: &mut Client) -> String {
    let mut heard = Vec::new();
    // Whether a close arrives as an end or as a reset depends on what the kernel had not delivered yet.
    let _ = client.0.read_to_end(&mut heard);
    let (mut rest, mut seen) = (heard.as_slice(), Vec::new());
    while let Some((&[high, middle, low, kind, ..], after)) = rest.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        let Some((payload, after)) = after.split_at_checked(length) else { break };
        rest = after;
        let code = |at: usize| CODES[usize::from(payload[at])];
        match (kind, payload) {
            (HEADERS, [0x88, ..]) => seen.push("200".to_owned()),
            // A literal of the name of `:status`.
            (HEADERS, [8, 3, status @ ..]) => {
                seen.push(String::from_utf8_lossy(&status[..3]).into_owned());
            }
            (RESET, _) => seen.push(format!("reset {}", code(3))),
            (GOAWAY, _) => seen.push(format!("GOAWAY {}", code(7))),
            _ => {}
        }
    }
    seen.dedup();
    seen.push("closed".to_owned());
    seen.join(", ")
}

/// Sends these frames behind the preface, ends its side, and reads to the end.
fn say(mut client: Client, frames: &[u8]) -> String {
    client.say(greeting(&[])).say(frames).finish();
    hear(&mut client)
}

/// Sends the first bytes, and then what `next` returns, until the server has ended its side.
fn flood(mut client: Client, first: &[u8], mut next: impl FnMut() -> Vec<u8>) -> String {
    client.say(greeting(&[])).say(first);
    while !client.is_left() {
        let piece: Vec<u8> = (0..64).flat_map(|_| next()).collect();
        client.say(piece);
    }
    hear(&mut client)
}

/// Sends the first bytes, and then these again and again. Reads nothing.
fn flood_unread(mut client: Client, again: &[u8]) -> String {
    client.say(greeting(&[])).say_on(again.repeat(64), 0).outlast()
}

/// Begins streams without end, each of which ends as `end` says. Returns how the connection ended. Which requests were answered
/// before their streams ended depends on how the bytes are cut.
fn streams(client: Client, end: fn(u32) -> Vec<u8>) -> String {
    let mut id = 1;
    let seen = flood(client, &[], || {
        id += 2;
        [frame(HEADERS, WHOLE, id, GET), end(id)].concat()
    });
    seen.rfind("GOAWAY").and_then(|at| seen.get(at..)).unwrap_or(&seen).to_owned()
}

const CALM: &str = "GOAWAY ENHANCE_YOUR_CALM, closed";

const FRAMES: &[Case] = &[
    http("a right request", "200, closed", |c| say(c, &frame(HEADERS, WHOLE, 1, GET))),
    http("a preface that goes on wrongly", "GOAWAY PROTOCOL_ERROR, closed", |mut c| {
        c.say("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n").finish();
        hear(&mut c)
    }),
    http("no SETTINGS after the preface", "GOAWAY PROTOCOL_ERROR, closed", |mut c| {
        c.say(PREFACE).say(frame(PING, 0, 0, &[0; 8])).finish();
        hear(&mut c)
    }),
    http("CONTINUATION without end", CALM, |c| {
        flood(c, &frame(HEADERS, END_STREAM, 1, GET), || frame(CONTINUATION, 0, 1, &[]))
    }),
    http("a header block of 80,000 bytes", CALM, |c| {
        let parts = frame(CONTINUATION, 0, 1, &[0x84; 16_000]).repeat(5);
        say(c, &[frame(HEADERS, END_STREAM, 1, GET), parts].concat())
    }),
    http("a header block of 15,000 bytes that means 36 MB", "reset PROTOCOL_ERROR, closed", |c| {
        say(c, &frame(HEADERS, WHOLE, 1, &bomb(GET)))
    }),
    http("empty DATA without end", CALM, |c| {
        flood(c, &frame(HEADERS, BEGINS, 1, POST), || frame(DATA, 0, 1, &[]))
    }),
    http("DATA of padding without end", CALM, |c| {
        let padding = [&[255][..], &[0; 255]].concat();
        flood(c, &frame(HEADERS, BEGINS, 1, POST), || frame(DATA, PADDED, 1, &padding))
    }),
    http("requests without end, each of which is reset at once", CALM, |c| {
        streams(c, |id| frame(RESET, 0, id, &[0, 0, 0, 8]))
    }),
    http("requests without end, for each of which the server must reset the stream", CALM, |c| {
        streams(c, |id| frame(WINDOW_UPDATE, 0, id, &[0; 4]))
    }),
    // None of them ends, so none is answered.
    http("2,000 requests at once, of which 1,000 are allowed", "reset REFUSED_STREAM, closed", |c| {
        let requests: Vec<u8> =
            (0..2000).flat_map(|number| frame(HEADERS, BEGINS, number * 2 + 1, POST)).collect();
        say(c, &requests)
    }),
    http("a body above --max-body", "413, reset NO_ERROR, closed", |c| {
        let body = frame(DATA, 0, 1, &[b'x'; 16_000]).repeat(140);
        say(c, &[frame(HEADERS, BEGINS, 1, POST), body].concat())
    }),
    http("a frame of 16 MB", "GOAWAY FRAME_SIZE_ERROR, closed", |c| {
        say(c, &[255, 255, 255, DATA, 0, 0, 0, 0, 1])
    }),
    http("a window of 2^31", "GOAWAY FLOW_CONTROL_ERROR, closed", |c| {
        say(c, &frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]))
    }),
    http("a stream with an even number", "GOAWAY PROTOCOL_ERROR, closed", |c| {
        say(c, &frame(HEADERS, WHOLE, 2, GET))
    }),
    http("DATA on a stream that nobody has begun", "GOAWAY PROTOCOL_ERROR, closed", |c| {
        say(c, &frame(DATA, 0, 9, &[]))
    }),
    http("a request whose head has a capital letter", "reset PROTOCOL_ERROR, closed", |c| {
        say(c, &frame(HEADERS, WHOLE, 1, &[GET, b"\x00\x01X\x01y"].concat()))
    }),
    http("a body that is longer than its length", "reset PROTOCOL_ERROR, closed", |c| {
        let head = frame(HEADERS, BEGINS, 1, &[POST, b"\x00\x0econtent-length\x011"].concat());
        say(c, &[head, frame(DATA, END_STREAM, 1, b"22")].concat())
    }),
    http("a reset of the connection with 1,000 requests under way", "nothing", |mut c| {
        let block = get("/wait/300");
        let requests: Vec<u8> =
            (0..1000).flat_map(|number| frame(HEADERS, WHOLE, number * 2 + 1, &block)).collect();
        c.say(greeting(&[])).say(requests);
        c.reset()
    }),
];

/// These end when the server's patience does.
const SLOW: &[Case] = &[
    http("the preface, and nothing", "closed", |mut c| {
        c.say(PREFACE);
        hear(&mut c)
    }),
    http("SETTINGS, and nothing", "closed", |mut c| {
        c.say(greeting(&[]));
        hear(&mut c)
    }),
    http("a header block, one byte now and then", "closed", |mut c| {
        c.say(greeting(&[]))
            .say(&frame(HEADERS, WHOLE, 1, &[0x84; 16_000])[..9])
            .say_on([0x84], 100)
            .outlast()
    }),
    http("a request without its end", "closed", |mut c| {
        c.say(greeting(&[])).say(frame(HEADERS, BEGINS, 1, POST));
        hear(&mut c)
    }),
    http("a window that never opens, and 1,000 requests", "closed", |mut c| {
        let block = get("/bytes/1000000");
        let requests: Vec<u8> =
            (0..1000).flat_map(|number| frame(HEADERS, WHOLE, number * 2 + 1, &block)).collect();
        c.say(greeting(&[0, 4, 0, 0, 0, 0])).say(requests).outlast()
    }),
    http("wide windows, 16 MB and events, and nothing is read", "closed", |mut c| {
        let wide = frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0]);
        let ask = |id, path: &str| frame(HEADERS, WHOLE, id, &get(path));
        c.say(greeting(&[0, 4, 0x7f, 0, 0, 0])).say(wide);
        c.say(ask(1, "/bytes/16000000")).say(ask(3, "/events/1000000?first=1s&gap=1s&size=0")).outlast()
    }),
    http("PING now and then", "closed", |mut c| {
        c.say(greeting(&[])).say_on(frame(PING, 0, 0, &[0; 8]), 100).outlast()
    }),
    http("PING without end, and nothing is read", "closed", |c| flood_unread(c, &frame(PING, 0, 0, &[0; 8]))),
    http("SETTINGS without end, and nothing is read", "closed", |c| {
        flood_unread(c, &frame(SETTINGS, 0, 0, &[]))
    }),
    http("updates of a window without end", "closed", |c| {
        flood_unread(c, &frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]))
    }),
    http("frames of an unknown kind without end", "closed", |c| {
        flood_unread(c, &frame(0xbe, 0, 0, &[0; 100]))
    }),
];

#[test]
fn frames_of_hostile_clients_of_http2() {
    assert_table("HTTP/2 to the reference server", &["--max-body", "2M"], &[FRAMES]);
}

#[test]
fn clients_of_http2_that_stand_still() {
    assert_table("Clients of HTTP/2 that stand still", &["--patience", "3s"], &[SLOW]);
}

/// Reads until so many answers are whole.
fn take_answers(client: &mut Client, held: &mut Vec<u8>, count: usize) {
    let mut whole = 0;
    while whole < count {
        let mut piece = [0; 16 * 1024];
        let length = client.read(&mut piece);
        assert!(length > 0, "the server closed the connection");
        held.extend_from_slice(&piece[..length]);
        let mut rest = held.as_slice();
        while let Some((&[high, middle, low, kind, flags, ..], after)) = rest.split_first_chunk::<9>() {
            let Some((_, after)) =
                after.split_at_checked(u32::from_be_bytes([0, high, middle, low]) as usize)
            else {
                break;
            };
            whole += usize::from(matches!(kind, HEADERS | DATA) && flags & END_STREAM > 0);
            rest = after;
        }
        *held = rest.to_vec();
    }
}

/// Never ends the request of one stream, and makes so many others on its connection. Returns how long the longer backend took,
/// and the larger peak of memory in bytes.
fn stuck(others: u32) -> (Duration, u64) {
    const AT_ONCE: u32 = 100;
    let (mut longest, mut most) = (Duration::ZERO, 0);
    for io in backends() {
        let server = Served::start(&["--threads", "1", "--reactor", io]);
        let address = server.http.split_once("://").expect("a URL").1.to_owned();
        let over = AtomicBool::new(false);
        let began = Instant::now();
        thread::scope(|scope| {
            let beside = Client::new(&address);
            let beside = scope.spawn(|| healthy(beside, &over));
            let (mut client, mut held) = (Client::new(&address), Vec::new());
            let window = frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0]);
            client.say(greeting(&[])).say(window).say(frame(HEADERS, BEGINS, 1, POST));
            for batch in 0..others / AT_ONCE {
                let ids = (0..AT_ONCE).map(|number| (batch * AT_ONCE + number) * 2 + 3);
                client.say(ids.flat_map(|id| frame(HEADERS, WHOLE, id, GET)).collect::<Vec<u8>>());
                take_answers(&mut client, &mut held, AT_ONCE as usize);
            }
            client.say(frame(DATA, END_STREAM, 1, b"x"));
            take_answers(&mut client, &mut held, 1);
            over.store(true, Ordering::Relaxed);
            assert!(beside.join().expect("a healthy connection saw an error") > 0);
        });
        longest = longest.max(began.elapsed());
        let peak = peak_memory(server.pid());
        assert!(peak < MEMORY, "{io}: {peak} bytes");
        most = most.max(peak);
        server.counts();
    }
    (longest, most)
}

#[test]
fn one_of_many_requests_of_http2_never_ends() {
    let (longest, most) = stuck(100_000);
    let row = Row::new("one request ends after all others", "200", longest, Some(most));
    let columns = &["the client", "sees", "time", "memory"];
    assert_documented("A stuck stream among 100,000 to the reference server", columns, &[row]);
}

#[test]
#[ignore = "a million exchanges take minutes"]
fn one_of_a_million_requests_of_http2_never_ends() {
    let (longest, most) = stuck(1_000_000);
    println!("{} s, {} MiB", longest.as_secs(), most >> 20);
}
