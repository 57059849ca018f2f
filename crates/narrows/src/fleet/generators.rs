//! Several generators on other machines do one job together.
//!
//! Each gets its part of the connections and of the schedule. When all have warmed up, one instant on the common clock is named,
//! at which all windows open. Counts are added, and histograms bucket by bucket. If one generator fails, there is no result.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use load::target::Traffic;
use load::{Asked, Assignment, Ending, Job, Moment, Stop, Tally};
use machines::{Machine, MachineError, Offset, Remote};
use measurement::doubt::elsewhere::SKEW;
use systems::Limit;
use systems::machine::Disturbance;

use crate::common::Usage;
use crate::drive::classify;
use crate::fleet::{self, AgentDrive, AgentReply, DriveOrder, Order};

/// How often a wait looks at each machine while a window goes on.
const GLANCE: Duration = Duration::from_millis(10);
/// The same where every millisecond makes a trial longer.
const SHORT: Duration = Duration::from_millis(1);
/// How long a machine may take to connect, warm up, and answer, beyond the times that the job names.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// How long drives may take to end after Ctrl-C.
const FAREWELL: Duration = Duration::from_secs(5);
/// The time from the naming of the instant to the instant, besides the way to the machines.
const LEAD: Duration = Duration::from_millis(10);
/// The window divided by this is the largest error of a clock. The errors of two clocks are then a tenth of the largest skew without
/// a warning.
const WINDOWS_TO_ERROR: u32 = 2000;
/// A clock's error may not be more than this, however long the window is.
const LARGEST_ERROR: Duration = Duration::from_millis(1);

/// What several generators did together.
#[derive(Default)]
pub struct Combined {
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
    /// Its connections.
    pub connections: usize,
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
        let mut skew = Self { opened_ns, closed_ns, error_ns, share: 0.0 };
        skew.share = skew.distance_ns() as f64 / (length.as_nanos() as f64).max(1.0);
        Some(skew)
    }

    /// The larger distance with the error, in nanoseconds.
    pub fn distance_ns(&self) -> u64 {
        self.opened_ns.max(self.closed_ns.unwrap_or(0)).saturating_add(self.error_ns)
    }

    /// Whether the windows were so far apart that their sum is doubtful.
    pub fn is_large(&self) -> bool {
        self.share > SKEW
    }
}

/// Generators on other machines. They are reached when they are first needed, and again after a failure.
pub struct Generators {
    machines: Vec<Machine>,
    files: Limit,
    allow_remote: bool,
    /// Empty while they are not reached.
    remotes: Vec<Remote>,
}

/// A generator whose drive goes on.
struct Working<'a> {
    remote: &'a mut Remote,
    /// Its part of the job.
    job: &'a Job,
    /// When it got the order.
    ordered: Instant,
    clock: Offset,
    closed: bool,
    steps: Steps,
    done: Option<AgentDrive>,
}

impl<'a> Working<'a> {
    fn new(remote: &'a mut Remote, job: &'a Job, ordered: Instant, clock: Offset) -> Self {
        Self { remote, job, ordered, clock, closed: false, steps: Steps::new(0, Instant::now()), done: None }
    }
}

/// How far a drive has come, as its generator says.
struct Steps {
    /// How many exchanges it has: there can be no more steps.
    most: u64,
    said: u64,
    /// When it last said so, or began.
    last: Instant,
}

impl Steps {
    fn new(most: u64, now: Instant) -> Self {
        Self { most, said: 0, last: now }
    }

    /// Notes that at least one more exchange has ended.
    ///
    /// # Errors
    /// There are no more.
    fn step(&mut self, now: Instant) -> Result<(), String> {
        if self.said >= self.most {
            return Err(format!("it was asked for {} exchanges, and says that more have ended", self.most));
        }
        (self.said, self.last) = (self.said.saturating_add(1), now);
        Ok(())
    }
}

/// The cores on which each generator's threads run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    /// As the job says, on each machine.
    OfJob,
    /// All of each machine.
    All,
}

impl Generators {
    /// The generators on these machines. `files` is the limit here, and `allow_remote` is whether a target may be on another
    /// machine than its generator.
    pub fn new(machines: Vec<Machine>, files: Limit, allow_remote: bool) -> Self {
        Self { machines, files, allow_remote, remotes: Vec::new() }
    }

    /// These generators, which have answered.
    pub fn reached(remotes: Vec<Remote>, files: Limit) -> Self {
        let machines = remotes.iter().map(|remote| remote.machine().clone()).collect();
        Self { machines, files, allow_remote: true, remotes }
    }

    /// How many there are.
    pub fn number(&self) -> usize {
        self.machines.len()
    }

    /// Those machines, in order, whose agents have answered.
    ///
    /// # Errors
    /// The first machine that cannot be reached.
    pub fn reach(&mut self, cancel: &AtomicBool) -> anyhow::Result<&mut [Remote]> {
        if self.remotes.is_empty() {
            self.remotes = fleet::reach(&self.machines, self.files, cancel)?;
        }
        Ok(&mut self.remotes)
    }

    /// Lets go of the machines, which end what they do. They are reached again when they are needed.
    pub fn let_go(&mut self) {
        self.remotes.clear();
    }

    /// Does the job on all machines, or on as many as it has connections. Calls `watch` when the windows open and when the last
    /// has closed. `None` if the user interrupted before the windows opened.
    ///
    /// # Errors
    /// The job cannot be shared or sent, or one of the generators failed. All are let go then.
    pub fn drive(
        &mut self,
        request: &Request<'_>,
        cancel: &AtomicBool,
        watch: &load::Watch<'_>,
    ) -> anyhow::Result<Option<Combined>> {
        let driven = self.drive_all(request, cancel, watch);
        if !matches!(driven, Ok(Some(_))) {
            self.let_go();
        }
        driven
    }

    fn drive_all(
        &mut self,
        request: &Request<'_>,
        cancel: &AtomicBool,
        watch: &load::Watch<'_>,
    ) -> anyhow::Result<Option<Combined>> {
        let (allow_remote, Request { job, wait, .. }) = (self.allow_remote, request);
        let remotes = self.reach(cancel)?;
        let number = match request.cores {
            Cores::OfJob => remotes.len(),
            Cores::All => remotes.len().min(request.most().max(1)),
        };
        let (remotes, _) = remotes.split_at_mut(number);
        let threads = |remote: &Remote| match request.cores {
            Cores::OfJob => job.threads.clone(),
            Cores::All => remote.hello.cores.iter().map(|core| Some(*core)).collect(),
        };
        let threads: Vec<Vec<Option<usize>>> = remotes.iter().map(threads).collect();
        let parts = job.divided(&threads).map_err(classify)?;
        let assignments: Vec<Assignment> =
            parts.iter().map(|job| Assignment::of(job).map_err(Usage)).collect::<Result<_, Usage>>()?;
        // The agents are idle. While their generators warm up, they answer late, and the clocks are known less well.
        let clocks = Remote::offsets(&mut remotes.iter_mut().collect::<Vec<_>>(), clock_error(job))?;
        let ordered = Instant::now();
        for (remote, job) in remotes.iter_mut().zip(assignments) {
            let order = DriveOrder { job, allow_remote, wait: *wait };
            fleet::order(remote, &Order::Drive(Box::new(order)))?;
        }
        let patience = job.warmup + job.timeout + wait.unwrap_or_default().min(load::LONGEST) + PATIENCE;
        if !await_ready(remotes, patience, cancel)? {
            return Ok(None);
        }
        let working = remotes.iter_mut().zip(&parts).zip(clocks);
        let mut working: Vec<Working<'_>> =
            working.map(|((remote, part), clock)| Working::new(remote, part, ordered, clock)).collect();
        let (began, opens) = begin(&mut working)?;
        await_ends(&mut working, job, cancel, Watching { watch, opens })?;
        let mut together = together(&mut working, clock_error(job))?;
        (together.threads, together.began) = (parts.iter().map(Job::workers).sum(), began);
        Ok(Some(together))
    }
}

/// What to do, and what the generators need to know besides the job.
pub struct Request<'a> {
    pub job: &'a Job,
    pub wait: Option<Duration>,
    pub cores: Cores,
}

impl Request<'_> {
    /// The most generators that have something to do.
    fn most(&self) -> usize {
        match self.job.stop {
            Stop::Count(count) => self.job.connections.min(usize::try_from(count).unwrap_or(usize::MAX)),
            Stop::After(_) => self.job.connections,
        }
    }
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
            match fleet::answer(remote, SHORT)? {
                None if !*ready && Instant::now() >= deadline => {
                    bail!(remote.error(format!(
                        "it was not ready within {:.0} s, in which it connects and warms up: look whether it reaches the target, \
                         and what else it does",
                        patience.as_secs_f64()
                    )))
                }
                None => {}
                Some(AgentReply::Ready) => *ready = true,
                Some(_) => bail!(fleet::unasked(remote)),
            }
        }
    }
    Ok(true)
}

/// How large the error of a clock may be.
fn clock_error(job: &Job) -> Duration {
    match job.stop {
        Stop::After(length) => (length / WINDOWS_TO_ERROR).min(LARGEST_ERROR),
        Stop::Count(_) => LARGEST_ERROR,
    }
}

/// Names the instant at which the windows open. Returns it as the time of day since 1970, and on the clock here.
fn begin(working: &mut [Working<'_>]) -> Result<(Duration, u64), MachineError> {
    let farthest = working.iter().map(|generator| generator.clock.round_trip_ns).max().unwrap_or(0);
    let ahead = LEAD + Duration::from_nanos(farthest.saturating_mul(2));
    let at = fleet::clock().saturating_add(u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    for Working { remote, clock, .. } in working {
        fleet::order(remote, &Order::Begin(clock.there(at)))?;
    }
    Ok((now + ahead, at))
}

/// Who is told that the windows open and close.
struct Watching<'a> {
    watch: &'a load::Watch<'a>,
    /// When the windows open, on the clock here.
    opens: u64,
}

/// Waits until every generator has said what it counted. After Ctrl-C all of them are asked to stop.
fn await_ends(
    working: &mut [Working<'_>],
    job: &Job,
    cancel: &AtomicBool,
    watching: Watching<'_>,
) -> anyhow::Result<()> {
    let Watching { watch, opens } = watching;
    thread::sleep(Duration::from_nanos(opens.saturating_sub(fleet::clock())));
    watch(Moment::Opened);
    // Who has sent everything may still wait for answers.
    let last = job.timeout * 2 + job.idle_timeout.unwrap_or_default() + job.drain + PATIENCE;
    let (mut deadline, most_steps) = match job.stop {
        Stop::After(length) => (Some(Instant::now() + length + last), u64::MAX),
        Stop::Count(count) => (None, count),
    };
    working.iter_mut().for_each(|generator| generator.steps = Steps::new(most_steps, Instant::now()));
    let (mut stopped, mut told, mut open) = (false, false, working.len());
    while working.iter().any(|generator| generator.done.is_none()) {
        if cancel.load(Ordering::Relaxed) && !stopped {
            stopped = true;
            deadline = Some(Instant::now() + FAREWELL);
            for generator in working.iter_mut().filter(|generator| generator.done.is_none()) {
                fleet::order(generator.remote, &Order::Stop)?;
            }
        }
        // Those that have ended are still heard, so that one that is gone is noticed before the end.
        let glance = GLANCE / u32::try_from(working.len()).unwrap_or(u32::MAX);
        for generator in working.iter_mut() {
            match fleet::answer(generator.remote, glance)? {
                // Each says once that its window has closed.
                Some(AgentReply::Closed) if !std::mem::replace(&mut generator.closed, true) => open -= 1,
                Some(AgentReply::Driven(driven)) if generator.done.is_none() => {
                    let (job, lasted) = (generator.job, generator.ordered.elapsed());
                    let asked = Asked { job, lasted, whole: !stopped };
                    driven.check(&asked).map_err(|why| generator.remote.error(why.to_string()))?;
                    generator.done = Some(*driven);
                }
                Some(AgentReply::Goes) => {
                    generator.steps.step(Instant::now()).map_err(|why| generator.remote.error(why))?;
                }
                Some(_) => bail!(fleet::unasked(generator.remote)),
                None => {}
            }
            if open == 0 && !told {
                told = true;
                watch(Moment::Closed);
            }
            // A number of exchanges may take long, but each ends in time.
            let due = deadline.unwrap_or(generator.steps.last + last);
            if generator.done.is_none() && Instant::now() >= due {
                bail!(generator.remote.error("it did not say in time what it counted"));
            }
        }
    }
    Ok(())
}

/// Adds up what the generators counted. Their clocks are read again, because they drift.
fn together(working: &mut [Working<'_>], enough: Duration) -> anyhow::Result<Combined> {
    let mut together = Combined::default();
    let mut remotes: Vec<&mut Remote> = working.iter_mut().map(|generator| &mut *generator.remote).collect();
    let clocks = Remote::offsets(&mut remotes, enough)?;
    let (mut windows, mut error_ns) = (Vec::new(), 0);
    for (Working { remote, job, clock, done, .. }, later) in working.iter_mut().zip(clocks) {
        let Some(done) = done.take() else { bail!(remote.error("it did not say what it counted")) };
        windows.push((done.opened_ns > 0).then(|| (clock.here(done.opened_ns), later.here(done.closed_ns))));
        // The clock was read before the warm-up. Until the window opened, it drifted by no more than between the two readings.
        let drift_ns = later.ahead_ns.abs_diff(clock.ahead_ns);
        error_ns = clock.error_ns.max(later.error_ns).saturating_add(drift_ns).max(error_ns);
        together.tally.merge(&done.tally);
        together.disturbed.stolen_s += done.stolen_s.max(0.0);
        together.disturbed.throttles = together.disturbed.throttles.saturating_add(done.throttles);
        together.ports = together.ports.saturating_add(done.ports);
        together.files = together.files.saturating_add(done.files);
        together.generators.push(Generator {
            machine: remote.machine().clone(),
            tally: done.tally,
            connections: job.connections,
            clock: later,
        });
    }
    // Streams end at the end of a frame.
    let by_time = |job: &Job| {
        let short = matches!(job.target.traffic, Traffic::Http(_));
        short && matches!(job.stop, Stop::After(_)) && job.ending == Ending::Cut
    };
    let ends_by_time = working.iter().all(|generator| by_time(generator.job));
    if let Some(windows) = windows.into_iter().collect::<Option<Vec<_>>>() {
        // Each of two clocks may be wrong by its error.
        let error_ns = error_ns.saturating_mul(2);
        together.skew = Skew::of(&windows, ends_by_time, error_ns, together.tally.elapsed);
    }
    Ok(together)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_takes_no_more_steps_than_it_has_exchanges() {
        let began = Instant::now();
        let mut steps = Steps::new(3, began);
        for second in 1..=3 {
            let now = began + Duration::from_secs(second);
            assert_eq!((steps.step(now), steps.last), (Ok(()), now));
        }
        let why = steps.step(began + Duration::from_secs(9)).expect_err("one too many");
        assert!(why.contains("asked for 3 exchanges"), "{why}");
        assert_eq!(steps.last, began + Duration::from_secs(3), "who lies gets no more time");
    }

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
