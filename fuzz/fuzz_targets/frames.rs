//! Cuts never change how frames are counted and collected, and the counts equal a simple model's.
#![no_main]

#[path = "../../crates/wire/tests/common/mod.rs"]
mod common;

use libfuzzer_sys::fuzz_target;
use wire::frames::Prefix;

fuzz_target!(|input: &[u8]| {
    let (cuts, stream) = common::split_input(input);
    for prefix in [Prefix::One, Prefix::Two, Prefix::Four] {
        let expected = common::count_plainly(prefix, stream);
        assert_eq!(expected, common::count(prefix, stream, &[]));
        assert_eq!(expected, common::count(prefix, stream, &[1]));
        assert_eq!(expected, common::count(prefix, stream, &cuts));
        let uncut = common::read(prefix, 100, stream, &[]);
        assert_eq!(uncut, common::read(prefix, 100, stream, &[1]));
        assert_eq!(uncut, common::read(prefix, 100, stream, &cuts));
    }
});
