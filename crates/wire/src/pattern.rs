//! What bodies are made of: seeded bytes that no layer below can shorten or skip.
//!
//! Knows only a seed. Zeros would flatter a receiver that compresses, deduplicates pages or checks nothing; these bytes are
//! pseudo-random, none of them zero, and repeat only after [`PERIOD`], which is a prime: no buffer size lines up with it,
//! so a receiver that loses, doubles or swaps a buffer does not see the bytes it should.

/// The pattern repeats after this many bytes: a prime beyond deflate's window of 32 KiB, small enough for an L2 cache.
pub const PERIOD: usize = 65_521;

/// The first `len` bytes of the pattern of this seed; byte `i` equals byte `i % PERIOD`.
#[must_use]
pub fn block(seed: u64, len: usize) -> Vec<u8> {
    let fresh = len.min(PERIOD);
    let mut bytes = Vec::with_capacity(len + 8);
    let mut state = seed;
    while bytes.len() < fresh {
        bytes.extend_from_slice(&without_zeros(next(&mut state)).to_le_bytes());
    }
    bytes.truncate(fresh);
    while bytes.len() < len {
        let more = bytes.len().min(len - bytes.len());
        bytes.extend_from_within(..more);
    }
    bytes
}

/// SplitMix64: every seed is a good one, 0 included.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn without_zeros(word: u64) -> u64 {
    u64::from_le_bytes(word.to_le_bytes().map(|byte| byte.max(1)))
}
