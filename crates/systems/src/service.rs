//! A program that runs beside all systems: a database, an upstream.
//!
//! Starts one process group, and ends it when it is dropped.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::{Stage, SystemError};
use crate::group::Group;
use crate::output::{KEPT, Tail};
use crate::ports;
use crate::trace;
use crate::wait::{deadline_in, poll};

/// A running service.
pub struct Service {
    group: Group,
}

impl Service {
    /// Starts a command in `dir` on these cores, and waits until it listens on a port.
    ///
    /// # Errors
    /// It cannot be started, it ends, or it does not listen within `ready`.
    pub fn start(
        words: &[String],
        dir: &Path,
        cores: &[usize],
        ready: Duration,
        cancel: &AtomicBool,
    ) -> Result<Self, SystemError> {
        let name = words.first().map_or("", String::as_str);
        let wrong = |reason: String| SystemError::new(Stage::Start, name, format!("the service {reason}"));
        let mut command = Command::new(name);
        command.args(words.iter().skip(1)).current_dir(dir);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        trace::say(|| format!("--- the service {name}"));
        let mut group = Group::spawn(command, cores).map_err(|e| wrong(format!("cannot be started: {e}")))?;
        let tail = Tail::new(KEPT);
        if let Some(stream) = group.child().stdout.take() {
            tail.drain(stream);
        }
        if let Some(stream) = group.child().stderr.take() {
            tail.drain(stream);
        }
        let listens = poll(deadline_in(ready), || {
            let over = group.finished().is_some() || cancel.load(Ordering::Relaxed);
            over || !ports::of_tree(group.tree()).is_empty()
        });
        match group.finished() {
            Some(exit) => Err(wrong(exit.to_string()).with_output(tail.settled_end())),
            None if listens => Ok(Self { group }),
            None => {
                Err(wrong(format!("listens on no port within {} s", ready.as_secs_f64()))
                    .with_output(tail.end()))
            }
        }
    }
}

impl Service {
    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        self.group.finished().is_none()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.group.stop(Duration::from_secs(2));
    }
}
