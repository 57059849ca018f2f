//! The bench of an agent: systems run here, and the other side of the pipe drives them.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Context;
use lab::observation::{Stage, Trial};
use lab::session::{Bench, Driven, Executor, Generator, Serving, TrialError};
use load::{Assignment, Job, Moment};
use machines::Speaker;
use serve::CounterSnapshot;
use systems::work::Clients;
use systems::{Catalog, Limit, Parcel, homes, parcel};

use crate::fleet::AgentReply;
use crate::fleet::lab::{Brought, Done, Files, Opening, Reply, Task, Want};
use crate::{built_in, here};

/// A bench on a thread of its own, which lives as long as the agent: the kernel kills a system when the thread that started it
/// ends.
pub struct Benchwork {
    tasks: Sender<Task>,
    replies: Sender<Reply>,
    cancel: Arc<AtomicBool>,
    ended: Receiver<()>,
}

impl Benchwork {
    /// Starts the thread.
    pub fn begin(speaker: Speaker, files: Limit) -> Self {
        let ((tasks, to_do), (replies, replied), (end, ended)) = (channel(), channel(), channel());
        let cancel = Arc::new(AtomicBool::new(false));
        let cancelled = Arc::clone(&cancel);
        // Without the thread its channels are closed, which is noticed.
        let _ = thread::Builder::new().name("bench".to_owned()).spawn(move || {
            let asking = Asking(Arc::new(Mutex::new(Pipe { speaker, replied })));
            work(&to_do, &asking, files, &cancelled);
            drop(end);
        });
        Self { tasks, replies, cancel, ended }
    }

    /// Gives it a task. False if its thread has ended.
    pub fn task(&self, task: Task) -> bool {
        self.cancel.store(false, Ordering::Relaxed);
        self.tasks.send(task).is_ok()
    }

    /// Passes a reply on.
    pub fn reply(&self, reply: Reply) {
        let _ = self.replies.send(reply);
    }

    /// Interrupts its task.
    pub fn stop(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}

impl Drop for Benchwork {
    fn drop(&mut self) {
        self.stop();
        self.tasks = channel().0;
        self.replies = channel().0;
        let _ = self.ended.recv_timeout(super::FAREWELL);
    }
}

/// Does one task after the other, until there are no more.
fn work(tasks: &Receiver<Task>, asking: &Asking, files: Limit, cancel: &Arc<AtomicBool>) {
    let mut bench: Option<Bench> = None;
    while let Ok(task) = tasks.recv() {
        let done = match (task, &mut bench) {
            (Task::Open(opening), _) => match open(&opening, asking, files, cancel) {
                Ok((opened, address)) => {
                    bench = Some(opened);
                    Ok(Done::Opened(address))
                }
                Err(why) => Err(format!("{why:#}")),
            },
            (Task::Know(brought), Some(bench)) => know(*brought, bench),
            (Task::Unpack(parcel), Some(_)) => unpack(&parcel),
            (task, Some(bench)) => Ok(do_task(task, bench, asking)),
            (_, None) => Err("its bench is not open".to_owned()),
        };
        asking.say(&done.map_or_else(AgentReply::Failed, |done| AgentReply::Done(Box::new(done))));
    }
}

fn do_task(task: Task, bench: &mut Bench, asking: &Asking) -> Done {
    let interrupted = |_| TrialError::Interrupted;
    match task {
        Task::Open(_) | Task::Know(_) | Task::Unpack(_) => Done::Known,
        Task::Probe(systems) => Done::Missing(bench.probe(&systems).map_err(interrupted).into()),
        Task::Describe => Done::Described(bench.environment()),
        Task::Prepare { systems, connections } => {
            let say = |line: &str| asking.say(&AgentReply::Done(Box::new(Done::Say(line.to_owned()))));
            bench.prepare_systems(&systems, connections, &mut { say });
            Done::Prepared
        }
        Task::Look { scenario, ask, timing, speed } => {
            Done::Looked(bench.look(&scenario, &ask, timing, speed).into())
        }
        Task::Execute { trial, ask } => {
            let trial = Trial { ask, ..*trial };
            Done::Executed(bench.execute(&trial).map_err(interrupted).into())
        }
    }
}

/// Lets the bench know a system that the other side has brought.
fn know(brought: Brought, bench: &mut Bench) -> Result<Done, String> {
    let Brought { manifest, files } = brought;
    let manifest = match &files {
        Files::None => {
            let folder = std::env::current_dir().map_err(|why| format!("it has no current folder: {why}"))?;
            manifest.in_home(&folder)
        }
        Files::Parcel(hash) => match parcel::unpacked(&homes_folder()?, hash) {
            None => return Ok(Done::Lacks),
            Some(home) => manifest.in_home(&home),
        },
        Files::There if manifest.home().is_dir() => manifest,
        Files::There => {
            return Err(format!(
                "the build of {} is not on this machine: --sut must be the machine that built it",
                manifest.name
            ));
        }
    };
    bench.know(manifest);
    Ok(Done::Known)
}

fn unpack(parcel: &Parcel) -> Result<Done, String> {
    let folder = homes_folder()?;
    match parcel.unpack(&folder) {
        Ok(_) => Ok(Done::Known),
        Err(why) => Err(format!("cannot unpack the files of a system into {}: {why}", folder.display())),
    }
}

/// Where the files of systems are that were sent here. `narrows agent --clean` removes them.
fn homes_folder() -> Result<PathBuf, String> {
    let cache = homes::cache().ok_or("its user has no home folder, so nothing can be kept there")?;
    Ok(cache.join(machines::CACHE).join("systems"))
}

/// A bench for the systems that are known here.
fn open(
    opening: &Opening,
    asking: &Asking,
    files: Limit,
    cancel: &Arc<AtomicBool>,
) -> anyhow::Result<(Bench, IpAddr)> {
    let address = match opening.address {
        Some(address) => address,
        None => reached_at()?,
    };
    let catalog = Catalog::load_all(&built_in::homes()?);
    let mut bench = here::bench(&catalog, files, cancel)?.driven_by(Box::new(asking.clone()));
    bench.listen_at(address);
    Ok((bench, address))
}

/// The address at which this machine was reached.
///
/// # Errors
/// It was not reached by ssh.
pub fn reached_at() -> anyhow::Result<IpAddr> {
    // RFC 4254 has no word for it; OpenSSH sets "CLIENT PORT SERVER PORT".
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let address = connection.split(' ').nth(2).and_then(|address| address.parse().ok());
    address.context("its own address is not known: name it with --address, as the generators reach it")
}

/// The address of this machine from which another one is reached.
///
/// # Errors
/// There is no way to it.
pub fn address_towards(other: IpAddr) -> std::io::Result<IpAddr> {
    let any: IpAddr = if other.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((any, 0))?;
    // Connecting a UDP socket sends nothing. The kernel chooses the address by its routes.
    socket.connect((other, 9))?;
    Ok(socket.local_addr()?.ip())
}

struct Pipe {
    speaker: Speaker,
    replied: Receiver<Reply>,
}

/// The generators of the other side.
#[derive(Clone)]
struct Asking(Arc<Mutex<Pipe>>);

impl Asking {
    /// Says something. A lost pipe is noticed by the thread that listens to it.
    fn say(&self, answer: &AgentReply) {
        self.say_within(&self.pipe(), answer);
    }

    fn pipe(&self) -> std::sync::MutexGuard<'_, Pipe> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say_within(&self, pipe: &Pipe, answer: &AgentReply) {
        if let Ok(what) = serde_json::to_value(answer) {
            let _ = pipe.speaker.send(what);
        }
    }

    /// Asks for something, and hands each reply to `take` until that has a result.
    fn ask<T>(
        &self,
        want: Want,
        mut take: impl FnMut(Reply) -> Option<Result<T, TrialError>>,
    ) -> Result<T, TrialError> {
        let pipe = self.pipe();
        self.say_within(&pipe, &AgentReply::Want(Box::new(want)));
        loop {
            // Without a pipe nobody waits for this trial.
            let reply = pipe.replied.recv().map_err(|_| TrialError::Interrupted)?;
            if let Some(result) = take(reply) {
                return result;
            }
        }
    }

    fn counts(&self, want: Want) -> Result<CounterSnapshot, TrialError> {
        self.ask(want, |reply| match reply {
            Reply::Counted(counted) => Some(counted.into()),
            _ => Some(Err(unexpected())),
        })
    }
}

fn unexpected() -> TrialError {
    TrialError::failed(Stage::Drive, "the other side answered what was not asked")
}

impl Generator for Asking {
    fn drive(&self, job: &Job, _cancel: &AtomicBool, watch: &load::Watch<'_>) -> Result<Driven, TrialError> {
        let assignment = Assignment::of(job).map_err(|why| TrialError::failed(Stage::Drive, why))?;
        self.ask(Want::Drive(Box::new(assignment)), |reply| match reply {
            Reply::WindowOpened => {
                watch(Moment::Opened);
                None
            }
            Reply::WindowClosed => {
                watch(Moment::Closed);
                None
            }
            Reply::Driven(driven) => {
                let driven: Result<Box<Driven>, TrialError> = driven.into();
                Some(driven.map(|driven| *driven))
            }
            _ => Some(Err(unexpected())),
        })
    }

    fn serve(&self, work: &Clients) -> Result<Box<dyn Serving + '_>, TrialError> {
        let (address, threads) = self.ask(Want::Serve(*work), |reply| match reply {
            Reply::Serves(serves) => Some(serves.into()),
            _ => Some(Err(unexpected())),
        })?;
        Ok(Box::new(Served { asking: self, address, threads }))
    }
}

/// A server of the other side.
struct Served<'a> {
    asking: &'a Asking,
    address: SocketAddr,
    threads: usize,
}

impl Serving for Served<'_> {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn counts(&self) -> Result<CounterSnapshot, TrialError> {
        self.asking.counts(Want::Counts)
    }

    fn stop(self: Box<Self>) -> Result<CounterSnapshot, TrialError> {
        self.asking.counts(Want::StopServing)
    }
}
