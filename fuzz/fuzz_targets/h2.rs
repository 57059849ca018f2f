//! Cuts never change which frames are read, and what is remembered of heads never changes what they mean.
#![no_main]

#[path = "../../crates/wire/tests/common/mod.rs"]
#[allow(dead_code)]
mod common;

use libfuzzer_sys::fuzz_target;
use wire::h2::{BLOCK, Broken, Decoder, Event, Reader, RequestHeads, ResponseHeads};

fuzz_target!(|input: &[u8]| {
    let (cuts, stream) = common::split_input(input);
    let uncut = events(stream, &[]);
    assert_eq!(uncut, events(stream, &[1]));
    assert_eq!(uncut, events(stream, &cuts));
    heads(stream);
});

/// The events of a stream that is cut into pieces of these lengths in turn. Pieces of DATA are put together.
fn events(stream: &[u8], cuts: &[usize]) -> (Vec<String>, Vec<u8>, Option<Broken>) {
    let (mut reader, mut all, mut data) = (Reader::default(), Vec::new(), Vec::new());
    let (mut rest, mut cuts) = (stream, cuts.iter().cycle());
    while !rest.is_empty() {
        let length = cuts.next().map_or(rest.len(), |cut| (*cut).clamp(1, rest.len()));
        let (mut piece, after) = rest.split_at(length);
        rest = after;
        loop {
            let step = match reader.push(piece) {
                Ok(step) => step,
                Err(broken) => return (all, data, Some(broken)),
            };
            piece = &piece[step.consumed..];
            match step.event {
                Event::NeedMore => break,
                Event::Data { stream, data: bytes, counted, end_stream } => {
                    data.extend_from_slice(bytes);
                    if counted > 0 {
                        all.push(format!("{stream} {counted}"));
                    }
                    if end_stream {
                        all.push(format!("{stream} ends"));
                    }
                }
                other => all.push(format!("{other:?}")),
            }
        }
    }
    (all, data, None)
}

/// Each header block, three times.
fn heads(stream: &[u8]) {
    let (mut reader, mut decoder) = (Reader::default(), Decoder::default());
    let (mut heads, mut requests) = (ResponseHeads::watching("x"), RequestHeads::watching("x"));
    let mut rest = stream;
    while let Ok(step) = reader.push(rest) {
        rest = &rest[step.consumed..];
        match step.event {
            Event::NeedMore => return,
            Event::Headers { block, .. } => {
                for _ in 0..3 {
                    let mut length = 0;
                    let decoded = decoder.decode(block, |name, value| length += name.len() + value.len());
                    assert_eq!(requests.request(block).is_ok(), decoded.is_ok());
                    match (heads.response(block), decoded) {
                        (Ok(_), Ok(_)) => assert!(length <= BLOCK),
                        (Err(ours), Err(other)) => {
                            assert_eq!(ours, other);
                            return;
                        }
                        (ours, other) => panic!("{ours:?} {other:?}"),
                    }
                }
            }
            _ => {}
        }
    }
}
