//! Tests what is answered to bytes, without sockets.

mod costs;

use std::time::Duration;

use super::*;

const LOOSE: Rules = Rules {
    max_keepalive: None,
    farewell: CloseStyle::Announced,
    body: 10,
    room: 1000,
    http2: Http2::USUAL,
    patience: Duration::from_secs(3600),
};

fn talk(said: &[u8], rules: Rules, wait: Duration) -> (String, Dialogue, Counters) {
    let (mut dialogue, counts, now) = (Dialogue::default(), Counters::default(), Instant::now());
    dialogue.hear(said, now, &rules, &counts);
    let mut out = Vec::new();
    dialogue.answers(now + wait, &mut out);
    (String::from_utf8(out).expect("answers are text"), dialogue, counts)
}

#[test]
fn each_endpoint_answers_as_documented() {
    let table: [(&[u8], u16, &str); 9] = [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200, "ok"),
        (b"GET /?a=b HTTP/1.1\r\nHost: x\r\n\r\n", 200, "ok"),
        (b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", 200, ""),
        (b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde", 200, "5"),
        (b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 200, "0"),
        (
            b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            200,
            "abc",
        ),
        (
            b"GET /wait/x HTTP/1.1\r\nHost: x\r\n\r\n",
            400,
            "a wait is a number of milliseconds, at most 3600000\n",
        ),
        (b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 404, ""),
        (b"nonsense\r\n\r\n", 400, ""),
    ];
    for (said, status, body) in table {
        let (answer, _, _) = talk(said, LOOSE, Duration::ZERO);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
    }
}

#[test]
fn a_silence_that_is_longer_than_the_patience_is_refused() {
    let rules = Rules { patience: Duration::from_millis(1500), body: 100, ..LOOSE };
    let asked = |path: &str, body: &str| {
        let length = body.len();
        let said = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nx-request-id: 7\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let (answer, dialogue, _) = talk(said.as_bytes(), rules, Duration::from_secs(10));
        assert!(answer.contains("x-request-id: 7\r\n") && !dialogue.over(), "{answer}");
        assert_eq!(answer.starts_with("HTTP/1.1 400 "), answer.contains("--patience"), "{answer}");
        answer.starts_with("HTTP/1.1 200 ")
    };
    for (path, longest) in [
        ("/wait/", 1500),
        ("/events/1?first=500ms&stall=", 1000),
        ("/events/2?first=500ms&stall=", 1500),
        ("/events/2?first=", 1500),
        ("/events/3?gap=1s&every=2&stall=", 500),
        ("/chunks/1000?gap=", 1500),
    ] {
        let unit = if path == "/wait/" { "" } else { "ms" };
        for (length, granted) in [(longest, true), (longest + 1, false)] {
            assert_eq!(asked(&format!("{path}{length}{unit}"), ""), granted, "{path}{length}");
        }
    }
    for (stream, gap, granted) in
        [(true, 1500, true), (true, 1501, false), (false, 500, true), (false, 501, false)]
    {
        let body = format!(r#"{{"model": "m?events=4&gap={gap}ms", "stream": {stream}}}"#);
        assert_eq!(asked("/v1/chat/completions", &body), granted, "{body}");
    }
}

#[test]
fn a_stream_sends_each_piece_at_its_time_and_the_next_answer_after_it() {
    let said = b"GET /events/2?first=5ms&gap=10ms&size=1 HTTP/1.1\r\nHost: x\r\nx-request-id: 7\r\n\r\n\
        GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let (mut dialogue, counts, now) = (Dialogue::default(), Counters::default(), Instant::now());
    dialogue.hear(said, now, &LOOSE, &counts);
    let mut at = |ms: u64| {
        let (now, mut out) = (now + Duration::from_millis(ms), Vec::new());
        let count = dialogue.answers(now, &mut out);
        let next = dialogue.waits_until(now).map(|due| (due - now).as_millis());
        (String::from_utf8(out).expect("text"), count, next)
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\
                x-request-id: 7\r\n\r\n";
    assert_eq!(at(0), (head.to_owned(), 0, Some(5)));
    assert_eq!(at(4), (String::new(), 0, Some(1)));
    assert_eq!(at(5), ("f\r\nid: 1\ndata: x\n\n\r\n".to_owned(), 0, Some(10)));
    let (rest, count, next) = at(15);
    assert!(rest.starts_with("f\r\nid: 2\ndata: x\n\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n"), "{rest}");
    assert_eq!((count, next), (2, None));
}

#[test]
fn a_stream_without_pauses_is_sent_in_parts_that_are_bounded() {
    let said = b"GET /chunks/1000?size=1023 HTTP/1.0\r\nHost: x\r\n\r\n";
    let (mut dialogue, counts, now) = (Dialogue::default(), Counters::default(), Instant::now());
    dialogue.hear(said, now, &LOOSE, &counts);
    let (mut total, mut parts) = (0, 0);
    while !dialogue.over() {
        let mut out = Vec::new();
        dialogue.answers(now, &mut out);
        assert!(out.len() < UNSENT + 2048);
        (total, parts) = (total + out.len(), parts + 1);
    }
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: no-cache\r\nConnection: close\r\n\r\n";
    assert_eq!(total, head.len() + 1000 * 1024, "HTTP/1.0 knows no chunks");
    assert!(parts > 10, "{parts}");
}

#[test]
fn a_chat_is_answered_whole_or_as_a_stream() {
    let post = |body: &str| {
        let length = body.len();
        format!("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let rules = Rules { body: 1000, ..LOOSE };
    let answer = |body: &str| talk(post(body).as_bytes(), rules, Duration::from_secs(1)).0;
    let whole = answer(r#"{"model": "m?events=2&gap=10ms"}"#);
    assert!(
        whole.contains("Content-Type: application/json") && whole.contains(r#""completion_tokens":2"#),
        "{whole}"
    );
    let stream = answer(r#"{"model": "m?events=2", "stream": true}"#);
    assert!(
        stream.contains("text/event-stream") && stream.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"),
        "{stream}"
    );
    for (body, status) in [("nonsense", 400), (r#"{"model": "m?events=9000000&size=9000"}"#, 413)] {
        let refused = answer(body);
        assert!(refused.starts_with(&format!("HTTP/1.1 {status} ")), "{refused}");
    }
}

#[test]
fn answers_keep_the_order_of_requests_and_wait_their_time() {
    let said = b"GET /wait/10 HTTP/1.1\r\nHost: x\r\nx-request-id: slow\r\n\r\n\
        GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: fast\r\n\r\n";
    assert_eq!(talk(said, LOOSE, Duration::from_millis(9)).0, "");
    let (answers, _, counts) = talk(said, LOOSE, Duration::from_millis(10));
    let place = |word| answers.find(word).expect(word);
    assert!(place("slow") < place("fast"));
    assert_eq!(counts.read().requests, 2);
}

#[test]
fn the_last_request_of_a_connection_is_announced_or_silent() {
    let said = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3);
    let table = [(CloseStyle::Announced, true), (CloseStyle::Silent, false)];
    for (farewell, announced) in table {
        let rules = Rules { max_keepalive: Some(2), farewell, ..LOOSE };
        let (answers, dialogue, counts) = talk(&said, rules, Duration::ZERO);
        assert_eq!(answers.matches("HTTP/1.1 200").count(), 2);
        assert_eq!(answers.to_lowercase().contains("connection: close"), announced);
        assert!(dialogue.over());
        assert_eq!(counts.read().requests, 2, "what comes after the last request is not read");
    }
}
