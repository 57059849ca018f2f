//! Parts of tests that are left out because something is not installed.

use std::fs::OpenOptions;
use std::io::Write;

/// Whether a program is installed. If not, the test is skipped: see [`skip`].
pub fn has(program: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|p| p.join(program).exists());
    if !found {
        skip(program, "it is not installed");
    }
    found
}

/// Reports that a part of a test is skipped because something is not installed. With `NARROWS_TEST_ALL=1` it fails
/// instead.
pub fn skip(what: &str, why: &str) {
    assert_ne!(std::env::var("NARROWS_TEST_ALL").as_deref(), Ok("1"), "{what} cannot be tested: {why}");
    say_skipped(what, why);
}

/// Reports a skipped part of a test, also in the file that `NARROWS_SKIPPED` names, because cargo hides the output of
/// tests that pass.
pub fn say_skipped(what: &str, why: &str) {
    eprintln!("skipped: {what}: {why}");
    if let Some(path) = std::env::var_os("NARROWS_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        // One write, because other tests write to the file as well.
        let written = file.and_then(|mut file| file.write_all(format!("{what}: {why}\n").as_bytes()));
        written.expect("the file that NARROWS_SKIPPED names");
    }
}
