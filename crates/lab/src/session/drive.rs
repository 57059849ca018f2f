//! A trial in which Narrows drives a server. Calls the driver's side and the system's side in turn.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use load::{Moment, Rendezvous, Tally};
use measurement::{KernelCounts, Measurement, TracedCounts};
use reactor::Time;
use systems::Listening;
use systems::machine;
use systems::process::Running;
use systems::tcp::Watch;

use crate::observation::Stage;
use crate::plan::REST_S;
use crate::session::climb::climb;
use crate::session::driver::{Driver, Orders};
use crate::session::first::begun;
use crate::session::place::{Place, at_once};
use crate::session::profiling;
use crate::session::trial_error::TrialError;
use crate::session::window::Window;

/// Starts the servers, checks that they do equal work, drives them for the trial's time or searches their highest rates,
/// counts the kernel's work and samples their CPU time if the plan asks for that, and stops them.
pub(super) fn measure(places: &[&Place<'_>]) -> Result<Vec<Measurement>, TrialError> {
    let mut served = places.iter().map(|place| Served::start(place)).collect::<Result<Vec<_>, _>>()?;
    let meeting = (places.len() > 1).then(Rendezvous::default);
    for served in &mut served {
        served.driver.meeting = meeting.clone();
    }
    let mut measured = together(meeting.as_ref(), places, || at_once(&mut served, |served| served.drive()))?;
    // One after the other, because counting and sampling cost time.
    for (served, (orders, measured)) in served.iter().zip(&mut measured) {
        let counts = served.place.trial.counted;
        measured.counted = counts.then(|| count(&served.driver, orders, &served.running)).flatten();
        if served.place.trial.profiled {
            let cores = match served.place.launch.cores.len() {
                0 => thread::available_parallelism().map_or(1, usize::from),
                cores => cores,
            } as f64;
            let idles = measured.system.cpu_s < measured.elapsed_s * cores * IDLES;
            let Served { place, running, driver, .. } = served;
            let seen = profiling::profile(place.profiling, driver, orders, running, idles);
            (measured.profile, measured.waits) = (seen.profile, seen.waits);
        }
    }
    for served in served {
        served.names.iter().for_each(|names| names.update(&served.running));
        served.running.stop();
    }
    Ok(measured.into_iter().map(|(_, measured)| measured).collect())
}

/// Does something on other threads, and meanwhile opens the windows of its generators at the same instant.
fn together<T: Send>(
    meeting: Option<&Rendezvous>,
    places: &[&Place<'_>],
    act: impl FnOnce() -> Result<T, TrialError> + Send,
) -> Result<T, TrialError> {
    let Some(meeting) = meeting else { return act() };
    // A generator has a thread on each of its cores.
    let threads = places.iter().map(|place| place.placement.generator.len()).sum();
    thread::scope(|scope| {
        let acting = scope.spawn(act);
        while meeting.ready() < threads && !acting.is_finished() {
            thread::sleep(MEETING);
        }
        // If one has failed, the other need not wait.
        meeting.open_at(Time::now() + MEETING);
        acting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// How often it is looked whether all generators are ready, and how long before their windows open they know when.
const MEETING: Duration = Duration::from_millis(2);

/// A system waits most of the time if it uses less than this share of its cores' time.
const IDLES: f64 = 0.5;

/// A server that was started and does equal work.
struct Served<'a> {
    place: &'a Place<'a>,
    running: Running,
    /// What its runtime writes. It is removed after the system has ended, because fields are dropped in this order.
    names: Option<profiling::Names>,
    driver: Driver<'a>,
    orders: Orders,
    /// How long it took until it was ready.
    ready: Option<Duration>,
    /// How long the first request took, in seconds.
    first_request: Option<f64>,
    /// Its memory and its CPU time before the drive.
    rest: Option<u64>,
    idle_cpu: Option<f64>,
}

impl<'a> Served<'a> {
    fn start(place: &'a Place<'a>) -> Result<Self, TrialError> {
        let running = place.start()?;
        let names = place.names_functions().then(|| profiling::Names::of(&running));
        let ready = running.age();
        let (driver, orders) = (place.driver(), place.orders(listening(&running)?));
        let orders = begun(place, orders).map_err(|error| error.with_output(&running.tail()))?;
        // A server that its user started has had its first request.
        let first_request = match ready {
            Some(_) => driver.first_request(&orders)?,
            None => None,
        };
        check_equal_work(place, &driver, &orders, &running)?;
        if place.trial.profiled {
            profiling::prepare(place.profiling, &running);
        }
        let idle_cpu = if place.trial.rests { idle_cpu(place, &running)? } else { None };
        let rest = running.memory();
        Ok(Self { place, running, names, driver, orders, ready, first_request, rest, idle_cpu })
    }

    /// Drives it. Returns the orders of the drive that was measured, too.
    fn drive(&self) -> Result<(Orders, Measurement), TrialError> {
        let Self { place, running, driver, orders, .. } = self;
        let drive = Drive { place, running, driver };
        let (orders, mut measured) = match &place.trial.objective {
            None => (orders.clone(), drive.once(orders)?.0),
            Some(objective) => climb(|orders| drive.once(orders), objective, orders, place.trial.round)
                .map_err(|e| e.with_output(&running.tail()))?,
        };
        measured.system.ready_s = self.ready.map(|age| age.as_secs_f64());
        measured.system.first_request_s = self.first_request;
        measured.system.rest_pss_bytes = self.rest;
        measured.system.idle_cpu = self.idle_cpu;
        Ok((orders, measured))
    }
}

/// A server that runs, and what drives it.
pub(super) struct Drive<'a> {
    pub place: &'a Place<'a>,
    pub running: &'a Running,
    pub driver: &'a Driver<'a>,
}

impl Drive<'_> {
    /// Drives the server for one window, and samples it meanwhile.
    pub(super) fn once(&self, orders: &Orders) -> Result<(Measurement, Tally), TrialError> {
        let Self { place, running, driver } = self;
        let users_cores = place.manifest.attached().map(|_| machine::cores_of(running.pid()));
        let cores = users_cores.as_deref().unwrap_or(place.launch.cores);
        let window = Mutex::new(Window::new(running, cores));
        // The generator's thread calls this exactly when the window opens and closes.
        let watch = |moment: Moment<'_>| {
            let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
            match moment {
                Moment::Opened => window.mark(),
                Moment::Closed => window.read(),
                Moment::Passed { .. } => {}
            }
        };
        let driven = driver.drive(orders, &watch);
        // If the server has ended, that says more than how the drive failed.
        running.check_alive()?;
        let (mut measured, driven) = driven?;
        let readings = window.into_inner().unwrap_or_else(PoisonError::into_inner).readings();
        place.record(&readings, &mut measured);
        measured.ports = measured.ports.saturating_mul(driver.addresses(orders, measured.connections));
        if let Some(cores) = users_cores {
            measured.system.cores = cores;
        }
        if let Some(elsewhere) = driven.elsewhere {
            elsewhere.record(&mut measured);
        }
        Ok((measured, driven.tally))
    }
}

/// Where a server that is ready listens.
pub(super) fn listening(running: &Running) -> Result<&Listening, TrialError> {
    running.listening().ok_or_else(|| TrialError::failed(Stage::Ready, "it is no server"))
}

/// Counts what the kernel does for the server, in a short drive after the window, because counting costs time.
fn count(driver: &Driver<'_>, orders: &Orders, running: &Running) -> Option<KernelCounts> {
    let (calls, connections) = (running.calls(), running.connections());
    let (waits, edge_triggered) = (running.waits_edge_triggered(), OnceLock::new());
    let watch = |moment: Moment<'_>| match moment {
        // The server has accepted its connections. Those of the thread that calls this are still open.
        Moment::Closed => {
            connections.iter().for_each(Watch::look);
            let _ = edge_triggered.set(waits()); // A window closes once.
        }
        Moment::Opened | Moment::Passed { .. } => {}
    };
    // The trial is measured already. A failure or interruption here loses only these counts.
    let tally = driver.drive_for_counts(orders, &watch).ok()?;
    let edge_triggered = edge_triggered.into_inner().flatten();
    let (found, tcp) = (calls.finish(), connections.map(Watch::finish));
    // A system that ends meanwhile has not done all that was counted.
    if tally.successes == 0 || running.check_alive().is_err() {
        return None;
    }
    let traced = if found.system_calls.is_none() { trace(driver, orders, running) } else { None };
    let counted = found.system_calls.or(found.reads).or(found.instructions).is_some();
    (counted || tcp.is_some() || traced.is_some()).then_some(KernelCounts {
        operations: tally.units,
        bytes: tally.bytes_sent,
        system_calls: found.system_calls,
        reads: found.reads,
        instructions: found.instructions,
        bytes_received: tally.bytes_received,
        tcp,
        traced,
        edge_triggered,
    })
}

/// Counts the server's system calls by tracing it, in another drive, because tracing slows the server.
fn trace(driver: &Driver<'_>, orders: &Orders, running: &Running) -> Option<TracedCounts> {
    let trace = running.trace()?;
    let tally = driver.drive_for_counts(orders, &|_| {});
    let found = trace.finish()?;
    running.check_alive().ok()?;
    let tally = tally.ok().filter(|tally| tally.successes > 0)?;
    Some(TracedCounts {
        operations: tally.units,
        bytes: tally.bytes_sent,
        system_calls: found.system_calls,
        reads: found.reads,
    })
}

/// What a system takes without load: CPU seconds per second.
fn idle_cpu(place: &Place<'_>, running: &Running) -> Result<Option<f64>, TrialError> {
    let mut sampler = running.sampler();
    let began = Time::now();
    sampler.mark();
    while Time::now().since(began).as_secs_f64() < REST_S {
        if place.cancelled() {
            return Err(TrialError::Interrupted);
        }
        thread::sleep(Duration::from_millis(50));
    }
    let elapsed_s = Time::now().since(began).as_secs_f64();
    running.check_alive()?;
    Ok(Some(sampler.finish().cpu_s / elapsed_s))
}

/// Makes a few small exchanges of the trial's kind before anything is timed, so that a server that does other work is
/// not compared. A server whose manifest declares a fault is driven anyway: its row shows its errors and is not ranked.
fn check_equal_work(
    place: &Place<'_>,
    driver: &Driver<'_>,
    orders: &Orders,
    running: &Running,
) -> Result<(), TrialError> {
    let fault = place.manifest.answer.as_ref().and_then(|answer| answer.fault.as_ref());
    let wrong = driver.equal_work(orders, 100_003);
    running.check_alive()?;
    match wrong? {
        Some(wrong) if fault.is_none() => {
            let reason = match &place.trial.ask {
                Some(ask) => ask.missed(&wrong),
                None => {
                    let workload = orders.work.workload();
                    format!("it does not do the work of `{workload}`: {wrong}; see docs/contracts.md")
                }
            };
            Err(TrialError::failed(Stage::EqualWork, reason).with_output(&running.tail()))
        }
        _ => Ok(()),
    }
}
