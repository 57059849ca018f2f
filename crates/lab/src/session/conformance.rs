//! The conformance check: whether a system keeps docs/contracts.md, one promise after another, each with what was seen.
//!
//! Starts and stops the system as a trial does. What HTTP promises is asked over plain sockets, so that neither the generator nor
//! its codec vouches for itself.

mod client;
mod frames;
mod http;
mod knobs;
mod line;

use serde::Serialize;
use std::time::{Duration, Instant};

use systems::process::{Exit, Running};
use systems::{Manifest, Point, Work, Workload};

use super::bench::Bench;
use super::place::Place;
use super::stopped::Stopped;
use crate::observation::{Scenario, Timing, Trial};

/// One promise of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was promised.
    pub name: String,
    /// Whether it was kept.
    pub verdict: Verdict,
    /// What was seen, or why it was not looked at.
    pub seen: String,
    /// What to do about it; empty where nothing is to be done.
    pub remedy: String,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The promise was kept.
    Kept,
    /// It was not.
    Broken,
    /// It does not apply to this system, or its manifest says why it cannot be seen.
    Excused,
}

/// The checks so far.
#[derive(Debug, Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn add(&mut self, name: &str, verdict: Verdict, seen: impl Into<String>, remedy: &str) {
        let remedy = remedy.to_owned();
        self.0.push(Check { name: name.to_owned(), verdict, seen: seen.into(), remedy });
    }

    /// Kept, with what was seen, or broken, with what was wrong.
    fn judge(&mut self, name: &str, found: Result<String, String>, remedy: &str) {
        match found {
            Ok(seen) => self.add(name, Verdict::Kept, seen, ""),
            Err(wrong) => self.add(name, Verdict::Broken, wrong, remedy),
        }
    }

    fn excuse(&mut self, name: &str, why: impl Into<String>) {
        self.add(name, Verdict::Excused, why, "");
    }
}

/// Short, because the check looks at what is done, not how fast.
const TIMING: Timing = Timing { warmup_s: 0.05, measure_s: 0.3, timeout_s: 5.0 };

/// Checks a system that can run here. `None` when the user interrupted it.
pub fn conformance(bench: &mut Bench, system: &str) -> Option<Vec<Check>> {
    let mut checks = Checks::default();
    let Ok(manifest) = bench.catalog().get(system).cloned() else { return Some(checks.0) };
    match bench.build(system) {
        Ok(built) => {
            let version = built.version.unwrap_or_else(|| "it does not say which version".to_owned());
            let seen = if manifest.build.is_some() { version } else { "nothing to build".to_owned() };
            checks.add("builds", Verdict::Kept, seen, "");
        }
        Err(error) => {
            checks.add("builds", Verdict::Broken, with_output(&error.reason, &error.output), BUILD);
            return (!bench.cancelled()).then_some(checks.0);
        }
    }
    let all_well = of_program(bench, &manifest, &mut checks).is_ok();
    if all_well && !manifest.knobs.is_empty() {
        let _ = knobs::check(bench, &manifest, &mut checks);
    }
    (!bench.cancelled()).then_some(checks.0)
}

const BUILD: &str = "run build.command by hand in the system's folder";
const READY: &str =
    "listen on {port} of 127.0.0.1 in the process that is started, and look at what it prints";
const STOP: &str =
    "end at SIGTERM, children too, within stop.grace_ms; start the program with exec when a shell starts it";

/// Everything but the knobs, which all stand at their defaults.
fn of_program(bench: &mut Bench, manifest: &Manifest, checks: &mut Checks) -> Result<(), Stopped> {
    for workload in &manifest.workloads {
        let trial = trial(manifest, *workload, Point::new())?;
        let result = bench.with_place(&trial, |place, port| match port {
            Some(port) => of_server(place, port, checks),
            None => client::check(place, checks),
        });
        if let Err(Stopped::Failed(failure)) = &result {
            checks.add(
                &format!(
                    "{workload}: {}",
                    if failure.stage == "start" { "starts" } else { "is ready in time" }
                ),
                Verdict::Broken,
                with_output(&failure.reason, &failure.output),
                READY,
            );
        }
        result?;
    }
    Ok(())
}

fn of_server(place: &Place<'_>, port: u16, checks: &mut Checks) -> Result<(), Stopped> {
    let workload = place.workload();
    let began = Instant::now();
    let running = place.start()?;
    let ready = format!("after {:.0} ms", began.elapsed().as_secs_f64() * 1000.0);
    checks.add(&format!("{workload}: is ready in time"), Verdict::Kept, ready, "");
    match place.work() {
        Work::Frames(_) => frames::check(place, port, checks)?,
        Work::Upload(_) | Work::Requests(_) | Work::Clients(_) => http::check(place, port, checks)?,
    }
    stops(place, port, running, checks);
    Ok(())
}

/// Whether nobody listens on the port any more, soon: what io_uring still holds when its process ends, the kernel closes in its own time.
fn freed(port: u16) -> bool {
    let patience = Instant::now() + Duration::from_secs(1);
    loop {
        if systems::port_free(port) {
            return true;
        }
        if Instant::now() >= patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A clean stop: at SIGTERM, with nothing left, the port free again.
fn stops(place: &Place<'_>, port: u16, running: Running, checks: &mut Checks) {
    let name = format!("{}: stops clean", place.workload());
    if place.manifest.attached().is_some() {
        checks.excuse(&name, "its user started it: Narrows does not stop it");
        return;
    }
    if let Err(died) = running.check_alive() {
        checks.add(
            &name,
            Verdict::Broken,
            with_output(&died.reason, &died.output),
            "let it serve until SIGTERM",
        );
        return;
    }
    let grace = place.manifest.grace;
    let stopped = running.stop();
    let found = if stopped.killed {
        Err(format!("it did not end within {} ms of SIGTERM and was killed", grace.as_millis()))
    } else if !stopped.strays.is_empty() {
        Err(format!("it left {} behind, outside its process group", stopped.strays.join(", ")))
    } else if !freed(port) {
        Err(format!("port {port} is still held"))
    } else {
        Ok(match stopped.exit {
            Some(exit @ (Exit::Code(_) | Exit::Signal(_))) => format!("it {exit}; nothing is left"),
            _ => "nothing is left".to_owned(),
        })
    };
    checks.judge(&name, found, STOP);
}

fn trial(manifest: &Manifest, workload: Workload, point: Point) -> Result<Trial, Stopped> {
    let scenario = Scenario::new("check", manifest.name.as_str(), workload, point)
        .map_err(|why| Stopped::failed("drive", why))?;
    Ok(Trial { index: 0, round: 0, twin: false, scenario, timing: TIMING })
}

fn with_output(reason: &str, output: &str) -> String {
    let last = output.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or(reason.to_owned(), |line| format!("{reason}; its last line: {}", line.trim()))
}

/// What needs probing says of a system that cannot run here.
pub fn missing(what: &[systems::Missing]) -> Vec<Check> {
    let mut checks = Checks::default();
    for need in what {
        let name = format!("needs {}", need.name);
        checks.add(&name, Verdict::Broken, need.detail.clone(), &need.get);
    }
    checks.0
}

/// Whether each promise was kept or excused.
pub fn all_kept(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.verdict != Verdict::Broken)
}
