//! `narrows agent`: the other end of a pipe from another `narrows` (docs/contracts.md, "A pipe to another machine").
//!
//! It does one thing at a time, and listens meanwhile. It can also run systems that the other side drives. When the pipe closes, or
//! the other side has been silent for too long, it ends what it has begun, and itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use bench::Benchwork;
use lab::session::TrialError;
use load::{Job, Moment, Rendezvous, Stop};
use machines::{Link, Lost, Speaker};
use reactor::{Address, Time};
use serve::Server;
use systems::machine::Environment;
use systems::network::Interface;
use systems::{Limit, machine};
use workshop::{Begun, Workshop};

use crate::common::{self, End, Usage};
use crate::doctor_verb;
use crate::drive::{Window, classify, wait_for};
use crate::fleet::lab::Task;
use crate::fleet::workshop::Step;
use crate::fleet::{self, AgentDrive, AgentReply, At, Described, DriveOrder, MachineList, Order, ServeOrder};

mod bench;
mod workshop;

/// How long the agent listens while it has nothing to do.
const IDLE: Duration = Duration::from_millis(100);
/// How often it looks whether its work is done.
const GLANCE: Duration = Duration::from_millis(20);
/// How often it looks whether its generator is ready.
const SHORT: Duration = Duration::from_millis(1);
/// How long work may take to end when it is cancelled, before it ends with the program.
const FAREWELL: Duration = Duration::from_secs(2);

/// How often it says that a drive of a number of exchanges goes on.
const PROGRESS: Duration = Duration::from_secs(1);

/// `narrows agent`
#[derive(clap::Args)]
pub struct Args {
    /// Remove the programs, systems and commits that `--gen` and `--sut` sent to this machine, and the packages of Debian's releases
    /// that were fetched there; or on these machines: ssh://[user@]host[:port], separated by commas. A run that uses them fails. Serve nobody
    #[arg(long, value_name = "MACHINES", num_args = 0..=1, default_missing_value = "local")]
    clean: Vec<MachineList>,
}

/// Serves the other side until it closes the pipe, or cleans machines.
pub fn run(args: &Args, files: Limit) -> End {
    if !args.clean.is_empty() {
        let cancel = common::cancellation()?;
        args.clean
            .iter()
            .flat_map(|list| &list.0)
            .try_for_each(|machine| machines::clean(machine, &cancel))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (input, output) = (std::io::stdin(), std::io::stdout());
    if input.is_terminal() || output.is_terminal() {
        bail!(Usage(
            "`narrows agent` talks to another narrows over its standard input and output: name this machine there, such as \
             `narrows doctor --gen ssh://HOST`"
                .to_owned()
        ));
    }
    let context = "cannot use standard input and output";
    let input = File::from(input.as_fd().try_clone_to_owned().context(context)?);
    let output = File::from(output.as_fd().try_clone_to_owned().context(context)?);
    let hello = fleet::hello(files);
    let mut link = Link::new(input, output, &hello, fleet::clock).context(context)?;
    match link.greet(&hello).and_then(|_| attend(&mut link, files)) {
        // The usual end.
        Ok(()) | Err(Lost::Closed) => Ok(ExitCode::SUCCESS),
        Err(lost) => Err(anyhow!("the other side of the pipe: {lost}")),
    }
}

/// Carries orders out until the pipe is lost.
fn attend(link: &mut Link, files: Limit) -> Result<(), Lost> {
    let mut agent = Agent {
        speaker: link.speaker(),
        files,
        work: None,
        server: None,
        bench: None,
        workshop: Workshop::default(),
    };
    loop {
        let patience = agent.glance();
        let Some(what) = link.receive(patience)? else { continue };
        match serde_json::from_value(what) {
            Ok(order) => agent.obey(order)?,
            Err(why) => agent.say(&failed(format!("the order makes no sense: {why}")))?,
        }
    }
}

/// What an agent has begun.
struct Agent {
    speaker: Speaker,
    files: Limit,
    work: Option<Work>,
    server: Option<Server>,
    bench: Option<Benchwork>,
    workshop: Workshop,
}

impl Agent {
    fn say(&self, answer: &AgentReply) -> Result<(), Lost> {
        say(&self.speaker, answer)
    }

    /// Looks after the work. Returns how long it may be left alone.
    fn glance(&mut self) -> Duration {
        match self.work.as_mut().map(Work::look_after) {
            None => IDLE,
            Some(Progress::Goes) => GLANCE,
            Some(Progress::GetsReady) => SHORT,
            Some(Progress::Ended) => {
                self.work = None;
                IDLE
            }
        }
    }

    fn obey(&mut self, order: Order) -> Result<(), Lost> {
        // It may have ended meanwhile.
        self.glance();
        let busy = self.work.is_some();
        match order {
            Order::Describe(interface) => {
                let files = self.files;
                self.say(&AgentReply::Described(Box::new(describe(interface, files))))
            }
            Order::Weigh(filler) => self.say(&AgentReply::Weighed(filler.len())),
            Order::Examine | Order::Drive(_) | Order::Workshop(_) if busy => {
                self.say(&failed("it is busy with something else"))
            }
            Order::Examine => {
                let files = self.files;
                self.begin(None, move |_, cancel| examine(files, cancel))
            }
            Order::Drive(order) => match prepare(*order) {
                Ok((job, wait)) => {
                    let waits = job.rendezvous.clone().map(|rendezvous| (rendezvous, job.workers()));
                    self.begin(waits, move |speaker, cancel| drive(&job, wait, speaker, cancel))
                }
                Err(why) => self.say(&failed(why)),
            },
            Order::Begin(at) => {
                if let Some(Work { waits: Some((rendezvous, _)), .. }) = &self.work {
                    rendezvous.open_at(Time::from_nanos(at));
                }
                Ok(())
            }
            Order::Stop => {
                if let Some(work) = &self.work {
                    work.cancel.store(true, Ordering::Relaxed);
                }
                if let Some(bench) = &self.bench {
                    bench.stop();
                }
                Ok(())
            }
            Order::Serve(order) => self.serve(&order),
            Order::Counts => match &self.server {
                Some(server) => self.say(&AgentReply::Counted(server.counts())),
                None => self.say(&failed("it serves nobody")),
            },
            Order::StopServing => {
                let answer = self.stop_serving();
                self.say(&answer)
            }
            Order::Task(task) => self.task(*task),
            Order::Reply(reply) => {
                if let Some(bench) = &self.bench {
                    bench.reply(*reply);
                }
                Ok(())
            }
            Order::Workshop(step) => self.step(*step),
        }
    }

    fn begin(
        &mut self,
        waits: Option<(Rendezvous, usize)>,
        task: impl FnOnce(&Speaker, &AtomicBool) -> anyhow::Result<AgentReply> + Send + 'static,
    ) -> Result<(), Lost> {
        self.work = Some(Work::begin(self.speaker.clone(), waits, task));
        Ok(())
    }

    /// Gives its bench a task.
    fn task(&mut self, task: Task) -> Result<(), Lost> {
        let (speaker, files) = (&self.speaker, self.files);
        let bench = self.bench.get_or_insert_with(|| Benchwork::begin(speaker.clone(), files));
        match bench.task(task) {
            true => Ok(()),
            false => self.say(&failed("its bench ended abnormally")),
        }
    }

    /// Does a step towards a commit that is built here.
    fn step(&mut self, step: Step) -> Result<(), Lost> {
        match self.workshop.step(step) {
            Ok(Begun::Ended(stage)) => self.say(&AgentReply::Workshop(Box::new(stage))),
            Ok(Begun::Goes(build)) => {
                self.begin(None, move |_, cancel| Ok(AgentReply::Workshop(Box::new(build.run(cancel)))))
            }
            Err(why) => self.say(&failed(why)),
        }
    }

    fn stop_serving(&mut self) -> AgentReply {
        match self.server.take().map(Server::stop) {
            Some(Ok(counts)) => AgentReply::Counted(counts),
            Some(Err(why)) => failed(why.to_string()),
            None => failed("it serves nobody"),
        }
    }

    /// Starts a server for another machine.
    fn serve(&mut self, order: &ServeOrder) -> Result<(), Lost> {
        self.server = None;
        let cores = machine::available_cores();
        let own = match order.at {
            At::Own(own) => Ok(own),
            At::Towards(other) => {
                bench::address_towards(other).map_err(|why| format!("there is no way to {other}: {why}"))
            }
            At::Reached => bench::reached_at().map_err(|why| why.to_string()),
        };
        let started = own.and_then(|own| {
            match lab::session::start_server(order.max_keepalive, order.silent, (own, 0).into(), &cores) {
                Ok(server) => Ok(server),
                Err(TrialError::Failed(failure)) => Err(failure.reason),
                Err(TrialError::Interrupted) => Err("interrupted".to_owned()),
            }
        });
        match started {
            Ok(server) => {
                let answer = AgentReply::Serves { address: server.address(), threads: cores.len() };
                self.server = Some(server);
                self.say(&answer)
            }
            Err(why) => self.say(&failed(why)),
        }
    }
}

fn say(speaker: &Speaker, answer: &AgentReply) -> Result<(), Lost> {
    speaker.send(serde_json::to_value(answer).map_err(|why| Lost::Broken(why.to_string()))?)
}

fn failed(why: impl Into<String>) -> AgentReply {
    AgentReply::Failed(why.into())
}

/// What an agent does, on a thread of its own. Dropping it cancels it, and waits for a moment until it has ended.
struct Work {
    speaker: Speaker,
    cancel: Arc<AtomicBool>,
    /// A drive's rendezvous and its number of threads, until all of them are ready.
    waits: Option<(Rendezvous, usize)>,
    said_ready: bool,
    /// The thread says when it has nothing more to say.
    ended: Receiver<()>,
}

/// How work goes on.
enum Progress {
    /// Its generators are not ready yet.
    GetsReady,
    Goes,
    Ended,
}

impl Work {
    fn begin(
        speaker: Speaker,
        waits: Option<(Rendezvous, usize)>,
        task: impl FnOnce(&Speaker, &AtomicBool) -> anyhow::Result<AgentReply> + Send + 'static,
    ) -> Self {
        let cancel = Arc::new(AtomicBool::new(false));
        let (end, ended) = channel();
        let (cancelled, own) = (Arc::clone(&cancel), speaker.clone());
        let run = move || {
            let answer = task(&own, &cancelled).unwrap_or_else(|why| failed(format!("{why:#}")));
            // The other side gives the next order as soon as it has the answer. Nobody listens when the pipe is lost.
            let _ = end.send(());
            let _ = say(&own, &answer);
        };
        // Without the thread its channel is closed, which is answered.
        let _ = thread::Builder::new().name("work".to_owned()).spawn(run);
        Self { speaker, cancel, waits, said_ready: false, ended }
    }

    /// Says what there is to say about the work now. A lost pipe is noticed by whoever listens to it.
    fn look_after(&mut self) -> Progress {
        match self.ended.try_recv() {
            Ok(()) => return Progress::Ended,
            Err(TryRecvError::Disconnected) => {
                let _ = say(&self.speaker, &failed("its work ended abnormally"));
                return Progress::Ended;
            }
            Err(TryRecvError::Empty) => {}
        }
        let Some((rendezvous, threads)) = &self.waits else { return Progress::Goes };
        if self.said_ready {
            return Progress::Goes;
        }
        if rendezvous.ready() < *threads {
            return Progress::GetsReady;
        }
        self.said_ready = true;
        let _ = say(&self.speaker, &AgentReply::Ready);
        Progress::Goes
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
        let _ = self.ended.recv_timeout(FAREWELL);
    }
}

fn describe(interface: At, files: Limit) -> Described {
    let interface = match interface {
        At::Own(own) => Interface::with(own),
        At::Towards(other) => Interface::towards(other),
        At::Reached => bench::reached_at().ok().and_then(Interface::with),
    };
    Described {
        environment: Environment::read(files),
        architecture: std::env::consts::ARCH.to_owned(),
        interface,
    }
}

fn examine(files: Limit, cancel: &AtomicBool) -> anyhow::Result<AgentReply> {
    Ok(AgentReply::Examined(Box::new(doctor_verb::examine(files, cancel)?)))
}

/// The job of an order, if this machine may and can do it.
fn prepare(order: DriveOrder) -> Result<(Job, Option<Duration>), String> {
    let mut job = order.job.job().map_err(|why| format!("the job makes no sense: {why}"))?;
    if let Address::Tcp(address) = job.target.address
        && !address.ip().is_loopback()
        && !order.allow_remote
    {
        return Err(load::LoadError::Remote { address }.to_string());
    }
    let available = machine::available_cores();
    if let Some(core) = job.threads.iter().flatten().find(|core| !available.contains(core)) {
        return Err(format!("--cores: its agent may not run on core {core}, only on {available:?}"));
    }
    job.rendezvous = Some(Rendezvous::default());
    // A number of exchanges takes as long as it takes, so the other side is told that they go on.
    job.reports = matches!(job.stop, Stop::Count(_)).then_some(PROGRESS);
    Ok((job, order.wait))
}

/// What has ended in each thread of a drive.
#[derive(Default)]
struct Ended(Mutex<BTreeMap<usize, u64>>);

impl Ended {
    /// Whether more exchanges of a thread have ended than it said last.
    fn moves(&self, thread: usize, ended: u64) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(thread, ended).unwrap_or(0) < ended
    }
}

fn drive(
    job: &Job,
    wait: Option<Duration>,
    speaker: &Speaker,
    cancel: &AtomicBool,
) -> anyhow::Result<AgentReply> {
    if let Some(patience) = wait {
        wait_for(&job.target.address, patience, cancel)?;
    }
    let window = Window::default();
    let ends = [const { AtomicU64::new(0) }; 2];
    let progress = Ended::default();
    let tally = load::drive(job, cancel, &|moment| {
        match moment {
            Moment::Opened => ends[0].store(fleet::clock(), Ordering::Relaxed),
            Moment::Closed => {
                ends[1].store(fleet::clock(), Ordering::Relaxed);
                let _ = say(speaker, &AgentReply::Closed);
            }
            Moment::Passed { thread, so_far, .. } => {
                if progress.moves(thread, so_far.successes.saturating_add(so_far.failures())) {
                    let _ = say(speaker, &AgentReply::Goes);
                }
                return;
            }
        }
        window.record(moment);
    });
    let tally = tally.map_err(classify)?;
    let disturbed = window.disturbed();
    let [opened_ns, closed_ns] = ends.map(AtomicU64::into_inner);
    Ok(AgentReply::Driven(Box::new(AgentDrive {
        tally,
        opened_ns,
        closed_ns,
        stolen_s: disturbed.stolen_s,
        throttles: disturbed.throttles,
        ports: machine::ports(),
        files: machine::file_limit(),
    })))
}

#[cfg(test)]
mod tests {
    use load::Assignment;
    use load::target::{Http, Target, Traffic};

    use super::*;

    fn order(address: &str, allow_remote: bool, cores: Vec<Option<usize>>) -> DriveOrder {
        let address = address.parse::<std::net::SocketAddr>().expect("an address").into();
        let target = Target { address, traffic: Traffic::Http(Http::get("h", "/")) };
        let mut job = Job::new(target, 1, Stop::Count(1));
        job.threads = cores;
        DriveOrder { job: Assignment::of(&job).expect("it can be sent"), allow_remote, wait: None }
    }

    #[test]
    fn an_agent_keeps_to_its_own_machine_unless_it_is_told_otherwise() {
        let refused = |address, allow_remote| prepare(order(address, allow_remote, vec![None])).err();
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1"] {
            assert_eq!(refused(address, false), None);
        }
        for address in ["192.0.2.1:80", "0.0.0.0:80", "[2001:db8::1]:80"] {
            assert!(refused(address, false).is_some_and(|why| why.contains("--allow-remote")), "{address}");
            assert_eq!(refused(address, true), None);
        }
    }

    #[test]
    fn cores_that_this_machine_does_not_have_are_refused() {
        let own = machine::available_cores()[0];
        assert!(prepare(order("127.0.0.1:1", false, vec![Some(own)])).is_ok());
        let why = prepare(order("127.0.0.1:1", false, vec![Some(own), Some(usize::MAX)])).err();
        assert!(why.is_some_and(|why| why.contains(&usize::MAX.to_string())));
    }
}
