//! The conformance check: whether a system keeps each promise of docs/contracts.md, and what was seen.
//!
//! Starts and stops the system as a trial does. Checks HTTP over plain sockets, so that the generator and its codec do
//! not check themselves.

mod client;
mod connection;
mod frames;
mod http;
mod knobs;
mod streams;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use serde::Serialize;
use systems::process::{Exit, Running};
use systems::{Listening, Manifest, Point, Role, Value, Work, Workload, said};
use tls::{KeyKind, Version};

use super::bench::Bench;
use super::drive::listening;
use super::place::Place;
use super::trial_error::TrialError;
use crate::observation::{Scenario, Stage, Timing, Trial};

/// The check of one promise of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The promise.
    pub name: String,
    /// Whether it was kept.
    pub verdict: CheckVerdict,
    /// What was seen, or why it was not checked.
    pub seen: String,
    /// What to do about it. Empty if there is nothing to do.
    pub remedy: String,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckVerdict {
    /// The promise was kept.
    Kept,
    /// The promise was broken.
    Broken,
    /// The promise does not apply to this system, or its manifest says why it cannot be checked.
    Excused,
}

/// The checks so far.
#[derive(Debug, Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn add(&mut self, name: &str, verdict: CheckVerdict, seen: impl Into<String>, remedy: &str) {
        let remedy = remedy.to_owned();
        self.0.push(Check { name: name.to_owned(), verdict, seen: seen.into(), remedy });
    }

    /// Adds a kept promise with what was seen, or a broken one with what was wrong.
    fn judge(&mut self, name: &str, found: Result<String, String>, remedy: &str) {
        match found {
            Ok(seen) => self.add(name, CheckVerdict::Kept, seen, ""),
            Err(wrong) => self.add(name, CheckVerdict::Broken, wrong, remedy),
        }
    }

    fn excuse(&mut self, name: &str, why: impl Into<String>) {
        self.add(name, CheckVerdict::Excused, why, "");
    }
}

/// Trials are short, because the check is about correctness, not speed.
const TIMING: Timing = Timing { warmup_s: 0.05, measure_s: 0.3, timeout_s: 5.0 };

/// Checks a system that can run here. `None` if the user interrupted the check.
pub fn conformance(bench: &mut Bench, system: &str) -> Option<Vec<Check>> {
    let mut checks = Checks::default();
    let Ok(manifest) = bench.catalog().get(system).cloned() else { return Some(checks.0) };
    match bench.build(system) {
        Ok(built) => {
            let version = built.version.unwrap_or_else(|| "it does not report a version".to_owned());
            let seen = if manifest.build.is_some() { version } else { "nothing to build".to_owned() };
            checks.add("builds", CheckVerdict::Kept, seen, "");
        }
        Err(error) => {
            checks.add("builds", CheckVerdict::Broken, with_output(&error.reason, &error.output), BUILD);
            return (!bench.cancelled()).then_some(checks.0);
        }
    }
    let sound = check_program(bench, &manifest, &mut checks).is_ok();
    if sound && !manifest.knobs.is_empty() {
        let _ = knobs::check(bench, &manifest, &mut checks);
    }
    (!bench.cancelled()).then_some(checks.0)
}

const BUILD: &str = "run build.command by hand in the system's folder";
const READY: &str = "let the started process listen on {port} of {address}, and read what it prints";
const STOP: &str =
    "end at SIGTERM within stop.grace_ms, with all children; if a shell starts the program, use exec";

/// Checks everything except knobs, which all have their defaults.
fn check_program(bench: &mut Bench, manifest: &Manifest, checks: &mut Checks) -> Result<(), TrialError> {
    for workload in &manifest.workloads {
        let trial = trial(manifest, *workload, Point::new())?;
        let result = bench.with_place(&trial, |place| match place.manifest.role {
            Role::Server => check_server(place, checks),
            Role::Client => client::check(place, checks),
        });
        if let Err(TrialError::Failed(failure)) = &result {
            checks.add(
                &format!(
                    "{workload}: {}",
                    if failure.stage == Stage::Start { "starts" } else { "is ready in time" }
                ),
                CheckVerdict::Broken,
                with_output(&failure.reason, &failure.output),
                READY,
            );
        }
        result?;
        let has_fault = manifest.answer.as_ref().is_some_and(|answer| answer.fault.is_some());
        if manifest.speaks(true) && workload.knob("tls").is_some() && !has_fault {
            check_secured(bench, manifest, *workload, checks)?;
        }
        if manifest.http2 && manifest.attached().is_none() && workload.knob("http").is_some() && !has_fault {
            check_http2(bench, manifest, *workload, checks)?;
        }
    }
    check_address(bench, manifest, checks)
}

/// Another address of this machine.
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

const ADDRESS: &str = "bind {address} and no other address";

/// Checks that a server listens at another address if it is told to, and at no other one then.
fn check_address(bench: &mut Bench, manifest: &Manifest, checks: &mut Checks) -> Result<(), TrialError> {
    let name = "listens where it is told";
    if manifest.role == Role::Client || manifest.program.listens_on_socket() {
        return Ok(());
    }
    if let Some(why) = manifest.why_unreachable_at(ELSEWHERE) {
        checks.excuse(name, why);
        return Ok(());
    }
    let trial = trial(manifest, manifest.workloads[0], Point::new())?;
    let told = bench.address;
    bench.listen_at(ELSEWHERE);
    let found = bench.with_place(&trial, |place| {
        let running = place.start()?;
        let port = running.address().map_or(0, |at| at.port());
        let also = running.accepts_at(Listening::usual(port));
        running.stop();
        Ok(also)
    });
    bench.listen_at(told);
    let found = match found {
        Ok(false) => Ok(format!("at {ELSEWHERE}, and not at {}", Listening::USUAL)),
        Ok(true) => Err(format!("told {ELSEWHERE}, it also listens at {}", Listening::USUAL)),
        Err(TrialError::Interrupted) => return Err(TrialError::Interrupted),
        Err(TrialError::Failed(failure)) => Err(with_output(&failure.reason, &failure.output)),
    };
    checks.judge(name, found, ADDRESS);
    Ok(())
}

/// The versions and the keys of certificates with which TLS is checked. A server that runs already has its own certificate.
const SECURED: [(Version, KeyKind); 3] =
    [(Version::Tls13, KeyKind::P256), (Version::Tls13, KeyKind::Rsa2048), (Version::Tls12, KeyKind::P256)];

const SECURE: &str =
    "offer TLS 1.2 and 1.3 with {cert} and {key} on {port} unless {tls} is off, and answer as in plain text";

/// Checks the answers in TLS, each time with a fresh process.
fn check_secured(
    bench: &mut Bench,
    manifest: &Manifest,
    workload: Workload,
    checks: &mut Checks,
) -> Result<(), TrialError> {
    let all = if manifest.attached().is_some() { &SECURED[..1] } else { &SECURED };
    for (version, kind) in all {
        let values = [("tls", version.name()), ("certificate", kind.name())];
        let values = values.map(|(knob, value)| (knob.to_owned(), Value::Text(value.to_owned())));
        let trial = trial(manifest, workload, Point::from(values))?;
        let found = bench.with_place(&trial, |place| {
            let running = place.start()?;
            let found = listening(&running).and_then(|server| http::secured(place, &place.orders(server)));
            // It ends in order, so that it can remove what it made.
            running.stop();
            found
        });
        let name = format!("{workload}: TLS {} with a key of {}", version.name(), kind.name());
        match found {
            Ok(found) => checks.judge(&name, found, SECURE),
            Err(TrialError::Interrupted) => return Err(TrialError::Interrupted),
            Err(TrialError::Failed(failure)) => {
                let wrong = with_output(&failure.reason, &failure.output);
                checks.add(&name, CheckVerdict::Broken, wrong, SECURE);
            }
        }
    }
    Ok(())
}

const HTTP2: &str = "speak HTTP/2 on {port} without being asked first, and as h2 in TLS, if {http} is 2, and answer as in HTTP/1.1";

/// Checks the answers in HTTP/2, in plain text and in TLS, as far as it speaks them.
fn check_http2(
    bench: &mut Bench,
    manifest: &Manifest,
    workload: Workload,
    checks: &mut Checks,
) -> Result<(), TrialError> {
    for (tls, how) in [("off", "in plain text"), (Version::Tls13.name(), "in TLS")] {
        if !manifest.speaks(tls != "off") {
            continue;
        }
        let values = [("http", systems::work::http::HTTP2), ("tls", tls)];
        let values = values.map(|(knob, value)| (knob.to_owned(), Value::Text(value.to_owned())));
        let trial = trial(manifest, workload, Point::from(values))?;
        let found = bench.with_place(&trial, |place| {
            let running = place.start()?;
            let orders = listening(&running).map(|server| place.orders(server));
            let found = orders.and_then(|orders| place.driver().equal_work(&orders, 100_003));
            running.stop();
            found
        });
        let name = format!("{workload}: HTTP/2 {how}");
        let judged = match found {
            Ok(None) => Ok("its answers were right".to_owned()),
            Ok(Some(wrong)) => Err(wrong),
            Err(TrialError::Interrupted) => return Err(TrialError::Interrupted),
            Err(TrialError::Failed(failure)) => Err(with_output(&failure.reason, &failure.output)),
        };
        checks.judge(&name, judged, HTTP2);
    }
    Ok(())
}

fn check_server(place: &Place<'_>, checks: &mut Checks) -> Result<(), TrialError> {
    let workload = place.workload();
    let began = Instant::now();
    let running = place.start()?;
    let Some(server) = running.address() else {
        checks.excuse(
            &format!("{workload}: its answers"),
            "it listens on a Unix socket, and only TCP is checked",
        );
        return Ok(());
    };
    let ready = format!("after {:.0} ms", began.elapsed().as_secs_f64() * 1000.0);
    checks.add(&format!("{workload}: is ready in time"), CheckVerdict::Kept, ready, "");
    let access = place.orders(&Listening::Address(server)).access;
    match place.work() {
        Work::Frames(_) => frames::check(&access, checks),
        Work::Streams(work) => streams::check(&access, work.interface, checks),
        Work::Upload(_) | Work::Requests(_) | Work::Clients(_) => http::check(place, &access, checks)?,
    }
    check_stop(place, server, running, checks);
    Ok(())
}

/// Waits until nobody listens there. The kernel may close sockets of io_uring a little after their process has
/// ended.
fn wait_until_free(at: SocketAddr) -> bool {
    let patience = Instant::now() + Duration::from_secs(1);
    loop {
        if systems::port_free(at) {
            return true;
        }
        if Instant::now() >= patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Checks that the server stops at SIGTERM, leaves nothing behind and frees its port.
fn check_stop(place: &Place<'_>, at: SocketAddr, running: Running, checks: &mut Checks) {
    let name = format!("{}: stops clean", place.workload());
    if place.manifest.attached().is_some() {
        checks.excuse(&name, "its user started it, so Narrows does not stop it");
        return;
    }
    if let Err(died) = running.check_alive() {
        checks.add(
            &name,
            CheckVerdict::Broken,
            with_output(&died.reason, &died.output),
            "keep serving until SIGTERM",
        );
        return;
    }
    let grace = place.manifest.grace;
    let stopped = running.stop();
    let found = if !stopped.strays.is_empty() {
        Err(format!("it left {} behind, which did not end at SIGTERM", stopped.strays.join(", ")))
    } else if stopped.killed && !grace.is_zero() {
        Err(format!("it did not end within {} ms of SIGTERM and was killed", grace.as_millis()))
    } else if !wait_until_free(at) {
        Err(format!("port {} is still held", at.port()))
    } else {
        Ok(match stopped.exit {
            Some(exit @ (Exit::Code(_) | Exit::Signal(_))) => format!("it {exit}; nothing is left"),
            _ => "nothing is left".to_owned(),
        })
    };
    checks.judge(&name, found, STOP);
}

fn trial(manifest: &Manifest, workload: Workload, mut point: Point) -> Result<Trial, TrialError> {
    if !manifest.speaks(false) && workload.knob("tls").is_some() {
        point.entry("tls".to_owned()).or_insert_with(|| Value::Text(Version::Tls13.name().to_owned()));
    }
    let scenario = Scenario::new("check", manifest.name.as_str(), workload, point)
        .map_err(|why| TrialError::failed(Stage::Drive, why))?;
    Ok(Trial::alone(scenario, TIMING))
}

fn with_output(reason: &str, output: &str) -> String {
    said(output).map_or(reason.to_owned(), |line| format!("{reason}; it said: {line}"))
}

/// The checks of a system that cannot run here, from what it lacks.
pub fn missing(what: &[systems::Missing]) -> Vec<Check> {
    let mut checks = Checks::default();
    for need in what {
        let name = format!("needs {}", need.name);
        checks.add(&name, CheckVerdict::Broken, need.detail.clone(), &need.get);
    }
    checks.0
}

/// Whether every promise was kept or excused.
pub fn all_kept(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.verdict != CheckVerdict::Broken)
}
