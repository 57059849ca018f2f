//! Processes for tests to look at.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use profile::Refused;

/// A process that ends with the test.
pub struct Started(pub Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program. `None` if there is none.
pub fn start(command: &mut Command) -> Option<Started> {
    match command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
        Ok(child) => Some(Started(child)),
        Err(error) => {
            println!("skipped: cannot start {:?}: {error}", command.get_program());
            None
        }
    }
}

/// Compiles a program with debug information and frame pointers.
pub fn compile(folder: &Path, source: &str) -> Option<PathBuf> {
    let (file, program) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&file, source).unwrap();
    // With optimization, GCC makes no frames in functions that call no other, whatever its options say.
    let flags = ["-O0", "-g", "-fno-omit-frame-pointer", "-pthread", "-o"];
    match Command::new("cc").args(flags).arg(&program).arg(&file).status() {
        Ok(status) => {
            assert!(status.success());
            Some(program)
        }
        Err(error) => {
            println!("skipped: there is no C compiler: {error}");
            None
        }
    }
}

/// What was begun. `None` where the kernel does not let us sample.
pub fn allowed<T>(begun: Result<T, Refused>) -> Option<T> {
    match begun {
        Ok(begun) => Some(begun),
        Err(refused @ (Refused::Paranoid { .. } | Refused::Seccomp | Refused::Unsupported(_))) => {
            println!("skipped: {refused}");
            None
        }
        Err(refused) => panic!("{refused}"),
    }
}
