//! Any text is a check or an error with a place in the text, and a check judges any answer. The check is the input's first
//! line, the body is the rest.
#![no_main]

use answers::{Answer, Check, Head};
use libfuzzer_sys::fuzz_target;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Empty:\r\n\r\n";

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let Ok(text) = std::str::from_utf8(&input[..end]) else { return };
    let body = input.get(end + 1..).unwrap_or_default();
    match Check::parse(text) {
        Ok(check) => {
            assert_eq!(check.to_string(), text);
            let first = check.holds(&Answer { head: Head::http1(200, HEAD), body, length: body.len() as u64 });
            if let Err(found) = first {
                assert!(found.to_string().len() < 300);
            }
        }
        Err(error) => assert!((1..=text.chars().count() + 1).contains(&error.at)),
    }
});
