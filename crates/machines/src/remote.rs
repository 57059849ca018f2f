//! This side's hold on a machine: the command that gives the pipe, and what is said over it.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use systems::piped::Piped;

use crate::address::Machine;
use crate::clock::{Offset, ROUNDS, Round};
use crate::error::MachineError;
use crate::link::{Clock, Link, Lost, Received, SILENCE, Speaker};
use crate::message::Hello;

/// How long an agent may take to end when its pipe has closed.
const FAREWELL: Duration = Duration::from_secs(1);

/// How many of the last lines of a command's standard error are shown.
const LINES: usize = 5;

/// A machine whose agent has answered. Dropping it closes the pipe, so that the agent ends, and then kills the command.
pub struct Remote {
    machine: Machine,
    /// What it said of itself.
    pub hello: Hello,
    link: Option<Link>,
    /// What was said while the clock was read.
    said: Option<Value>,
    piped: Piped,
}

impl Remote {
    /// Reaches these machines at the same time. `own` is the path of this program, and `hello` is what it says.
    ///
    /// Call it from a thread that lives as long as the machines are needed: see [`Piped`].
    ///
    /// # Errors
    /// The first machine that cannot be reached, or whose agent is of another version.
    pub fn reach(
        machines: &[Machine],
        own: &Path,
        hello: &Hello,
        clock: Clock,
    ) -> Result<Vec<Self>, MachineError> {
        let started: Vec<Self> = machines
            .iter()
            .map(|machine| Self::start(machine, own, hello, clock))
            .collect::<Result<_, _>>()?;
        let greet = |mut remote: Self| match remote.link().and_then(|link| link.greet(hello)) {
            Ok(theirs) => {
                remote.hello = theirs;
                Ok(remote)
            }
            Err(lost) => Err(remote.unreachable(&lost, own)),
        };
        started.into_iter().map(greet).collect()
    }

    fn start(machine: &Machine, own: &Path, hello: &Hello, clock: Clock) -> Result<Self, MachineError> {
        let command = machine.command(own);
        let program = command.get_program().to_string_lossy().into_owned();
        let error = |why| MachineError { machine: machine.to_string(), why, gone: true };
        let (piped, input, output) = Piped::start(command).map_err(|why| {
            error(format!("cannot start `{program}`: {why}. Install it, or correct its name"))
        })?;
        let link = Link::new(output, input, hello, clock).map_err(|why| error(why.to_string()))?;
        Ok(Self { machine: machine.clone(), hello: Hello::default(), link: Some(link), said: None, piped })
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    fn link(&mut self) -> Result<&mut Link, Lost> {
        self.link.as_mut().ok_or(Lost::Closed)
    }

    /// Sends a message of a verb.
    ///
    /// # Errors
    /// The machine takes nothing any more.
    pub fn send(&mut self, what: Value) -> Result<(), MachineError> {
        let sent = self.link().and_then(|link| link.send(what));
        sent.map_err(|lost| self.lost(&lost))
    }

    /// What other threads send with. `None` if the machine is gone.
    pub fn speaker(&self) -> Option<Speaker> {
        self.link.as_ref().map(Link::speaker)
    }

    /// The next message of a verb. `None` if there is none within `patience`.
    ///
    /// # Errors
    /// The machine is gone.
    pub fn receive(&mut self, patience: Duration) -> Result<Option<Value>, MachineError> {
        if let Some(what) = self.said.take() {
            return Ok(Some(what));
        }
        let received = self.link().and_then(|link| link.receive(patience));
        received.map_err(|lost| self.lost(&lost))
    }

    /// Measures how far the machine's clock is ahead.
    ///
    /// # Errors
    /// The machine is gone, or says more than what one order answers.
    pub fn offset(&mut self) -> Result<Offset, MachineError> {
        let rounds = (0..ROUNDS).map(|_| self.round()).collect::<Result<Vec<_>, Lost>>();
        let offset = rounds.and_then(|rounds| {
            Offset::of(&rounds).ok_or_else(|| Lost::Broken("its clock makes no sense".to_owned()))
        });
        offset.map_err(|lost| self.lost(&lost))
    }

    fn round(&mut self) -> Result<Round, Lost> {
        self.link()?.ping()?;
        loop {
            match self.link()?.take(SILENCE)? {
                Some(Received::Pong(round)) => return Ok(round),
                Some(Received::Says(what)) if self.said.is_none() => self.said = Some(what),
                Some(_) => return Err(Lost::Broken("it spoke while its clock was read".to_owned())),
                None => return Err(Lost::Silent),
            }
        }
    }

    /// The error of a machine that says what nobody expects, or too late.
    pub fn error(&self, why: impl Into<String>) -> MachineError {
        // What another machine says does not control this terminal.
        let why = why.into().chars().filter(|c| *c == '\n' || !c.is_control()).collect();
        MachineError { machine: self.machine.to_string(), why, gone: false }
    }

    /// Ends the command, and says what is known of its end.
    fn post_mortem(&mut self, lost: &Lost, remedy: &str) -> MachineError {
        self.link = None;
        let exit = self.piped.wait(FAREWELL);
        let said = self.piped.kill();
        let exit = exit.map_or_else(String::new, |exit| format!(", and its command {exit}"));
        let mut last: Vec<&str> = said.lines().rev().take(LINES).collect();
        last.push(if last.is_empty() { "" } else { ". Its last lines:" });
        last.reverse();
        let error = self.error(format!("{lost}{exit}{remedy}{}", last.join("\n  ")));
        MachineError { gone: true, ..error }
    }

    fn lost(&mut self, lost: &Lost) -> MachineError {
        self.post_mortem(lost, "")
    }

    fn unreachable(&mut self, lost: &Lost, own: &Path) -> MachineError {
        if let Lost::Differs(_) = lost {
            return self.lost(lost);
        }
        let command = self.machine.command(own);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        let shown = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "));
        self.post_mortem(lost, &format!(". `narrows agent` must answer there: try `{shown}` in a shell"))
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if self.link.take().is_some() {
            let _ = self.piped.wait(FAREWELL);
        }
    }
}
