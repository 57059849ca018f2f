//! Responses: what is accepted and how it is understood, what is refused and why.

mod common;

use common::Seen;
use wire::http::{BodyLength, HttpError, HttpEvent, Limits, ResponseDecoder};

/// Decodes a stream in one piece and byte by byte. Both must agree.
fn decode(stream: &str) -> Vec<Seen> {
    let run = |cuts: &[usize]| {
        common::responses_with(&mut ResponseDecoder::watching("x-request-id"), stream.as_bytes(), cuts)
    };
    let seen = run(&[]);
    assert_eq!(seen, run(&[1]), "{stream:?}");
    seen
}

fn head(status: u16, keep_alive: bool, body: BodyLength) -> Seen {
    Seen::Response { status, keep_alive, body, watched: None }
}

fn payload(text: &str) -> Seen {
    Seen::Body(text.as_bytes().to_vec())
}

/// Checks streams of one message each, with this head and no payload.
fn check(table: &[(&str, &str, (u16, bool, BodyLength))]) {
    for &(name, stream, (status, keep_alive, body)) in table {
        let seen = decode(stream);
        assert_eq!(seen[0], head(status, keep_alive, body), "{name}");
        let closed = body == BodyLength::UntilClose;
        assert_eq!(seen.contains(&Seen::End), !closed, "{name}");
        assert_eq!(seen.last(), Some(&Seen::Finished(Ok(closed))), "{name}");
    }
}

#[test]
fn valid_syntax_is_accepted() {
    use BodyLength::{Exact, None};
    check(&[
        ("plain", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", (200, true, Exact(0))),
        ("empty reason", "HTTP/1.1 200 \r\ncontent-length:0\r\n\r\n", (200, true, Exact(0))),
        ("no blank before no reason", "HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", (200, true, Exact(0))),
        ("reason beyond ASCII", "HTTP/1.1 200 \u{e4}\t!\r\ncontent-length:0\r\n\r\n", (200, true, Exact(0))),
        ("status 999", "HTTP/1.1 999 X\r\ncontent-length:0\r\n\r\n", (999, true, Exact(0))),
        ("names in any case", "HTTP/1.1 200 OK\r\ncONTENT-lENGTH: 0\r\n\r\n", (200, true, Exact(0))),
        (
            "blanks around a value",
            "HTTP/1.1 200 OK\r\nContent-Length: \t 0 \t\r\n\r\n",
            (200, true, Exact(0)),
        ),
        ("leading zeros", "HTTP/1.1 200 OK\r\nContent-Length: 000\r\n\r\n", (200, true, Exact(0))),
        (
            "equal lengths",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
            (200, true, Exact(0)),
        ),
        ("a list of equal lengths", "HTTP/1.1 200 OK\r\nContent-Length: 0, 0\r\n\r\n", (200, true, Exact(0))),
        ("empty values", "HTTP/1.1 200 OK\r\nA:\r\nB: \r\nContent-Length: 0\r\n\r\n", (200, true, Exact(0))),
        (
            "odd names",
            "HTTP/1.1 200 OK\r\n!#$%&'*+-.^_`|~09: x\r\nContent-Length: 0\r\n\r\n",
            (200, true, Exact(0)),
        ),
        (
            "almost a length",
            "HTTP/1.1 204 OK\r\nContent_Length: x\r\nContent-Lengti: x\r\n\r\n",
            (204, true, None),
        ),
    ]);
}

#[test]
fn lengths_and_connection_headers_are_understood() {
    use BodyLength::{Chunked, Exact, None, UntilClose};
    check(&[
        (
            "close",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            (200, false, Exact(0)),
        ),
        ("close in a list", "HTTP/1.1 204 OK\r\nConnection: x ,\tCLOSE\r\n\r\n", (204, false, None)),
        (
            "close wins",
            "HTTP/1.1 204 OK\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n",
            (204, false, None),
        ),
        ("1.0 closes", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", (200, false, Exact(0))),
        (
            "1.0 stays",
            "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n",
            (200, true, Exact(0)),
        ),
        ("until close", "HTTP/1.1 200 OK\r\n\r\n", (200, false, UntilClose)),
        ("204 has no body", "HTTP/1.1 204 No Content\r\n\r\n", (204, true, None)),
        ("304 has no body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", (304, true, None)),
        ("100 has no body", "HTTP/1.1 100 Continue\r\n\r\n", (100, true, None)),
        ("unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", (200, false, UntilClose)),
        ("chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (200, true, Chunked)),
        (
            "gzip, chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n0\r\n\r\n",
            (200, true, Chunked),
        ),
        (
            "chunked on a line of its own",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip;q=1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            (200, true, Chunked),
        ),
    ]);
}

#[test]
fn invalid_heads_are_refused() {
    use HttpError::*;
    let lines = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n");
    let table = [
        ("no version", "200 OK\r\n\r\n".to_owned(), BadVersion),
        ("not HTTP", "SSH-2.0-OpenSSH_9.6\r\n".to_owned(), BadVersion),
        ("HTTP/2.0", "HTTP/2.0 200 OK\r\n\r\n".to_owned(), BadVersion),
        ("HTTP/1.2", "HTTP/1.2 200 OK\r\n\r\n".to_owned(), BadVersion),
        ("lower case", "http/1.1 200 OK\r\n\r\n".to_owned(), BadVersion),
        ("empty line first", "\r\nHTTP/1.1 200 OK\r\n\r\n".to_owned(), BadVersion),
        ("two digits", "HTTP/1.1 20 OK\r\n\r\n".to_owned(), BadStatus),
        ("four digits", "HTTP/1.1 2000 OK\r\n\r\n".to_owned(), BadStatus),
        ("a status below 100", "HTTP/1.1 099 OK\r\n\r\n".to_owned(), BadStatus),
        ("a status with a sign", "HTTP/1.1 +20 OK\r\n\r\n".to_owned(), BadStatus),
        ("two blanks", "HTTP/1.1  200 OK\r\n\r\n".to_owned(), BadStatus),
        ("NUL in the reason", "HTTP/1.1 200 O\0K\r\n\r\n".to_owned(), ControlCharacter),
        ("bare LF after the status", "HTTP/1.1 200 OK\nA: b\r\n\r\n".to_owned(), BareLf),
        ("bare LF in a header", lines("A: b\nC: d"), BareLf),
        ("bare LF at the end", "HTTP/1.1 200 OK\r\n\n".to_owned(), BareLf),
        ("bare CR in the reason", "HTTP/1.1 200 OK\rX\r\n\r\n".to_owned(), BareCr),
        ("bare CR in a value", lines("A: b\rc"), BareCr),
        ("CR CR LF", lines("A: b\r"), BareCr),
        ("NUL in a value", lines("A: b\0c"), ControlCharacter),
        ("DEL in a value", lines("A: b\x7fc"), ControlCharacter),
        ("escape in a value", lines("A: 12345678\x1b"), ControlCharacter),
        ("no colon", lines("Abc"), BadHeaderName),
        ("no name", lines(": b"), BadHeaderName),
        ("blank in a name", lines("A b: c"), BadHeaderName),
        ("blank before the colon", lines("Content-Length : 1"), BadHeaderName),
        ("a name beyond ASCII", lines("\u{e4}: b"), BadHeaderName),
        ("NUL in a name", lines("Abcdefg\0ij: b"), BadHeaderName),
        ("folding", lines("A: b\r\n c"), FoldedHeader),
        ("folding with a tab", lines("A: b\r\n\tc: d"), FoldedHeader),
        ("blank before the first name", lines(" A: b"), FoldedHeader),
        ("empty length", lines("Content-Length:"), BadContentLength),
        ("length with a sign", lines("Content-Length: +1"), BadContentLength),
        ("negative length", lines("Content-Length: -1"), BadContentLength),
        ("length with a blank", lines("Content-Length: 1 1"), BadContentLength),
        ("hexadecimal length", lines("Content-Length: 0x1"), BadContentLength),
        ("length with a fraction", lines("Content-Length: 1.0"), BadContentLength),
        ("length of 2^64", lines("Content-Length: 18446744073709551616"), BadContentLength),
        ("a list with nothing in it", lines("Content-Length: 1,"), BadContentLength),
        ("unequal lengths", lines("Content-Length: 1\r\nContent-Length: 2"), UnequalContentLengths),
        ("a list of unequal lengths", lines("Content-Length: 1, 2"), UnequalContentLengths),
        ("length and chunked", lines("Content-Length: 1\r\nTransfer-Encoding: chunked"), LengthAndEncoding),
        ("chunked and length", lines("Transfer-Encoding: chunked\r\nContent-Length: 1"), LengthAndEncoding),
        ("chunked twice", lines("Transfer-Encoding: chunked, chunked"), BadTransferEncoding),
        ("chunked not last", lines("Transfer-Encoding: chunked, gzip"), BadTransferEncoding),
        ("chunked with a parameter", lines("Transfer-Encoding: chunked;a=b"), BadTransferEncoding),
        ("empty coding", lines("Transfer-Encoding:"), BadTransferEncoding),
        (
            "1.0 chunked",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
            BadTransferEncoding,
        ),
    ];
    for (name, stream, error) in table {
        assert_eq!(decode(&stream), [Seen::Failed(error)], "{name}: {stream:?}");
    }
}

#[test]
fn valid_bodies_are_accepted() {
    let chunked = |body: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
    let table = [
        ("exact", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned(), "hello"),
        ("one chunk", chunked("5\r\nhello\r\n0\r\n\r\n"), "hello"),
        ("two chunks", chunked("3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"), "hello"),
        (
            "hexadecimal sizes",
            chunked("A\r\n0123456789\r\n00b\r\n0123456789a\r\n0\r\n\r\n"),
            "01234567890123456789a",
        ),
        ("payload like framing", chunked("5\r\n0\r\n\r\n\r\n0\r\n\r\n"), "0\r\n\r\n"),
        ("extensions", chunked("5;a=b;c=\"d;\"\r\nhello\r\n0;x\r\n\r\n"), "hello"),
        ("blanks before an extension", chunked("5 \t;a\r\nhello\r\n0  \r\n\r\n"), "hello"),
        ("trailers", chunked("5\r\nhello\r\n0\r\nA: b\r\nContent-Length: 7\r\n\r\n"), "hello"),
        ("trailers without values", chunked("5\r\nhello\r\n0\r\nA:\r\n!b: :\r\n\r\n"), "hello"),
    ];
    for (name, stream, body) in table {
        let seen = decode(&stream);
        assert_eq!(
            seen[1..],
            [payload(body), Seen::End, Seen::Idle(true), Seen::Finished(Ok(false))],
            "{name}"
        );
    }
}

#[test]
fn invalid_chunks_are_refused() {
    use HttpError::*;
    let table = [
        ("no size", "\r\n", BadChunkSize),
        ("extension without size", ";a\r\n", BadChunkSize),
        ("sign", "+1\r\n", BadChunkSize),
        ("0x", "0x1\r\n", BadChunkSize),
        ("blank first", " 1\r\n", BadChunkSize),
        ("blank between", "1 1\r\n", BadChunkSize),
        ("2^64", "10000000000000000\r\n", BadChunkSize),
        ("bare LF after the size", "1\nx\r\n", BareLf),
        ("bare LF after blanks", "1 \nx\r\n", BareLf),
        ("bare LF in an extension", "1;a\nx\r\n", BareLf),
        ("bare CR", "1\rx", BareCr),
        ("NUL in an extension", "1;\0\r\n", ControlCharacter),
        ("too short", "2\r\nx\r\n0\r\n\r\n", BadChunkEnd),
        ("too long", "1\r\nxy\r\n0\r\n\r\n", BadChunkEnd),
        ("LF after payload", "1\r\nx\n0\r\n\r\n", BadChunkEnd),
        ("bare LF in trailers", "0\r\nA: b\n\r\n", BareLf),
        ("bare LF after trailers", "0\r\n\n", BareLf),
        ("bare CR in trailers", "0\r\nA: b\rc\r\n\r\n", BareCr),
        ("bare CR after trailers", "0\r\n\r\r", BareCr),
        ("a trailer without a colon", "0\r\nA\r\n\r\n", BadHeaderName),
        ("a trailer without a name", "0\r\n: b\r\n\r\n", BadHeaderName),
        ("a blank before the colon of a trailer", "0\r\nA : b\r\n\r\n", BadHeaderName),
        ("a bare LF in the name of a trailer", "0\r\nA\n\r\n", BadHeaderName),
        ("a control character in a trailer", "0\r\nA: \0\r\n\r\n", ControlCharacter),
        ("a trailer that is not ASCII", "0\r\n\u{e9}: b\r\n\r\n", BadHeaderName),
        ("a folded trailer", "0\r\nA: b\r\n c\r\n\r\n", FoldedHeader),
        ("another message instead of trailers", "0\r\nHTTP/1.1 200 OK\r\n\r\n", BadHeaderName),
    ];
    for (name, body, error) in table {
        let seen = decode(&format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"));
        assert_eq!(seen.last(), Some(&Seen::Failed(error)), "{name}");
    }
}

#[test]
fn the_watched_header_is_handed_out() {
    let table = [
        ("X-Request-Id: abc\r\n", Some("abc")),
        ("x-request-id:abc \t\r\n", Some("abc")),
        ("X-REQUEST-ID: a b\r\nx-request-id: second\r\n", Some("a b")),
        ("X-Request-Id:\r\n", Some("")),
        ("X-Request-Idx: abc\r\n", None),
        ("", None),
    ];
    for (line, value) in table {
        let seen = decode(&format!("HTTP/1.1 204 OK\r\n{line}\r\n"));
        let Seen::Response { watched, .. } = &seen[0] else { panic!("no head: {seen:?}") };
        assert_eq!(watched.as_deref(), value.map(str::as_bytes), "{line:?}");
    }
}

#[test]
fn interim_responses_are_messages_of_their_own() {
    let seen = decode("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let expected = [
        head(100, true, BodyLength::None),
        Seen::End,
        head(200, true, BodyLength::Exact(2)),
        payload("ok"),
        Seen::End,
        Seen::Idle(true),
        Seen::Finished(Ok(false)),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_close_in_the_middle_is_an_error() {
    let early = [Seen::Idle(false), Seen::Finished(Err(HttpError::ClosedEarly))];
    for stream in [
        "H",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
    ] {
        let seen = decode(stream);
        assert_eq!(seen[seen.len() - 2..], early, "{stream:?}");
    }
}

#[test]
fn answers_to_head_have_no_bodies() {
    let stream = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".repeat(2) + "HTTP/1.1 200 OK\r\n\r\n";
    let mut decoder = ResponseDecoder::new();
    decoder.answers_head(true);
    for cuts in [&[][..], &[1], &[7, 50]] {
        let seen = common::responses_with(&mut decoder, stream.as_bytes(), cuts);
        let one = [head(200, true, BodyLength::None), Seen::End];
        let end = [Seen::Idle(true), Seen::Finished(Ok(false))];
        assert_eq!(seen, [&one[..], &one, &one, &end].concat());
    }
    // The same bytes mean a body again, though the memo knows the head.
    decoder.answers_head(false);
    let step = decoder.push(stream.as_bytes()).expect("a head");
    assert!(matches!(step.event, HttpEvent::Head(head) if head.body == BodyLength::Exact(5)));
}

#[test]
fn heads_may_be_as_long_as_the_limit_but_no_longer() {
    let stream = b"HTTP/1.1 204 OK\r\nA: 0123456789\r\n\r\n";
    for (limit, accepted) in [(stream.len(), true), (stream.len() - 1, false), (1, false), (0, false)] {
        for cuts in [&[][..], &[1], &[stream.len() - 1], &[16]] {
            let mut decoder = ResponseDecoder::new().with_limits(Limits { head: limit, ..Limits::default() });
            let seen = common::responses_with(&mut decoder, stream, cuts);
            assert_eq!(seen[0] == head(204, true, BodyLength::None), accepted, "{limit} {cuts:?}");
            assert_eq!(seen[0] == Seen::Failed(HttpError::HeadTooLong), !accepted, "{limit} {cuts:?}");
        }
    }
}

#[test]
fn endless_heads_extensions_and_trailers_end_in_an_error() {
    let begin = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let table = [
        ("HTTP/1.1 200 OK\r\n".to_owned(), "A: b\r\n", HttpError::HeadTooLong),
        (format!("{begin}1;"), "x", HttpError::ChunkLineTooLong),
        (format!("{begin}0"), "0", HttpError::ChunkLineTooLong),
        (format!("{begin}0\r\n"), "A: b\r\n", HttpError::ChunkLineTooLong),
    ];
    for (start, more, error) in table {
        let stream = start + &more.repeat(100_000);
        for cuts in [&[][..], &[1], &[4096]] {
            let seen = common::responses_with(&mut ResponseDecoder::new(), stream.as_bytes(), cuts);
            assert_eq!(seen.last(), Some(&Seen::Failed(error)));
        }
    }
}

#[test]
fn reset_begins_again() {
    let mut decoder = ResponseDecoder::new();
    assert!(decoder.push(b"nonsense").is_err());
    decoder.reset();
    assert!(decoder.idle());
    let step = decoder.push(b"HTTP/1.1 20").expect("a beginning");
    assert_eq!((step.consumed, step.event), (11, HttpEvent::NeedMore));
    assert!(!decoder.idle());
    decoder.reset();
    assert!(
        decoder
            .whole(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .is_some_and(|whole| whole.body == b"ok")
    );
}
