//! Drives the decoders over streams cut at arbitrary places, and records their events. The fuzz targets use it, too.
#![allow(dead_code, missing_docs)]

use wire::events::{Event, EventDecoder};
use wire::frames::{FrameCounter, FrameError, FrameReader, Prefix};
use wire::http::{
    BodyLength, HttpError, HttpEvent, Limits, Method, RequestDecoder, RequestHead, ResponseDecoder,
    ResponseHead, Version,
};

/// Limits that are small enough for random streams to reach.
pub const LIMITS: Limits = Limits { head: 300, chunk_line: 20 };

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Response {
        status: u16,
        keep_alive: bool,
        body: BodyLength,
        watched: Option<Vec<u8>>,
    },
    Request {
        method: Method,
        path: Vec<u8>,
        version: Version,
        flags: [bool; 2],
        body: BodyLength,
        watched: Option<Vec<u8>>,
    },
    Body(Vec<u8>),
    End,
    Idle(bool),
    Finished(Result<bool, HttpError>),
    Failed(HttpError),
}

impl From<ResponseHead<'_>> for Seen {
    fn from(head: ResponseHead<'_>) -> Self {
        let ResponseHead { status, keep_alive, body, watched, bytes } = head;
        let ends = bytes.windows(4).filter(|four| four == b"\r\n\r\n").count();
        assert!(bytes.starts_with(b"HTTP/1.") && bytes.ends_with(b"\r\n\r\n") && ends == 1, "one whole head");
        Self::Response { status, keep_alive, body, watched: watched.map(<[u8]>::to_vec) }
    }
}

impl From<RequestHead<'_>> for Seen {
    fn from(head: RequestHead<'_>) -> Self {
        Self::Request {
            method: head.method,
            path: head.path.to_vec(),
            version: head.version,
            flags: [head.keep_alive, head.expect_continue],
            body: head.body,
            watched: head.watched.map(<[u8]>::to_vec),
        }
    }
}

/// Records an event. Adjacent payload is joined, because its cuts follow the reads.
fn note<H: Into<Seen>>(seen: &mut Vec<Seen>, event: HttpEvent<'_, H>) {
    match event {
        HttpEvent::NeedMore => {}
        HttpEvent::Head(head) => seen.push(head.into()),
        HttpEvent::Body(data) => {
            assert!(!data.is_empty(), "a body event is never empty");
            match seen.last_mut() {
                Some(Seen::Body(before)) => before.extend_from_slice(data),
                _ => seen.push(Seen::Body(data.to_vec())),
            }
        }
        HttpEvent::End => seen.push(Seen::End),
    }
}

/// Cuts `stream` into pieces of these sizes, used in turn. A size of zero counts as one.
pub fn pieces<'a>(mut stream: &'a [u8], cuts: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut sizes = cuts.iter().copied().cycle();
    std::iter::from_fn(move || {
        let (piece, rest) = stream
            .split_at(sizes.next().unwrap_or(usize::MAX).clamp(1, stream.len().max(1)).min(stream.len()));
        stream = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

macro_rules! drive {
    ($decoder:expr, $stream:expr, $cuts:expr) => {{
        let mut seen = Vec::new();
        for mut piece in pieces($stream, $cuts) {
            loop {
                match $decoder.push(piece) {
                    Ok(step) => {
                        assert!(step.consumed <= piece.len());
                        let more = matches!(step.event, HttpEvent::NeedMore);
                        piece = &piece[step.consumed..];
                        note(&mut seen, step.event);
                        if more {
                            assert!(piece.is_empty(), "NeedMore means that everything was consumed");
                            break;
                        }
                    }
                    Err(error) => {
                        assert_eq!($decoder.push(b"x").err(), Some(error), "an error stays");
                        seen.push(Seen::Failed(error));
                        return seen;
                    }
                }
            }
        }
        seen.push(Seen::Idle($decoder.idle()));
        seen.push(Seen::Finished($decoder.finish()));
        seen
    }};
}

pub fn responses_with(decoder: &mut ResponseDecoder, stream: &[u8], cuts: &[usize]) -> Vec<Seen> {
    drive!(decoder, stream, cuts)
}

pub fn requests_with(decoder: &mut RequestDecoder, stream: &[u8], cuts: &[usize]) -> Vec<Seen> {
    drive!(decoder, stream, cuts)
}

/// Decodes responses and watches x-request-id.
pub fn responses(stream: &[u8], cuts: &[usize]) -> Vec<Seen> {
    responses_with(&mut ResponseDecoder::watching("x-request-id").with_limits(LIMITS), stream, cuts)
}

/// Decodes requests and watches x-request-id.
pub fn requests(stream: &[u8], cuts: &[usize]) -> Vec<Seen> {
    requests_with(&mut RequestDecoder::watching("x-request-id").with_limits(LIMITS), stream, cuts)
}

/// Decodes the whole responses at the beginning of a stream on the one-call path. Also returns their length in bytes.
pub fn whole_responses(mut stream: &[u8]) -> (Vec<Seen>, usize) {
    let mut decoder = ResponseDecoder::watching("x-request-id").with_limits(LIMITS);
    let (mut seen, mut taken) = (Vec::new(), 0);
    while let Some(whole) = decoder.whole(stream) {
        seen.push(whole.head.into());
        if !whole.body.is_empty() {
            seen.push(Seen::Body(whole.body.to_vec()));
        }
        seen.push(Seen::End);
        taken += whole.consumed;
        stream = &stream[whole.consumed..];
    }
    (seen, taken)
}

/// Decodes the stream with a new decoder for each message, so that the memo is never used.
pub fn responses_without_memo(stream: &[u8]) -> Vec<Seen> {
    let (mut seen, mut at) = (Vec::new(), 0);
    'messages: loop {
        let mut decoder = ResponseDecoder::watching("x-request-id").with_limits(LIMITS);
        loop {
            match decoder.push(&stream[at..]) {
                Ok(step) => {
                    at += step.consumed;
                    let (more, end) =
                        (matches!(step.event, HttpEvent::NeedMore), matches!(step.event, HttpEvent::End));
                    note(&mut seen, step.event);
                    if end {
                        continue 'messages;
                    }
                    if more {
                        seen.push(Seen::Idle(decoder.idle()));
                        seen.push(Seen::Finished(decoder.finish()));
                        return seen;
                    }
                }
                Err(error) => {
                    seen.push(Seen::Failed(error));
                    return seen;
                }
            }
        }
    }
}

/// Counts frames and bytes the simple way, and says whether a frame is open. `FrameCounter` must agree with this model.
pub fn count_plainly(prefix: Prefix, mut stream: &[u8]) -> (u64, u64, bool) {
    let (mut frames, mut bytes) = (0, 0);
    loop {
        let Some((head, rest)) = stream.split_at_checked(prefix.len()) else {
            return (frames, bytes, !stream.is_empty());
        };
        let length = head.iter().fold(0, |sum, &byte| sum * 256 + usize::from(byte));
        let Some(rest) = rest.get(length..) else {
            return (frames, bytes, true);
        };
        (frames, bytes, stream) = (frames + 1, bytes + length as u64, rest);
    }
}

pub fn count(prefix: Prefix, stream: &[u8], cuts: &[usize]) -> (u64, u64, bool) {
    let mut counter = FrameCounter::new(prefix);
    for piece in pieces(stream, cuts) {
        counter.push(piece);
    }
    (counter.frames(), counter.bytes(), counter.partial())
}

/// The frames that a reader collects, and how it ended: with an error, or whether a frame is open.
pub fn read(
    prefix: Prefix,
    limit: usize,
    stream: &[u8],
    cuts: &[usize],
) -> (Vec<Vec<u8>>, Result<bool, FrameError>) {
    let mut reader = FrameReader::new(prefix, limit);
    let mut frames = Vec::new();
    for mut piece in pieces(stream, cuts) {
        while !piece.is_empty() {
            match reader.push(piece) {
                Ok((consumed, frame)) => {
                    frames.extend(frame.map(<[u8]>::to_vec));
                    piece = &piece[consumed..];
                }
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    (frames, Ok(reader.partial()))
}

/// An event: its type, data and id.
pub type WholeEvent = (Vec<u8>, Vec<u8>, Option<Vec<u8>>);

/// The events of a stream, and whether all of it could be read.
pub fn events(limit: usize, stream: &[u8], cuts: &[usize]) -> (Vec<WholeEvent>, bool) {
    let (mut decoder, mut all) = (EventDecoder::new(limit), Vec::new());
    for mut piece in pieces(stream, cuts) {
        while !piece.is_empty() {
            let Ok(step) = decoder.push(piece) else { return (all, false) };
            if let Some(Event { kind, data, id }) = step.event {
                all.push((kind.to_vec(), data.to_vec(), id.map(<[u8]>::to_vec)));
            }
            piece = &piece[step.consumed..];
        }
    }
    (all, true)
}

/// Reads events the simple way, from a whole stream. `EventDecoder` must agree with this model.
pub fn events_plainly(stream: &[u8]) -> Vec<WholeEvent> {
    let mut lines: Vec<Vec<u8>> = vec![Vec::new()];
    for (at, byte) in stream.iter().enumerate() {
        match byte {
            b'\n' if at > 0 && stream[at - 1] == b'\r' => {}
            b'\n' | b'\r' => lines.push(Vec::new()),
            byte => lines.last_mut().unwrap().push(*byte),
        }
    }
    // The last line has no end.
    lines.pop();
    if let Some(first) = lines.first_mut().filter(|line| line.starts_with(b"\xef\xbb\xbf")) {
        first.drain(..3);
    }
    let mut all = Vec::new();
    for event in lines.split_inclusive(Vec::is_empty).filter(|event| event.last().is_some_and(Vec::is_empty))
    {
        let fields = event.iter().map(|line| {
            let colon = line.iter().position(|byte| *byte == b':');
            let value = colon.map_or(&[][..], |colon| &line[colon + 1..]);
            (&line[..colon.unwrap_or(line.len())], value.strip_prefix(b" ").unwrap_or(value))
        });
        let all_of =
            |name: &'static [u8]| fields.clone().filter(move |field| field.0 == name).map(|field| field.1);
        let data: Vec<&[u8]> = all_of(b"data").collect();
        if !data.is_empty() {
            let id = all_of(b"id").rfind(|id| !id.contains(&0));
            let kind = all_of(b"event").next_back().unwrap_or_default();
            all.push((kind.to_vec(), data.join(&b'\n'), id.map(<[u8]>::to_vec)));
        }
    }
    all
}

/// Splits a fuzzer's input: the first four bytes are the sizes to cut at, the rest is the stream.
pub fn split_input(input: &[u8]) -> (Vec<usize>, &[u8]) {
    let (sizes, stream) = input.split_at(input.len().min(4));
    (sizes.iter().map(|&size| usize::from(size)).collect(), stream)
}
