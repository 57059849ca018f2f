//! What a peer's bytes cost: twice as many take about twice as long, whole and byte by byte.

use cost::is_near_linear;

use crate::events::EventDecoder;
use crate::frames::{FrameReader, Prefix, put_prefix};
use crate::h2::{self, Flags, Kind, RequestHeads, ResponseHeads, Templates};
use crate::http::{HttpEvent, Limits, RequestDecoder, ResponseDecoder};

/// Large enough for each input that is decoded here.
const LIMITS: Limits = Limits { head: 1 << 24, chunk_line: 1 << 24 };

/// Asserts the cost of decoding the bytes that are made for a size. `decode` gets them in pieces of a length.
fn is_decoded(size: usize, made: impl Fn(usize) -> Vec<u8>, decode: fn(&[u8], usize)) {
    for whole in [true, false] {
        is_near_linear(size, |size| {
            let bytes = made(size);
            move || decode(&bytes, if whole { bytes.len() } else { 1 })
        });
    }
}

/// Decodes responses, of which there is at least one.
fn responses(bytes: &[u8], piece: usize) {
    let mut decoder = ResponseDecoder::watching("x-id").with_limits(LIMITS);
    let mut ends = 0;
    for mut rest in bytes.chunks(piece) {
        loop {
            if let Some(whole) = decoder.whole(rest) {
                (rest, ends) = (&rest[whole.consumed..], ends + 1);
                continue;
            }
            let step = decoder.push(rest).expect("a response");
            rest = &rest[step.consumed..];
            ends += usize::from(step.event == HttpEvent::End);
            if step.event == HttpEvent::NeedMore {
                break;
            }
        }
    }
    assert!(ends > 0 && decoder.idle());
}

/// Decodes requests, of which there is at least one.
fn requests(bytes: &[u8], piece: usize) {
    let mut decoder = RequestDecoder::watching("x-id").with_limits(LIMITS);
    let mut ends = 0;
    for mut rest in bytes.chunks(piece) {
        loop {
            let step = decoder.push(rest).expect("a request");
            rest = &rest[step.consumed..];
            ends += usize::from(step.event == HttpEvent::End);
            if step.event == HttpEvent::NeedMore {
                break;
            }
        }
    }
    assert!(ends > 0 && decoder.idle());
}

/// So many header lines.
fn fields(count: usize) -> String {
    (0..count).map(|at| format!("x-{at}: {at}\r\n")).collect()
}

#[test]
fn heads_of_many_fields() {
    let response =
        |count| format!("HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n", fields(count)).into_bytes();
    is_decoded(1000, response, responses);
    let request = |count| format!("GET / HTTP/1.1\r\nhost: h\r\n{}\r\n", fields(count)).into_bytes();
    is_decoded(1000, request, requests);
    let encodings = |count: usize| {
        let repeated = "content-length: 0\r\nconnection: keep-alive, x\r\n".repeat(count);
        format!("HTTP/1.1 200 OK\r\n{repeated}\r\n").into_bytes()
    };
    is_decoded(500, encodings, responses);
}

#[test]
fn messages_one_after_the_other() {
    let one = |at: usize| format!("HTTP/1.1 200 OK\r\nx-id: {at}\r\ncontent-length: 3\r\n\r\nabc");
    is_decoded(300, |count| (0..count).map(one).collect::<String>().into_bytes(), responses);
    let one = |at: usize| format!("POST /{at} HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc");
    is_decoded(300, |count| (0..count).map(one).collect::<String>().into_bytes(), requests);
}

#[test]
fn chunks_extensions_and_trailers() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunks = |count: usize| [HEAD, &"1\r\na\r\n".repeat(count), "0\r\n\r\n"].concat().into_bytes();
    is_decoded(3000, chunks, responses);
    let extension =
        |length: usize| [HEAD, "1;", &"a=b;".repeat(length), "\r\na\r\n0\r\n\r\n"].concat().into_bytes();
    is_decoded(3000, extension, responses);
    let trailers = |count: usize| [HEAD, "0\r\n", &fields(count), "\r\n"].concat().into_bytes();
    is_decoded(1000, trailers, responses);
}

/// Reads frames of HTTP/2, of which there is at least one.
fn frames_of_http2(bytes: &[u8], piece: usize) {
    let mut reader = h2::Reader::default();
    let mut events = 0;
    for mut rest in bytes.chunks(piece) {
        loop {
            let step = reader.push(rest).expect("frames");
            rest = &rest[step.consumed..];
            if step.event == h2::Event::NeedMore {
                break;
            }
            events += 1;
        }
    }
    assert!(events > 0 && reader.idle());
}

#[test]
fn frames_of_http2_and_their_payloads() {
    let frame = |kind, flags, stream, payload: &[u8]| {
        let mut out = Vec::new();
        h2::put_frame_head(&mut out, payload.len(), kind, flags, stream);
        out.extend_from_slice(payload);
        out
    };
    let padded = Flags::PADDED;
    let whole = Flags::END_HEADERS;
    for one in [
        frame(Kind::Data, Flags::NONE, 1, b""),
        frame(Kind::Data, padded, 1, &[3, b'a', 0, 0, 0]),
        frame(Kind::Settings, Flags::NONE, 0, &[0, 4, 0, 0, 1, 0].repeat(50)),
        frame(Kind::Ping, Flags::NONE, 0, &[1; 8]),
        // A head in nine frames, which is the most.
        [
            frame(Kind::Headers, Flags::NONE, 1, &[0x88; 50]),
            frame(Kind::Continuation, Flags::NONE, 1, &[0x88; 50]).repeat(7),
            frame(Kind::Continuation, whole, 1, &[0x88; 50]),
        ]
        .concat(),
    ] {
        is_decoded(300, |count| one.repeat(count), frames_of_http2);
    }
    is_decoded(2000, |length| frame(Kind::Data, Flags::NONE, 1, &vec![0; length]), frames_of_http2);
}

/// A block with so many fields that are inserted, so that each pushes others out of the table.
fn inserting(count: usize) -> Vec<u8> {
    let status = [0x88];
    let field = |at: usize| {
        let name = format!("x-{at}");
        let inserts = Templates::new([(name.as_bytes(), b"value".as_slice())].into_iter());
        inserts.first
    };
    [status.to_vec(), (0..count).flat_map(field).collect()].concat()
}

#[test]
fn header_blocks() {
    // The most that are handed out is a list of 64 KiB. The rest is decoded all the same.
    let of_indexes = |count: usize| [&[0x88][..], &[0x90].repeat(count)].concat();
    let of_sizes = |count: usize| [[0x20, 0x3f, 0xe1, 0x1f].repeat(count), vec![0x88]].concat();
    let blocks: [&dyn Fn(usize) -> Vec<u8>; 3] = [&inserting, &of_indexes, &of_sizes];
    for made in blocks {
        is_near_linear(1000, |count| {
            let block = made(count);
            move || {
                let mut heads = ResponseHeads::watching("x-id");
                let _ = heads.response(&block).expect("a block");
                let mut heads = RequestHeads::watching("x-id");
                let _ = heads.request(&block).expect("a block");
            }
        });
    }
}

#[test]
fn blocks_that_come_again() {
    // A block that inserts, and comes again, is decoded when another reads the table.
    let again = inserting(3);
    is_near_linear(300, |count| {
        let again = again.clone();
        move || {
            let mut heads = ResponseHeads::watching("");
            for _ in 0..count {
                for _ in 0..5 {
                    let _ = heads.response(&again).expect("a block");
                }
                let _ = heads.response(&[0x88, 0xbe]).expect("a block");
            }
        }
    });
}

/// Reads frames with a prefix of two bytes.
fn prefixed(bytes: &[u8], piece: usize) {
    let mut reader = FrameReader::new(Prefix::Two, 1 << 16);
    let mut frames = 0;
    for mut rest in bytes.chunks(piece) {
        while !rest.is_empty() {
            let (consumed, frame) = reader.push(rest).expect("a frame");
            frames += usize::from(frame.is_some());
            rest = &rest[consumed..];
        }
    }
    assert!(frames > 0 && !reader.partial());
}

#[test]
fn frames_with_a_prefix() {
    let frame = |length: usize| {
        let mut out = Vec::new();
        put_prefix(&mut out, Prefix::Two, length).expect("it fits");
        out.resize(out.len() + length, 0);
        out
    };
    is_decoded(1000, |count| frame(10).repeat(count), prefixed);
    is_decoded(10_000, frame, prefixed);
}

/// Reads the events of a stream.
fn events(bytes: &[u8], piece: usize) {
    let mut decoder = EventDecoder::new(1 << 24);
    let mut events = 0;
    for mut rest in bytes.chunks(piece) {
        while !rest.is_empty() {
            let step = decoder.push(rest).expect("within the limit");
            events += usize::from(step.event.is_some());
            rest = &rest[step.consumed..];
        }
    }
    assert!(events > 0 && !decoder.is_amid());
}

#[test]
fn events_and_their_lines() {
    is_decoded(1000, |count| b"event: a\nid: 1\ndata: b\n\n".repeat(count), events);
    is_decoded(1000, |count| [b"data: a\r\n: b\n".repeat(count), b"\n".to_vec()].concat(), events);
    is_decoded(10_000, |length| [b"data: ", &*vec![b'a'; length], b"\n\n"].concat(), events);
}
