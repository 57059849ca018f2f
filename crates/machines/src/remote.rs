//! This side's hold on a machine: the command that gives the pipe, and what is said over it.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use printable::printable_lines;
use serde_json::Value;
use systems::piped::Piped;
use systems::subprocess;

use crate::address::Machine;
use crate::clock::{FEWEST, MOST, Offset, Round};
use crate::error::MachineError;
use crate::link::{Clock, Link, Lost, Received, SILENCE, Speaker};
use crate::message::Hello;
use crate::program::{HandOver, Program};
use crate::slurm::{Allocation, Node};

/// How long an agent may take to end when its pipe has closed.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long a machine may take to remove what was copied to it and built there.
const CLEANING: Duration = Duration::from_secs(600);

/// How many of the last lines of a command's standard error are shown.
const LINES: usize = 5;
/// The most characters of an error, in which a machine may have the word.
const LONGEST_ERROR: usize = 4000;

/// Who reaches machines.
pub struct Caller<'a> {
    /// The path of this program.
    pub own: &'a Path,
    /// What it says first.
    pub hello: &'a Hello,
    /// Its clock.
    pub clock: Clock,
    /// Whether the user interrupted.
    pub cancel: &'a AtomicBool,
    /// Shows the user what takes long.
    pub notice: &'a dyn Fn(&str),
}

/// A machine whose agent has answered. Dropping it closes the pipe, so that the agent ends, and then kills the command. The last
/// machine of an allocation gives it back.
pub struct Remote {
    machine: Machine,
    /// What it said of itself.
    pub hello: Hello,
    link: Option<Link>,
    /// What was said while the clock was read.
    said: Option<Vec<u8>>,
    piped: Piped,
    /// Dropped after the command.
    _allocation: Option<Arc<Allocation>>,
}

impl Remote {
    /// Reaches these machines at the same time. The machines of one request to Slurm follow each other, as
    /// [`crate::parse_list`] gives them.
    ///
    /// Call it from a thread that lives as long as the machines are needed: see [`Piped`].
    ///
    /// # Errors
    /// The first machine that cannot be reached, or whose agent is of another version.
    pub fn reach(machines: &[Machine], caller: &Caller<'_>) -> Result<Vec<Self>, MachineError> {
        let program = match machines.iter().find(|machine| machine.gets_program()) {
            Some(machine) => Some(Program::own().map(Arc::new).map_err(|why| MachineError {
                machine: machine.to_string(),
                why: format!("cannot read this program to send it there: {why}"),
                gone: true,
            })?),
            None => None,
        };
        let mut started = Vec::new();
        let mut allocation = None;
        for machine in machines {
            let mut machine = machine.clone();
            let held = match &mut machine {
                Machine::Slurm(node) => Some(grant(node, &mut allocation, caller)?),
                _ => None,
            };
            started.push(Self::start(machine, held, program.as_ref(), caller)?);
        }
        started.into_iter().map(|(remote, talk)| remote.greet(talk, caller)).collect()
    }

    fn start(
        machine: Machine,
        allocation: Option<Arc<Allocation>>,
        program: Option<&Arc<Program>>,
        caller: &Caller<'_>,
    ) -> Result<(Self, HandOver<Link>), MachineError> {
        let program = program.filter(|_| machine.gets_program());
        let command = machine.command(caller.own, program.map(Arc::as_ref));
        let name = command.get_program().to_string_lossy().into_owned();
        let (piped, input, output) = Piped::start(command).map_err(|why| MachineError {
            machine: machine.to_string(),
            why: format!("cannot start `{name}`: {why}. Install it, or correct its name"),
            gone: true,
        })?;
        let (hello, clock) = (caller.hello.clone(), caller.clock);
        let talk = HandOver::begin(program, input, output, move |input, output| {
            Link::new(output, input, &hello, clock).map_err(|why| Lost::Broken(why.to_string()))
        });
        let (hello, link, said) = (Hello::default(), None, None);
        Ok((Self { machine, hello, link, said, piped, _allocation: allocation }, talk))
    }

    fn greet(mut self, talk: HandOver<Link>, caller: &Caller<'_>) -> Result<Self, MachineError> {
        let greeted = talk.finish(caller.cancel).and_then(|mut link| {
            let hello = link.greet(caller.hello)?;
            Ok((hello, link))
        });
        match greeted {
            Ok((hello, link)) => {
                (self.hello, self.link) = (hello, Some(link));
                Ok(self)
            }
            Err(lost) => Err(self.unreachable(&lost, caller.own)),
        }
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
        let said = self.said.take();
        let received = self.link().and_then(|link| match said {
            Some(frame) => link.read(&frame).map(Some),
            None => link.receive(patience),
        });
        received.map_err(|lost| self.lost(&lost))
    }

    /// Measures how far the machine's clock is ahead, as well as it can be known.
    ///
    /// # Errors
    /// The machine is gone, or says more than what one order answers.
    pub fn offset(&mut self) -> Result<Offset, MachineError> {
        let mut offsets = Self::offsets(&mut [&mut *self], Duration::ZERO)?;
        offsets.pop().ok_or_else(|| self.senseless())
    }

    /// Measures how far the clocks of these machines are ahead, of all at the same time. It ends as soon as the error of each is
    /// `enough`, because every round trip makes a trial longer.
    ///
    /// # Errors
    /// The first machine that is gone, or that says more than what one order answers.
    pub fn offsets(remotes: &mut [&mut Self], enough: Duration) -> Result<Vec<Offset>, MachineError> {
        let mut rounds = vec![Vec::new(); remotes.len()];
        let mut offsets = Vec::new();
        for round in 1..=MOST {
            for remote in remotes.iter_mut() {
                remote.ping().map_err(|lost| remote.lost(&lost))?;
            }
            // A pong has the time of its arrival, so it does not matter when it is taken.
            for (remote, rounds) in remotes.iter_mut().zip(&mut rounds) {
                rounds.push(remote.pong().map_err(|lost| remote.lost(&lost))?);
            }
            offsets = rounds.iter().map(|rounds| Offset::of(rounds)).collect();
            let good = |offset: &Option<Offset>| {
                offset.is_some_and(|offset| u128::from(offset.error_ns) <= enough.as_nanos())
            };
            if round >= FEWEST && offsets.iter().all(good) {
                break;
            }
        }
        let known = |(offset, remote): (Option<Offset>, &mut &mut Self)| {
            offset.filter(possible).ok_or_else(|| remote.senseless())
        };
        offsets.into_iter().zip(remotes).map(known).collect()
    }

    fn ping(&mut self) -> Result<(), Lost> {
        self.link()?.ping()
    }

    fn pong(&mut self) -> Result<Round, Lost> {
        loop {
            match self.link()?.take(SILENCE)? {
                Some(Received::Pong(round)) => return Ok(round),
                Some(Received::Says(frame)) if self.said.is_none() => self.said = Some(frame),
                Some(_) => return Err(Lost::Broken("it spoke while its clock was read".to_owned())),
                None => return Err(Lost::Silent),
            }
        }
    }

    fn senseless(&mut self) -> MachineError {
        self.lost(&Lost::Broken("its clock makes no sense".to_owned()))
    }

    /// The error of a machine that says what nobody expects, or too late.
    pub fn error(&self, why: impl Into<String>) -> MachineError {
        // What another machine says does not control this terminal.
        let why = printable_lines(&printable::beginning(&why.into(), LONGEST_ERROR));
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
        if let Lost::Differs(_) | Lost::Interrupted = lost {
            return self.lost(lost);
        }
        let remedy = if self.machine.gets_program() {
            format!(". A shell must answer there: try `{}`", shown(&self.machine.shell("true")))
        } else {
            let command = self.machine.command(own, None);
            format!(". `narrows agent` must answer there: try `{}` in a shell", shown(&command))
        };
        self.post_mortem(lost, &remedy)
    }
}

/// A longer way would have been taken for silence.
fn possible(offset: &Offset) -> bool {
    u128::from(offset.round_trip_ns) < SILENCE.as_nanos()
}

/// A command as a shell takes it.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

/// Gives a node of Slurm its name. The first node of a request takes the allocation of all.
fn grant(
    node: &mut Node,
    current: &mut Option<Arc<Allocation>>,
    caller: &Caller<'_>,
) -> Result<Arc<Allocation>, MachineError> {
    let error = |why| MachineError { machine: Machine::Slurm(node.clone()).to_string(), why, gone: true };
    let allocation = match current.take_if(|_| node.index > 0) {
        Some(allocation) => allocation,
        None => Arc::new(node.request.allocate(caller.cancel, caller.notice).map_err(error)?),
    };
    node.granted = allocation.nodes.get(usize::from(node.index)).cloned();
    *current = Some(Arc::clone(&allocation));
    Ok(allocation)
}

/// Removes the programs that were sent to a machine.
///
/// # Errors
/// It cannot be reached, or nothing is sent to machines of its kind.
pub fn clean(machine: &Machine, cancel: &AtomicBool) -> Result<(), MachineError> {
    let error = |why: String| MachineError { machine: machine.to_string(), why, gone: true };
    match machine {
        Machine::Local | Machine::Ssh { .. } => {}
        Machine::Exec(_) => {
            return Err(error("run `narrows agent --clean` there".to_owned()));
        }
        Machine::Slurm(_) => {
            return Err(error(
                "name its nodes by ssh://, or clean in a job: srun -N NODES narrows agent --clean".to_owned(),
            ));
        }
    }
    let deadline = systems::wait::deadline_in(CLEANING);
    let cleaned = subprocess::capture(machine.shell(&Program::cleaning()), deadline, cancel);
    match cleaned {
        Ok(captured) if captured.is_success() => Ok(()),
        Ok(captured) => {
            let said = printable_lines(&captured.err);
            Err(error(format!("what was sent there is not removed: {said}")))
        }
        Err(why) => Err(error(format!("cannot start its command: {why}"))),
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if self.link.take().is_some() {
            let _ = self.piped.wait(FAREWELL);
        }
    }
}
