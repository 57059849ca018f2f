//! Passes the commit to `machine::Environment` if this is a git checkout; otherwise the commit is unknown.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=NARROWS_COMMIT");
    // This log grows with every commit. Cargo would rerun the script every time for a file that does not exist.
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.git/logs/HEAD");
    if Path::new(log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    if std::env::var_os("NARROWS_COMMIT").is_some() {
        return;
    }
    let answer = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    if let Ok(answer) = answer
        && answer.status.success()
    {
        println!("cargo:rustc-env=NARROWS_COMMIT={}", String::from_utf8_lossy(&answer.stdout).trim());
    }
}
