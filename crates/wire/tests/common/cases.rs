//! How many cases each property runs.

use proptest::test_runner::Config;

/// `PROPTEST_CASES` if it is set, otherwise `default`.
pub fn cases(default: u32) -> Config {
    // Write no regression files: a failing stream becomes a named line in a table of a test.
    let config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() { config } else { Config { cases: default, ..config } }
}
