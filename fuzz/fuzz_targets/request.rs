//! Cuts never change how requests are decoded.
#![no_main]

#[path = "../../crates/wire/tests/common/mod.rs"]
mod common;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (cuts, stream) = common::split_input(input);
    let uncut = common::requests(stream, &[]);
    assert_eq!(uncut, common::requests(stream, &[1]));
    assert_eq!(uncut, common::requests(stream, &cuts));
});
