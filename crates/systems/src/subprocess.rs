//! Commands that run to their end: probes, hooks, builds, git. Their output is captured or goes to a file, and nothing of them
//! survives.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

pub use crate::group::{Exit, Waited};

use crate::group::Group;
use crate::output::{self, KEPT, Tail};

/// The most of each stream that is captured, in bytes. Of a longer one the end is kept.
pub const CAPTURED: usize = 1 << 22;

/// What a command did.
#[derive(Debug)]
pub struct Captured {
    /// What ended the wait for it.
    pub waited: Waited,
    /// Its standard output, without white space at its end.
    pub out: String,
    /// Its standard error, in the same way.
    pub err: String,
}

impl Captured {
    /// Whether it exited with code 0.
    pub fn is_success(&self) -> bool {
        self.waited == Waited::Exited(Exit::Code(0))
    }

    /// All that it printed, standard output first.
    pub fn output(&self) -> String {
        let between = if self.out.is_empty() || self.err.is_empty() { "" } else { "\n" };
        format!("{}{between}{}", self.out, self.err)
    }
}

/// Runs a command that prints little, and kills it at the deadline or when `cancel` is set.
///
/// # Errors
/// It cannot be started.
pub fn capture(mut command: Command, deadline: Instant, cancel: &AtomicBool) -> io::Result<Captured> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut group = Group::spawn(command, &[])?;
    let (out, err) = (Tail::new(CAPTURED), Tail::new(CAPTURED));
    if let Some(stream) = group.child().stdout.take() {
        out.drain(stream);
    }
    if let Some(stream) = group.child().stderr.take() {
        err.drain(stream);
    }
    let waited = group.wait(deadline, cancel);
    group.kill();
    Ok(Captured { waited, out: out.settled(), err: err.settled() })
}

/// Runs a command whose output goes to the file `log`, and kills it at the deadline or when `cancel` is set.
///
/// # Errors
/// It cannot be started, or the file cannot be written. The text says which.
pub fn log(
    mut command: Command,
    log: &Path,
    deadline: Instant,
    cancel: &AtomicBool,
) -> Result<Waited, String> {
    let cannot = |e: io::Error| format!("cannot write {}: {e}", log.display());
    let file = File::create(log).map_err(cannot)?;
    let errors = file.try_clone().map_err(cannot)?;
    command.stdin(Stdio::null()).stdout(file).stderr(errors);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut group = Group::spawn(command, &[]).map_err(|e| format!("cannot start `{program}`: {e}"))?;
    let waited = group.wait(deadline, cancel);
    group.kill();
    Ok(waited)
}

/// The end of a file, as much as is shown of a program's output. Empty if it cannot be read.
pub fn end_of(path: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = fs::metadata(path)?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(KEPT as u64)))?;
        let mut bytes = Vec::new();
        file.take(KEPT as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    output::shown(String::from_utf8_lossy(&read().unwrap_or_default()).trim_end())
}
