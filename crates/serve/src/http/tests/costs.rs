//! What a peer's requests cost: twice as many, or twice as long ones, take about twice as long.

use cost::is_near_linear;

use super::*;

const SOME: usize = 500;

/// Asserts the cost of hearing and answering what is made for a size, all at once and byte by byte.
fn is_answered(made: impl Fn(usize) -> Vec<u8>) {
    let rules = Rules { body: 1 << 24, room: 1 << 24, ..LOOSE };
    for whole in [true, false] {
        is_near_linear(SOME, |size| {
            let bytes = made(size);
            move || {
                let (mut dialogue, counts, now) = (Dialogue::default(), Counters::default(), Instant::now());
                let mut out = Vec::new();
                for piece in bytes.chunks(if whole { bytes.len() } else { 1 }) {
                    dialogue.hear(piece, now, &rules, &counts);
                    assert!(dialogue.held().0 < 1 << 24 && dialogue.waits_until(now).is_none());
                    dialogue.answers(now, &mut out);
                }
                let later = now + Duration::from_secs(3600);
                while dialogue.held().0 > 0 || dialogue.waits_until(now).is_some() {
                    dialogue.answers(later, &mut out);
                    out.clear();
                }
                assert!(counts.read().requests > 0);
            }
        });
    }
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nx-request-id: 7\r\n\r\n").into_bytes()
}

fn post(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

#[test]
fn requests_one_after_the_other() {
    is_answered(|count| get("/").repeat(count));
    is_answered(|count| get("/bytes/100").repeat(count));
    is_answered(|count| post("/echo", "abc").repeat(count));
}

#[test]
fn bodies_and_paths() {
    is_answered(|length| post("/echo", &"a".repeat(20 * length)));
    is_answered(|length| get(&format!("/{}", "a".repeat(10 * length))));
    is_answered(|length| get(&format!("/events/2?{}", "size=1&".repeat(length))));
    let chunks = |count| {
        let head = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        [head, &"1\r\na\r\n".repeat(count), "0\r\n\r\n"].concat().into_bytes()
    };
    is_answered(chunks);
}

#[test]
fn chats() {
    let chat = |messages: String| {
        post("/v1/chat/completions", &format!(r#"{{"model":"m","messages":[{messages}]}}"#))
    };
    is_answered(|count| chat(vec![r#"{"role":"user","content":"a"}"#; count].join(",")));
    is_answered(|length| chat(format!(r#"{{"role":"user","content":"{}"}}"#, "a".repeat(10 * length))));
}
