//! How many cases a property is tried with.

use proptest::test_runner::Config;

/// `PROPTEST_CASES` if it is set, otherwise what CI affords.
pub fn cases(default: u32) -> Config {
    // A stream that fails becomes a line in a table, where it has a name; no files of them.
    let config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() { config } else { Config { cases: default, ..config } }
}
