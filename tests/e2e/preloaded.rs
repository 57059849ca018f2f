//! Libraries in C that a program loads before all others, and that then stand between it and the operating system.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::has;

/// The library of the file `NAME.c` in this folder. It is built anew if the file is newer. None if there is no compiler for C.
pub fn library(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/e2e/{name}.c"));
    let changed = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
    has("cc").then(|| {
        if changed(&path) < changed(&source) {
            build(&source, &path);
        }
        path
    })
}

/// Other tests may build it at the same time, or use it.
fn build(source: &Path, path: &Path) {
    let own = path.with_extension(std::process::id().to_string());
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&own).arg(source).arg("-ldl");
    assert!(command.status().expect("a compiler").success());
    std::fs::rename(own, path).expect("the folder of tests");
}
