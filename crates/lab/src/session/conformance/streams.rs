//! Checks a server of streams: the number of events, their ids and their text, the end of a stream, and whether events are sent
//! when they are due. Of a chat, the text of all its deltas.

use serde_json::Value;
use systems::contact::Access;
use systems::work::{Interface, Streams};

use super::Checks;
use super::connection::{RawConnection, Stream, shown};
use crate::ask::{Ask, Payload};

/// How many streams a server must send at once. Trials ask for a thousand.
const MANY: usize = 64;
/// How often a stream is asked for whose events must come apart. A busy machine may read several together.
const TRIES: usize = 3;

const CONTENT: &str = "read the number of events, gap and size from the request, and send each event as docs/contracts.md shows it";
const END: &str = "end each stream as HTTP does (the last chunk, or a length), and keep the connection";
const FLUSH: &str = "flush after each event; in a proxy, turn buffering off";

pub(super) fn check(access: &Access, interface: Interface, checks: &mut Checks) {
    let work = |events, gap_ms, event_size| Streams {
        interface,
        connections: 1,
        events,
        gap_ms,
        event_size,
        http2: false,
        tls: None,
    };
    let workload = match interface {
        Interface::Events => "streams",
        Interface::Chats => "chats",
    };
    let named = |what: &str| format!("{workload}: {what}");
    let found = asked(access, &[work(1, 0, 1)]).and_then(|_| asked(access, &[work(7, 5, 3000)]));
    let seen = found.map(|_| "streams of 1 and 7 events, of 1 and 3000 bytes".to_owned());
    checks.judge(&named("sends what is asked for"), seen, CONTENT);
    let found = asked(access, &[work(3, 5, 10), work(2, 5, 20), work(3, 0, 10)]);
    checks.judge(&named("keeps connections"), found.map(|_| "3 streams on one connection".to_owned()), END);
    checks.judge(&named("sends events when they are due"), apart(access, &work(5, 100, 10)), FLUSH);
    checks.judge(&named("sends 64 streams at once"), many(access, &work(3, 20, 10)), CONTENT);
}

/// Asks for streams on one connection, each after the one before it.
fn asked(access: &Access, all: &[Streams]) -> Result<Vec<Stream>, String> {
    let mut connection = RawConnection::open(access)?;
    let ask = |(index, work): (usize, &Streams)| {
        let stream = connection.send(&request(work)).and_then(|()| connection.stream());
        let right = stream.and_then(|stream| right(&stream, work).map(|()| stream));
        right.map_err(|why| format!("stream {} of a connection: {why}", index + 1))
    };
    all.iter().enumerate().map(ask).collect()
}

fn apart(access: &Access, work: &Streams) -> Result<String, String> {
    let mut most = 0;
    for _ in 0..TRIES {
        let streams = asked(access, &[*work])?;
        most = streams.iter().map(|stream| stream.reads).max().unwrap_or(0).max(most);
        if most as u64 >= work.events {
            break;
        }
    }
    let seen = format!(
        "{} events, {} ms apart, in {most} {}",
        work.events,
        work.gap_ms,
        if most == 1 { "read" } else { "reads" }
    );
    // One more than half is not what a buffer does.
    if 2 * most as u64 > work.events { Ok(seen) } else { Err(seen) }
}

fn many(access: &Access, work: &Streams) -> Result<String, String> {
    let mut connections = (0..MANY).map(|_| RawConnection::open(access)).collect::<Result<Vec<_>, _>>()?;
    connections.iter_mut().try_for_each(|connection| connection.send(&request(work)))?;
    for (n, connection) in connections.iter_mut().enumerate() {
        let stream = connection.stream().and_then(|stream| right(&stream, work));
        stream.map_err(|why| format!("stream {} of {MANY}: {why}", n + 1))?;
    }
    Ok("all were right".to_owned())
}

/// The request for a stream.
fn request(work: &Streams) -> Vec<u8> {
    let ask = Ask::for_stream(work);
    let mut head = format!("{} {} HTTP/1.1\r\nHost: 127.0.0.1\r\n", ask.method, ask.path);
    for (name, value) in &ask.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let body = match ask.body {
        Payload::Bytes(bytes) => bytes.0,
        Payload::None | Payload::Size(_) => Vec::new(),
    };
    if !body.is_empty() {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    [head.as_bytes(), b"\r\n", &body].concat()
}

fn right(stream: &Stream, work: &Streams) -> Result<(), String> {
    if stream.status != "200" {
        return Err(format!("status {}: {}", stream.status, shown(stream.body.as_bytes())));
    }
    let form = stream.content_type.split(';').next().unwrap_or_default().trim();
    if !form.eq_ignore_ascii_case("text/event-stream") {
        return Err(format!("its Content-Type is `{}`", stream.content_type));
    }
    let events: Vec<Event<'_>> = stream.body.split("\n\n").filter_map(Event::read).collect();
    let text = "x".repeat(work.event_size as usize);
    match work.interface {
        Interface::Events => {
            let seen = events.iter().map(|event| (event.id.to_owned(), event.data));
            let wanted = (1..=work.events).map(|id| (id.to_string(), &*text));
            if !seen.clone().eq(wanted) {
                let first = events.first().map_or("", |event| event.data);
                let seen =
                    format!("{} events, the first with the data {}", events.len(), shown(first.as_bytes()));
                return Err(format!(
                    "{seen}, instead of {} with ids from 1 and {} times x",
                    work.events,
                    text.len()
                ));
            }
        }
        Interface::Chats => {
            let (Some(last), texts) = (events.last(), events.iter().filter_map(|event| content(event.data)))
            else {
                return Err("there is no event".to_owned());
            };
            let whole: String = texts.collect();
            if last.data != "[DONE]" {
                return Err(format!("the last event is {} instead of [DONE]", shown(last.data.as_bytes())));
            }
            if whole != text.repeat(work.events as usize) {
                return Err(format!("the text has {} bytes, or others than were sent", whole.len()));
            }
        }
    }
    Ok(())
}

/// The text that an event of a chat adds.
fn content(data: &str) -> Option<String> {
    let event: Value = serde_json::from_str(data).ok()?;
    event.pointer("/choices/0/delta/content")?.as_str().map(str::to_owned)
}

/// An event with one line of data.
struct Event<'a> {
    id: &'a str,
    data: &'a str,
}

impl<'a> Event<'a> {
    /// Reads the lines of an event. None if it has no data, as a comment has none.
    fn read(lines: &'a str) -> Option<Self> {
        let field = |name: &str| {
            let value = lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            Some(value.strip_prefix(' ').unwrap_or(value))
        };
        Some(Self { id: field("id").unwrap_or_default(), data: field("data")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_right_if_its_number_ids_and_text_are() {
        let work = |interface, events, event_size| Streams {
            interface,
            connections: 1,
            events,
            gap_ms: 0,
            event_size,
            http2: false,
            tls: None,
        };
        let judged = |body: &str, work: &Streams| {
            let content_type = "text/event-stream; charset=utf-8".to_owned();
            right(&Stream { status: "200".to_owned(), content_type, body: body.to_owned(), reads: 1 }, work)
        };
        let events = work(Interface::Events, 2, 3);
        assert_eq!(judged("id: 1\ndata: xxx\n\n: ping\n\nid:2\ndata:xxx\n\n", &events), Ok(()));
        for wrong in ["", "id: 1\ndata: xxx\n\n", "id: 1\ndata: xxx\n\nid: 2\ndata: xx\n\n"] {
            assert!(judged(wrong, &events).is_err(), "{wrong}");
        }
        let chat = work(Interface::Chats, 2, 1);
        let delta = r#"data: {"choices":[{"delta":{"content":"x"}}]}"#;
        assert_eq!(judged(&format!("{delta}\n\n{delta}\n\ndata: [DONE]\n\n"), &chat), Ok(()));
        for wrong in [format!("{delta}\n\ndata: [DONE]\n\n"), format!("{delta}\n\n{delta}\n\n")] {
            assert!(judged(&wrong, &chat).is_err(), "{wrong}");
        }
    }
}
