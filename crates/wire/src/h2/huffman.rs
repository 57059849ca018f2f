//! Huffman's code of HPACK (RFC 7541 section 5.2 and appendix B). The code is canonical: codes of one length follow each other in
//! the order of their symbols, so that the lengths are the whole table.

use super::Broken;

/// The number of symbols: all bytes, and the end of a string, which must not occur.
const SYMBOLS: usize = 257;
const END: u16 = 256;
/// The longest code in bits.
const LONGEST: usize = 30;

/// The length of each symbol's code in bits.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8,
    7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7,
    7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23,
    24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22,
    23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25,
    26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24,
    20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27,
    27, 27, 27, 26, 30,
];

/// The tables that are made of the lengths.
struct Tables {
    /// The code of each symbol, in its lowest bits.
    codes: [u32; SYMBOLS],
    /// The symbols in the order of their codes.
    symbols: [u16; SYMBOLS],
    /// For each length: the first code that is longer, at the top of 32 bits.
    limits: [u64; LONGEST + 1],
    /// For each length: where its first code is among `symbols`, and the code.
    firsts: [(u16, u32); LONGEST + 1],
    /// For each first byte: the symbol and the length of its code, if it is no longer than that.
    short: [(u8, u8); 256],
}

static TABLES: Tables = tables();

#[expect(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "the compiler evaluates it")]
const fn tables() -> Tables {
    let mut tables = Tables {
        codes: [0; SYMBOLS],
        symbols: [0; SYMBOLS],
        limits: [0; LONGEST + 1],
        firsts: [(0, 0); LONGEST + 1],
        short: [(0, 0); 256],
    };
    let (mut code, mut place, mut length) = (0_u32, 0, 1);
    while length <= LONGEST {
        code <<= 1;
        tables.firsts[length] = (place as u16, code);
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                tables.codes[symbol] = code;
                tables.symbols[place] = symbol as u16;
                if length <= 8 {
                    let (mut byte, end) =
                        ((code as usize) << (8 - length), (code as usize + 1) << (8 - length));
                    while byte < end {
                        tables.short[byte] = (symbol as u8, length as u8);
                        byte += 1;
                    }
                }
                code += 1;
                place += 1;
            }
            symbol += 1;
        }
        tables.limits[length] = (code as u64) << (32 - length);
        length += 1;
    }
    tables
}

/// The number of bytes of `bytes` in this code.
#[expect(clippy::indexing_slicing, reason = "there is a length for each byte")]
pub(super) fn length(bytes: &[u8]) -> usize {
    bytes.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum::<usize>().div_ceil(8)
}

/// Appends `bytes` in this code.
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "there is a code for each byte; fewer than 8 bits stay"
)]
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0_u32);
    for byte in bytes {
        let (code, length) = (TABLES.codes[usize::from(*byte)], u32::from(LENGTHS[usize::from(*byte)]));
        bits = (bits << length) | u64::from(code);
        count += length;
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        // The rest is filled with the first bits of the end's code, which are ones.
        out.push((bits << (8 - count)) as u8 | (0xff >> count));
    }
}

/// Appends what `coded` means.
///
/// # Errors
/// It has the code of the end, or ends with something else than fewer than 8 ones.
#[expect(clippy::arithmetic_side_effects, reason = "no more bits are taken than there are")]
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), Broken> {
    let (mut bits, mut count) = (0_u64, 0_u32);
    let mut bytes = coded.iter();
    loop {
        while count <= 32
            && let Some(byte) = bytes.next()
        {
            bits = (bits << 8) | u64::from(*byte);
            count += 8;
        }
        if count == 0 {
            return Ok(());
        }
        let top = (bits << (64 - count)) >> 32;
        let (symbol, length) = symbol(top as u32);
        if u32::from(length) > count {
            let ones = count < 8 && bits & ((1 << count) - 1) == (1 << count) - 1;
            return if ones {
                Ok(())
            } else {
                Err(Broken::compression("a Huffman string has wrong padding"))
            };
        }
        if symbol == END {
            return Err(Broken::compression("a Huffman string has the code of the end"));
        }
        out.push(symbol as u8);
        count -= u32::from(length);
    }
}

/// The symbol with which these bits begin, and the length of its code.
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "each 32 bits begin with a code of the table"
)]
#[inline]
fn symbol(top: u32) -> (u16, u8) {
    let (symbol, length) = TABLES.short[(top >> 24) as usize];
    if length > 0 {
        return (u16::from(symbol), length);
    }
    let mut length = 9;
    while length < LONGEST && u64::from(top) >= TABLES.limits[length] {
        length += 1;
    }
    let (place, first) = TABLES.firsts[length];
    let symbol = usize::from(place) + ((top >> (32 - length)) - first) as usize;
    (TABLES.symbols[symbol.min(SYMBOLS - 1)], length as u8)
}
