//! Tests streams and how their counts are judged, without sockets.

use wire::frames::FrameCounter;

use super::*;

/// Sends a stream that is told to close after `sends` pieces. Returns what was sent, and the state.
fn stream(target: FrameStream, sends: usize) -> (Summary, Streams, State) {
    let mut frames = Streams::new(&target, target.count, 1).expect("frames that fit their prefix");
    let mut state = frames.open(0, None);
    frames.begin(&mut state, ());
    let mut counter = FrameCounter::new(target.prefix);
    for number in 0.. {
        match frames.next(&mut state, number >= sends) {
            Next::Send(payload) => counter.push(payload.bytes()),
            Next::HalfClose => break,
            Next::Nothing | Next::Fail(_) => panic!("a stream always has something to do"),
        }
    }
    assert!(!counter.partial(), "a frame begun is finished");
    (counter.summary(), frames, state)
}

fn target(size: u64, count: Option<u64>) -> FrameStream {
    FrameStream { size, prefix: Prefix::Four, count }
}

#[test]
fn streams_consist_of_whole_frames_of_every_size() {
    for size in [0, 1, 10, 1456, 262_139, 262_140, 262_141, 1_000_003] {
        for sends in [0, 1, 5] {
            let (sent, _, state) = stream(target(size, None), sends);
            assert!(sent.frames > 0, "at least one frame, however short the time");
            assert_eq!((sent.frames, sent.bytes), (state.frames, state.frames * size), "{size} {sends}");
        }
        let (sent, _, _) = stream(target(size, Some(3)), 0);
        assert_eq!((sent.frames, sent.bytes), (3, 3 * size));
    }
}

#[test]
fn the_answer_must_be_the_count_that_was_sent() {
    let answer = |summary: Summary, extra: &[u8]| {
        let (_, mut frames, mut state) = stream(target(10, Some(7)), 0);
        let mut bytes = vec![0, 0, 0, 16];
        bytes.extend_from_slice(&summary.encode());
        bytes.extend_from_slice(extra);
        let mut outcomes = Outcomes::default();
        let end = frames.receive(&mut state, &bytes, &mut outcomes);
        end.err().map(|fault| *fault).or_else(|| outcomes.ends[0].result.err()).map(|fault| fault.class)
    };
    assert_eq!(answer(Summary { frames: 7, bytes: 70 }, b""), None);
    assert_eq!(answer(Summary { frames: 6, bytes: 70 }, b""), Some(ErrorClass::Length));
    assert_eq!(answer(Summary { frames: 7, bytes: 69 }, b""), Some(ErrorClass::Length));
    assert_eq!(answer(Summary { frames: 7, bytes: 70 }, b"x"), Some(ErrorClass::Protocol));
}

#[test]
fn an_answer_before_the_end_of_the_stream_is_a_fault() {
    let mut frames = Streams::new(&target(10, None), None, 1).expect("frames");
    let mut state = frames.open(0, None);
    frames.begin(&mut state, ());
    frames.next(&mut state, false);
    assert!(frames.receive(&mut state, &[0], &mut Outcomes::default()).is_err());
}

#[test]
fn a_number_of_frames_is_spread_over_connections_without_loss() {
    let mut frames = Streams::new(&target(1, None), Some(11), 4).expect("frames");
    let mut counts = Vec::new();
    for _ in 0..4 {
        let mut state = frames.open(0, None);
        frames.begin(&mut state, ());
        while let Next::Send(_) = frames.next(&mut state, false) {}
        counts.push(state.frames);
    }
    assert_eq!(counts, [3, 3, 3, 2]);
}

#[test]
fn a_frame_that_its_prefix_cannot_announce_is_refused() {
    let too_long = FrameStream { size: 256, prefix: Prefix::One, count: None };
    assert!(Streams::new(&too_long, None, 1).is_err());
}
