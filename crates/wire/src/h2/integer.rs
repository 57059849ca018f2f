//! Integers and strings of HPACK (RFC 7541 section 5).

use super::{Broken, huffman};

/// The largest integer that is accepted: far above every size that is.
const LARGEST: u64 = 1 << 28;

/// Appends an integer whose first byte has `flags` above a prefix of `bits` bits.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a prefix has 4 to 7 bits, and is subtracted from what is larger"
)]
pub(super) fn put_integer(out: &mut Vec<u8>, bits: u32, flags: u8, value: usize) {
    let most = (1_usize << bits) - 1;
    if value < most {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends a string, in Huffman's code if it is shorter then.
pub(super) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let coded = huffman::length(bytes);
    if coded < bytes.len() {
        put_integer(out, 7, 0x80, coded);
        huffman::encode(bytes, out);
    } else {
        put_plain(out, bytes);
    }
}

/// Appends a string as it is.
pub(super) fn put_plain(out: &mut Vec<u8>, bytes: &[u8]) {
    put_integer(out, 7, 0, bytes.len());
    out.extend_from_slice(bytes);
}

/// Takes an integer with a prefix of `bits` bits from the beginning of `input`.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a prefix has 4 to 7 bits, and a sum ends above the largest integer"
)]
#[inline]
pub(super) fn take_integer(input: &mut &[u8], bits: u32) -> Result<usize, Broken> {
    const CUT: Broken = Broken::compression("a header block ends within an integer");
    let (first, mut rest) = input.split_first().ok_or(CUT)?;
    let most = (1_u64 << bits) - 1;
    let mut value = u64::from(*first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (byte, after) = rest.split_first().ok_or(CUT)?;
            rest = after;
            value += u64::from(byte & 0x7f) << shift;
            shift += 7;
            if value > LARGEST || shift > 35 {
                return Err(Broken::compression("an integer in a header block is too large"));
            }
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *input = rest;
    Ok(value as usize)
}

/// Takes a string from the beginning of `input`. It lies in the input, or in `scratch` if it was in Huffman's code.
#[inline]
pub(super) fn take_string<'o, 'i: 'o>(
    input: &mut &'i [u8],
    scratch: &'o mut Vec<u8>,
) -> Result<&'o [u8], Broken> {
    let coded = input.first().is_some_and(|first| first & 0x80 != 0);
    let length = take_integer(input, 7)?;
    let (string, rest) =
        input.split_at_checked(length).ok_or(Broken::compression("a header block ends within a string"))?;
    *input = rest;
    if !coded {
        return Ok(string);
    }
    scratch.clear();
    huffman::decode(string, scratch)?;
    Ok(scratch)
}
