//! `narrows load`: drives one target.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use load::target::{self, Body, Expect, FrameStream, Http, Target, Traffic, Url};
use load::{ArrivalSchedule, Arrivals, Gaps, Job, LoadError, Stop};
use report::Interval;
use slo::Slo;
use summary::Driven;
use systems::machine::Disturbance;
use wire::frames::Prefix;

use crate::common::{self, End, Usage};

mod live;
mod max_rate;
mod slo;
mod summary;

/// `narrows load`
#[derive(clap::Args)]
pub struct Args {
    /// http://host:port/path or frames://host:port
    target: String,
    /// Number of concurrent connections
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = positive)]
    connections: usize,
    /// Number of generator threads
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = positive)]
    threads: usize,
    /// How long to measure: 500ms, 10s, 2m
    #[arg(short, long, value_parser = common::duration, default_value = "10s", conflicts_with = "number")]
    duration: Duration,
    /// Stop after this many requests or frames instead
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    number: Option<u64>,
    /// Drive for this long before the measurement begins
    #[arg(long, value_parser = common::duration, value_name = "TIME", default_value = "0s", conflicts_with = "number")]
    warmup: Duration,
    /// Timeout of one exchange, from its last byte that was sent
    #[arg(long, value_parser = common::duration, value_name = "TIME", default_value = "30s")]
    timeout: Duration,
    /// Open loop: arrivals per second (1000, 10k), or a ramp from one rate to another (1k..50k), independent of the answers
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<(f64, f64)>,
    /// The gaps between arrivals of an open loop
    #[arg(long, value_enum, default_value_t, requires = "rate")]
    gaps: GapsChoice,
    /// The seed of Poisson gaps
    #[arg(long, value_name = "N", default_value_t = 1, requires = "rate")]
    seed: u64,
    /// One request per connection
    #[arg(long)]
    close: bool,
    /// Concurrent requests per connection
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = positive)]
    pipeline: usize,
    /// The method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_name = "METHOD")]
    request: Option<String>,
    /// Add a header `Name: value`, or replace the default one of that name
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = header)]
    headers: Vec<(String, String)>,
    /// Send this file as the body
    #[arg(long, value_name = "FILE", conflicts_with = "body_size")]
    body: Option<PathBuf>,
    /// Send a body of this size (64K, 1M, 1G), filled with a seeded pattern
    #[arg(long, value_name = "SIZE", value_parser = common::size)]
    body_size: Option<u64>,
    /// Send `Expect: 100-continue` and wait for the answer, at most a second
    #[arg(long)]
    expect_continue: bool,
    /// Accept only this status [default: any 2xx]
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(200..=599))]
    expect_status: Option<u16>,
    /// Payload bytes of a frame [default: 1000]
    #[arg(long, value_name = "SIZE", value_parser = common::size)]
    frame_size: Option<u64>,
    /// Bytes of the length prefix of a frame: 1, 2 or 4 [default: 4]
    #[arg(long, value_name = "BYTES", value_parser = prefix)]
    frame_prefix: Option<Prefix>,
    /// Allow a target on another machine
    #[arg(long)]
    allow_remote: bool,
    /// Find the highest rate at which the objectives of --slo hold, starting at --rate (default 1000). Each try lasts -d, or up to four times as long if a percentile needs more answers
    #[arg(long, requires = "slo", conflicts_with = "number")]
    find_max_rate: bool,
    /// Objectives for the response time and the share of failures, such as `p99<20ms,errors<0.1%`. The exit code is 3 if
    /// they do not hold. In an open loop they do not hold if more than 0.1 % of the arrivals could not be sent
    #[arg(long, value_name = "OBJECTIVES", value_parser = Slo::parse)]
    slo: Option<Slo>,
    /// Write the latencies to this file, as an HdrHistogram log
    #[arg(long, value_name = "FILE", conflicts_with = "find_max_rate")]
    hlog: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print plain lines even on a terminal
    #[arg(long)]
    quiet: bool,
    /// Pin the threads to these cores: 0 or 0,1
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    cores: Vec<usize>,
    /// The kernel interface
    #[arg(long, value_enum, default_value_t)]
    reactor: common::ReactorChoice,
}

/// The disturbances so far when the first thread's window opens and when the last one's closes. Disturbances during the
/// warm-up do not count.
#[derive(Default)]
struct Window(Mutex<[Option<Disturbance>; 2]>);

impl Window {
    fn record(&self, moment: load::Moment<'_>) {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match moment {
            load::Moment::Opened => _ = ends[0].get_or_insert_with(Disturbance::so_far),
            load::Moment::Closed => ends[1] = Some(Disturbance::so_far()),
            load::Moment::Passed { .. } => {}
        }
    }

    fn disturbed(&self) -> Disturbance {
        let [opened, closed] = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        opened.zip(closed).map_or_else(Disturbance::default, |(opened, closed)| closed.since(opened))
    }
}

/// Drives the target and prints the result.
pub fn run(args: &Args) -> End {
    let cancel = common::cancellation()?;
    let job = args.job()?;
    if let (true, Some(slo)) = (args.find_max_rate, &args.slo) {
        return find_max_rate(args, &job, slo, &cancel);
    }
    let hlog = args.hlog.as_deref().map(common::AtomicFile::create).transpose()?;
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let window = Window::default();
    let live = (!args.json).then(|| live::Seconds::new(&job, args.quiet));
    let tally = load::drive(&job, &cancel, &|moment| {
        if let (load::Moment::Passed { thread, times, so_far }, Some(live)) = (moment, &live) {
            live.passed(thread, times, so_far);
        }
        window.record(moment);
    });
    drop(live);
    let tally = tally.map_err(classify)?;
    let driven = Driven { job: &job, tally: &tally, disturbed: window.disturbed() };
    let text = if args.json {
        serde_json::to_string_pretty(&summary::json(&driven))? + "\n"
    } else {
        summary::text(&driven, &args.target)
    };
    common::print(&text)?;
    if let Some(file) = hlog {
        let interval = |tag: &str, histogram| Interval {
            tag: tag.to_owned(),
            began_unix_s: (began + args.warmup).as_secs_f64(),
            length_s: tally.elapsed.as_secs_f64(),
            histogram,
        };
        let log = report::hlog(&[
            interval("service_time", tally.service.clone()),
            interval("response_time", tally.response.clone()),
        ]);
        file.write(&log)?;
    }
    if let Some(why) = args.slo.as_ref().and_then(|slo| slo.broken(&tally)) {
        common::say(format_args!("narrows: the objectives do not hold: {why}"));
        return Ok(ExitCode::from(3));
    }
    // A drive without a single verified answer has failed.
    Ok(if tally.successes == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn find_max_rate(args: &Args, job: &Job, slo: &Slo, cancel: &AtomicBool) -> End {
    let Traffic::Http(_) = job.target.traffic else {
        bail!(Usage(
            "--find-max-rate needs requests; frames are sent as fast as the receiver accepts them".to_owned()
        ));
    };
    let schedule = match job.arrivals {
        Arrivals::Open(schedule) => schedule,
        Arrivals::Closed => ArrivalSchedule { from: 1000.0, to: 1000.0, gaps: Gaps::Constant },
    };
    let mut broken_pipe = Ok(());
    let found = max_rate::find(job, schedule, slo, cancel, |step| {
        if !args.json && broken_pipe.is_ok() {
            broken_pipe = common::print(&step.line());
        }
    })?;
    broken_pipe?;
    let text = if args.json { serde_json::to_string_pretty(&found)? + "\n" } else { found.line() };
    common::print(&text)?;
    Ok(found.code())
}

impl Args {
    fn job(&self) -> anyhow::Result<Job> {
        let url = Url::parse(&self.target).map_err(classify)?;
        if let Some(why) = self.contradiction(&url.scheme) {
            bail!(Usage(why));
        }
        let address = target::resolve(&url.host, url.port, self.allow_remote)?;
        let traffic = if url.scheme == "frames" {
            Traffic::Frames(self.frames())
        } else {
            Traffic::Http(self.http(&url)?)
        };
        let stop = match (self.number, &traffic) {
            (Some(count), _) => Stop::Count(count),
            (None, _) => Stop::After(self.duration),
        };
        if self.pipeline > 1 && self.close {
            bail!(Usage("--pipeline cannot be used with --close".to_owned()));
        }
        let mut job = Job::new(Target { address, traffic }, self.connections, stop);
        job.pipeline = self.pipeline;
        if let Some((from, to)) = self.rate {
            if matches!(job.target.traffic, Traffic::Frames(_)) {
                bail!(Usage(
                    "--rate needs requests; frames are sent as fast as the receiver accepts them".to_owned()
                ));
            }
            let gaps = match self.gaps {
                GapsChoice::Constant => Gaps::Constant,
                GapsChoice::Poisson => Gaps::Poisson(self.seed),
            };
            job.arrivals = Arrivals::Open(ArrivalSchedule { from, to, gaps });
        }
        job.warmup = self.warmup;
        job.timeout = self.timeout;
        job.backend = self.reactor.into();
        job.reports = (!self.json).then_some(live::EVERY);
        job.threads = (0..self.threads)
            .map(|number| (!self.cores.is_empty()).then(|| self.cores[number % self.cores.len()]))
            .collect();
        Ok(job)
    }

    fn frames(&self) -> FrameStream {
        let prefix = self.frame_prefix.unwrap_or(Prefix::Four);
        FrameStream { size: self.frame_size.unwrap_or(1000), prefix, count: self.number }
    }

    /// The first option that contradicts another or does not apply to the scheme.
    fn contradiction(&self, scheme: &str) -> Option<String> {
        let available = systems::machine::available_cores();
        let missing = self.cores.iter().find(|core| !available.contains(core));
        let http_only = self.body.is_some()
            || self.body_size.is_some()
            || self.request.is_some()
            || !self.headers.is_empty()
            || self.expect_continue
            || self.expect_status.is_some()
            || self.close
            || self.pipeline > 1;
        match scheme {
            _ if self.duration.is_zero() && self.number.is_none() => {
                Some("-d 0s measures nothing: use a longer -d, or a number of requests with -n".to_owned())
            }
            _ if self.find_max_rate && self.rate.is_some_and(|(from, to)| from != to) => {
                Some("--find-max-rate starts at one rate: --rate must not be a ramp".to_owned())
            }
            _ if missing.is_some() => Some(format!(
                "--cores: this process may not run on core {}, only on {available:?}",
                missing.unwrap_or(&0)
            )),
            "frames" if http_only => Some(
                "bodies, methods, headers, statuses, --close and --pipeline work only with http://, not with frames://"
                    .to_owned(),
            ),
            "http" if self.frame_size.is_some() || self.frame_prefix.is_some() => {
                Some("--frame-size and --frame-prefix work only with frames://".to_owned())
            }
            _ => None,
        }
    }

    fn http(&self, url: &Url) -> anyhow::Result<Http> {
        let body = match (&self.body, self.body_size) {
            (Some(path), _) => {
                let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
                Body::Bytes(Arc::new(bytes))
            }
            (None, Some(size)) => Body::Pattern(size),
            (None, None) => Body::None,
        };
        if self.expect_continue && body.is_empty() {
            bail!(Usage("--expect-continue needs a body: --body FILE or --body-size SIZE".to_owned()));
        }
        let method = match (&self.request, &body) {
            (Some(method), _) => method.clone(),
            (None, Body::None) => "GET".to_owned(),
            (None, _) => "POST".to_owned(),
        };
        Ok(Http {
            method,
            headers: self.headers.clone(),
            body,
            keep_alive: !self.close,
            expect_continue: self.expect_continue,
            expect: Expect { status: self.expect_status, body: None },
            ..Http::get(url.authority(), url.path.as_str())
        })
    }
}

/// Makes usage errors of the errors that the user's arguments caused.
fn classify(error: LoadError) -> anyhow::Error {
    if error.is_usage() { Usage(error.to_string()).into() } else { error.into() }
}

/// The gaps between arrivals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum GapsChoice {
    /// All gaps are equal.
    #[default]
    Constant,
    /// Gaps are exponentially distributed, as if users were independent.
    Poisson,
}

/// Parses a rate or a ramp: `1000`, `10k`, `1k..50k`.
fn rate(text: &str) -> Result<(f64, f64), String> {
    let number = |text: &str| {
        let (number, factor) = match text.strip_suffix(['k', 'K']) {
            Some(number) => (number, 1000.0),
            None => text.strip_suffix('M').map_or((text, 1.0), |number| (number, 1e6)),
        };
        let rate = number.parse::<f64>().ok().map(|rate| rate * factor);
        rate.filter(|rate| (0.001..=1e8).contains(rate))
            .ok_or_else(|| format!("{text:?} is not a rate: write 500, 10k or 1k..50k"))
    };
    match text.split_once("..") {
        Some((from, to)) => Ok((number(from)?, number(to)?)),
        None => number(text).map(|rate| (rate, rate)),
    }
}

fn positive(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| (1..=1_000_000).contains(number))
        .ok_or_else(|| "it must be a number from 1 to 1000000".to_owned())
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or_else(|| "write it as `Name: value`".to_owned())?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn prefix(text: &str) -> Result<Prefix, String> {
    match text {
        "1" => Ok(Prefix::One),
        "2" => Ok(Prefix::Two),
        "4" => Ok(Prefix::Four),
        _ => Err("it must be 1, 2 or 4".to_owned()),
    }
}
