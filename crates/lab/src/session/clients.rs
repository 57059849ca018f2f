//! Trials in which the system is a client with a pool and Narrows is its server (docs/contracts.md, "A client driver").

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use load::{ArrivalSchedule, Gaps};
use measurement::{GeneratorUse, Measurement};
use serde::Deserialize;
use serde_json::json;
use serve::CounterSnapshot;
use systems::Work;
use systems::process::Running;
use systems::work::Clients;

use crate::observation::{Stage, Trial};
use crate::session::account::{Account, SLACK};
use crate::session::driver::{schedule, seconds};
use crate::session::generator::Serving;
use crate::session::place::Place;
use crate::session::trial_error::TrialError;
use crate::session::window::Window;

/// A line that a driver prints.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(super) enum DriverLine {
    Ready {},
    Done(Box<Account>),
    Error { message: String },
}

/// Starts the server and the client, lets the client send requests for the trial's time, and checks its account.
pub(super) fn measure(place: &Place<'_>) -> Result<Measurement, TrialError> {
    let work = work(place)?;
    let timing = place.trial.timing;
    let server = place.generator.serve(work)?;
    let address = server.address();
    let mut running = place.start()?;
    let timeout = Duration::from_millis(work.timeout_ms);
    running.write_line(&orders(place.trial, work, address).to_string())?;
    match listen(place, &running, place.manifest.ready.timeout)? {
        DriverLine::Ready {} => {}
        other => return Err(unexpected(&running, "ready", &other)),
    }
    let (ready, rest) = (running.age(), running.memory());
    let mut window = Window::new(&running, place.launch.cores);
    running.write_line(&json!({"go": true}).to_string())?;
    wait(place, &running, Instant::now() + seconds(timing.warmup_s))?;
    window.mark();
    let before = (server.counts()?, Instant::now());
    let tenths = wait_for_window(place, &running, &*server)?;
    window.read();
    let (cpu_s, busy_share) = cpu_use(before, (server.counts()?, Instant::now()));
    let threads = server.threads();
    let account = match listen(place, &running, timeout * 2 + SLACK)? {
        DriverLine::Done(account) => account,
        other => return Err(unexpected(&running, "done", &other)),
    };
    running.close_stdin();
    running.stop();
    let counts = server.stop()?;
    account.check(seconds(timing.measure_s), work.rate.is_some()).map_err(|wrong| {
        TrialError::failed(Stage::Counts, format!("the driver's account does not add up: {wrong}"))
    })?;
    let version = account.version.clone();
    let mut measurement = Measurement { tenths, ..account.measurement(counts) };
    measurement.generator =
        GeneratorUse { cpu_s, busiest_core: busy_share / threads.max(1) as f64, ..GeneratorUse::default() };
    measurement.concurrency = work.concurrency;
    place.record(&window.readings(), &mut measurement);
    measurement.system.ready_s = ready.map(|age| age.as_secs_f64());
    measurement.system.rest_pss_bytes = rest;
    if !version.is_empty() {
        measurement.system.version = version;
    }
    Ok(measurement)
}

/// What a session makes of a driver's line: the measurement of an account, or `None` for another line. The server's counts
/// are zero. The fuzzer calls it, because programs of others print these lines. `window` is the time that was ordered.
///
/// # Errors
/// The line does not keep the driver contract, the account does not add up, or a number is impossible.
pub fn measurement_of_line(
    line: &str,
    window: Duration,
    open_loop: bool,
) -> Result<Option<Measurement>, String> {
    let DriverLine::Done(account) = serde_json::from_str(line).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    account.check(window, open_loop)?;
    let measured = account.measurement(CounterSnapshot::default());
    measured.check_sizes().map(|()| Some(measured))
}

/// Waits until the measured window has passed. Returns the server's answers in each tenth of it.
fn wait_for_window(
    place: &Place<'_>,
    running: &Running,
    server: &dyn Serving,
) -> Result<Vec<u64>, TrialError> {
    let (began, mut known) = (Instant::now(), server.counts()?.responses);
    let mut tenths = Vec::with_capacity(10);
    for number in 1..=10 {
        wait(place, running, began + seconds(place.trial.timing.measure_s) * number / 10)?;
        let now = server.counts()?.responses;
        tenths.push(now.saturating_sub(known));
        known = now;
    }
    Ok(tenths)
}

/// The work of the client.
pub(super) fn work<'a>(place: &'a Place<'_>) -> Result<&'a Clients, TrialError> {
    match place.work() {
        Work::Clients(work) => Ok(work),
        _ => Err(TrialError::failed(Stage::Drive, "only a client can drive Narrows' server")),
    }
}

/// The line that tells a client what to do.
pub(super) fn orders(trial: &Trial, work: &Clients, address: SocketAddr) -> serde_json::Value {
    let mut orders = json!({
        "url": format!("http://{address}/wait/{}", work.delay_ms),
        "pools": work.pools,
        "pool_size": work.pool_size,
        "concurrency": work.concurrency,
        "timeout_ms": work.timeout_ms,
        "warmup_ms": seconds(trial.timing.warmup_s).as_millis() as u64,
        "duration_ms": seconds(trial.timing.measure_s).as_millis() as u64,
    });
    if let Some(ArrivalSchedule { from, gaps, .. }) = schedule(trial.scenario.work(), trial.round) {
        // These fields are sent for open loops only, so that a driver for closed loops need not know them.
        orders["rate"] = json!(from);
        orders["gaps"] = json!(if gaps == Gaps::Constant { "constant" } else { "poisson" });
        if let Gaps::Poisson(seed) = gaps {
            orders["seed"] = json!(seed);
        }
    }
    orders
}

/// Waits until a time, unless the user interrupts. Returns early if the client has ended, because its last line tells
/// whether it had done its work.
fn wait(place: &Place<'_>, running: &Running, until: Instant) -> Result<(), TrialError> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if place.cancelled() {
            return Err(TrialError::Interrupted);
        }
        if left.is_zero() || !running.alive() {
            return Ok(());
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

/// Waits for the driver's next line.
pub(super) fn listen(
    place: &Place<'_>,
    running: &Running,
    patience: Duration,
) -> Result<DriverLine, TrialError> {
    let until = Instant::now() + patience;
    loop {
        if place.cancelled() {
            return Err(TrialError::Interrupted);
        }
        if let Some(line) = running.line(Duration::from_millis(100))? {
            return serde_json::from_str(&line).map_err(|error| {
                broken(running, &format!("its line does not keep the driver contract: {error}: {line:.200}"))
            });
        }
        if Instant::now() >= until {
            return Err(broken(running, &format!("it printed nothing for {:.0} s", patience.as_secs_f64())));
        }
    }
}

pub(super) fn unexpected(running: &Running, expected: &str, said: &DriverLine) -> TrialError {
    match said {
        DriverLine::Error { message } => broken(running, message),
        other => broken(running, &format!("it printed {other:?} where {expected:?} was expected")),
    }
}

pub(super) fn broken(running: &Running, reason: &str) -> TrialError {
    TrialError::failed(Stage::System, reason).with_output(&running.tail())
}

/// The CPU seconds of the serving threads between two moments, and their share of that time.
fn cpu_use(before: (CounterSnapshot, Instant), after: (CounterSnapshot, Instant)) -> (f64, f64) {
    let cpu = after.0.cpu.saturating_sub(before.0.cpu).as_secs_f64();
    let time = after.1.duration_since(before.1).as_secs_f64();
    (cpu, cpu / time.max(f64::MIN_POSITIVE))
}
