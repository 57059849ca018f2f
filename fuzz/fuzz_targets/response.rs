//! Cuts, the memo and the one-call path never change how responses are decoded.
#![no_main]

#[path = "../../crates/wire/tests/common/mod.rs"]
mod common;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (cuts, stream) = common::split_input(input);
    let uncut = common::responses(stream, &[]);
    assert_eq!(uncut, common::responses(stream, &[1]));
    assert_eq!(uncut, common::responses(stream, &cuts));
    assert_eq!(uncut, common::responses_without_memo(stream));
    let (whole, _) = common::whole_responses(stream);
    assert_eq!(whole, uncut[..whole.len()]);
});
