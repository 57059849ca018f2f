//! Measures what one message costs, under `valgrind --tool=callgrind` or by the clock:
//! `cargo run --release -p wire --example instructions -- push 1000000`.
//!
//! Prints nanoseconds per message. To get instructions per message, run it under callgrind with two counts and divide the
//! difference in instructions by the difference in counts.

use std::hint::black_box;
use std::time::Instant;

use wire::frames::{FrameCounter, Prefix, put_prefix};
use wire::http::{HttpEvent, RequestDecoder, RequestLine, ResponseDecoder, encode_response};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: reference\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n\
    Content-Length: 2\r\n\r\nok";

/// Alternates with [`RESPONSE`], so that the memo never helps.
const OTHER: &[u8] = b"HTTP/1.1 200 OK\r\nServer: reference\r\nDate: Mon, 01 Jan 2024 00:00:01 GMT\r\n\
    Content-Length: 2\r\n\r\nok";

const WATCHED: &[u8] = b"HTTP/1.1 200 OK\r\nServer: reference\r\nx-request-id: 1234567890123456\r\n\
    Content-Length: 2\r\n\r\nok";

fn push(decoder: &mut ResponseDecoder, mut input: &[u8]) {
    loop {
        let Ok(step) = decoder.push(input) else { return };
        input = &input[step.consumed..];
        if matches!(black_box(step.event), HttpEvent::End) {
            return;
        }
    }
}

fn repeat(count: u64, mut act: impl FnMut(u64)) {
    for round in 0..count {
        act(round);
    }
}

fn responses(mode: &str, count: u64) {
    let fresh = |round| if round % 2 == 0 { RESPONSE } else { OTHER };
    let mut decoder = ResponseDecoder::new();
    let mut watching = ResponseDecoder::watching("x-request-id");
    match mode {
        "push" => repeat(count, |_| push(&mut decoder, black_box(RESPONSE))),
        "push-fresh" => repeat(count, |round| push(&mut decoder, black_box(fresh(round)))),
        "push-watched" => repeat(count, |_| push(&mut watching, black_box(WATCHED))),
        "whole" => repeat(count, |_| {
            black_box(decoder.whole(black_box(RESPONSE)));
        }),
        "whole-fresh" => repeat(count, |round| {
            black_box(decoder.whole(black_box(fresh(round))));
        }),
        "whole-watched" => repeat(count, |_| {
            black_box(watching.whole(black_box(WATCHED)));
        }),
        _ => {}
    }
}

fn requests(mode: &str, count: u64) {
    let mut request = Vec::new();
    let line = RequestLine {
        method: "GET",
        host: "127.0.0.1:8080",
        path: "/",
        headers: &[],
        body: None,
        keep_alive: true,
        expect_continue: false,
    };
    line.encode(&mut request).expect("a legal request");
    let mut decoder = RequestDecoder::new();
    let mut out = Vec::with_capacity(4096);
    match mode {
        "request" => repeat(count, |_| {
            black_box(decoder.whole(black_box(&request)));
        }),
        _ => repeat(count, |_| {
            out.clear();
            encode_response(&mut out, 200, true, None, black_box(b"ok"));
            black_box(&out);
        }),
    }
}

/// Frames of ten payload bytes. In `frames-mixed` the lengths vary, so that the counter never guesses right.
fn frames(mode: &str, count: u64) {
    let mut stream = Vec::new();
    for frame in 0..25_000 {
        let len = if mode == "frames" { 10 } else { 10 + frame % 7 };
        put_prefix(&mut stream, Prefix::Four, len).expect("a short frame");
        stream.resize(stream.len() + len, 1);
    }
    let mut counter = FrameCounter::new(Prefix::Four);
    for _ in 0..count / 25_000 {
        counter.push(black_box(&stream));
    }
    black_box(counter.frames());
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_else(|| "push".to_owned());
    let count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let begin = Instant::now();
    match mode.as_str() {
        "request" | "response" => requests(&mode, count),
        "frames" | "frames-mixed" => frames(&mode, count),
        _ => responses(&mode, count),
    }
    println!("{mode}: {:.2} ns each", begin.elapsed().as_nanos() as f64 / count as f64);
}
