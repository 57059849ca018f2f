//! `narrows load --gen MACHINES`: several generators on other machines do one job together.
//!
//! Each gets its part of the connections and of the schedule. When all have warmed up, one instant on the common clock is named,
//! at which all windows open. Counts are added, and histograms bucket by bucket. If one generator fails, there is no result.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use load::target::Traffic;
use load::{Assignment, Ending, Job, Stop, Tally};
use machines::{Machine, MachineError, Offset, Remote};
use systems::Limit;
use systems::machine::Disturbance;

use crate::common::Usage;
use crate::fleet::{self, Answer, DriveOrder, Driven, Order};

/// How often a wait looks at each machine.
const GLANCE: Duration = Duration::from_millis(10);
/// How long a machine may take to connect, warm up, and answer, beyond the times that the job names.
const PATIENCE: Duration = Duration::from_secs(30);
/// A longer wait for the target is not told from this one.
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 366 * 86_400);
/// How long drives may take to end after Ctrl-C.
const FAREWELL: Duration = Duration::from_secs(5);
/// The time from the naming of the instant to the instant, besides the way to the machines.
const LEAD: Duration = Duration::from_millis(100);
/// The largest share of the window by which windows may be apart without a warning.
const SKEW: f64 = 0.01;

/// What several generators did together.
#[derive(Default)]
pub struct Together {
    /// The sum of what they counted.
    pub tally: Tally,
    /// Each of them.
    pub generators: Vec<Generator>,
    /// The sum of what disturbed their machines.
    pub disturbed: Disturbance,
    /// The ports from which they can connect, of all.
    pub ports: u64,
    /// The files that they may open, of all.
    pub files: u64,
    /// The threads of all.
    pub threads: usize,
    /// How far apart the windows were. `None` if one never opened.
    pub skew: Option<Skew>,
    /// When the windows opened, as the time of day since 1970.
    pub began: Duration,
}

/// One generator.
pub struct Generator {
    /// Its machine.
    pub machine: Machine,
    /// What it counted.
    pub tally: Tally,
    /// Its clock.
    pub clock: Offset,
}

/// How far apart the windows of several generators were.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Skew {
    /// The time from the first opening to the last, in nanoseconds.
    pub opened_ns: u64,
    /// The same of their ends. `None` if windows end when their work is done.
    pub closed_ns: Option<u64>,
    /// How well the clocks are known: two of them may differ by this, in nanoseconds.
    pub error_ns: u64,
    /// The larger of both and the error, as a share of the window.
    pub share: f64,
}

impl Skew {
    /// The skew of windows of this length. Each pair has the times at which a window opened and closed, in nanoseconds of one
    /// clock.
    fn of(windows: &[(i128, i128)], ends_by_time: bool, error_ns: u64, length: Duration) -> Option<Self> {
        let spread = |times: &mut dyn Iterator<Item = i128>| -> Option<u64> {
            let first = times.next()?;
            let (low, high) = times.fold((first, first), |(low, high), time| (low.min(time), high.max(time)));
            Some(u64::try_from(high - low).unwrap_or(u64::MAX))
        };
        let opened_ns = spread(&mut windows.iter().map(|(opened, _)| *opened))?;
        let closed_ns = spread(&mut windows.iter().map(|(_, closed)| *closed)).filter(|_| ends_by_time);
        let worst = opened_ns.max(closed_ns.unwrap_or(0)).saturating_add(error_ns);
        let share = worst as f64 / (length.as_nanos() as f64).max(1.0);
        Some(Self { opened_ns, closed_ns, error_ns, share })
    }

    /// Whether the windows were so far apart that their sum is doubtful.
    pub fn is_large(&self) -> bool {
        self.share > SKEW
    }
}

/// What to do, and what the generators need to know besides the job.
pub struct Request<'a> {
    pub job: &'a Job,
    pub machines: &'a [Machine],
    pub allow_remote: bool,
    pub wait: Option<Duration>,
}

/// A generator whose drive goes on.
struct Working {
    remote: Remote,
    clock: Offset,
    done: Option<Driven>,
}

/// Drives the job on these machines.
///
/// # Errors
/// The job cannot be shared or sent, or one of the generators failed. The others are then stopped.
pub fn drive(request: &Request<'_>, files: Limit, cancel: &AtomicBool) -> anyhow::Result<Together> {
    let parts = request.job.divided(request.machines.len()).map_err(super::classify)?;
    let assignments: Vec<Assignment> =
        parts.iter().map(|job| Assignment::of(job).map_err(Usage)).collect::<Result<_, Usage>>()?;
    let mut remotes = fleet::reach(request.machines, files, cancel)?;
    for (remote, job) in remotes.iter_mut().zip(assignments) {
        let order = DriveOrder { job, allow_remote: request.allow_remote, wait: request.wait };
        fleet::order(remote, &Order::Drive(Box::new(order)))?;
    }
    let wait = request.wait.unwrap_or_default().min(LONGEST_WAIT);
    let patience = request.job.warmup + request.job.timeout + wait + PATIENCE;
    if !await_ready(&mut remotes, patience, cancel)? {
        bail!("interrupted before the windows opened");
    }
    let (mut working, began) = begin(remotes)?;
    await_ends(&mut working, request.job, cancel)?;
    let mut together = together(working, &parts)?;
    (together.threads, together.began) = (parts.iter().map(Job::workers).sum(), began);
    Ok(together)
}

/// Waits until every generator is ready. Returns false if the user interrupted.
fn await_ready(remotes: &mut [Remote], patience: Duration, cancel: &AtomicBool) -> anyhow::Result<bool> {
    let deadline = Instant::now() + patience;
    let mut ready = vec![false; remotes.len()];
    while !ready.iter().all(|ready| *ready) {
        if cancel.load(Ordering::Relaxed) {
            return Ok(false);
        }
        for (remote, ready) in remotes.iter_mut().zip(&mut ready) {
            match fleet::answer(remote, GLANCE)? {
                None if !*ready && Instant::now() >= deadline => {
                    bail!(remote.error("it was not ready in time"))
                }
                None => {}
                Some(Answer::Ready) => *ready = true,
                Some(_) => bail!(fleet::unasked(remote)),
            }
        }
    }
    Ok(true)
}

/// Reads the clocks, and names the instant at which the windows open. Returns it as the time of day since 1970.
fn begin(remotes: Vec<Remote>) -> Result<(Vec<Working>, Duration), MachineError> {
    let working = |mut remote: Remote| Ok(Working { clock: remote.offset()?, remote, done: None });
    let mut working = remotes.into_iter().map(working).collect::<Result<Vec<_>, MachineError>>()?;
    let farthest = working.iter().map(|generator| generator.clock.round_trip_ns).max().unwrap_or(0);
    let ahead = LEAD + Duration::from_nanos(farthest.saturating_mul(2));
    let at = fleet::clock().saturating_add(u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    for Working { remote, clock, .. } in &mut working {
        fleet::order(remote, &Order::Begin(clock.there(at)))?;
    }
    Ok((working, now + ahead))
}

/// Waits until every generator has said what it counted. After Ctrl-C all of them are asked to stop.
fn await_ends(working: &mut [Working], job: &Job, cancel: &AtomicBool) -> anyhow::Result<()> {
    let mut deadline = match job.stop {
        // Who has sent everything may still wait for answers.
        Stop::After(length) => Some(Instant::now() + length + job.timeout * 2 + job.drain + PATIENCE),
        Stop::Count(_) => None,
    };
    let mut stopped = false;
    while working.iter().any(|generator| generator.done.is_none()) {
        if cancel.load(Ordering::Relaxed) && !stopped {
            stopped = true;
            deadline = Some(Instant::now() + FAREWELL);
            for generator in working.iter_mut().filter(|generator| generator.done.is_none()) {
                fleet::order(&mut generator.remote, &Order::Stop)?;
            }
        }
        // Those that have ended are still heard, so that one that is gone is noticed before the end.
        for generator in working.iter_mut() {
            match fleet::answer(&mut generator.remote, GLANCE)? {
                Some(Answer::Driven(driven)) if generator.done.is_none() => {
                    driven.tally.check().map_err(|name| {
                        generator.remote.error(format!("its count of {name} makes no sense"))
                    })?;
                    generator.done = Some(*driven);
                }
                Some(_) => bail!(fleet::unasked(&generator.remote)),
                None => {}
            }
            if generator.done.is_none() && deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                bail!(generator.remote.error("it did not say in time what it counted"));
            }
        }
    }
    Ok(())
}

/// Adds up what the generators counted. Their clocks are read again, because they drift.
fn together(working: Vec<Working>, parts: &[Job]) -> anyhow::Result<Together> {
    let mut together = Together::default();
    let (mut windows, mut error_ns, mut connections) = (Vec::new(), 0, 0);
    for (Working { mut remote, clock, done }, part) in working.into_iter().zip(parts) {
        let Some(done) = done else { bail!(remote.error("it did not say what it counted")) };
        let later = remote.offset()?;
        windows.push((done.opened_ns > 0).then(|| (clock.here(done.opened_ns), later.here(done.closed_ns))));
        error_ns = clock.error_ns.max(later.error_ns).max(error_ns);
        together.tally.merge(&done.tally, connections);
        connections += part.connections;
        together.disturbed.stolen_s += done.stolen_s.max(0.0);
        together.disturbed.throttles = together.disturbed.throttles.saturating_add(done.throttles);
        together.ports = together.ports.saturating_add(done.ports);
        together.files = together.files.saturating_add(done.files);
        together.generators.push(Generator {
            machine: remote.machine().clone(),
            tally: done.tally,
            clock: later,
        });
    }
    // Streams end at the end of a frame.
    let by_time = |job: &Job| {
        let short = matches!(job.target.traffic, Traffic::Http(_));
        short && matches!(job.stop, Stop::After(_)) && job.ending == Ending::Cut
    };
    let ends_by_time = parts.iter().all(by_time);
    if let Some(windows) = windows.into_iter().collect::<Option<Vec<_>>>() {
        // Each of two clocks may be wrong by its error.
        let error_ns = error_ns.saturating_mul(2);
        together.skew = Skew::of(&windows, ends_by_time, error_ns, together.tally.elapsed);
    }
    Ok(together)
}

/// The first option that makes no sense with generators on other machines.
pub fn contradiction(args: &super::Args) -> Option<&'static str> {
    if args.generators.is_empty() {
        return None;
    }
    let options = [
        (
            args.find_max_rate,
            "--find-max-rate cannot be used with --gen yet: give one --rate after the other",
        ),
        (args.requests.any(), "--requests cannot be used with --gen yet: the generators send one request"),
    ];
    options.into_iter().find(|(given, _)| *given).map(|(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_skew_is_the_largest_distance_of_two_ends() {
        let second = Duration::from_secs(1);
        let skew = Skew::of(&[(-5, 100), (10, 400), (0, 90)], true, 7, second).expect("a skew");
        assert_eq!((skew.opened_ns, skew.closed_ns), (15, Some(310)));
        assert!((skew.share - 317e-9).abs() < 1e-15 && !skew.is_large(), "{skew:?}");
        let by_work = Skew::of(&[(0, 0), (3, 20_000_000)], false, 0, second).expect("a skew");
        assert_eq!((by_work.closed_ns, by_work.is_large()), (None, false));
        let apart = Skew::of(&[(0, 0), (0, 20_000_000)], true, 0, second).expect("a skew");
        assert!(apart.is_large(), "{apart:?}");
        assert_eq!(Skew::of(&[], true, 0, second), None);
    }
}
