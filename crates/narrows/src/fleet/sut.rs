//! Trials whose systems run on another machine. Its agent has the bench; whatever drives or serves is asked from here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::bail;
use lab::ask::Ask;
use lab::observation::{Failure, Outcome, Scenario, Stage, Timing, Trial, shown_reason};
use lab::plan::Plan;
use lab::session::{
    Away, Executor, Generator, Here, Interrupted, Look, Serving, Speed, TrialError, pending_work,
};
use load::Moment;
use machines::{Machine, MachineError, Remote, Speaker};
use serve::CounterSnapshot;
use systems::{Catalog, Limit, Manifest, Parcel, is_reference};

use super::lab::{Brought, Done, Ended, Files, Opening, Reply, Task, Want};
use super::witness::Witness;
use crate::fleet::{self, AgentReply, At, Order, ServeOrder};
use crate::{built_in, common};

/// How often a wait looks whether the user interrupted.
const GLANCE: Duration = Duration::from_millis(50);
/// How long the machine may take to start or stop a server of Narrows.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most characters of a line that the machine says.
const LONGEST_LINE: usize = 1000;

/// The machine on which systems run.
pub struct Sut {
    machine: Machine,
    opening: Opening,
    files: Limit,
    cancel: Arc<AtomicBool>,
    generator: Box<dyn Generator>,
    /// `None` until it is reached, and after it was lost.
    remote: Option<Remote>,
    catalog: Catalog,
    /// The systems that it knows.
    known: BTreeSet<String>,
    /// What it said of itself.
    environment: serde_json::Value,
    /// Why it could not even say which systems it has.
    away: Option<Away>,
    /// What this side saw of the last task.
    seen: Witness,
}

/// Why a task has no result.
enum Trouble {
    Lost(MachineError),
    Interrupted,
}

impl From<MachineError> for Trouble {
    fn from(error: MachineError) -> Self {
        Self::Lost(error)
    }
}

impl From<Trouble> for TrialError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Lost(error) => {
                let stage = if error.gone { Stage::Machine } else { Stage::Start };
                Self::failed(stage, error.to_string())
            }
            Trouble::Interrupted => Self::Interrupted,
        }
    }
}

impl Sut {
    /// Reaches the machine. `generator` makes the generators for systems at an address.
    ///
    /// # Errors
    /// It cannot be reached, or has no bench.
    pub fn reach(
        machine: Machine,
        catalog: &Catalog,
        opening: Opening,
        (files, cancel): (Limit, Arc<AtomicBool>),
        generator: impl FnOnce(IpAddr, &mut Remote) -> anyhow::Result<Box<dyn Generator>>,
    ) -> anyhow::Result<Self> {
        let environment = serde_json::Value::Null;
        let no_generator: Box<dyn Generator> = Box::new(Here { cores: Vec::new() });
        let mut sut = Self {
            machine,
            opening,
            files,
            cancel,
            generator: no_generator,
            remote: None,
            catalog: catalog.clone(),
            known: BTreeSet::new(),
            environment,
            away: None,
            seen: Witness::default(),
        };
        let address = match sut.open() {
            Ok(address) => address,
            Err(Trouble::Lost(error)) => return Err(error.into()),
            Err(Trouble::Interrupted) => bail!("interrupted before {} was ready", sut.machine),
        };
        sut.environment = match sut.say(Task::Describe) {
            Ok(Done::Described(environment)) if environment.is_object() => environment,
            Err(Trouble::Lost(error)) => return Err(error.into()),
            Err(Trouble::Interrupted) => bail!("interrupted before {} was ready", sut.machine),
            Ok(_) => bail!("machine {}: it answered what was not asked", sut.machine),
        };
        // The same address again, should the machine have to be reached again.
        sut.opening.address = Some(address);
        if let Some(remote) = &mut sut.remote {
            sut.generator = generator(address, remote)?;
        }
        Ok(sut)
    }

    /// Reaches the machine, unless it is reached, and opens its bench.
    fn open(&mut self) -> Result<IpAddr, Trouble> {
        let error = |why: anyhow::Error| MachineError {
            machine: self.machine.to_string(),
            why: why.to_string(),
            gone: true,
        };
        let mut reached = match fleet::reach(std::slice::from_ref(&self.machine), self.files, &self.cancel) {
            Ok(reached) => reached,
            Err(why) => return Err(Trouble::Lost(why.downcast().unwrap_or_else(error))),
        };
        self.remote = reached.pop();
        let opened = self.converse(Task::Open(Box::new(self.opening.clone())))?;
        let Done::Opened(address) = opened else { return Err(self.unasked()) };
        self.known.clear();
        Ok(address)
    }

    fn unasked(&mut self) -> Trouble {
        let machine = self.machine.to_string();
        self.remote = None;
        Trouble::Lost(MachineError { machine, why: "it answered what was not asked".to_owned(), gone: true })
    }

    /// Lets the machine know these systems, and sends it their files if it lacks them.
    fn bring(&mut self, names: &BTreeSet<String>) -> Result<(), Trouble> {
        for name in names {
            if self.known.contains(name) {
                continue;
            }
            let Some(luggage) = self.luggage(name) else { continue };
            let (manifest, parcel) = luggage.map_err(|why| self.unusable(why))?;
            let files = match &parcel {
                Some(parcel) => Files::Parcel(parcel.hash()),
                None if self.catalog.is_there(name) => Files::There,
                None => Files::None,
            };
            let brought =
                || Task::Know(Box::new(Brought { manifest: manifest.clone(), files: files.clone() }));
            if let (Done::Lacks, Some(parcel)) = (self.converse(brought())?, parcel) {
                self.converse(Task::Unpack(Box::new(parcel)))?;
                self.converse(brought())?;
            }
            self.known.insert(name.clone());
        }
        Ok(())
    }

    /// What the machine needs for a system: its manifest, and those of its files that the machine lacks. `None` if the
    /// machine has what came with the program. The error says why its files cannot be sent.
    fn luggage(&self, name: &str) -> Option<Result<(Manifest, Option<Parcel>), String>> {
        // A system that nobody knows fails there.
        let manifest = self.catalog.get(name).ok()?;
        if is_reference(name) || built_in::is_home(manifest.home()) {
            return None;
        }
        // A command that was typed has no files of its own.
        let has_none = manifest.dir == manifest.home() || self.catalog.is_there(name);
        let parcel = (!has_none).then(|| Parcel::of(manifest)).transpose();
        Some(parcel.map(|parcel| (manifest.clone(), parcel)))
    }

    fn unusable(&self, why: String) -> Trouble {
        Trouble::Lost(MachineError { machine: self.machine.to_string(), why, gone: false })
    }

    /// The same as `say`, for a task with these systems.
    fn say_with(&mut self, systems: &BTreeSet<String>, task: Task) -> Result<Done, Trouble> {
        if self.remote.is_none() {
            self.open()?;
        }
        self.bring(systems)?;
        self.converse(task)
    }

    /// What the machine says of a trial. A measurement that cannot be true, or that is not what this side saw, is a failure of the trial.
    fn checked(&self, trial: &Trial, outcome: Outcome) -> Outcome {
        let Outcome::Measured(measured) = &outcome else { return outcome };
        let makes_sense = measured.check().map_err(|why| format!("makes no sense: {why}"));
        let was_seen =
            || self.seen.check(trial, measured).map_err(|why| format!("is not what this side saw: {why}"));
        let Err(why) = makes_sense.and_then(|()| was_seen()) else { return outcome };
        let reason = format!(
            "machine {}: its measurement {why}; do not trust this machine, and run the trial again",
            self.machine
        );
        Outcome::Failed(Failure::new(Stage::Counts, &reason, ""))
    }

    /// Gives the bench a task, and answers what it wants until the task is done. A machine that was lost is reached again.
    fn say(&mut self, task: Task) -> Result<Done, Trouble> {
        if self.remote.is_none() {
            self.open()?;
        }
        self.converse(task)
    }

    fn converse(&mut self, task: Task) -> Result<Done, Trouble> {
        let Some(remote) = &mut self.remote else { return Err(self.unasked()) };
        let (generator, patience) = (&*self.generator, task.patience());
        self.seen = Witness::default();
        let seen = &mut self.seen;
        let talk = Talk { remote, generator, cancel: &self.cancel, patience, seen, serving: None };
        let done = talk.until_done(task);
        if matches!(done, Err(Trouble::Lost(_))) {
            self.remote = None;
        }
        done
    }
}

/// Starts a server of Narrows' own at this address of the machine. Returns its address and its number of threads.
///
/// # Errors
/// The machine is gone, or cannot listen there.
pub fn serve(remote: &mut Remote, at: At) -> anyhow::Result<(SocketAddr, usize)> {
    fleet::order(remote, &Order::Serve(ServeOrder { at, max_keepalive: 0, silent: false }))?;
    match fleet::answer(remote, PATIENCE)? {
        Some(AgentReply::Serves { address, threads }) => Ok((address, threads)),
        _ => bail!(fleet::unasked(remote)),
    }
}

/// What that server has counted.
///
/// # Errors
/// The machine is gone, or serves nobody.
pub fn counts(remote: &mut Remote, order: &Order) -> anyhow::Result<CounterSnapshot> {
    fleet::order(remote, order)?;
    match fleet::answer(remote, PATIENCE)? {
        Some(AgentReply::Counted(counts)) => Ok(counts),
        _ => bail!(fleet::unasked(remote)),
    }
}

/// A task that goes on.
struct Talk<'a> {
    remote: &'a mut Remote,
    generator: &'a dyn Generator,
    cancel: &'a AtomicBool,
    /// How long the bench may take until it is done or wants something driven or served. A machine beats even if its bench hangs.
    patience: Duration,
    seen: &'a mut Witness,
    serving: Option<Box<dyn Serving + 'a>>,
}

impl Talk<'_> {
    fn until_done(mut self, task: Task) -> Result<Done, Trouble> {
        let farewell = task.farewell();
        fleet::order(self.remote, &Order::Task(Box::new(task)))?;
        // What it says on its way is no progress, and neither is a look at what was counted.
        let (mut deadline, mut advanced) = (None, Instant::now());
        loop {
            if deadline.is_none() && self.cancel.load(Ordering::Relaxed) {
                deadline = Some(Instant::now() + farewell);
                fleet::order(self.remote, &Order::Stop)?;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(Trouble::Interrupted);
            }
            match fleet::answer(self.remote, GLANCE)? {
                Some(AgentReply::Done(done)) => match *done {
                    // What another machine says does not control this terminal.
                    Done::Say(line) => common::say(
                        printable::printable(&line).chars().take(LONGEST_LINE).collect::<String>(),
                    ),
                    done => return Ok(done),
                },
                Some(AgentReply::Want(want)) => {
                    let is_work = matches!(*want, Want::Drive(_) | Want::Serve(_));
                    if is_work && let Err(why) = self.seen.wants() {
                        return Err(self.remote.error(why).into());
                    }
                    self.answer(*want)?;
                    if is_work {
                        // The time in which this side drives is not the bench's.
                        advanced = Instant::now();
                    }
                }
                Some(_) => return Err(fleet::unasked(self.remote).into()),
                None => {}
            }
            if advanced.elapsed() >= self.patience {
                let seconds = self.patience.as_secs();
                let why = format!("its task has not advanced for {seconds} s: look what it does there");
                return Err(Trouble::Lost(MachineError { gone: true, ..self.remote.error(why) }));
            }
        }
    }

    fn answer(&mut self, want: Want) -> Result<(), Trouble> {
        let reply = match want {
            Want::Drive(assignment) => Reply::Driven(self.drive(*assignment)?.map(Box::new).into()),
            Want::Serve(work) => Reply::Serves(
                self.generator
                    .serve(&work)
                    .map(|server| {
                        let server = self.serving.insert(server);
                        (server.address(), server.threads())
                    })
                    .into(),
            ),
            Want::Counts => Reply::Counted(match &self.serving {
                Some(server) => server.counts().into(),
                None => no_server(),
            }),
            Want::StopServing => Reply::Counted(match self.serving.take() {
                Some(server) => server.stop().inspect(|counts| self.seen.served(*counts)).into(),
                None => no_server(),
            }),
        };
        Ok(fleet::order(self.remote, &Order::Reply(Box::new(reply)))?)
    }

    fn drive(
        &mut self,
        assignment: load::Assignment,
    ) -> Result<Result<lab::session::Driven, TrialError>, Trouble> {
        let job = match assignment.job() {
            Ok(job) => job,
            Err(why) => return Err(self.remote.error(format!("its job makes no sense: {why}")).into()),
        };
        let Some(speaker) = self.remote.speaker() else {
            return Err(self.remote.error("it is gone").into());
        };
        let watch = |moment: Moment<'_>| match moment {
            Moment::Opened => tell(&speaker, Reply::WindowOpened),
            Moment::Closed => tell(&speaker, Reply::WindowClosed),
            Moment::Passed { .. } => {}
        };
        let driven = self.generator.drive(&job, self.cancel, &watch);
        if let Ok(driven) = &driven {
            self.seen.drove(&job, driven);
        }
        Ok(driven)
    }
}

fn no_server<T>() -> Ended<T> {
    Err(TrialError::failed(Stage::Drive, "no server was started")).into()
}

/// A machine that cannot be told any more is noticed by whoever listens to it.
fn tell(speaker: &Speaker, reply: Reply) {
    if let Ok(what) = serde_json::to_value(Order::Reply(Box::new(reply))) {
        let _ = speaker.send(what);
    }
}

impl Executor for Sut {
    fn probe(&mut self, systems: &BTreeSet<String>) -> Result<BTreeMap<String, String>, Interrupted> {
        self.away = None;
        // A system that cannot be sent takes no part.
        let cannot = |name: &&String| Some(((*name).clone(), self.luggage(name)?.err()?));
        let mut unsent: BTreeMap<String, String> = systems.iter().filter_map(|name| cannot(&name)).collect();
        let sent = systems.iter().filter(|name| !unsent.contains_key(*name)).cloned().collect();
        match self.say_with(&sent, Task::Probe(sent.clone())) {
            Ok(Done::Missing(Ended::Well(missing))) => {
                // Answers about other systems are ignored.
                let asked = missing.into_iter().filter(|(name, _)| systems.contains(name));
                unsent.extend(asked.map(|(name, why)| (name, shown_reason(&why))));
                Ok(unsent)
            }
            Err(Trouble::Lost(error)) => {
                self.away = Some(Away { why: error.to_string(), without: None });
                Err(Interrupted)
            }
            _ => Err(Interrupted),
        }
    }

    fn environment(&self) -> serde_json::Value {
        self.environment.clone()
    }

    fn away(&self) -> Option<&Away> {
        self.away.as_ref()
    }

    fn prepare(&mut self, plan: &Plan, pending: &[u32], say: &mut dyn FnMut(&str)) {
        let (systems, connections) = pending_work(plan, pending);
        let task = Task::Prepare { systems: systems.clone(), connections };
        if let Err(Trouble::Lost(error)) = self.say_with(&systems, task) {
            say(&error.to_string());
        }
    }

    fn look(
        &mut self,
        scenario: &Scenario,
        ask: &Ask,
        timing: Timing,
        speed: Speed,
    ) -> Result<Option<Look>, TrialError> {
        let systems = BTreeSet::from([scenario.system.clone()]);
        let (scenario, ask) = (Box::new(scenario.clone()), Box::new(ask.clone()));
        match self.say_with(&systems, Task::Look { scenario, ask, timing, speed })? {
            Done::Looked(looked) => looked.into(),
            _ => Err(self.unasked().into()),
        }
    }

    fn execute(&mut self, trial: &Trial) -> Result<Outcome, Interrupted> {
        self.away = None;
        let systems = BTreeSet::from([trial.scenario.system.clone()]);
        let task = Task::Execute { trial: Box::new(trial.clone()), ask: trial.ask.clone() };
        match self.say_with(&systems, task) {
            Ok(Done::Executed(Ended::Well(outcome))) => Ok(self.checked(trial, outcome)),
            Ok(Done::Executed(Ended::Failed(failure))) => Ok(Outcome::Failed(failure)),
            Ok(Done::Executed(Ended::Interrupted)) | Err(Trouble::Interrupted) => Err(Interrupted),
            Ok(_) => failed(self.unasked()),
            Err(trouble) => failed(trouble),
        }
    }
}

fn failed(trouble: Trouble) -> Result<Outcome, Interrupted> {
    match trouble.into() {
        TrialError::Failed(failure) => Ok(Outcome::Failed(failure)),
        TrialError::Interrupted => Err(Interrupted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message as it goes through a pipe.
    fn framed(message: &serde_json::Value) -> Vec<u8> {
        let text = message.to_string().into_bytes();
        [&(text.len() as u32).to_be_bytes()[..], &text].concat()
    }

    #[test]
    fn a_bench_that_only_beats_is_given_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let hello = serde_json::json!({
            "message": "hello", "protocol": machines::PROTOCOL, "version": env!("CARGO_PKG_VERSION"),
        });
        let file = |name: &str, message: &serde_json::Value| {
            let path = folder.path().join(name);
            std::fs::write(&path, framed(message)).expect("it is written");
            path.display().to_string()
        };
        let (hello, beat) = (file("hello", &hello), file("beat", &serde_json::json!({"message": "beat"})));
        let agent = format!("exec:sh -c 'cat {hello}; while cat {beat}; do sleep 1; done'");
        let machine: Machine = agent.parse().expect("a machine");
        let cancel = AtomicBool::new(false);
        let mut reached = fleet::reach(&[machine], Limit::default(), &cancel).expect("it greets");
        let talk = Talk {
            remote: &mut reached[0],
            generator: &Here { cores: Vec::new() },
            cancel: &cancel,
            patience: Duration::from_millis(100),
            seen: &mut Witness::default(),
            serving: None,
        };
        let Err(Trouble::Lost(error)) = talk.until_done(Task::Describe) else { panic!("it must be lost") };
        assert!(error.gone && error.why.contains("its task has not advanced"), "{error}");
    }
}
