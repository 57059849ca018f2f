//! Frames: the cuts never change the counts or the frames, and both equal a simple model's. Also tests the body pattern.

mod common;
#[path = "common/cases.rs"]
mod config;

use common::{count, count_plainly, read};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use wire::frames::{FrameCounter, FrameError, FrameReader, Prefix, Summary, put_prefix};
use wire::pattern;

const PREFIXES: [Prefix; 3] = [Prefix::One, Prefix::Two, Prefix::Four];

/// A stream of frames with these lengths, without its last `missing` bytes.
fn stream(prefix: Prefix, lengths: &[usize], missing: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for &length in lengths {
        put_prefix(&mut out, prefix, length).expect("a length that fits");
        out.extend((0..length).map(|at| at as u8));
    }
    out.truncate(out.len().saturating_sub(missing));
    out
}

/// Runs of equal lengths with other lengths between them, so that the counter guesses both right and wrong.
fn lengths() -> impl Strategy<Value = Vec<usize>> {
    let run = (prop_oneof![3 => 0usize..20, 1 => 0usize..256], 1usize..30);
    vec(run, 0..8).prop_map(|runs| runs.into_iter().flat_map(|(length, times)| vec![length; times]).collect())
}

proptest! {
    #![proptest_config(config::cases(1000))]

    #[test]
    fn counts_equal_what_was_sent(
        prefix in select(&PREFIXES), lengths in lengths(), missing in 0usize..40, cuts in vec(1usize..300, 1..6),
    ) {
        let whole = stream(prefix, &lengths, 0);
        let sum = lengths.iter().sum::<usize>() as u64;
        prop_assert_eq!(count(prefix, &whole, &cuts), (lengths.len() as u64, sum, false));
        let short = stream(prefix, &lengths, missing);
        let expected = count_plainly(prefix, &short);
        prop_assert_eq!(count(prefix, &short, &[]), expected);
        prop_assert_eq!(count(prefix, &short, &cuts), expected);
        prop_assert_eq!(count(prefix, &short, &[1]), expected);
    }

    #[test]
    fn any_bytes_are_counted_like_the_model(
        prefix in select(&PREFIXES), stream in vec(prop_oneof![Just(0u8), 0u8..4, any::<u8>()], 0..400), cuts in vec(1usize..50, 1..6),
    ) {
        let expected = count_plainly(prefix, &stream);
        prop_assert_eq!(count(prefix, &stream, &[]), expected);
        prop_assert_eq!(count(prefix, &stream, &cuts), expected);
    }

    #[test]
    fn readers_collect_the_same_frames_however_they_are_cut(
        prefix in select(&PREFIXES), lengths in lengths(), limit in 10usize..300, missing in 0usize..40, cuts in vec(1usize..50, 1..6),
    ) {
        let stream = stream(prefix, &lengths, missing);
        let uncut = read(prefix, limit, &stream, &[]);
        prop_assert_eq!(&uncut, &read(prefix, limit, &stream, &cuts));
        prop_assert_eq!(&uncut, &read(prefix, limit, &stream, &[1]));
        if uncut.1.is_ok() {
            prop_assert_eq!(uncut.0.len() as u64, count_plainly(prefix, &stream).0);
        }
        prop_assert!(uncut.0.iter().zip(&lengths).all(|(frame, &length)| frame.len() == length && length <= limit));
    }

    #[test]
    fn summaries_come_back(frames: u64, bytes: u64) {
        let summary = Summary { frames, bytes };
        prop_assert_eq!(Summary::decode(&summary.encode()), Some(summary));
        prop_assert_eq!(&summary.encode()[..8], &frames.to_be_bytes());
    }
}

#[test]
fn prefixes_are_big_endian_and_refuse_what_does_not_fit() {
    let mut out = Vec::new();
    for (prefix, len) in [(Prefix::One, 255), (Prefix::Two, 0x102), (Prefix::Four, 0x0102_0304)] {
        put_prefix(&mut out, prefix, len).expect("fits");
    }
    assert_eq!(out, [255, 1, 2, 1, 2, 3, 4]);
    for (prefix, len) in [(Prefix::One, 256), (Prefix::Two, 65_536), (Prefix::Four, 1 << 32)] {
        let refused = Err(FrameError::DoesNotFit { len, prefix: prefix.len() });
        assert_eq!(put_prefix(&mut out, prefix, len), refused);
    }
    assert_eq!(out.len(), 7);
}

#[test]
fn summaries_are_sixteen_bytes() {
    assert_eq!(Summary::decode(&[0; 15]), None);
    assert_eq!(Summary::decode(&[0; 17]), None);
}

#[test]
fn a_reader_refuses_messages_beyond_its_limit_and_everything_after_them() {
    let mut reader = FrameReader::new(Prefix::Four, 16);
    let refused = Err(FrameError::TooLong { len: 0xffff_ffff, limit: 16 });
    assert_eq!(reader.push(&[0xff; 9]), refused);
    assert_eq!(reader.push(&[0, 0, 0, 0]), refused);
}

#[test]
fn the_longest_frame_of_four_bytes_is_counted() {
    let mut counter = FrameCounter::new(Prefix::Four);
    counter.push(&[0xff; 4]);
    let block = vec![0; 1 << 20];
    for _ in 0..4096 {
        assert_eq!((counter.frames(), counter.partial()), (0, true));
        counter.push(&block);
    }
    // 2^32 bytes are one more than the frame: the last zero begins the next prefix.
    let first = Summary { frames: 1, bytes: 0xffff_ffff };
    assert_eq!((counter.summary(), counter.partial()), (first, true));
    counter.push(&[0, 0, 0]);
    assert_eq!((counter.frames(), counter.partial()), (2, false));
}

#[test]
fn the_pattern_is_seeded_periodic_and_without_zeros() {
    let long = pattern::block(7, 3 * pattern::PERIOD + 5);
    assert_eq!(long.len(), 3 * pattern::PERIOD + 5);
    assert!(long.iter().zip(&long[pattern::PERIOD..]).all(|(a, b)| a == b));
    assert!(!long.contains(&0));
    assert_ne!(long[..64], pattern::block(8, 64));
    for len in [0, 1, 7, 8, 1000, pattern::PERIOD - 1, pattern::PERIOD, pattern::PERIOD + 1] {
        assert_eq!(pattern::block(7, len), long[..len]);
    }
}

#[test]
fn the_pattern_does_not_compress() {
    // The order-0 entropy is close to eight bits, and few sequences of four bytes repeat: a match finder finds nothing.
    let block = pattern::block(1, pattern::PERIOD);
    let mut counts = [0u32; 256];
    block.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    let total = block.len() as f64;
    let entropy: f64 =
        counts.iter().filter(|&&n| n > 0).map(|&n| f64::from(n) / total).map(|p| -p * p.log2()).sum();
    assert!(entropy > 7.97, "{entropy}");
    let mut fours: Vec<&[u8]> = block.windows(4).collect();
    fours.sort_unstable();
    assert!(fours.windows(2).filter(|pair| pair[0] == pair[1]).count() < 20);
}
