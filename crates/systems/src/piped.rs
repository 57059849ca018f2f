//! A command that is a pipe to something: what is written to its standard input goes there, and what comes from there is read
//! from its standard output.

use std::io;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::group::{Exit, Group, Waited};
use crate::output::{KEPT, Tail};
use crate::wait::deadline_in;

/// A running command in a process group of its own. Dropping it kills the group.
///
/// The kernel kills the command when the *thread* that started it ends.
pub struct Piped {
    group: Group,
    said: Tail,
}

impl Piped {
    /// Starts a command. Returns it with its standard input and output.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(mut command: Command) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = Group::spawn(command, &[])?;
        let said = Tail::new(KEPT);
        let child = group.child();
        if let Some(stream) = child.stderr.take() {
            said.drain(stream);
        }
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let input = child.stdin.take().ok_or_else(gone)?;
        let output = child.stdout.take().ok_or_else(gone)?;
        Ok((Self { group, said }, input, output))
    }

    /// Waits until the command ends, for `patience` at most. `None` if it still runs.
    pub fn wait(&self, patience: Duration) -> Option<Exit> {
        match self.group.wait(deadline_in(patience), &AtomicBool::new(false)) {
            Waited::Exited(exit) => Some(exit),
            Waited::TimedOut | Waited::Cancelled => None,
        }
    }

    /// Asks the command to end, and kills what still runs of it after `grace`. Returns the end of its standard error.
    pub fn end(&mut self, grace: Duration) -> String {
        self.group.stop(grace);
        self.said.settled_end()
    }

    /// Kills what still runs of the command. Returns the end of its standard error.
    pub fn kill(&mut self) -> String {
        self.group.kill();
        self.said.settled_end()
    }
}
