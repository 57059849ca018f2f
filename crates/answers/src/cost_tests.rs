//! What answers cost: twice as long ones take about twice the time, whatever is looked for in them.

use std::io::Write;

use cost::is_near_linear;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::{Answer, Capture, Check, Encodings, Head, cookies, decode};

/// Asserts the cost of looking at the bodies that are made for a size.
fn body(size: usize, made: impl Fn(usize) -> String, look: impl Fn(&Answer<'_>) + Copy) {
    is_near_linear(size, |size| {
        let body = made(size).into_bytes();
        move || look(&Answer { head: Head::http1(200, b""), body: &body, length: body.len() as u64 })
    });
}

#[test]
fn checks_of_bodies() {
    type Made = fn(usize) -> String;
    let table: [(&str, Made); 7] = [
        ("json.x exists", |size| format!("{{{}\"x\":1}}", "\"x\":0,".repeat(size))),
        ("json.x.length=0", |size| format!("[{}]", vec!["[]"; size].join(","))),
        ("json.0 exists", |size| format!("[{}0]", "{\"a\":[1,{}]},".repeat(size))),
        ("json.x exists", |size| format!("{{\"x\":\"{}\"}}", "\\u00e9".repeat(size))),
        ("body~=(a*)*b", |size| "a".repeat(size)),
        ("body!~=a.*b.*c", |size| "ab".repeat(size)),
        ("sha256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", |size| "a".repeat(size)),
    ];
    for (text, made) in table {
        let check = Check::parse(text).expect(text);
        // What comes of it does not matter.
        body(4000, made, |answer| std::hint::black_box(check.holds(answer)).unwrap_or_default());
    }
    let capture = Capture::parse("x=body~=<(a+)>").expect("a capture");
    body(4000, |size| "<a".repeat(size), |answer| assert!(capture.take(answer).is_err()));
}

/// A head with so many cookies.
fn head(cookies: usize) -> Vec<u8> {
    let lines = "Set-Cookie: a=b; Path=/\r\n".repeat(cookies);
    format!("HTTP/1.1 200 OK\r\n{lines}").into_bytes()
}

#[test]
fn lines_of_heads() {
    is_near_linear(2000, |lines| {
        let head = head(lines);
        move || assert_eq!(cookies(Head::http1(200, &head)).count(), lines)
    });
    let capture = Capture::parse("x=cookie:b").expect("a capture");
    is_near_linear(2000, |lines| {
        let head = head(lines);
        let capture = capture.clone();
        move || {
            let answer = Answer { head: Head::http1(200, &head), body: b"", length: 0 };
            assert!(capture.take(&answer).is_err());
        }
    });
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut to = GzEncoder::new(Vec::new(), Compression::fast());
    to.write_all(bytes).and_then(|()| to.finish()).expect("it is in memory")
}

#[test]
fn compressed_bodies() {
    type Made = fn(usize) -> Vec<u8>;
    let head = Head::http1(200, b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n");
    let encodings = Encodings::of(head).expect("a coding");
    // One body, and many behind each other. The number says how many bytes are decoded for each unit of size.
    let table: [(Made, usize); 3] = [
        (|size| gzip(&vec![b'a'; 100 * size]), 100),
        (|size| gzip(b"a").repeat(size), 1),
        (|size| gzip(b"").repeat(size), 0),
    ];
    for (made, bytes) in table {
        is_near_linear(1000, |size| {
            let body = made(size);
            move || assert_eq!(decode(encodings, &body, 1 << 30).map(|body| body.len()), Ok(bytes * size))
        });
    }
}
