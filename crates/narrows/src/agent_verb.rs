//! `narrows agent`: the other end of a pipe from another `narrows` (docs/contracts.md, "A pipe to another machine").
//!
//! It does one thing at a time, and listens meanwhile. When the pipe closes, or the other side has been silent for too long, it
//! ends what it has begun, and itself.

use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use load::{Job, Moment, Rendezvous};
use machines::{Link, Lost};
use reactor::{Address, Time};
use systems::{Limit, machine};

use crate::common::{self, End, Usage};
use crate::fleet::{self, Answer, DriveOrder, Driven, MachineList, Order};
use crate::{doctor_verb, load_verb};

/// How often the agent looks whether its work is done, while nothing is said.
const GLANCE: Duration = Duration::from_millis(20);
/// How long work may take to end when it is cancelled, before it ends with the program.
const FAREWELL: Duration = Duration::from_secs(2);

/// `narrows agent`
#[derive(clap::Args)]
pub struct Args {
    /// Remove the programs that `--gen` and `--sut` sent to this machine, or to these: ssh://[user@]host[:port], separated by
    /// commas. Serve nobody
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
    let mut work: Option<Work> = None;
    loop {
        if let Some(answer) = work.as_mut().and_then(Work::answer) {
            if !matches!(answer, Answer::Ready) {
                work = None;
            }
            say(link, &answer)?;
        }
        let Some(what) = link.receive(GLANCE)? else { continue };
        let busy = work.is_some();
        match serde_json::from_value(what) {
            Ok(Order::Weigh(filler)) => say(link, &Answer::Weighed(filler.len()))?,
            Ok(Order::Examine | Order::Drive(_)) if busy => {
                say(link, &failed("it is busy with something else"))?
            }
            Ok(Order::Examine) => work = Some(Work::begin(None, move |cancel| examine(files, cancel))),
            Ok(Order::Drive(order)) => match prepare(*order) {
                Ok((job, wait)) => {
                    let waits = job.rendezvous.clone().map(|rendezvous| (rendezvous, job.workers()));
                    work = Some(Work::begin(waits, move |cancel| drive(&job, wait, cancel)));
                }
                Err(why) => say(link, &failed(why))?,
            },
            Ok(Order::Begin(at)) => {
                if let Some(Work { waits: Some((rendezvous, _)), .. }) = &work {
                    rendezvous.open_at(Time::from_nanos(at));
                }
            }
            Ok(Order::Stop) => {
                if let Some(work) = &work {
                    work.cancel.store(true, Ordering::Relaxed);
                }
            }
            Err(why) => say(link, &failed(format!("the order makes no sense: {why}")))?,
        }
    }
}

fn say(link: &Link, answer: &Answer) -> Result<(), Lost> {
    link.send(serde_json::to_value(answer).map_err(|why| Lost::Broken(why.to_string()))?)
}

fn failed(why: impl Into<String>) -> Answer {
    Answer::Failed(why.into())
}

/// What an agent does, on a thread of its own. Dropping it cancels it, and waits for a moment until it has ended.
struct Work {
    cancel: Arc<AtomicBool>,
    /// A drive's rendezvous and its number of threads, until all of them are ready.
    waits: Option<(Rendezvous, usize)>,
    said_ready: bool,
    answers: Receiver<Answer>,
}

impl Work {
    fn begin(
        waits: Option<(Rendezvous, usize)>,
        task: impl FnOnce(&AtomicBool) -> anyhow::Result<Answer> + Send + 'static,
    ) -> Self {
        let cancel = Arc::new(AtomicBool::new(false));
        let (sender, answers) = channel();
        let cancelled = Arc::clone(&cancel);
        let run = move || {
            let answer = task(&cancelled).unwrap_or_else(|why| failed(format!("{why:#}")));
            // Nobody waits for it when the pipe is lost.
            let _ = sender.send(answer);
        };
        // Without the thread its channel is closed, which is answered.
        let _ = thread::Builder::new().name("work".to_owned()).spawn(run);
        Self { cancel, waits, said_ready: false, answers }
    }

    /// What there is to say about the work now.
    fn answer(&mut self) -> Option<Answer> {
        match self.answers.try_recv() {
            Ok(answer) => return Some(answer),
            Err(TryRecvError::Disconnected) => return Some(failed("its work ended abnormally")),
            Err(TryRecvError::Empty) => {}
        }
        let (rendezvous, threads) = self.waits.as_ref()?;
        let ready = !self.said_ready && rendezvous.ready() >= *threads;
        self.said_ready |= ready;
        ready.then_some(Answer::Ready)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
        let _ = self.answers.recv_timeout(FAREWELL);
    }
}

fn examine(files: Limit, cancel: &AtomicBool) -> anyhow::Result<Answer> {
    Ok(Answer::Examined(Box::new(doctor_verb::examine(files, cancel)?)))
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
    Ok((job, order.wait))
}

fn drive(job: &Job, wait: Option<Duration>, cancel: &AtomicBool) -> anyhow::Result<Answer> {
    if let Some(patience) = wait {
        load_verb::wait_for(&job.target.address, patience, cancel)?;
    }
    let window = load_verb::Window::default();
    let ends = [const { AtomicU64::new(0) }; 2];
    let tally = load::drive(job, cancel, &|moment| {
        match moment {
            Moment::Opened => ends[0].store(fleet::clock(), Ordering::Relaxed),
            Moment::Closed => ends[1].store(fleet::clock(), Ordering::Relaxed),
            Moment::Passed { .. } => {}
        }
        window.record(moment);
    });
    let tally = tally.map_err(load_verb::classify)?;
    let disturbed = window.disturbed();
    let [opened_ns, closed_ns] = ends.map(AtomicU64::into_inner);
    Ok(Answer::Driven(Box::new(Driven {
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
        let mut job = Job::new(target, 1, load::Stop::Count(1));
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
