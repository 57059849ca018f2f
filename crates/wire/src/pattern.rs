//! The content of bodies: seeded bytes that no layer below can compress or skip.
//!
//! Zeros would flatter a receiver that compresses, deduplicates pages or checks nothing. These bytes are pseudo-random, and
//! none of them is zero. They repeat after [`PERIOD`], which is a prime: no buffer size is a multiple of it, so a receiver
//! that loses, doubles or swaps a buffer sees wrong bytes.

/// The pattern repeats after this many bytes: a prime larger than deflate's 32 KiB window, small enough for an L2 cache.
pub const PERIOD: usize = 65_521;

/// The first `len` bytes of this seed's pattern. Byte `i` equals byte `i % PERIOD`.
#[must_use]
pub fn block(seed: u64, len: usize) -> Vec<u8> {
    let fresh = len.min(PERIOD);
    let mut bytes = Vec::with_capacity(len.saturating_add(8));
    let mut state = seed;
    while bytes.len() < fresh {
        bytes.extend_from_slice(&without_zeros(next(&mut state)).to_le_bytes());
    }
    bytes.truncate(fresh);
    while bytes.len() < len {
        let more = bytes.len().min(len.saturating_sub(bytes.len()));
        bytes.extend_from_within(..more);
    }
    bytes
}

/// SplitMix64, for which every seed is good, including 0.
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
