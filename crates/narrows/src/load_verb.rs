//! `narrows load`: drives one target.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{anyhow, bail};
use load::target::{Body, FrameStream, Http, Target, Traffic, Url};
use load::{ArrivalSchedule, Arrivals, Ending, ErrorClass, Gaps, Job, LoadError, Slo, Stop, Tally, Values};
use report::{Interval, number};
use summary::Driven;
use systems::Limit;
use systems::contact;
use wire::frames::Prefix;

use crate::common::{self, End, Usage};
use crate::drive::{Window, classify, wait_for};
use crate::fleet::MachineList;
use crate::fleet::generators::{Cores, Generators, Request};
use crate::reach::{Destination, ReachArgs};
use crate::requests_args::{Replay, RequestsArgs};
use crate::tls_args::TlsArgs;
use crate::traffic::{GapsChoice, TrafficArgs, positive};

mod by_name;
mod generators;
mod live;
mod max_rate;
mod summary;

/// `narrows load`
#[derive(clap::Args)]
pub struct Args {
    /// http://host:port/path, https://host:port/path or frames://host:port
    target: String,
    /// Number of generator threads; with --gen, of each machine
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = positive)]
    threads: usize,
    /// How long to measure: 500ms, 10s, 2m [default: 10s, or with --speed the length of the log]. With --rate, the answers to
    /// what was due are awaited after it, for at most --timeout
    #[arg(short, long, value_parser = common::duration, conflicts_with = "number")]
    duration: Option<Duration>,
    /// Stop after this many requests or frames instead
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    number: Option<u64>,
    /// Drive for this long before the measurement begins
    #[arg(long, value_parser = common::duration, value_name = "TIME", default_value = "0s", conflicts_with = "number")]
    warmup: Duration,
    /// The seed of Poisson gaps, and of what is random in files of requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Limit the pauses within an answer; this replaces --timeout once data arrives. For long downloads
    #[arg(long, value_parser = common::duration, value_name = "TIME")]
    idle_timeout: Option<Duration>,
    /// The most bytes of an answer's body; a longer answer is an error [default: 1000000000, or 64M if --expect or --compressed
    /// needs whole bodies, which are kept in memory]
    #[arg(long, value_parser = common::size, value_name = "SIZE")]
    max_answer: Option<u64>,
    /// Wait at most this long until the target accepts connections [default: do not wait]
    #[arg(long, value_parser = common::duration, value_name = "TIME")]
    wait: Option<Duration>,
    /// Find the highest rate at which the objectives of --slo hold, starting at --rate (default 1000). Each try lasts -d, or up to four times as long if a percentile needs more answers
    #[arg(long, requires = "slo", conflicts_with = "number")]
    find_max_rate: bool,
    /// Objectives for the response time and the share of failures, such as `p99<20ms,errors<0.1%`. The exit code is 3 if
    /// they do not hold. In an open loop they do not hold if more than 0.1 % of the arrivals could not be sent. Limits of single
    /// answers, such as `first-event<200ms,gap.p99<50ms,whole<5s`, are met by good ones, which are counted; others are first-byte and
    /// longest-gap
    #[arg(long, value_name = "OBJECTIVES", value_parser = Slo::parse)]
    slo: Option<Slo>,
    /// Exit with code 0 even if more than 1 % of the requests failed, as long as one was verified
    #[arg(long, help_heading = "Checks")]
    allow_errors: bool,
    /// Write the latencies to this file, as an HdrHistogram log
    #[arg(long, value_name = "FILE", conflicts_with = "find_max_rate")]
    hlog: Option<PathBuf>,
    /// Drive from these machines together: ssh://[user@]host[:port], exec:COMMAND that gives a pipe to `narrows agent`, slurm:N for
    /// nodes of a Slurm cluster, or local; separated by commas
    #[arg(long = "gen", value_name = "MACHINES")]
    generators: Vec<MachineList>,
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
    // What has a heading of its own in the help stands last.
    #[command(flatten)]
    traffic: TrafficArgs,
    #[command(flatten)]
    reach: ReachArgs,
    #[command(flatten)]
    requests: RequestsArgs,
    #[command(flatten)]
    tls: TlsArgs,
}

/// More than this share of failures fails the drive.
const MANY: f64 = measurement::RANKED_ERRORS;

/// How long the window is if the user does not say so.
const USUAL_DURATION: Duration = Duration::from_secs(10);

/// Drives the target and prints the result.
pub fn run(args: &Args, files: Limit) -> End {
    let cancel = common::cancellation()?;
    let (job, place) = args.job()?;
    if !args.generators.is_empty() {
        return from_elsewhere(args, &job, &place, files, &cancel);
    }
    if let Some(patience) = args.wait {
        wait_for(&job.target.address, patience, &cancel)?;
    }
    if let (true, Some(slo)) = (args.find_max_rate, &args.slo) {
        let mut here = |job: &Job| Ok((load::drive(job, &cancel, &|_| {}).map_err(classify)?, 1));
        return find_max_rate(args, &job, slo, (&mut here, &cancel));
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
    let tally = tally.map_err(|error| nearby(error, &place))?;
    let interrupted = cancel.load(Ordering::Relaxed);
    let disturbed = window.disturbed();
    let driven = Driven { job: &job, tally: &tally, disturbed, interrupted, together: None };
    args.show(&driven, &place)?;
    if speaks_tls(&args.reach, &job, &tally) {
        common::say("narrows: the server speaks TLS: use https://");
    }
    write_hlog(hlog, began + args.warmup, &tally)?;
    Ok(args.verdict(&tally))
}

/// Writes the latencies of a window that began at this time of day.
fn write_hlog(file: Option<common::AtomicFile>, began: Duration, tally: &Tally) -> anyhow::Result<()> {
    let Some(file) = file else { return Ok(()) };
    let interval = |tag: &str, histogram| Interval {
        tag: tag.to_owned(),
        began_unix_s: began.as_secs_f64(),
        length_s: tally.elapsed.as_secs_f64(),
        histogram,
    };
    let log = report::hlog(&[
        interval("service_time", tally.service.all()),
        interval("response_time", tally.response.all()),
    ]);
    file.write(&log)
}

/// Drives the target from other machines, and prints the result.
fn from_elsewhere(args: &Args, job: &Job, place: &Destination, files: Limit, cancel: &AtomicBool) -> End {
    let machines: Vec<_> = args.generators.iter().flat_map(|list| list.0.clone()).collect();
    let allow_remote = args.reach.allows_remote();
    let hlog = args.hlog.as_deref().map(common::AtomicFile::create).transpose()?;
    let mut generators = Generators::new(machines, files, allow_remote);
    if let (true, Some(slo)) = (args.find_max_rate, &args.slo) {
        let mut wait = args.wait;
        let mut there = |job: &Job| {
            let request = Request { job, wait: wait.take(), cores: Cores::OfJob };
            let number = generators.number();
            let together = generators.drive(&request, cancel, &|_| {})?;
            Ok((together.map(|together| together.tally).unwrap_or_default(), number))
        };
        return find_max_rate(args, job, slo, (&mut there, cancel));
    }
    let request = Request { job, wait: args.wait, cores: Cores::OfJob };
    let Some(together) = generators.drive(&request, cancel, &|_| {})? else {
        bail!("interrupted before the windows opened");
    };
    let interrupted = cancel.load(Ordering::Relaxed);
    let (tally, disturbed) = (&together.tally, together.disturbed);
    args.show(&Driven { job, tally, disturbed, interrupted, together: Some(&together) }, place)?;
    write_hlog(hlog, together.began, tally)?;
    Ok(args.verdict(tally))
}

/// Whether a server that answered nothing in plain text shakes hands in TLS. Most servers that speak TLS close a connection that
/// begins with anything else, and do not say why.
fn speaks_tls(reach: &ReachArgs, job: &Job, tally: &Tally) -> bool {
    let Traffic::Http(Http { tls: None, http2: false, .. }) = &job.target.traffic else { return false };
    let unclear = [ErrorClass::ClosedEarly, ErrorClass::Reset, ErrorClass::Status, ErrorClass::Protocol];
    let mut failed = ErrorClass::ALL.iter().zip(tally.errors).filter(|(_, count)| *count > 0);
    if tally.successes > 0 || !failed.any(|(class, _)| unclear.contains(class)) {
        return false;
    }
    contact::speaks_tls(&reach.access(&job.target.address, None))
}

fn find_max_rate(args: &Args, job: &Job, slo: &Slo, how: (&mut max_rate::DriveWith<'_>, &AtomicBool)) -> End {
    let Traffic::Http(_) = job.target.traffic else {
        bail!(Usage(
            "--find-max-rate needs requests; frames are sent as fast as the receiver accepts them".to_owned()
        ));
    };
    let schedule = match job.arrivals {
        Arrivals::Open(schedule) => schedule,
        Arrivals::Closed | Arrivals::Recorded(_) => {
            ArrivalSchedule { from: 1000.0, to: 1000.0, gaps: Gaps::Constant }
        }
    };
    let mut broken_pipe = Ok(());
    let found = max_rate::find(job, schedule, slo, how, |step| {
        if !args.json && broken_pipe.is_ok() {
            broken_pipe = common::print(step.line());
        }
    })?;
    broken_pipe?;
    let text = if args.json { serde_json::to_string_pretty(&found)? + "\n" } else { found.line() };
    common::print(&text)?;
    Ok(found.code())
}

impl Args {
    /// Prints the result.
    fn show(&self, driven: &Driven<'_>, place: &Destination) -> anyhow::Result<()> {
        let text = if self.json {
            serde_json::to_string_pretty(&summary::json(driven))? + "\n"
        } else {
            summary::text(driven, &place.shown(&self.target))
        };
        Ok(common::print(&text)?)
    }

    /// The exit code, after a sentence if the objectives do not hold.
    fn verdict(&self, tally: &Tally) -> ExitCode {
        if let Some(why) = self.slo.as_ref().and_then(|slo| slo.broken(tally)) {
            common::say(format_args!("narrows: the objectives do not hold: {why}"));
            return ExitCode::from(3);
        }
        let (failed, ended) = (tally.failures(), tally.failures() + tally.successes);
        let many = failed as f64 > MANY * ended as f64;
        if many && !self.allow_errors {
            common::say(format_args!(
                "narrows: {failed} of {ended} failed ({}), so the exit code is 1; --allow-errors makes it 0",
                number::percent(failed as f64 / ended as f64)
            ));
        }
        // A drive without a single verified answer has failed.
        let has_failed = tally.successes == 0 || (many && !self.allow_errors);
        if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    /// What to drive, and where it is.
    fn job(&self) -> anyhow::Result<(Job, Destination)> {
        let url = Url::parse(&self.target).map_err(classify)?;
        if let Some(why) = self.contradiction(&url) {
            bail!(Usage(why));
        }
        let place = self.reach.place(&url)?;
        let (traffic, replay) = if url.scheme == "frames" {
            (Traffic::Frames(self.frames()), None)
        } else {
            let mut http = self.http(&url)?;
            let values = self.begin(&mut http, &url, &place)?;
            let replay = self.requests.prepare(&mut http, &url, self.seed, &values)?;
            http.max_answer = self.max_answer.unwrap_or_else(|| http.usual_limit());
            (Traffic::Http(http), replay)
        };
        let stop = self.stop(&traffic, replay.as_ref());
        let target = Target { address: place.address.clone(), traffic };
        let mut job = Job::new(target, self.traffic.connections(), stop);
        self.reach.apply(&mut job, self.generators.iter().map(|list| list.0.len()).sum())?;
        job.pipeline = self.traffic.depth();
        if let Some((from, to)) = self.traffic.rate {
            let gaps = match self.traffic.gaps {
                GapsChoice::Constant => Gaps::Constant,
                GapsChoice::Poisson => Gaps::Poisson(self.seed),
            };
            job.arrivals = Arrivals::Open(ArrivalSchedule { from, to, gaps });
        }
        if let Some(replay) = replay {
            job.arrivals = Arrivals::Recorded(replay.recording);
            // The last request of the log may arrive at its very end.
            job.ending = Ending::Finish;
        }
        job.warmup = self.warmup;
        job.timeout = self.traffic.timeout;
        job.idle_timeout = self.idle_timeout;
        job.backend = self.reactor.into();
        job.reports = (!self.json).then_some(live::EVERY);
        job.threads = (0..self.threads)
            .map(|number| self.cores.get(number % self.cores.len().max(1)).copied())
            .collect();
        Ok((job, place))
    }

    /// When the window ends.
    fn stop(&self, traffic: &Traffic, replay: Option<&Replay>) -> Stop {
        let once = match traffic {
            Traffic::Http(Http { list: Some(list), .. }) if self.requests.once() => Some(list.len() as u64),
            _ => None,
        };
        if let Some(count) = self.number.or(once) {
            return Stop::Count(count);
        }
        let length = replay.map_or(USUAL_DURATION, |replay| replay.length);
        Stop::After(match self.duration {
            Some(duration) if replay.is_some() => duration.min(length),
            duration => duration.unwrap_or(length),
        })
    }

    fn frames(&self) -> FrameStream {
        let prefix = self.traffic.frame_prefix.unwrap_or(Prefix::Four);
        FrameStream { size: self.traffic.frame_size.unwrap_or(1000), prefix, count: self.number }
    }

    /// Why the highest rate cannot be searched as it is asked for.
    fn wrong_search(&self) -> Option<&'static str> {
        let is_ramp = self.traffic.rate.is_some_and(|(from, to)| from != to);
        if !self.find_max_rate {
            None
        } else if self.slo.as_ref().is_some_and(|slo| slo.objectives().is_empty()) {
            Some("--find-max-rate needs an objective of all answers, such as --slo 'p99<20ms,errors<0.1%'")
        } else {
            is_ramp.then_some("--find-max-rate starts at one rate: --rate must not be a ramp")
        }
    }

    /// The first option that contradicts another or does not apply to the scheme.
    fn contradiction(&self, url: &Url) -> Option<String> {
        let scheme = url.scheme.as_str();
        let available = systems::machine::available_cores();
        // The cores of other machines are not known here.
        let here = self.generators.is_empty();
        let missing = self.cores.iter().find(|core| here && !available.contains(core));
        if let Some(why) = generators::contradiction(self) {
            return Some(why.to_owned());
        }
        if self.duration.is_some_and(|duration| duration.is_zero()) {
            return Some(
                "-d 0s measures nothing: use a longer -d, or a number of requests with -n".to_owned(),
            );
        }
        if self.traffic.expect_continue && self.traffic.timeout <= Tally::CONTINUE {
            return Some(
                "--expect-continue waits for a second before it sends the body: use a longer --timeout"
                    .to_owned(),
            );
        }
        if self.traffic.timeout.is_zero() || self.idle_timeout.is_some_and(|time| time.is_zero()) {
            return Some("a timeout of 0 lets every request fail: use a longer one".to_owned());
        }
        if let Some(why) = self.wrong_search() {
            return Some(why.to_owned());
        }
        if let Some(core) = missing {
            return Some(format!("--cores: this process may not run on core {core}, only on {available:?}"));
        }
        if self.traffic.checks.compressed && scheme == "frames" {
            return Some("--compressed works only with requests, not with frames".to_owned());
        }
        if scheme != "https" && self.tls.any() {
            return Some("options of TLS need a target that begins with https://".to_owned());
        }
        if let Some(why) = self.tls.contradiction(self.traffic.http2) {
            return Some(why.to_owned());
        }
        if scheme == "frames" && self.requests.needs_requests() {
            return Some(
                "files of requests, --auth and --auth-bearer work only with requests, not with frames"
                    .to_owned(),
            );
        }
        if self.requests.any() && url.path != "/" {
            return Some("the file of --requests has the paths: end the target after its port".to_owned());
        }
        let ends = self.number.is_some() || self.duration.is_some() || !self.warmup.is_zero();
        if self.requests.once() && (ends || self.find_max_rate) {
            return Some(
                "--requests-order once ends when all requests are answered: leave -d, -n, --warmup and --find-max-rate out"
                    .to_owned(),
            );
        }
        if self.seed != 1 && self.traffic.rate.is_none() && !self.requests.any() {
            return Some("--seed needs --rate or --requests: nothing else is random".to_owned());
        }
        self.traffic.contradiction(scheme).map(str::to_owned)
    }

    /// Makes the first request, and fills in its values, which the requests of a file may need, too.
    fn begin(&self, http: &mut Http, url: &Url, place: &Destination) -> anyhow::Result<Values> {
        let Some(first) = self.traffic.first.read(&http.headers)? else { return Ok(Values::default()) };
        if !self.requests.any() {
            let body = match &http.body {
                Body::Bytes(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
                Body::None | Body::Pattern(_) => "",
            };
            self.traffic.check_values(&http.path, body)?;
        }
        let cancel = common::cancellation()?;
        if let Some(patience) = self.wait {
            wait_for(&place.address, patience, &cancel)?;
        }
        let access = self.reach.access(&place.address, http.tls.as_deref().cloned());
        let access = contact::Access { http2: http.http2, ..access };
        let over = || cancel.load(Ordering::Relaxed);
        let values =
            lab::session::first_values(&access, &url.authority(), &first, self.traffic.timeout, &over);
        let values = values.map_err(|why| anyhow!(why))?;
        http.path = values.fill_path(&http.path);
        http.headers = values.fill_headers(&http.headers);
        if let Body::Bytes(bytes) = &http.body {
            http.body = Body::Bytes(Arc::new(values.fill_body(bytes)));
        }
        Ok(values)
    }

    fn http(&self, url: &Url) -> anyhow::Result<Http> {
        let body = self.traffic.body()?;
        let method = self.traffic.method(&body);
        let mut headers = self.traffic.headers.clone();
        headers.extend(self.requests.authorization()?);
        if self.traffic.checks.compressed {
            answers::accept(&mut headers);
        }
        Ok(Http {
            method,
            headers,
            body: body.into(),
            keep_alive: !self.traffic.close,
            http2: self.traffic.http2,
            allowance: self.traffic.allowance(),
            tls: self.tls.dialing(url, self.traffic.http2)?.map(Arc::new),
            expect_continue: self.traffic.expect_continue,
            expect: self.traffic.checks.expect(),
            decode: self.traffic.checks.compressed,
            stream: self.traffic.checks.stream.map(Into::into),
            goal: self.slo.as_ref().and_then(Slo::goal).cloned().map(Arc::new),
            ..Http::get(url.authority(), url.path.as_str())
        })
    }
}

/// Adds to an error that the name of the target has another address, at which something may listen.
fn nearby(error: LoadError, place: &Destination) -> anyhow::Error {
    let remedy = place.remedy().filter(|_| matches!(error, LoadError::NothingListens { .. }));
    let error = classify(error);
    match remedy {
        Some(remedy) => anyhow!("{error}. {remedy}"),
        None => error,
    }
}
