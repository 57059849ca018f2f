//! Tests that checks and codings give the same verdict however an answer is framed and cut, without sockets.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;
use crate::http::{Requests, Same};
use crate::protocol::{End, Outcomes, Protocol};
use crate::target::Expect;

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Framing {
    Length,
    /// Chunks of this size.
    Chunks(usize),
    Close,
}

fn target(checks: &[&str], decode: bool) -> Http {
    let checks = checks.iter().map(|check| Check::parse(check).expect("a check")).collect();
    Http { expect: Expect::meeting(None, checks), decode, ..Http::get("h", "/") }
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).expect("memory");
    encoder.finish().expect("memory")
}

fn message(lines: &str, body: &[u8], framing: Framing) -> Vec<u8> {
    let mut message = format!("HTTP/1.1 200 OK\r\nX-Id: a\r\n{lines}").into_bytes();
    match framing {
        Framing::Length => {
            message.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            message.extend_from_slice(body);
        }
        Framing::Close => {
            message.extend_from_slice(b"\r\n");
            message.extend_from_slice(body);
        }
        Framing::Chunks(size) => {
            message.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            for chunk in body.chunks(size.max(1)) {
                message.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                message.extend_from_slice(chunk);
                message.extend_from_slice(b"\r\n");
            }
            message.extend_from_slice(b"0\r\n\r\n");
        }
    }
    message
}

/// What pieces of these sizes lead to.
fn replies(requests: &mut Requests<Same>, bytes: &[u8], cuts: &[usize], close: bool) -> Vec<End> {
    let mut state = requests.open(0, None);
    requests.begin(&mut state, ());
    requests.next(&mut state, false);
    let (mut outcomes, mut rest, mut sizes) = (Outcomes::default(), bytes, cuts.iter().cycle());
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(rest.len()).clamp(1, rest.len());
        let (piece, after) = rest.split_at(size);
        if let Err(fault) = requests.receive(&mut state, piece, &mut outcomes) {
            outcomes.ends.push(End { id: 0, result: Err(*fault) });
            return outcomes.ends;
        }
        rest = after;
    }
    if close {
        requests.end(&mut state, &mut outcomes);
    }
    outcomes.ends
}

/// What is wrong with an answer; None if nothing is.
fn fault(target: &Http, bytes: &[u8]) -> Option<(ErrorClass, String)> {
    let mut requests = Requests::new(target, 1, 0).expect("a request");
    let found = replies(&mut requests, bytes, &[], false);
    let [reply] = found.as_slice() else { panic!("one exchange, one reply: {found:?}") };
    reply.result.err().map(|fault| (fault.class, fault.to_string()))
}

#[test]
fn each_kind_of_check_has_its_class() {
    let body = br#"{"ok":false,"items":[]}"#;
    let answer = message("", body, Framing::Length);
    for (check, expected) in [
        ("json.ok=false", None),
        ("header:x-id=a", None),
        ("length=23", None),
        ("json.items.length>0", Some((ErrorClass::WrongContent, "it is 0"))),
        ("header:x-id=b", Some((ErrorClass::WrongContent, "it is \"a\""))),
        ("length<5", Some((ErrorClass::Length, "it is 23"))),
        ("status=204", Some((ErrorClass::Status, "status 200"))),
        ("status=2xx", None),
    ] {
        let seen = fault(&target(&["length>0", check], false), &answer);
        assert_eq!(seen.as_ref().map(|(class, text)| (*class, text.as_str())), expected, "{check}");
    }
    // A status that is not accepted is the fault, whatever the body is.
    let lost = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(fault(&target(&["json.a=1"], true), lost).expect("404").0, ErrorClass::Status);
    assert_eq!(fault(&target(&["status=404", "body="], true), lost), None);
}

#[test]
fn checks_see_the_decoded_body_if_that_is_asked_for() {
    let text = b"narrows ".repeat(50);
    let body = gzip(&text);
    let answer = message("Content-Encoding: gzip\r\n", &body, Framing::Length);
    assert_eq!(fault(&target(&["body~=^narrows", "length=400"], true), &answer), None);
    let length = format!("length={}", body.len());
    assert_eq!(fault(&target(&[&length, "body!~=narrows"], false), &answer), None);
    // The limit holds for the decoded body, too.
    let limited = Http { max_answer: 399, ..target(&[], true) };
    let seen = fault(&limited, &answer).expect("too long");
    assert_eq!(seen, (ErrorClass::Length, "more than 399 decoded bytes of an answer's body".to_owned()));
    let broken = message("Content-Encoding: gzip\r\n", &body[..20], Framing::Chunks(3));
    let seen = fault(&target(&[], true), &broken).expect("broken");
    let says = "the body cannot be decoded: its gzip ends early";
    assert_eq!(seen, (ErrorClass::WrongContent, says.to_owned()));
    assert_eq!(fault(&target(&[], false), &broken), None);
}

#[test]
fn bodies_are_counted_on_the_wire_and_decoded() {
    let (text, body) = (b"narrows ".repeat(50), gzip(&b"narrows ".repeat(50)));
    let mut requests = Requests::new(&target(&[], true), 1, 0).expect("a request");
    let coded = message("Content-Encoding: gzip\r\n", &body, Framing::Length);
    let plain = message("", &text, Framing::Chunks(7));
    for (bytes, cuts) in [(&coded, &[][..]), (&coded, &[]), (&plain, &[5]), (&coded, &[1])] {
        assert!(replies(&mut requests, bytes, cuts, false)[0].result.is_ok());
    }
    let sent_bytes = 3 * body.len() as u64 + 400;
    let counts = Decoded { answers: 4, compressed: 3, sent_bytes, decoded_bytes: 1600 };
    assert_eq!(requests.take_decoded(), counts);
    assert_eq!(requests.take_decoded(), Decoded::default());
}

/// An answer that only looks like one that passed is judged by itself.
#[test]
fn the_memo_accepts_the_same_bytes_only() {
    let mut requests =
        Requests::new(&target(&["json.a=1", "header:x-tag=1"], false), 1, 0).expect("a request");
    let mut right = |lines: &str, body: &str| {
        let answer = message(lines, body.as_bytes(), Framing::Length);
        replies(&mut requests, &answer, &[], false)[0].result.is_ok()
    };
    for _ in 0..2 {
        assert!(right("X-Tag: 1\r\n", "{\"a\":1}"));
        assert!(!right("X-Tag: 1\r\n", "{\"a\":2}"));
        assert!(!right("X-Tag: 2\r\n", "{\"a\":1}"));
    }
    // Without a check of bodies these are not kept, and any of the same length passes. Another length does not.
    let mut requests = Requests::new(&target(&["length=3"], false), 1, 0).expect("a request");
    for (body, expected) in [("abc", true), ("abcd", false), ("xyz", true), ("ab", false)] {
        let answer = message("", body.as_bytes(), Framing::Chunks(1));
        assert_eq!(replies(&mut requests, &answer, &[4], false)[0].result.is_ok(), expected, "{body}");
    }
}

fn framing() -> impl Strategy<Value = Framing> {
    prop_oneof![Just(Framing::Length), (1usize..40).prop_map(Framing::Chunks), Just(Framing::Close)]
}

proptest! {
    #[test]
    fn framing_and_cuts_never_change_a_verdict(
        numbers in prop::collection::vec(0u8..30, 0..40),
        wanted in 0u8..30,
        coded in any::<bool>(),
        decode in any::<bool>(),
        damaged in prop::option::of(any::<prop::sample::Index>()),
        framing in framing(),
        cuts in prop::collection::vec(1usize..60, 1..5),
    ) {
        let json = array(&numbers);
        let (lines, mut body) = match coded {
            true => ("Content-Encoding: gzip\r\n", gzip(json.as_bytes())),
            false => ("", json.into_bytes()),
        };
        if let Some(place) = damaged {
            let place = place.index(body.len());
            body[place] ^= 1;
        }
        let checks = [format!("json[0]={wanted}"), format!("length>{wanted}"), "body~=1".to_owned()];
        for check in &checks {
            let target = target(&[check, "header:x-id=a"], decode);
            let whole = {
                let mut requests = Requests::new(&target, 1, 0).expect("a request");
                replies(&mut requests, &message(lines, &body, Framing::Length), &[], false)
            };
            let mut requests = Requests::new(&target, 1, 0).expect("a request");
            let bytes = message(lines, &body, framing);
            let close = framing == Framing::Close;
            // Twice, because the second answer meets the memo.
            for _ in 0..2 {
                let pieces = replies(&mut requests, &bytes, &cuts, close);
                prop_assert_eq!(pieces.len(), 1);
                prop_assert_eq!(&pieces[0].result, &whole[0].result, "{} {:?}", check, framing);
            }
        }
    }
}

/// An array of numbers, as JSON.
fn array(numbers: &[u8]) -> String {
    let items: Vec<String> = numbers.iter().map(u8::to_string).collect();
    format!("[{}]", items.join(","))
}
