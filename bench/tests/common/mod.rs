//! What the tests of `bench` share.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program under test next to ours. Builds it if it does not exist.
pub fn narrows() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_bench")).with_file_name("narrows");
    if !path.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "narrows", "--bin", "narrows"]);
        build.arg("--target-dir").arg(path.parent().unwrap().parent().unwrap());
        if path.parent().unwrap().ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success());
    }
    path
}

/// Runs `bench` with these arguments for the program under test, with its files in `folder`. It must succeed.
pub fn bench(args: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(args).arg("--narrows").arg(narrows()).arg("--out").arg(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}
