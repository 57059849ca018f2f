//! A job as plain values, which can be sent to a generator on another machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use answers::{Check, Statuses};
use reactor::{Address, Backend};
use serde::{Deserialize, Serialize};
use tls::Dialing;
use wire::frames::Prefix;
use wire::proxy;

use crate::stream::Form;
use crate::target::{Allowance, Body, Expect, FrameStream, Http, Target, Traffic};
use crate::{Among, ArrivalSchedule, Arrivals, Ending, Gaps, Goal, Job, Stop};

/// A job as plain values. It has no rendezvous, and no reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assignment {
    address: Endpoint,
    traffic: TrafficValue,
    connections: usize,
    callers: usize,
    pipeline: usize,
    threads: Vec<Option<usize>>,
    /// The version of the PROXY protocol, 1 or 2.
    announce: Option<u8>,
    pool: bool,
    /// `None` for a closed loop.
    schedule: Option<ArrivalSchedule>,
    warmup: Duration,
    stop: Stop,
    ending: Ending,
    timeout: Duration,
    idle_timeout: Option<Duration>,
    drain: Duration,
    backend: BackendValue,
    among: Option<Among>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Endpoint {
    Tcp(std::net::SocketAddr),
    Unix(PathBuf),
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum BackendValue {
    Auto,
    Uring,
    Epoll,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum TrafficValue {
    Http(Box<HttpValue>),
    Frames { size: u64, prefix: usize, count: Option<u64> },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct HttpValue {
    method: String,
    host: String,
    path: String,
    headers: Vec<(String, String)>,
    body: BodyValue,
    http2: bool,
    allowance: Allowance,
    keep_alive: bool,
    expect_continue: bool,
    ids: bool,
    expect: ExpectValue,
    tls: Option<Dialing>,
    decode: bool,
    stream: Option<Form>,
    goal: Option<Goal>,
    max_answer: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum BodyValue {
    None,
    Bytes(Vec<u8>),
    Pattern(u64),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ExpectValue {
    status: Statuses,
    body: Option<Vec<u8>>,
    length: Option<u64>,
    checks: Vec<Check>,
}

/// The most bytes of a body that are sent along.
const LONGEST_BODY: usize = 8 << 20;
/// The most connections, callers, threads and the like: as many as the command line takes.
const MOST: usize = 1_000_000;
/// The most threads of a generator.
const MOST_THREADS: usize = 4096;
/// The longest time that a job may name. Several of them can be added.
pub const LONGEST: Duration = Duration::from_secs(10 * 366 * 86_400);
/// The rates that the command line takes.
const RATES: std::ops::RangeInclusive<f64> = 1e-9..=1e8;

impl Assignment {
    /// The values of a job.
    ///
    /// # Errors
    /// What the job has that cannot be sent, as a sentence about the options of `narrows load`.
    pub fn of(job: &Job) -> Result<Self, String> {
        let values = Self::values(job)?;
        values.check().map(|()| values)
    }

    fn values(job: &Job) -> Result<Self, &'static str> {
        // Each field is named, so that a new one is not forgotten here.
        let Job { target, connections, callers, pipeline, threads, sources, announce, pool, .. } = job;
        let Job { arrivals, warmup, stop, ending, timeout, idle_timeout, drain, backend, among, .. } = job;
        let Job { reports: _, rendezvous: _, .. } = job;
        if !sources.is_empty() {
            return Err("--source names addresses of this machine: leave it out with --gen");
        }
        let schedule = match arrivals {
            Arrivals::Closed => None,
            Arrivals::Open(schedule) => Some(*schedule),
            Arrivals::Recorded(_) => return Err("recorded arrivals cannot be sent to --gen yet: use --rate"),
        };
        Ok(Self {
            address: match &target.address {
                Address::Tcp(address) => Endpoint::Tcp(*address),
                Address::Unix(path) => Endpoint::Unix(path.clone()),
            },
            traffic: match &target.traffic {
                Traffic::Http(http) => TrafficValue::Http(Box::new(HttpValue::of(http)?)),
                Traffic::Frames(FrameStream { size, prefix, count }) => {
                    TrafficValue::Frames { size: *size, prefix: prefix.len(), count: *count }
                }
            },
            connections: *connections,
            callers: *callers,
            pipeline: *pipeline,
            threads: threads.clone(),
            announce: announce.map(|version| match version {
                proxy::Version::One => 1,
                proxy::Version::Two => 2,
            }),
            pool: *pool,
            schedule,
            warmup: *warmup,
            stop: *stop,
            ending: *ending,
            timeout: *timeout,
            idle_timeout: *idle_timeout,
            drain: *drain,
            backend: match backend {
                Backend::Auto => BackendValue::Auto,
                Backend::Uring => BackendValue::Uring,
                Backend::Epoll => BackendValue::Epoll,
            },
            among: *among,
        })
    }

    /// The job of these values, which may come from anybody.
    ///
    /// # Errors
    /// The value that no job can have.
    pub fn job(self) -> Result<Job, String> {
        self.check()?;
        let address = match self.address {
            Endpoint::Tcp(address) => Address::Tcp(address),
            Endpoint::Unix(path) => Address::unix(path).map_err(|why| why.to_string())?,
        };
        let traffic = match self.traffic {
            TrafficValue::Http(http) => Traffic::Http(http.http()),
            TrafficValue::Frames { size, prefix, count } => {
                let known = [Prefix::One, Prefix::Two, Prefix::Four].into_iter().find(|p| p.len() == prefix);
                let prefix = known.ok_or_else(|| format!("a frame's prefix has {prefix} bytes"))?;
                Traffic::Frames(FrameStream { size, prefix, count })
            }
        };
        Ok(Job {
            callers: self.callers,
            pipeline: self.pipeline,
            threads: self.threads,
            announce: match self.announce {
                None => None,
                Some(1) => Some(proxy::Version::One),
                Some(2) => Some(proxy::Version::Two),
                Some(other) => return Err(format!("the PROXY protocol has version {other}")),
            },
            pool: self.pool,
            arrivals: self.schedule.map_or(Arrivals::Closed, Arrivals::Open),
            warmup: self.warmup,
            ending: self.ending,
            timeout: self.timeout,
            idle_timeout: self.idle_timeout,
            drain: self.drain,
            backend: match self.backend {
                BackendValue::Auto => Backend::Auto,
                BackendValue::Uring => Backend::Uring,
                BackendValue::Epoll => Backend::Epoll,
            },
            among: self.among,
            ..Job::new(Target { address, traffic }, self.connections, self.stop)
        })
    }

    /// What would let a drive compute nonsense or fail in its midst.
    fn check(&self) -> Result<(), String> {
        let counts = [
            ("connections", self.connections, MOST),
            ("callers", self.callers, MOST),
            ("pipeline", self.pipeline, MOST),
            ("threads", self.threads.len(), MOST_THREADS),
        ];
        for (name, count, most) in counts {
            if !(1..=most).contains(&count) {
                return Err(format!("{name} is {count}, and must be from 1 to {most}"));
            }
        }
        let idle = self.idle_timeout.unwrap_or_default();
        let length = match self.stop {
            Stop::After(length) => length,
            Stop::Count(_) => Duration::ZERO,
        };
        if [self.warmup, self.timeout, self.drain, idle, length].iter().any(|time| *time > LONGEST) {
            return Err("a time is longer than ten years: use a shorter one".to_owned());
        }
        if let Some(ArrivalSchedule { from, to, gaps: Gaps::Constant | Gaps::Poisson(_) }) = self.schedule
            && !(RATES.contains(&from) && RATES.contains(&to))
        {
            return Err(format!("the rate is {from} to {to} per second, which is none"));
        }
        if let Some(Among { first, threads }) = self.among
            && first.checked_add(self.threads.len().min(self.connections)).is_none_or(|end| end > threads)
        {
            return Err(format!("thread {first} is not one of {threads}"));
        }
        if let TrafficValue::Http(http) = &self.traffic
            && !http.allowance.is_possible()
        {
            return Err(format!("{:?} is not possible in HTTP/2", http.allowance));
        }
        let nothing = match self.stop {
            Stop::After(length) => length.is_zero(),
            Stop::Count(count) => count == 0,
        };
        if nothing || self.timeout.is_zero() {
            return Err("a window or a timeout of 0 measures nothing".to_owned());
        }
        Ok(())
    }
}

impl HttpValue {
    fn of(http: &Http) -> Result<Self, &'static str> {
        let Http { method, host, path, headers, body, keep_alive, expect_continue, ids, .. } = http;
        let Http { expect, list, tls, decode, stream, goal, max_answer, http2, allowance, .. } = http;
        if list.is_some() {
            return Err("files of requests cannot be sent to --gen yet: leave --requests out");
        }
        let body = match body {
            Body::None => BodyValue::None,
            Body::Pattern(size) => BodyValue::Pattern(*size),
            Body::Bytes(bytes) if bytes.len() > LONGEST_BODY => {
                return Err(
                    "the body is longer than 8 MiB, which is too long to send to --gen: use --body-size",
                );
            }
            Body::Bytes(bytes) => BodyValue::Bytes(bytes.to_vec()),
        };
        let tls = match tls.as_deref() {
            Some(Dialing { identity: Some(_), .. }) => {
                return Err(
                    "a client's key is not sent to other machines: leave --cert and --key out with --gen",
                );
            }
            dialing => dialing.cloned(),
        };
        let Expect { status, body: required, length, checks } = expect;
        Ok(Self {
            method: method.clone(),
            host: host.clone(),
            path: path.clone(),
            headers: headers.clone(),
            body,
            http2: *http2,
            allowance: *allowance,
            keep_alive: *keep_alive,
            expect_continue: *expect_continue,
            ids: *ids,
            expect: ExpectValue {
                status: *status,
                body: required.clone(),
                length: *length,
                checks: checks.clone(),
            },
            tls,
            decode: *decode,
            stream: *stream,
            goal: goal.as_deref().cloned(),
            max_answer: *max_answer,
        })
    }

    fn http(self) -> Http {
        let ExpectValue { status, body, length, checks } = self.expect;
        Http {
            method: self.method,
            host: self.host,
            path: self.path,
            headers: self.headers,
            body: match self.body {
                BodyValue::None => Body::None,
                BodyValue::Bytes(bytes) => Body::Bytes(Arc::new(bytes)),
                BodyValue::Pattern(size) => Body::Pattern(size),
            },
            http2: self.http2,
            allowance: self.allowance,
            keep_alive: self.keep_alive,
            expect_continue: self.expect_continue,
            ids: self.ids,
            expect: Expect { status, body, length, checks },
            list: None,
            tls: self.tls.map(Arc::new),
            decode: self.decode,
            stream: self.stream,
            goal: self.goal.map(Arc::new),
            max_answer: self.max_answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        let mut http = Http::get("h:1", "/a");
        http.headers.push(("A".to_owned(), "b".to_owned()));
        http.body = Body::Bytes(Arc::new(vec![0, 255]));
        http.expect.checks.push(Check::parse("json.a=1").expect("a check"));
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into();
        let window = Stop::After(Duration::from_secs(1));
        let mut job = Job::new(Target { address, traffic: Traffic::Http(http) }, 8, window);
        job.arrivals = Arrivals::Open(ArrivalSchedule { from: 10.0, to: 20.0, gaps: Gaps::Poisson(7) });
        job.among = Some(Among { first: 1, threads: 2 });
        job
    }

    fn sent(job: &Job) -> serde_json::Value {
        serde_json::to_value(Assignment::of(job).expect("it can be sent")).expect("a value")
    }

    #[test]
    fn a_job_arrives_as_it_was() {
        let frames = Traffic::Frames(FrameStream { size: 5, prefix: Prefix::Two, count: Some(9) });
        let mut streams = Job::new(Target { traffic: frames, ..job().target }, 2, Stop::Count(9));
        streams.announce = Some(proxy::Version::Two);
        for job in [job(), streams] {
            let got: Assignment = serde_json::from_value(sent(&job)).expect("an assignment");
            assert_eq!(format!("{:?}", got.job().expect("a job")), format!("{job:?}"));
        }
    }

    #[test]
    fn what_no_drive_could_do_is_refused() {
        for (field, value) in [
            ("connections", serde_json::json!(0)),
            ("connections", serde_json::json!(u64::MAX)),
            ("threads", serde_json::json!([])),
            ("pipeline", serde_json::json!(0)),
            ("schedule", serde_json::json!({"from": 0.0, "to": 1.0, "gaps": "Constant"})),
            ("among", serde_json::json!({"first": 2, "threads": 2})),
            ("among", serde_json::json!({"first": u64::MAX, "threads": 2})),
            ("stop", serde_json::json!({"Count": 0})),
            ("timeout", serde_json::json!({"secs": 0, "nanos": 0})),
            ("announce", serde_json::json!(3)),
            ("warmup", serde_json::json!({"secs": u64::MAX, "nanos": 0})),
            ("drain", serde_json::json!({"secs": 1_u64 << 40, "nanos": 0})),
        ] {
            let mut wrong = sent(&job());
            wrong[field] = value.clone();
            let got: Assignment = serde_json::from_value(wrong).expect("an assignment");
            assert!(got.job().is_err(), "{field}: {value}");
        }
    }

    #[test]
    fn what_belongs_to_this_machine_is_not_sent() {
        let mut from_here = job();
        from_here.sources = vec![std::net::Ipv4Addr::LOCALHOST.into()];
        assert!(Assignment::of(&from_here).is_err_and(|why| why.contains("--source")));
    }
}
