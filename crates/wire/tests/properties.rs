//! Properties of the HTTP codec over generated streams: cuts, the memo and the one-call path never change an answer;
//! nothing panics; the decoders read what the encoders write; and an independent parser (httparse) reads whatever the
//! decoders accept in the same way.
//!
//! `PROPTEST_CASES` sets the number of cases.

mod common;
#[path = "common/cases.rs"]
mod config;

use common::{Seen, requests, responses, responses_without_memo, whole_responses};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use wire::http::{BodyLength, HttpEvent, RequestDecoder, RequestLine, ResponseDecoder, encode_response};

/// Pieces of messages, good and bad, that make up most interesting streams.
const PARTS: &[&str] = &[
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 204 \r\n",
    "HTTP/1.0 200\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n",
    "POST http://a/b?c HTTP/1.1\r\nHost: a\r\n",
    "HEAD * HTTP/1.0\r\n",
    "Content-Length: 5\r\n",
    "content-length:5 \r\n",
    "Content-Length: 0\r\n",
    "Content-Length: 5, 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "Connection: Keep-Alive\r\n",
    "Expect: 100-continue\r\n",
    "X-Request-Id: 1234567\r\n",
    "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\n",
    "_odd!~name9: \t\u{e4}\t\r\n",
    " folded\r\n",
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "0;a=b\r\nA: b\r\n\r\n",
    "hello",
    "\r\n",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    ":",
    " ",
    "\0",
];

/// Whole responses, so that long runs of them are common.
const MESSAGES: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: b\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nX-Request-Id: 1\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nX-Request-Id: 2\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
];

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let parts = vec(select(PARTS), 0..12).prop_map(|parts| parts.concat());
    let messages = vec(select(MESSAGES), 0..6).prop_map(|messages| messages.concat());
    let structured = (prop_oneof![parts.clone(), (messages, parts).prop_map(|(a, b)| a + &b)], damage())
        .prop_map(|(text, damage)| damaged(text.into_bytes(), &damage));
    prop_oneof![9 => structured, 1 => vec(any::<u8>(), 0..200)]
}

/// The parts of streams of events.
const EVENT_PARTS: &[&str] = &[
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    ":",
    " ",
    "data",
    "data:",
    "data: a",
    "event: b",
    "id: 1",
    "id",
    "retry: 1",
    ": comment",
    "\u{feff}",
    "\0",
    "[DONE]",
];

fn event_stream() -> impl Strategy<Value = Vec<u8>> {
    let parts = vec(select(EVENT_PARTS), 0..40).prop_map(|parts| parts.concat().into_bytes());
    (parts, damage()).prop_map(|(bytes, damage)| damaged(bytes, &damage))
}

/// Bytes to overwrite: usually none.
fn damage() -> impl Strategy<Value = Vec<(Index, u8)>> {
    prop_oneof![3 => Just(Vec::new()), 1 => vec((any::<Index>(), any::<u8>()), 1..3)]
}

fn damaged(mut bytes: Vec<u8>, damage: &[(Index, u8)]) -> Vec<u8> {
    for (place, byte) in damage.iter().filter(|_| !bytes.is_empty()).collect::<Vec<_>>() {
        let at = place.index(bytes.len());
        bytes[at] = *byte;
    }
    bytes
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    vec(1usize..60, 1..8)
}

/// Names and values that a user may give.
fn user_headers() -> impl Strategy<Value = Vec<(String, String)>> {
    vec(("x-[a-zA-Z0-9!#$%&'*+.^_`|~-]{0,12}", "([!-~]([ -~]{0,20}[!-~])?)?"), 0..4)
}

proptest! {
    #![proptest_config(config::cases(4000))]

    #[test]
    fn cuts_never_change_what_responses_say(stream in stream(), cuts in cuts()) {
        let uncut = responses(&stream, &[]);
        prop_assert_eq!(&uncut, &responses(&stream, &cuts));
        prop_assert_eq!(&uncut, &responses(&stream, &[1]));
    }

    #[test]
    fn cuts_never_change_what_requests_say(stream in stream(), cuts in cuts()) {
        let uncut = requests(&stream, &[]);
        prop_assert_eq!(&uncut, &requests(&stream, &cuts));
        prop_assert_eq!(&uncut, &requests(&stream, &[1]));
    }

    #[test]
    fn events_are_those_of_a_simple_model_however_they_are_cut(stream in event_stream(), cuts in cuts()) {
        let (uncut, whole) = common::events(1 << 20, &stream, &[]);
        prop_assert!(whole);
        prop_assert_eq!(&uncut, &common::events_plainly(&stream));
        for limit in [12, 1 << 20] {
            let uncut = common::events(limit, &stream, &[]);
            prop_assert_eq!(&uncut, &common::events(limit, &stream, &cuts));
            prop_assert_eq!(&uncut, &common::events(limit, &stream, &[1]));
        }
    }

    #[test]
    fn the_memo_never_changes_an_answer(stream in stream()) {
        prop_assert_eq!(responses(&stream, &[]), responses_without_memo(&stream));
    }

    #[test]
    fn the_one_call_path_says_what_push_says(stream in stream()) {
        let (seen, taken) = whole_responses(&stream);
        let pushed = responses(&stream, &[]);
        prop_assert_eq!(&seen[..], &pushed[..seen.len()]);
        // After it stops, the rest decodes as if nothing had happened.
        prop_assert_eq!(&responses(&stream[taken..], &[])[..], &pushed[seen.len()..]);
    }

    #[test]
    fn httparse_reads_responses_the_same_way(stream in stream()) {
        let mut decoder = ResponseDecoder::watching("x-request-id");
        if let Ok(step) = decoder.push(&stream) && let HttpEvent::Head(head) = step.event {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut theirs = httparse::Response::new(&mut headers);
            prop_assert_eq!(theirs.parse(&stream), Ok(httparse::Status::Complete(step.consumed)));
            prop_assert_eq!(theirs.code, Some(head.status));
            let value = |name: &str| theirs.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value);
            prop_assert_eq!(value("x-request-id"), head.watched);
            if let BodyLength::Exact(length) = head.body {
                let text = value("content-length").and_then(|v| v.split(|&b| b == b',').next()).unwrap_or_default();
                let text = String::from_utf8_lossy(text);
                prop_assert_eq!(text.trim().parse(), Ok(length));
            }
            if head.body == BodyLength::Chunked {
                prop_assert!(value("transfer-encoding").is_some());
            }
        }
    }

    #[test]
    fn httparse_reads_requests_the_same_way(stream in stream()) {
        let mut decoder = RequestDecoder::watching("x-request-id");
        if let Ok(step) = decoder.push(&stream) && let HttpEvent::Head(head) = step.event {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut theirs = httparse::Request::new(&mut headers);
            prop_assert_eq!(theirs.parse(&stream), Ok(httparse::Status::Complete(step.consumed)));
            prop_assert!(theirs.path.unwrap_or_default().as_bytes().ends_with(head.path) || head.path == b"/");
            let value = |name: &str| theirs.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value);
            prop_assert_eq!(value("x-request-id"), head.watched);
        }
    }

    #[test]
    fn written_responses_are_read_back(
        status in 100u16..1000, keep_alive: bool, id in proptest::option::of("[!-~]{1,20}"), body in vec(any::<u8>(), 0..50),
        cuts in cuts(),
    ) {
        let mut out = Vec::new();
        encode_response(&mut out, status, keep_alive, id.as_ref().map(|id| ("x-request-id", id.as_bytes())), &body);
        let seen = responses(&out, &cuts);
        let bodiless = matches!(status, 100..=199 | 204 | 304);
        let length = if bodiless { BodyLength::None } else { BodyLength::Exact(body.len() as u64) };
        let watched = id.map(String::into_bytes);
        let mut expected = vec![Seen::Response { status, keep_alive, body: length, watched }];
        if !bodiless && !body.is_empty() {
            expected.push(Seen::Body(body));
        }
        expected.extend([Seen::End, Seen::Idle(true), Seen::Finished(Ok(false))]);
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn written_requests_are_read_back(
        path in "/[!-~]{0,20}", headers in user_headers(), length in proptest::option::of(1u64..50),
        keep_alive: bool, expect_continue: bool,
    ) {
        let line = RequestLine {
            method: "PUT", host: "127.0.0.1:80", path: &path, headers: &headers, body: length, keep_alive, expect_continue,
        };
        let mut out = Vec::new();
        line.encode(&mut out).expect("legal");
        let mut decoder = RequestDecoder::new();
        let step = decoder.push(&out).expect("what we write");
        prop_assert_eq!(step.consumed, out.len());
        let HttpEvent::Head(head) = step.event else { panic!("no head") };
        prop_assert_eq!(head.path, path.as_bytes());
        prop_assert_eq!(head.body, BodyLength::Exact(length.unwrap_or(0)));
        prop_assert_eq!(head.keep_alive, keep_alive);
        prop_assert_eq!(head.expect_continue, expect_continue && length.is_some());
    }

    #[test]
    fn anything_can_be_asked_to_be_written(
        method in "\\PC{0,4}|GET", host in "\\PC{0,6}|a", path in "\\PC{0,6}|/", headers in vec(("[\\x00-\\xff]{0,14}|Content-Length|Host", "[\\x00-\\xff]{0,6}"), 0..3),
    ) {
        let line = RequestLine {
            method: &method, host: &host, path: &path, headers: &headers, body: None, keep_alive: true, expect_continue: false,
        };
        let mut out = Vec::new();
        // Whatever passes is exactly one request, with nothing smuggled behind it.
        if line.encode(&mut out).is_ok() {
            let mut decoder = RequestDecoder::new();
            let step = decoder.push(&out).expect("what we write");
            prop_assert_eq!(step.consumed, out.len());
        } else {
            prop_assert!(out.is_empty());
        }
    }
}
