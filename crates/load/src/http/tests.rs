//! Tests how answers are judged, without sockets.

use super::*;
use crate::protocol::End;
use crate::target::Expect;

fn target(body: Body) -> Http {
    Http { body, expect: Expect::exactly("ok"), ..Http::get("h", "/") }
}

/// Sends one exchange. Returns what the bytes of the answer lead to, and how many exchanges the connection can carry then.
fn answer(target: &Http, bytes: &[u8]) -> (Result<(), Fault>, Vec<End>, usize) {
    let mut http = Requests::new(target, 1, 0).expect("a request that can be written");
    let mut state = http.open(0, None);
    http.begin(&mut state, ());
    while let Next::Send(payload) = http.next(&mut state, false) {
        http.sent(payload);
    }
    let mut outcomes = Outcomes::default();
    let end = http.receive(&mut state, bytes, &mut outcomes);
    (end.map_err(|fault| *fault), outcomes.ends, http.standing(&state).capacity)
}

fn class(bytes: &[u8]) -> Option<ErrorClass> {
    let (end, replies, _) = answer(&target(Body::None), bytes);
    let fault = end.err().or_else(|| replies.first().and_then(|reply| reply.result.err()));
    fault.map(|fault| fault.class)
}

#[test]
fn each_kind_of_answer_has_its_class() {
    let table: [(&[u8], Option<ErrorClass>); 9] = [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", None),
        (b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nok", Some(ErrorClass::Status)),
        (b"HTTP/1.1 201 OK\r\nContent-Length: 2\r\n\r\nok", Some(ErrorClass::Status)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\no", Some(ErrorClass::Length)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok!", Some(ErrorClass::Length)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", Some(ErrorClass::WrongContent)),
        (b"nonsense\r\n\r\n", Some(ErrorClass::Protocol)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\0", Some(ErrorClass::Protocol)),
    ];
    for (bytes, expected) in table {
        assert_eq!(class(bytes), expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_stray_byte_spoils_the_answer_before_it_and_the_connection() {
    let (end, replies, capacity) =
        answer(&target(Body::None), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\0");
    assert!(end.is_ok());
    let [reply] = replies.as_slice() else { panic!("one exchange, one reply: {replies:?}") };
    assert_eq!((reply.id, capacity), (0, 0));
    assert_eq!(reply.result.expect_err("spoilt").to_string(), "\"\\x00\"");
}

#[test]
fn unrequested_bytes_are_a_fault_of_the_connection() {
    let mut http = Requests::new(&target(Body::None), 1, 0).expect("a request");
    let mut state = http.open(0, None);
    let end = http.receive(&mut state, b"HTTP/1.1 200 OK\r\n", &mut Outcomes::default());
    assert_eq!(end.expect_err("unasked").class, ErrorClass::Protocol);
}

#[test]
fn an_answer_without_length_ends_with_the_connection() {
    let mut http = Requests::new(&target(Body::None), 1, 0).expect("a request");
    let mut state = http.open(0, None);
    http.begin(&mut state, ());
    http.next(&mut state, false);
    let mut outcomes = Outcomes::default();
    http.receive(&mut state, b"HTTP/1.0 200 OK\r\n\r\nok", &mut outcomes).expect("a head and a body");
    assert!(outcomes.ends.is_empty());
    assert_eq!(http.end(&mut state, &mut outcomes).class, ErrorClass::ClosedEarly, "of the others");
    let [reply] = outcomes.ends.as_slice() else { panic!("the close ends it: {outcomes:?}") };
    assert!(reply.result.is_ok());
    assert_eq!(http.standing(&state).capacity, 0);
}

#[test]
fn the_id_of_another_request_is_noticed() {
    let mut target = target(Body::None);
    target.ids = true;
    let with = |id: u64| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Request-Id: {id:020}\r\n\r\nok");
        let (_, replies, _) = answer(&target, head.as_bytes());
        replies[0].result.err().map(|fault| fault.class)
    };
    assert_eq!((with(0), with(1)), (None, Some(ErrorClass::WrongId)));
}

#[test]
fn a_pipeline_is_sent_at_once_and_each_answer_allows_another_request() {
    let mut http = Requests::new(&target(Body::None), 3, 0).expect("a request");
    let mut state = http.open(0, None);
    for _ in 0..3 {
        http.begin(&mut state, ());
    }
    let Next::Send(payload) = http.next(&mut state, false) else { panic!("three requests wait") };
    assert_eq!(payload.bytes().windows(4).filter(|window| window == b"GET ").count(), 3);
    assert!(matches!(http.next(&mut state, false), Next::Nothing));
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".repeat(2);
    let mut outcomes = Outcomes::default();
    http.receive(&mut state, &answer, &mut outcomes).expect("two answers");
    assert_eq!(outcomes.ends.len(), 2);
}

#[test]
fn a_large_body_is_the_pattern_from_beginning_to_end() {
    let size = 700_001;
    let mut http = Requests::new(&target(Body::Pattern(size)), 1, 0).expect("a request");
    let mut state = http.open(0, None);
    http.begin(&mut state, ());
    let mut sent = Vec::new();
    while let Next::Send(payload) = http.next(&mut state, false) {
        sent.extend_from_slice(payload.bytes());
    }
    let head = sent.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
    assert_eq!(sent.len() - head, 700_001);
    assert!(sent[head..].iter().all(|byte| *byte != 0), "never zeros");
}

#[test]
fn the_body_waits_for_100_continue_or_for_the_nudge() {
    let mut target = target(Body::Pattern(10));
    target.expect_continue = true;
    for nudged in [false, true] {
        let mut http = Requests::new(&target, 1, 0).expect("a request");
        let mut state = http.open(0, None);
        http.begin(&mut state, ());
        assert!(matches!(http.next(&mut state, false), Next::Send(_)), "the head");
        assert!(matches!(http.next(&mut state, false), Next::Nothing), "the body waits");
        if nudged {
            assert!(http.nudge(&mut state, u64::MAX), "a body waited");
        } else {
            http.receive(&mut state, b"HTTP/1.1 100 Continue\r\n\r\n", &mut Outcomes::default())
                .expect("interim");
        }
        assert!(!http.nudge(&mut state, u64::MAX), "it waits no longer");
        let Next::Send(body) = http.next(&mut state, false) else { panic!("the body goes out") };
        assert_eq!(body.bytes().len(), 10);
        assert!(!http.nudge(&mut state, u64::MAX), "the answer is no interim answer");
    }
}

#[test]
fn a_final_answer_before_the_body_ends_the_wait_and_the_connection() {
    let mut target = target(Body::Pattern(10));
    target.expect_continue = true;
    let (end, replies, capacity) = answer(&target, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert_eq!((end, capacity), (Ok(()), 0));
    // A success would count bytes that were not sent.
    let classes: Vec<_> = replies.iter().map(|reply| reply.result.map_err(|fault| fault.class)).collect();
    assert_eq!(classes, [Err(ErrorClass::Protocol)]);
}
