//! How compressed bodies are decoded, and what is wrong with those that cannot be.

use std::io::Write;

use answers::{Broken, Coding, Encodings, Excerpt, Head, decode};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

const LIMIT: u64 = 1 << 20;

/// `narrows ` a hundred times, by the encoders of Node.js and zstd.
const BROTLI: &str = "1b1f03f88d54b5bf0e7393bbd3206f7273a2b7708034291f";
const ZSTD: &str = "28b52ffd04587d0000406e6172726f77732001001557152ec6b1b8f6";

fn text() -> Vec<u8> {
    b"narrows ".repeat(100)
}

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).expect("memory");
    encoder.finish().expect("memory")
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).expect("memory");
    encoder.finish().expect("memory")
}

fn deflate(data: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).expect("memory");
    encoder.finish().expect("memory")
}

fn decoded(names: &str, body: &[u8], limit: u64) -> Result<Vec<u8>, Broken> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {names}\r\n\r\n");
    decode(Encodings::of(Head::http1(200, head.as_bytes()))?, body, limit)
}

/// A text in every coding.
fn coded() -> Vec<(&'static str, Coding, Vec<u8>)> {
    let text = text();
    vec![
        ("gzip", Coding::Gzip, gzip(&text)),
        ("X-GZip", Coding::Gzip, gzip(&text)),
        ("deflate", Coding::Deflate, zlib(&text)),
        ("deflate", Coding::Deflate, deflate(&text)),
        ("br", Coding::Brotli, bytes(BROTLI)),
        ("zstd", Coding::Zstd, bytes(ZSTD)),
        ("zstd", Coding::Zstd, compress_to_vec(&text[..], CompressionLevel::Fastest)),
    ]
}

#[test]
fn every_coding_is_decoded() {
    for (name, _, body) in coded() {
        assert_eq!(decoded(name, &body, LIMIT), Ok(text()), "{name}");
        // An answer without content.
        assert_eq!(decoded(name, b"", LIMIT), Ok(Vec::new()), "{name}");
    }
    let twice = [gzip(b"one "), gzip(b"two")].concat();
    assert_eq!(decoded("gzip", &twice, LIMIT), Ok(b"one two".to_vec()));
    let frames = [bytes(ZSTD), bytes(ZSTD)].concat();
    assert_eq!(decoded("zstd", &frames, LIMIT), Ok(text().repeat(2)));
    let around = gzip(&bytes(BROTLI));
    assert_eq!(decoded("br, identity ,gzip", &around, LIMIT), Ok(text()));
    assert_eq!(decoded("identity", b"as it is", LIMIT), Ok(b"as it is".to_vec()));
}

#[test]
fn broken_codings_say_what_is_wrong() {
    for (name, coding, body) in coded() {
        for cut in 1..body.len() {
            let short = decoded(name, &body[..cut], LIMIT);
            assert!(
                matches!(short, Err(Broken::Short(which) | Broken::Damaged(which)) if which == coding),
                "{name} cut to {cut} bytes: {short:?}"
            );
        }
        let long = [&body[..], b"\0"].concat();
        let long = decoded(name, &long, LIMIT);
        assert!(
            matches!(long, Err(Broken::Long(_) | Broken::Short(_) | Broken::Damaged(_))),
            "{name}: {long:?}"
        );
        assert_eq!(decoded(name, &body, 799), Err(Broken::Limit), "{name}");
        assert_eq!(decoded(name, &body, 800), Ok(text()), "{name}");
    }
    assert_eq!(decoded("gzip", b"plain text", LIMIT), Err(Broken::Damaged(Coding::Gzip)));
    let mut sum = bytes(ZSTD);
    *sum.last_mut().expect("bytes") ^= 1;
    assert_eq!(decoded("zstd", &sum, LIMIT), Err(Broken::Damaged(Coding::Zstd)));
    assert_eq!(decoded("compress", b"x", LIMIT), Err(Broken::Unknown(Excerpt::of(b"compress"))));
    assert_eq!(decoded("br,br,br,br,br", b"x", LIMIT), Err(Broken::Many));
}

#[test]
fn a_bomb_is_decoded_to_the_limit_only() {
    let bomb = gzip(&gzip(&vec![0; 100 << 20]));
    assert!(bomb.len() < 2000, "{}", bomb.len());
    assert_eq!(decoded("gzip, gzip", &bomb, LIMIT), Err(Broken::Limit));
    // A frame whose header demands a window of 1 GiB.
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa0, 0x01, 0x00, 0x00];
    assert_eq!(decoded("zstd", &window, LIMIT), Err(Broken::Damaged(Coding::Zstd)));
    // Brotli with a large window, which is no part of the standard.
    assert_eq!(decoded("br", &[0x11, 0x1e, 0, 0, 0, 0], LIMIT), Err(Broken::Damaged(Coding::Brotli)));
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(data in prop::collection::vec(0u8..4, 0..5000)) {
        prop_assert_eq!(decoded("gzip", &gzip(&data), LIMIT), Ok(data.clone()));
        prop_assert_eq!(decoded("deflate", &zlib(&data), LIMIT), Ok(data.clone()));
        prop_assert_eq!(decoded("deflate", &deflate(&data), LIMIT), Ok(data.clone()));
        let frame = compress_to_vec(&data[..], CompressionLevel::Fastest);
        prop_assert_eq!(decoded("zstd", &frame, LIMIT), Ok(data));
    }

    /// Whatever a server sends as a coding: an error or a body within the limit.
    #[test]
    fn damaged_bodies_do_no_harm(which in 0usize..7, at in any::<prop::sample::Index>(), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let (name, _, mut body) = coded().swap_remove(which);
        for (place, value) in flips {
            let place = place.index(body.len());
            body[place] = value;
        }
        body.truncate(at.index(body.len()) + 1);
        if let Ok(data) = decoded(name, &body, 4096) {
            prop_assert!(data.len() <= 4096);
        }
    }

    #[test]
    fn random_bodies_do_no_harm(name in prop::sample::select(vec!["gzip", "deflate", "br", "zstd"]), body in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(data) = decoded(name, &body, 4096) {
            prop_assert!(data.len() <= 4096);
        }
    }
}
