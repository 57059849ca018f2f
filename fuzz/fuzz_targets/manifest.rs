//! Any text is a manifest or an error with a place in the text. What is accepted can be shown.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use systems::{Manifest, Source};

fuzz_target!(|input: &str| {
    let source = Source::new("systems/x/system.toml", input);
    match Manifest::parse(&source, Path::new("/nonexistent/systems/x")) {
        Ok(manifests) => manifests.iter().for_each(|manifest| drop(manifest.program.command_line())),
        Err(error) => assert!(!error.one_line().is_empty()),
    }
});
