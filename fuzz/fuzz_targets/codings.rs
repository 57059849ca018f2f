//! Whatever is sent as a compressed body, decoding it ends, within its limit. The first byte chooses the codings.
#![no_main]

use answers::{Encodings, Head, decode};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 8] = ["gzip", "deflate", "br", "zstd", "gzip, br", "zstd, gzip", "br,deflate", "x-gzip"];
const LIMIT: u64 = 1 << 16;

fuzz_target!(|input: &[u8]| {
    let Some((choice, body)) = input.split_first() else { return };
    let name = NAMES[usize::from(*choice) % NAMES.len()];
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {name}\r\n\r\n");
    let encodings = Encodings::of(Head::http1(200, head.as_bytes())).expect("codings that are known");
    if let Ok(decoded) = decode(encodings, body, LIMIT) {
        assert!(decoded.len() as u64 <= LIMIT);
    }
});
