//! Placeholders are found where they stand, or the place of a single brace is within the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use systems::template;

fuzz_target!(|input: &str| match template::places(input) {
    Ok(places) => {
        for (place, name) in &places {
            assert_eq!(input[place.clone()], format!("{{{name}}}"));
        }
        assert_eq!(template::names(input).map(|names| names.len()), Ok(places.len()));
    }
    Err((place, _)) => assert!(matches!(&input[place], "{" | "}")),
});
