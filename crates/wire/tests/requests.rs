//! Requests: what is accepted and how it is understood, what is refused and why, and the bytes that the encoders write.

mod common;

use common::Seen;
use wire::http::{
    BodyLength, Connection, EncodeError, HttpError, HttpEvent, Method, RequestDecoder, RequestLine,
    ResponseDecoder, Version, encode_response, encode_response_head,
};

fn decode(stream: &str) -> Vec<Seen> {
    let run = |cuts: &[usize]| {
        common::requests_with(&mut RequestDecoder::watching("x-request-id"), stream.as_bytes(), cuts)
    };
    let seen = run(&[]);
    assert_eq!(seen, run(&[1]), "{stream:?}");
    seen
}

fn request(method: Method, path: &str, version: Version, flags: [bool; 2], body: BodyLength) -> Seen {
    Seen::Request { method, path: path.as_bytes().to_vec(), version, flags, body, watched: None }
}

#[test]
fn valid_heads_are_accepted() {
    use BodyLength::{Chunked, Exact, None};
    use Method::{Delete, Get, Head, Options, Other, Patch, Post, Put};
    use Version::{Http10, Http11};
    let (stays, closes, waits) = ([true, false], [false, false], [true, true]);
    let table = [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", request(Get, "/", Http11, stays, None)),
        ("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", request(Get, "/", Http11, stays, None)),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", request(Get, "/", Http11, stays, None)),
        ("HEAD /a?b=c HTTP/1.1\r\nHost: a\r\n\r\n", request(Head, "/a?b=c", Http11, stays, None)),
        (
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
            request(Put, "/", Http11, stays, Exact(0)),
        ),
        (
            "DELETE / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n",
            request(Delete, "/", Http11, closes, None),
        ),
        ("PATCH / HTTP/1.1\r\nHost: a\r\n\r\n", request(Patch, "/", Http11, stays, None)),
        ("get / HTTP/1.1\r\nHost: a\r\n\r\n", request(Other, "/", Http11, stays, None)),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", request(Options, "*", Http11, stays, None)),
        ("GET http://a:1/b HTTP/1.1\r\nHost: a\r\n\r\n", request(Get, "/b", Http11, stays, None)),
        ("GET HTTPS://a HTTP/1.1\r\nHost: a\r\n\r\n", request(Get, "/", Http11, stays, None)),
        ("GET / HTTP/1.0\r\n\r\n", request(Get, "/", Http10, closes, None)),
        ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", request(Get, "/", Http10, stays, None)),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            request(Post, "/", Http11, stays, Chunked),
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
            request(Post, "/", Http11, waits, Exact(1)),
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",
            request(Post, "/", Http11, stays, Exact(0)),
        ),
        (
            "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
            request(Post, "/", Http10, closes, Exact(1)),
        ),
    ];
    for (stream, expected) in table {
        let seen = decode(stream);
        assert_eq!(seen[0], expected, "{stream:?}");
        assert_eq!(
            seen[seen.len() - 3..],
            [Seen::End, Seen::Idle(true), Seen::Finished(Ok(false))],
            "{stream:?}"
        );
    }
}

#[test]
fn invalid_heads_are_refused() {
    use HttpError::*;
    let table = [
        (" / HTTP/1.1\r\n\r\n", BadMethod),
        ("\r\n\r\nGET / HTTP/1.1\r\n\r\n", BadMethod),
        ("G(T / HTTP/1.1\r\n\r\n", BadMethod),
        ("GET\t/ HTTP/1.1\r\n\r\n", BadMethod),
        ("GET\r\n\r\n", BadMethod),
        ("GET  / HTTP/1.1\r\n\r\n", BadTarget),
        ("GET /\t HTTP/1.1\r\n\r\n", BadTarget),
        ("GET /\u{e4} HTTP/1.1\r\n\r\n", BadTarget),
        ("GET /\r\n\r\n", BadVersion),
        ("GET /\0 HTTP/1.1\r\n\r\n", BadVersion),
        ("GET / \r\n\r\n", BadVersion),
        ("GET / HTTP/2.0\r\n\r\n", BadVersion),
        ("GET / HTTP/1.1 \r\n\r\n", BadVersion),
        ("GET / HTTP/1.11\r\n\r\n", BadVersion),
        ("GET / HTTP/1.1\n\n", BareLf),
        ("GET / HTTP/1.1\r\n\r\n", BadHost),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", BadHost),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", BadTransferEncoding),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", BadTransferEncoding),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
            LengthAndEncoding,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            UnequalContentLengths,
        ),
    ];
    for (stream, error) in table {
        assert_eq!(decode(stream), [Seen::Failed(error)], "{stream:?}");
    }
}

#[test]
fn an_empty_line_is_not_a_request() {
    for stream in ["", "\r", "\r\n"] {
        assert_eq!(decode(stream), [Seen::Idle(true), Seen::Finished(Ok(false))]);
    }
}

const GET: RequestLine<'_> = RequestLine {
    method: "GET",
    host: "127.0.0.1:8080",
    path: "/",
    headers: &[],
    body: None,
    keep_alive: true,
    expect_continue: false,
};

fn encode(line: RequestLine<'_>) -> String {
    let mut out = Vec::new();
    line.encode(&mut out).expect("a legal request");
    String::from_utf8(out).expect("ASCII")
}

fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn defaults_are_written_once_and_can_be_replaced() {
    let agent = concat!("User-Agent: narrows/", env!("CARGO_PKG_VERSION"), "\r\n");
    assert_eq!(encode(GET), format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{agent}\r\n"));
    let upload =
        RequestLine { method: "POST", body: Some(7), keep_alive: false, expect_continue: true, ..GET };
    let rest = "Content-Length: 7\r\nConnection: close\r\nExpect: 100-continue\r\n";
    assert_eq!(encode(upload), format!("POST / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{agent}{rest}\r\n"));
    let given = headers(&[
        ("host", "x"),
        ("USER-AGENT", "y"),
        ("content-length", "7"),
        ("connection", "z"),
        ("expect", "w"),
        ("a", "1"),
        ("a", "2"),
    ]);
    let expected = "POST / HTTP/1.1\r\nhost: x\r\nUSER-AGENT: y\r\ncontent-length: 7\r\nconnection: z\r\nexpect: w\r\n\
        a: 1\r\na: 2\r\n\r\n";
    assert_eq!(encode(RequestLine { headers: &given, ..upload }), expected);
    assert!(encode(RequestLine { method: "POST", ..GET }).contains("Content-Length: 0\r\n"));
}

#[test]
fn an_illegal_request_is_named_and_not_written() {
    let refuse = |line: RequestLine<'_>| {
        let mut out = b"before".to_vec();
        let error = line.encode(&mut out).expect_err("illegal");
        assert_eq!(out, b"before");
        error
    };
    for method in ["", "G T", "GET\r\n", "G\u{e4}"] {
        assert_eq!(refuse(RequestLine { method, ..GET }), EncodeError::Method(method.to_owned()));
    }
    for path in ["", "/a b", "/\r\nX: y", "/\0", "/\u{e4}"] {
        assert_eq!(refuse(RequestLine { path, ..GET }), EncodeError::Path(path.to_owned()));
    }
    for host in ["", "a b", "a\r\n", "a/b", "u@a"] {
        assert_eq!(refuse(RequestLine { host, ..GET }), EncodeError::Host(host.to_owned()));
    }
    let header = |name: &str, value: &str| refuse(RequestLine { headers: &headers(&[(name, value)]), ..GET });
    for name in ["", "a b", "a:", "a\r\nb", "\u{e4}", "a\0"] {
        assert_eq!(header(name, "x"), EncodeError::HeaderName(name.to_owned()));
    }
    for value in ["a\r\nb", "a\nb", "a\rb", "a\0b", "\x7f"] {
        assert_eq!(header("X-A", value), EncodeError::HeaderValue("X-A".to_owned()));
    }
    assert_eq!(header("Content-Length", "5"), EncodeError::Framing("Content-Length".to_owned()));
    assert_eq!(header("transfer-encoding", "chunked"), EncodeError::Framing("transfer-encoding".to_owned()));
    let twice = headers(&[("Host", "a"), ("hOST", "a")]);
    assert_eq!(refuse(RequestLine { headers: &twice, ..GET }), EncodeError::Repeated("hOST".to_owned()));
}

#[test]
fn responses_are_written_as_they_are_read() {
    let mut out = Vec::new();
    encode_response(&mut out, 200, true, None, b"ok");
    assert_eq!(out, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    out.clear();
    encode_response(&mut out, 404, false, Some(("x-request-id", b"7")), b"");
    let expected =
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\nx-request-id: 7\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&out), expected);
    for status in [100, 204, 304] {
        out.clear();
        encode_response(&mut out, status, true, Some(("x", b"a\r\nb")), b"never sent");
        let whole = ResponseDecoder::new().whole(&out).map(|whole| (whole.consumed, whole.head.status));
        assert_eq!(whole, Some((out.len(), status)));
    }
    out.clear();
    encode_response_head(&mut out, 200, Connection::KeepAlive, None, u64::MAX);
    let expected =
        "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\nConnection: keep-alive\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&out), expected);
}

#[test]
fn a_client_is_told_what_it_needs_to_hear_about_the_connection() {
    let table = [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Connection::Implied),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", Connection::Close),
        ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", Connection::KeepAlive),
        ("GET / HTTP/1.0\r\n\r\n", Connection::Close),
    ];
    for (stream, connection) in table {
        let mut decoder = RequestDecoder::new();
        let event = decoder.push(stream.as_bytes()).expect("a request").event;
        assert!(matches!(event, HttpEvent::Head(head) if head.connection() == connection), "{stream:?}");
    }
}
