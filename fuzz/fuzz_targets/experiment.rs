//! Any text is an experiment or an error with a place in the text.
#![no_main]

use lab::experiment::Experiment;
use libfuzzer_sys::fuzz_target;
use systems::Source;

fuzz_target!(|input: &str| {
    if let Err(error) = Experiment::parse(&Source::new("experiments/x.toml", input)) {
        assert!(!error.one_line().is_empty());
    }
});
