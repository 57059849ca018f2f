//! Cuts never change which events a stream has, and they are those of a simple model.
#![no_main]

#[path = "../../crates/wire/tests/common/mod.rs"]
mod common;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (cuts, stream) = common::split_input(input);
    let (events, whole) = common::events(1 << 20, stream, &[]);
    assert!(whole && events == common::events_plainly(stream));
    for limit in [20, 1 << 20] {
        let uncut = common::events(limit, stream, &[]);
        assert_eq!(uncut, common::events(limit, stream, &[1]));
        assert_eq!(uncut, common::events(limit, stream, &cuts));
    }
});
