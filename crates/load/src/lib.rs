//! The load generator: drives a target with connections, a pace, counters and histograms, in one loop per core.
//!
//! A [`Job`] says what to do. [`drive`] does it and returns a [`Tally`]. Knows `reactor` (sockets), `wire` and `tls` (codecs),
//! `requests` and `answers` (what is sent, and what must come back) and the random numbers of `stats`; knows nothing of systems,
//! experiments or verdicts. [`Slo`] judges a tally, and [`search`] chooses the rates of several drives.

// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

mod assignment;
mod bounds;
mod driver;
mod error;
pub mod fault;
mod frames;
mod goal;
mod http;
mod http2;
mod layers;
pub mod list;
mod pacer;
mod protocol;
mod rendezvous;
pub mod rows;
pub mod search;
mod slo;
pub mod stream;
mod tally;
pub mod target;
mod times;
mod travel;
mod values;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use reactor::{Backend, Reactor, ReactorConfig};
use serde::{Deserialize, Serialize};
use wire::proxy;

pub use assignment::{Assignment, LONGEST};
pub use bounds::{Asked, Contradiction};
pub use driver::{Ending, Moment, Watch};
pub use error::LoadError;
pub use fault::ErrorClass;
pub use goal::Goal;
pub use list::{List, ListBuilder, Message, Order, Script};
pub use pacer::{ArrivalSchedule, Arrivals, Gaps, Pace, Pacer, Recording, Stop};
pub use rendezvous::Rendezvous;
pub use slo::{Broken, Objective, Slo, duration};
pub use tally::{Decoded, Handshakes, Multiplexed, Named, Tally, Totals};
pub use target::Target;
pub use times::{Times, histogram, micros_of};
pub use values::Values;

use driver::{Beginning, Share};
use layers::Layered;
use protocol::Protocol;
use target::Traffic;
use tls::{Dialer, Dialing};

/// What to drive, how hard, and for how long.
#[derive(Debug, Clone)]
pub struct Job {
    /// The target.
    pub target: Target,
    /// Concurrent connections of all threads together.
    pub connections: usize,
    /// Callers that share the connections and wait for their turn; at least as many as the connections can carry.
    pub callers: usize,
    /// Open exchanges per connection, at most: pipelined ones, or the streams of HTTP/2.
    pub pipeline: usize,
    /// One thread per entry, pinned to the core if one is given.
    pub threads: Vec<Option<usize>>,
    /// The addresses of this machine that connections come from, each from the next one in turn. If there are none, the kernel
    /// chooses.
    pub sources: Vec<IpAddr>,
    /// The version of the PROXY protocol in which each connection first says its addresses; `None` if it does not.
    pub announce: Option<proxy::Version>,
    /// Whether the connections are a pool. If so, the time that exchanges waited for one is recorded separately.
    pub pool: bool,
    /// What makes an exchange begin.
    pub arrivals: Arrivals,
    /// Length of the warm-up, which is not measured.
    pub warmup: Duration,
    /// When the measured window stops: after a time or a count.
    pub stop: Stop,
    /// How the window ends.
    pub ending: Ending,
    /// The longest time from a request's last byte to the whole answer. A connection may take as long, and in an open loop
    /// so may the wait for one. If the connections are a pool, the limit holds for all of them together.
    pub timeout: Duration,
    /// If set, an answer that has begun may take any time, as long as no pause in it is longer than this.
    pub idle_timeout: Option<Duration>,
    /// How long open exchanges may take to end after a cut window; in an open loop at least the timeout.
    pub drain: Duration,
    /// The reactor's backend.
    pub backend: Backend,
    /// How often the watch receives the counts so far; `None` means never.
    pub reports: Option<Duration>,
    /// When the window opens, if other generators wait for it too.
    pub rendezvous: Option<Rendezvous>,
    /// The place of the job's threads among those of all generators; `None` if there is no other generator.
    pub among: Option<Among>,
}

/// Which of all threads belong to one generator, when several generators share a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Among {
    /// The number of its first thread.
    pub first: usize,
    /// The number of threads of all generators.
    pub threads: usize,
}

impl Job {
    /// A job with the usual defaults: one unpinned thread, no pipelining, as many callers as connections.
    pub fn new(target: Target, connections: usize, stop: Stop) -> Self {
        Self {
            target,
            connections,
            callers: connections,
            pipeline: 1,
            threads: vec![None],
            sources: Vec::new(),
            announce: None,
            pool: false,
            arrivals: Arrivals::Closed,
            warmup: Duration::ZERO,
            stop,
            ending: if matches!(stop, Stop::Count(_)) { Ending::Finish } else { Ending::Cut },
            timeout: Duration::from_secs(30),
            idle_timeout: None,
            drain: Duration::from_millis(500),
            backend: Backend::Auto,
            reports: None,
            rendezvous: None,
            among: None,
        }
    }

    /// The jobs of so many generators that do this one together. Their connections, callers and counts add up to those of
    /// this job, and so do their arrivals. `threads` has an entry for each generator: the cores of its threads.
    ///
    /// # Errors
    /// A generator would have nothing to do.
    pub fn divided(&self, threads: &[Vec<Option<usize>>]) -> Result<Vec<Self>, LoadError> {
        let generators = threads.len();
        let few = |what, count| Err(LoadError::Few { what, count, generators });
        if self.connections < generators {
            return few("connections", self.connections as u64);
        }
        let part = |number: usize, total: u64| share_of(number, generators, total);
        let divide = |(number, threads): (usize, &Vec<Option<usize>>)| {
            let mut job = self.clone();
            job.threads.clone_from(threads);
            job.connections = part(number, self.connections as u64) as usize;
            job.callers = part(number, self.callers as u64) as usize;
            if let Stop::Count(count) = &mut job.stop {
                *count = part(number, *count);
            }
            if let Traffic::Frames(frames) = &mut job.target.traffic {
                frames.count = frames.count.map(|count| part(number, count));
            }
            job
        };
        let mut jobs: Vec<Self> = threads.iter().enumerate().map(divide).collect();
        if let Stop::Count(count) = self.stop
            && count < generators as u64
        {
            return few("requests", count);
        }
        let (threads, mut first) = (jobs.iter().map(Self::workers).sum(), 0);
        for job in &mut jobs {
            job.among = Some(Among { first, threads });
            first += job.workers();
        }
        Ok(jobs)
    }

    /// The place of thread `number` among the threads of all generators, and how many those are.
    fn standing(&self, number: usize) -> (usize, usize) {
        match self.among {
            Some(Among { first, threads }) => (first + number, threads),
            None => (number, self.workers()),
        }
    }

    /// The number of threads that work: no more than there are connections.
    pub fn workers(&self) -> usize {
        self.threads.len().min(self.connections).max(1)
    }

    /// Thread `number`'s part of a total. The parts add up to the total.
    fn part(&self, number: usize, total: u64) -> u64 {
        share_of(number, self.workers(), total)
    }

    /// The share of thread `number`.
    fn share(&self, number: usize) -> Share {
        let part = |total| self.part(number, total);
        // A stream is one exchange per connection. The target says how long it is.
        let stop = match (self.stop, &self.target.traffic) {
            (Stop::Count(_), Traffic::Frames(_)) => Stop::Count(part(self.connections as u64)),
            (Stop::Count(count), Traffic::Http(_)) => Stop::Count(part(count)),
            (after, _) => after,
        };
        let ending = match self.target.traffic {
            Traffic::Frames(_) => Ending::Finish,
            Traffic::Http(_) => self.ending,
        };
        let (place, threads) = self.standing(number);
        let arrivals = self.arrivals.shared(threads, place);
        let drain = if arrivals.are_open() { self.drain.max(self.timeout) } else { self.drain };
        Share {
            number,
            reports: self.reports,
            arrivals,
            offset: place as f64 / threads as f64,
            connections: part(self.connections as u64) as usize,
            callers: part(self.callers.max(self.connections * self.pipeline) as u64) as usize,
            pipeline: self.pipeline,
            pool: self.pool,
            warmup: self.warmup,
            stop,
            ending,
            timeout: self.timeout,
            idle_timeout: self.idle_timeout,
            goal: match &self.target.traffic {
                Traffic::Http(http) => http.goal.clone(),
                Traffic::Frames(_) => None,
            },
            drain,
            rendezvous: self.rendezvous.clone(),
        }
    }
}

/// Does a job on its own threads. Returns when it is done, or soon after `cancel` is set, with the counts so far. Tells
/// `watch` when the first thread's window opens and when the last thread's window closes.
///
/// # Errors
/// The drive failed as a whole: see [`LoadError`].
pub fn drive(job: &Job, cancel: &AtomicBool, watch: &Watch<'_>) -> Result<Tally, LoadError> {
    check_files(job.connections)?;
    let threads = job.workers();
    let (opened, closed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let watch = |moment: Moment<'_>| {
        let (count, wanted) = match moment {
            Moment::Passed { .. } => return watch(moment),
            Moment::Opened => (&opened, 1),
            Moment::Closed => (&closed, threads),
        };
        if count.fetch_add(1, Ordering::Relaxed) + 1 == wanted {
            watch(moment);
        }
    };
    let (watch, beginning) = (&watch, &Beginning::default());
    let results: Vec<Result<Tally, LoadError>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                thread::Builder::new()
                    .name(format!("load-{number}"))
                    .spawn_scoped(scope, move || work(job, number, (cancel, beginning), watch))
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.map_err(LoadError::from)?.join().map_err(|_| LoadError::Thread)?)
            .collect()
    });
    let (mut total, mut connections) = (Tally::default(), 0);
    let mut cores = BTreeMap::<usize, Duration>::new();
    for (number, result) in results.into_iter().enumerate() {
        let mut tally = result?;
        tally.number_from(connections);
        total.merge(&tally);
        connections += job.part(number, job.connections as u64) as usize;
        if let Some(core) = job.threads.get(number).copied().flatten() {
            *cores.entry(core).or_default() += tally.cpu;
        }
    }
    // Several threads may share a core, which is then saturated before any of them is.
    let busiest = cores.into_values().max().unwrap_or_default();
    total.busiest = total.busiest.max(busy_share(busiest, total.elapsed));
    total.first_errors.values_mut().for_each(|example| example.check = job.target.check(&example.fault));
    Ok(total)
}

/// CPU time as a share of a window. A drive that was interrupted before its window opened has none.
fn busy_share(cpu: Duration, window: Duration) -> f64 {
    if window.is_zero() { 0.0 } else { (cpu.as_secs_f64() / window.as_secs_f64()).min(rows::BUSIEST) }
}

/// What drives a thread's share.
struct Worker<'a> {
    job: &'a Job,
    reactor: Reactor,
    share: Share,
    until: (&'a AtomicBool, &'a Beginning),
    watch: &'a Watch<'a>,
}

impl Worker<'_> {
    /// Drives the share with a protocol, inside the layers that are asked for.
    fn layered<P: Protocol>(self, protocol: P, tls: Option<&Arc<Dialing>>) -> Result<Tally, LoadError> {
        if self.job.announce.is_none() && tls.is_none() {
            return self.drive(protocol);
        }
        let mut protocol = Layered::new(protocol, self.job.announce);
        if let Some(dialing) = tls {
            let dialer = Dialer::new(dialing)?;
            protocol = protocol.secured(&dialer, self.share.connections, SystemTime::now());
        }
        self.drive(protocol)
    }

    fn drive<P: Protocol>(mut self, protocol: P) -> Result<Tally, LoadError> {
        let job = self.job;
        let to = self.reactor.io().address(&job.target.address);
        let mut sources = job.sources.clone();
        if !sources.is_empty() {
            // The threads begin at different ones.
            sources.rotate_left(self.share.number % job.sources.len());
            self.reactor.io().come_from(to, &sources);
        }
        let Self { mut reactor, share, until, watch, .. } = self;
        let result = driver::drive(&mut reactor, protocol, share, to, until, watch);
        result.map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::NotFound => {
                LoadError::NothingListens { address: job.target.address.clone(), why: error }
            }
            _ => error.into(),
        })
    }
}

fn work(
    job: &Job,
    number: usize,
    until: (&AtomicBool, &Beginning),
    watch: &Watch<'_>,
) -> Result<Tally, LoadError> {
    if let Some(core) = job.threads.get(number).copied().flatten() {
        reactor::pin(core);
    }
    let open = job.arrivals.are_open();
    if open {
        reactor::exact_timers();
    }
    let share = job.share(number);
    let connections = share.connections;
    let streams = matches!(job.target.traffic, Traffic::Frames(_));
    let config = match &job.target.traffic {
        Traffic::Http(target) if target.http2 => ReactorConfig::STREAMS,
        _ if streams || connections <= 16 => ReactorConfig::FEW,
        _ => ReactorConfig::MESSAGES,
    };
    // The times within an answer are those at which the kernel had its parts, whatever the loop did meanwhile.
    let streamed = matches!(&job.target.traffic, Traffic::Http(target) if target.is_streamed());
    let reactor = Reactor::new(ReactorConfig { backend: job.backend, stamps: open || streamed, ..config })?;
    let worker = Worker { job, reactor, share, until, watch };
    // Request ids are unique over all threads of all generators.
    let first_id = (job.standing(number).0 as u64) << 48;
    match &job.target.traffic {
        Traffic::Http(target) if target.http2 => {
            let tls = target.tls.as_ref();
            if let Some(list) = &target.list {
                worker.layered(http2::Requests::listed(target, list, (number, job.workers())), tls)
            } else {
                worker.layered(http2::Requests::new(target, first_id)?, tls)
            }
        }
        Traffic::Http(target) => {
            let tls = target.tls.as_ref();
            if let Some(list) = &target.list {
                let thread = (number, job.workers());
                worker.layered(http::Requests::listed(target, list, job.pipeline, thread), tls)
            } else {
                worker.layered(http::Requests::new(target, job.pipeline, first_id)?, tls)
            }
        }
        Traffic::Frames(target) => {
            let count = target.count.map(|count| job.part(number, count));
            worker.layered(frames::Streams::new(target, count, connections as u64)?, None)
        }
    }
}

/// Part `number` of a total that is divided into so many parts. The parts add up to the total.
fn share_of(number: usize, parts: usize, total: u64) -> u64 {
    let parts = parts as u64;
    total / parts + u64::from((number as u64) < total % parts)
}

/// The number of the first of `total` things in the share of thread `number`: see [`Job::part`].
fn first(number: usize, threads: usize, total: usize) -> usize {
    total / threads * number + number.min(total % threads)
}

/// Files besides the connections: the ring, the store, standard streams, libraries.
const OTHER_FILES: u64 = 64;

fn check_files(connections: usize) -> Result<(), LoadError> {
    let limit = reactor::open_files()?;
    let needed = connections as u64 + OTHER_FILES;
    if needed > limit {
        return Err(LoadError::Files { connections, needed, limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use target::Http;

    fn job(threads: usize, connections: usize, stop: Stop) -> Job {
        let traffic = Traffic::Http(Http::get("h", "/"));
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into();
        let mut job = Job::new(Target { address, traffic }, connections, stop);
        job.threads = vec![None; threads];
        job
    }

    #[test]
    fn threads_share_the_work_without_loss() {
        for (threads, connections, count) in [(1, 1, 1), (4, 2, 1000), (3, 100, 7), (2, 1, 3), (8, 8, 5)] {
            let mut job = job(threads, connections, Stop::Count(count));
            let rate = ArrivalSchedule { from: 1000.0, to: 1000.0, gaps: Gaps::Constant };
            job.arrivals = Arrivals::Open(rate);
            let shares: Vec<Share> = (0..job.workers()).map(|number| job.share(number)).collect();
            let begun = |share: &Share| match share.stop {
                Stop::Count(count) => count,
                Stop::After(_) => panic!("a count stays a count"),
            };
            let offered = |share: &Share| match share.arrivals {
                Arrivals::Open(schedule) => schedule.from,
                _ => panic!("an open loop stays open"),
            };
            assert_eq!(shares.iter().map(|share| share.connections).sum::<usize>(), connections);
            assert!(shares.iter().all(|share| share.connections > 0), "{threads} {connections}");
            assert_eq!(shares.iter().map(begun).sum::<u64>(), count);
            assert!((shares.iter().map(offered).sum::<f64>() - 1000.0).abs() < 1e-9);
        }
    }

    /// The times in nanoseconds at which the arrivals of all threads of these jobs are due within a second.
    fn due(jobs: &[Job]) -> Vec<u128> {
        let all = Duration::from_secs(1);
        let mut times = Vec::new();
        for (job, number) in jobs.iter().flat_map(|job| (0..job.workers()).map(move |number| (job, number))) {
            let share = job.share(number);
            let mut pacer = Pacer::new(share.arrivals.clone(), Stop::After(all), share.offset);
            let now = all - Duration::from_nanos(1);
            let arrivals = (0..).map_while(|sent| match pacer.pace(now, sent) {
                Pace::Send(due) => Some(due.as_nanos()),
                Pace::Wait(_) | Pace::Stop => None,
            });
            times.extend(arrivals);
        }
        times.sort_unstable();
        times
    }

    #[test]
    fn generators_share_the_work_without_loss_and_keep_one_schedule() {
        for (generators, threads, connections, count) in
            [(1, 1, 1, 1), (2, 3, 7, 1001), (3, 2, 4, 5), (4, 4, 4, 4), (5, 2, 9, 5)]
        {
            let mut job = job(threads, connections, Stop::Count(count));
            job.callers = 2 * connections;
            let schedule = ArrivalSchedule { from: 1000.0, to: 1000.0, gaps: Gaps::Constant };
            job.arrivals = Arrivals::Open(schedule);
            let jobs = job.divided(&vec![job.threads.clone(); generators]).expect("enough for all");
            let sum = |of: fn(&Job) -> u64| jobs.iter().map(of).sum::<u64>();
            let counted = |job: &Job| match job.stop {
                Stop::Count(count) => count,
                Stop::After(_) => 0,
            };
            assert_eq!(jobs.len(), generators);
            assert_eq!(sum(|job| job.connections as u64), connections as u64);
            assert_eq!(sum(|job| job.callers as u64), 2 * connections as u64);
            assert_eq!(jobs.iter().map(counted).sum::<u64>(), count);
            let due = due(&jobs);
            assert_eq!(due.len(), 1000, "{generators} {threads} {connections}");
            let even =
                due.iter().enumerate().all(|(place, time)| time.abs_diff(place as u128 * 1_000_000) < 1000);
            assert!(even, "{generators} generators interleave: {:?}", &due[..8]);
        }
    }

    #[test]
    fn poisson_arrivals_of_several_generators_are_not_in_step() {
        let mut job = job(2, 8, Stop::After(Duration::from_secs(1)));
        let schedule = ArrivalSchedule { from: 1000.0, to: 1000.0, gaps: Gaps::Poisson(1) };
        job.arrivals = Arrivals::Open(schedule);
        let due = due(&job.divided(&vec![job.threads.clone(); 3]).expect("enough for all"));
        assert!(due.windows(2).all(|pair| pair[0] < pair[1]), "no two arrivals at one time");
        // Five standard deviations.
        assert!(due.len().abs_diff(1000) < 160, "{}", due.len());
    }

    #[test]
    fn too_little_work_for_all_generators_is_refused() {
        for job in [job(1, 2, Stop::Count(9)), job(1, 9, Stop::Count(2))] {
            assert!(matches!(
                job.divided(&vec![job.threads.clone(); 3]),
                Err(LoadError::Few { count: 2, generators: 3, .. })
            ));
        }
    }
}
