//! The driver's side of a trial in which Narrows drives a server. It gets its orders as plain values. Of the system it
//! knows only the address and the expected answer.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::target::{Allowance, Body, Expect, FrameStream, Http, Traffic};
use load::{ArrivalSchedule, Arrivals, Ending, Gaps, Job, Rendezvous, Script, Stop, Tally, Target};
use measurement::Measurement;
use reactor::Address;
use systems::contact::Access;
use systems::relay::Relay;
use systems::trace;
use systems::work::{Requests, Upload};
use systems::{Listening, Work, machine};
use wire::frames::Prefix;

use crate::ask::{Ask, Payload};
use crate::observation::{Stage, Timing};
use crate::plan::{COUNTING_S, PROFILING_AFTER_S, PROFILING_S};
use crate::session::generator::{Driven, Generator};
use crate::session::room;
use crate::session::trial_error::TrialError;

/// The orders to the driver.
#[derive(Debug, Clone)]
pub(super) struct Orders {
    /// The work.
    pub work: Work,
    /// Where the server listens, and how it is spoken to.
    pub access: Access,
    /// The request of the workloads `requests`, `streams` and `chats`, and its right answers.
    pub ask: Ask,
    /// The requests of the file that `ask` may name.
    pub script: Option<Arc<Script>>,
    /// The durations and the timeout.
    pub timing: Timing,
    /// What makes a request begin. All systems of a round get the same arrivals.
    pub arrivals: Arrivals,
}

/// The driver of a trial's server.
pub(super) struct Driver<'a> {
    pub generator: &'a dyn Generator,
    pub cancel: &'a AtomicBool,
    /// Where it meets another driver before both windows open.
    pub meeting: Option<Rendezvous>,
}

/// The longest body of a request that surely ends inside a window.
const SHORT_BODY: u64 = 1 << 20;
/// The largest body and the most connections while the kernel's work is counted.
const COUNTED_BODY: u64 = 16 << 20;
const COUNTED_CONNECTIONS: usize = 100;
/// The most connections while CPU time is sampled.
const PROFILED_CONNECTIONS: usize = 1000;
/// How many exchanges check that a server does equal work.
const EXCHANGES: usize = 3;
/// The longest that an exchange may take meanwhile.
const LONGEST_COUNTED: Duration = Duration::from_secs(5);

impl Driver<'_> {
    /// Drives for one window. The measurement lacks what only the system's side knows.
    pub(super) fn drive(
        &self,
        orders: &Orders,
        watch: &load::Watch<'_>,
    ) -> Result<(Measurement, Driven), TrialError> {
        let job = Job { rendezvous: self.meeting.clone(), ..self.job(orders)? };
        let driven = self.generator.drive(&job, self.cancel, watch)?;
        let mut measured = Measurement::from_tally(&driven.tally);
        if driven.metered.is_none() {
            measured.concurrency = (job.connections * job.pipeline) as u64;
            measured.connections = job.connections as u64;
        }
        measured.metered = driven.metered.clone();
        Ok((measured, driven))
    }

    /// Drives the same traffic again for a short time, while the kernel's work is counted.
    pub(super) fn drive_for_counts(
        &self,
        orders: &Orders,
        watch: &load::Watch<'_>,
    ) -> Result<Tally, TrialError> {
        let mut job = self.short(orders, 0.0, COUNTING_S)?;
        job.connections = job.connections.min(COUNTED_CONNECTIONS);
        // What is under way at the end is counted too, and tracing can slow a server so much that it is most of the work.
        job.ending = Ending::Finish;
        Ok(self.generator.drive(&job, self.cancel, watch)?.tally)
    }

    /// Drives the same traffic again for a short time, while the server's CPU time is sampled from the beginning of the window. Returns
    /// whether it worked.
    pub(super) fn drive_for_profile(
        &self,
        orders: &Orders,
        watch: &load::Watch<'_>,
    ) -> Result<bool, TrialError> {
        let mut job = self.short(orders, PROFILING_AFTER_S, PROFILING_S)?;
        // The CPU time of a request depends on how many are under way, but to make many connections takes long.
        job.connections = job.connections.min(PROFILED_CONNECTIONS);
        job.ending = Ending::Cut;
        self.generator.works(&job, self.cancel, watch)
    }

    /// A job of the same traffic for a shorter time, with shorter uploads.
    fn short(&self, orders: &Orders, warmup_s: f64, window_s: f64) -> Result<Job, TrialError> {
        let mut job = self.job(orders)?;
        (job.warmup, job.stop) = (seconds(warmup_s), Stop::After(seconds(window_s)));
        job.timeout = job.timeout.min(LONGEST_COUNTED);
        if let Work::Upload(work) = &orders.work {
            job.target.traffic = Traffic::Http(upload(orders, work, work.size.min(COUNTED_BODY)));
        }
        Ok(job)
    }

    /// Makes the first request to a new process, and says how long the answer took, in seconds. `None` if it was wrong, which the
    /// check of equal work says, or if the work is neither requests nor streams, of which it is a short one.
    pub(super) fn first_request(&self, orders: &Orders) -> Result<Option<f64>, TrialError> {
        if self.generator.meter().is_some() {
            return Ok(None);
        }
        let check = match &orders.work {
            Work::Requests(_) => None,
            Work::Streams(_) => Some(0),
            Work::Upload(_) | Work::Frames(_) | Work::Clients(_) => return Ok(None),
        };
        let (traffic, _) = traffic(orders, check)?;
        let mut job = self.few(orders, Target { address: address(&orders.access.server)?, traffic }, 1);
        job.timeout = seconds(orders.timing.timeout_s);
        let tally = self.tally(&job)?;
        let answered_us = Measurement::from_tally(&tally).service_us;
        Ok((tally.successes == 1).then_some(answered_us.mean / 1e6))
    }

    /// A job of a few exchanges, one after the other.
    fn few(&self, orders: &Orders, target: Target, exchanges: u64) -> Job {
        let mut job = Job::new(target, 1, Stop::Count(exchanges));
        job.timeout = seconds(orders.timing.timeout_s).min(Duration::from_secs(5));
        job.announce = orders.ask.proxy_protocol.map(Into::into);
        job
    }

    /// Makes three exchanges of the trial's kind, with uploads of `size` bytes. Returns what was wrong with the first
    /// that failed. Another program than Narrows cannot be asked for them.
    pub(super) fn equal_work(&self, orders: &Orders, size: u64) -> Result<Option<String>, TrialError> {
        if self.generator.meter().is_some() {
            return Ok(None);
        }
        let (traffic, _) = traffic(orders, Some(size))?;
        let server = &orders.access.server;
        // Another machine cannot reach a relay of this one.
        let relay = if trace::on() && self.generator.is_here() { Relay::to(server).ok() } else { None };
        let address = relay.as_ref().map_or_else(|| address(server), |relay| Ok(relay.address().into()))?;
        let how = if relay.is_some() { ", through a relay of this trace" } else { "" };
        trace::say(|| format!("equal work: three exchanges{how}"));
        let job = self.few(orders, Target { address, traffic }, EXCHANGES as u64);
        let tally = self.tally(&job)?;
        let wrong =
            tally.first_errors.iter().next().map(|(class, example)| format!("{class}: {}", example.what()));
        trace::say(|| format!("equal work: {}", wrong.as_deref().unwrap_or("right")));
        Ok(wrong)
    }

    /// From how many addresses of this machine so many connections come. Each has ports of its own.
    pub(super) fn addresses(&self, orders: &Orders, connections: u64) -> u64 {
        let to = address(&orders.access.server);
        to.map_or(1, |to| self.sources(&to, connections).len().max(1) as u64)
    }

    /// The addresses from which so many connections come. Empty if the kernel chooses.
    fn sources(&self, to: &Address, connections: u64) -> Vec<IpAddr> {
        match to {
            Address::Tcp(to) if self.generator.is_here() => {
                room::sources(connections, to.ip(), machine::ports())
            }
            _ => Vec::new(),
        }
    }

    fn tally(&self, job: &Job) -> Result<Tally, TrialError> {
        Ok(self.generator.drive(job, self.cancel, &|_| {})?.tally)
    }

    /// The generator's job for a trial.
    fn job(&self, orders: &Orders) -> Result<Job, TrialError> {
        let (traffic, connections) = traffic(orders, None)?;
        let window = Stop::After(seconds(orders.timing.measure_s));
        let mut job = Job::new(
            Target { address: address(&orders.access.server)?, traffic },
            connections as usize,
            window,
        );
        job.sources = self.sources(&job.target.address, connections);
        job.announce = orders.ask.proxy_protocol.map(Into::into);
        job.warmup = seconds(orders.timing.warmup_s);
        job.timeout = seconds(orders.timing.timeout_s);
        job.arrivals = orders.arrivals.clone();
        match &orders.work {
            Work::Requests(work) if work.depth() > 1 && !work.keep_alive => Err(TrialError::failed(
                Stage::Drive,
                "pipeline or streams above 1 needs keep_alive = true: a connection that closes after its first answer loses the other requests",
            )),
            Work::Requests(work) if work.streams.is_some() && work.pipeline > 1 => {
                let why =
                    "pipeline is of HTTP/1.1: with http = 2, streams says how many requests are in flight";
                Err(TrialError::failed(Stage::Drive, why))
            }
            Work::Requests(work) => {
                // A long body would rarely end inside a window that is cut.
                let long = matches!(orders.ask.body, Payload::Size(size) if size > SHORT_BODY);
                let ending = if long { Ending::Finish } else { job.ending };
                Ok(Job { pipeline: work.depth() as usize, ending, ..job })
            }
            Work::Upload(_) | Work::Frames(_) | Work::Streams(_) | Work::Clients(_) => {
                Ok(Job { ending: Ending::Finish, ..job })
            }
        }
    }
}

pub(super) fn seconds(number: f64) -> Duration {
    Duration::from_secs_f64(number)
}

/// The schedule of an open loop. `None` for a closed loop.
pub(super) fn schedule(work: &Work, round: u32) -> Option<ArrivalSchedule> {
    let rate = work.rate()?;
    let gaps = gaps(rate.poisson, round);
    Some(ArrivalSchedule { from: rate.per_s as f64, to: rate.per_s as f64, gaps })
}

/// The gaps between arrivals, which are the same for all systems of a round.
pub(super) fn gaps(poisson: bool, round: u32) -> Gaps {
    if poisson { Gaps::Poisson(u64::from(round) + 1) } else { Gaps::Constant }
}

/// The traffic and the number of connections. For a check before the trial, `check` is the size of uploads, frames are
/// few and small, and streams are short.
fn traffic(orders: &Orders, check: Option<u64>) -> Result<(Traffic, u64), TrialError> {
    match &orders.work {
        Work::Upload(work) => {
            Ok((Traffic::Http(upload(orders, work, check.unwrap_or(work.size))), work.concurrency))
        }
        Work::Frames(work) => {
            let (size, count) = if check.is_some() { (10, Some(3)) } else { (work.frame_size, None) };
            Ok((Traffic::Frames(FrameStream { size, prefix: Prefix::Four, count }), work.connections))
        }
        Work::Requests(work) => {
            let most = if check.is_some() { EXCHANGES } else { usize::MAX };
            Ok((Traffic::Http(asked(orders, work.keep_alive, most)?), work.connections))
        }
        Work::Streams(work) => {
            let asked_for = |work| Orders { ask: Ask::for_stream(work), ..orders.clone() };
            let http = match check {
                Some(_) => asked(&asked_for(&work.short()), true, usize::MAX)?,
                None => asked(orders, true, usize::MAX)?,
            };
            Ok((Traffic::Http(http), work.connections))
        }
        Work::Clients(_) => Err(TrialError::failed(Stage::Drive, "a client is not driven")),
    }
}

fn address(server: &Listening) -> Result<Address, TrialError> {
    match server {
        Listening::Socket(path) => {
            Address::unix(path.clone()).map_err(|error| TrialError::failed(Stage::Drive, error.to_string()))
        }
        Listening::Port(port) => Ok(Listening::usual(*port).into()),
        Listening::Address(address) => Ok((*address).into()),
    }
}

/// The requests that the orders ask for: of a list, the first `most`.
fn asked(orders: &Orders, keep_alive: bool, most: usize) -> Result<Http, TrialError> {
    let mut http = in_common(orders, keep_alive);
    if let Some(script) = listed(orders)? {
        let list = script.list(&http, most).map_err(|why| TrialError::failed(Stage::Drive, why))?;
        http.list = Some(Arc::new(list));
        http.max_answer = http.usual_limit();
    }
    Ok(http)
}

/// The requests of the file that the orders name.
pub(super) fn listed(orders: &Orders) -> Result<Option<&Arc<Script>>, TrialError> {
    match (&orders.ask.list, &orders.script) {
        (None, _) => Ok(None),
        (Some(_), Some(script)) => Ok(Some(script)),
        (Some(list), None) => {
            Err(TrialError::failed(Stage::Drive, format!("the requests of {} are not here", list.file)))
        }
    }
}

/// What all requests that the orders ask for have in common.
pub(super) fn in_common(orders: &Orders, keep_alive: bool) -> Http {
    let Ask { method, path, body, expect_continue, compressed, stream, goal, .. } = &orders.ask;
    let http = Http {
        method: method.clone(),
        headers: orders.ask.sent_headers(),
        body: body.clone().into(),
        keep_alive,
        expect_continue: *expect_continue,
        expect: orders.ask.right(),
        decode: *compressed,
        stream: *stream,
        goal: goal.clone().map(Arc::new),
        ..to(orders, path)
    };
    Http { max_answer: http.usual_limit(), ..http }
}

/// A GET to the server.
fn to(orders: &Orders, path: &str) -> Http {
    let tls = orders.access.tls.clone().map(Arc::new);
    let (http2, allowance) = (orders.access.http2, allowance(&orders.work));
    Http { tls, http2, allowance, ..Http::get(orders.access.host(), path) }
}

/// What a server of HTTP/2 is allowed.
fn allowance(work: &Work) -> Allowance {
    let usual = Allowance::default();
    let Work::Requests(Requests { window, hpack_table, .. }) = work else { return usual };
    let or = |value: &Option<u64>, usual| value.and_then(|value| u32::try_from(value).ok()).unwrap_or(usual);
    Allowance { window: or(window, usual.window), table: or(hpack_table, usual.table) }
}

fn upload(orders: &Orders, work: &Upload, size: u64) -> Http {
    Http {
        method: "POST".to_owned(),
        body: Body::Pattern(size),
        expect_continue: work.expect && size > 0,
        expect: Expect::exactly(size.to_string()),
        keep_alive: work.reuse,
        ..to(orders, "/upload")
    }
}
