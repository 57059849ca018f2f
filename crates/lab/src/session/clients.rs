//! Trials in which the system is a client with a pool, and Narrows is the server it asks
//! (docs/contracts.md, "A client driver").

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use serve::{Farewell, Server, Snapshot, Speaks};
use systems::Value;
use systems::machine;
use systems::process::Running;
use systems::sample::Use;

use crate::observation::{GeneratorUse, Latency, Measurement, ServerCounts};
use crate::session::place::{Place, Stopped};

/// What a driver says.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(super) enum Said {
    Ready {},
    Done(Box<Done>),
    Error { message: String },
}

/// A driver's account of itself.
#[derive(Debug, Deserialize)]
pub(super) struct Done {
    elapsed_us: u64,
    attempts: u64,
    successes: u64,
    errors: BTreeMap<String, u64>,
    in_flight: u64,
    latency_us: Vec<(u64, u64)>,
    pub(super) total: Total,
    #[serde(default)]
    version: String,
}

/// Its account of its whole life.
#[derive(Debug, Deserialize)]
pub(super) struct Total {
    pub(super) attempts: u64,
    pub(super) successes: u64,
    pub(super) errors: BTreeMap<String, u64>,
}

/// What a driver may take beyond the times it was told: its own start-up and summing up.
pub(super) const SLACK: Duration = Duration::from_secs(15);

/// Starts the server and the client, lets it ask for the trial's time, and compares both sides' counts.
pub(super) fn measure(place: &Place<'_>) -> Result<Measurement, Stopped> {
    let server = start_server(place)?;
    let address = server.addresses()[0];
    let mut running = place.start()?;
    let timeout = Duration::from_millis(place.number("timeout_ms")?);
    running.write_line(&orders(place, address)?.to_string())?;
    match listen(place, &running, place.manifest.ready.timeout)? {
        Said::Ready {} => {}
        other => return Err(unexpected(&running, "ready", &other)),
    }
    let mut sampler = running.sampler();
    running.write_line(&json!({"go": true}).to_string())?;
    wait(place, &running, place.warmup())?;
    sampler.mark();
    let stolen = machine::stolen_s();
    let before = (server.counts(), Instant::now());
    wait(place, &running, place.window())?;
    let used = sampler.finish();
    let stolen = machine::stolen_s() - stolen;
    let busy = share(before, (server.counts(), Instant::now()));
    let done = match listen(place, &running, timeout * 2 + SLACK)? {
        Said::Done(done) => done,
        other => return Err(unexpected(&running, "done", &other)),
    };
    running.close_stdin();
    running.stop();
    let counts = server.stop().map_err(|error| Stopped::failed("drive", error.to_string()))?;
    check(&done, place.window())?;
    let mut measurement = measurement(place, *done, counts, used, busy);
    measurement.concurrency = place.number("concurrency")?;
    measurement.stolen_s = stolen;
    measurement.time_wait = machine::time_wait();
    Ok(measurement)
}

pub(super) fn start_server(place: &Place<'_>) -> Result<Server, Stopped> {
    let limit = place.number("max_keepalive")?;
    let silent = place.says("close", &Value::Text("silent".to_owned()));
    let config = serve::Config {
        ports: vec![(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Speaks::Http)],
        threads: place.threads(),
        max_keepalive: (limit > 0).then_some(limit),
        farewell: if silent { Farewell::Silent } else { Farewell::Announced },
        backend: reactor::Backend::Auto,
    };
    serve::start(&config).map_err(|error| Stopped::failed("drive", format!("Narrows' own server: {error}")))
}

pub(super) fn orders(place: &Place<'_>, address: SocketAddr) -> Result<serde_json::Value, Stopped> {
    Ok(json!({
        "url": format!("http://{address}/wait/{}", place.number("delay_ms")?),
        "pools": place.number("pools")?,
        "pool_size": place.number("pool_size")?,
        "concurrency": place.number("concurrency")?,
        "timeout_ms": place.number("timeout_ms")?,
        "warmup_ms": place.warmup().as_millis() as u64,
        "duration_ms": place.window().as_millis() as u64,
    }))
}

/// Passes the time, unless the user interrupts. A client that has ended is not waited for: whether it had done its work is
/// for its last line to say.
fn wait(place: &Place<'_>, running: &Running, time: Duration) -> Result<(), Stopped> {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if place.cancelled() {
            return Err(Stopped::Interrupted);
        }
        if left.is_zero() || !running.alive() {
            return Ok(());
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

/// The driver's next line.
pub(super) fn listen(place: &Place<'_>, running: &Running, patience: Duration) -> Result<Said, Stopped> {
    let until = Instant::now() + patience;
    loop {
        if place.cancelled() {
            return Err(Stopped::Interrupted);
        }
        if let Some(line) = running.line(Duration::from_millis(100))? {
            return serde_json::from_str(&line).map_err(|error| {
                broken(running, &format!("its line is not of the driver contract: {error}: {line:.200}"))
            });
        }
        if Instant::now() >= until {
            return Err(broken(running, &format!("it said nothing for {:.0} s", patience.as_secs_f64())));
        }
    }
}

pub(super) fn unexpected(running: &Running, expected: &str, said: &Said) -> Stopped {
    match said {
        Said::Error { message } => broken(running, message),
        other => broken(running, &format!("it said {other:?} where {expected:?} was expected")),
    }
}

pub(super) fn broken(running: &Running, reason: &str) -> Stopped {
    Stopped::failed("system", reason).with_output(running.tail())
}

/// A driver's account must add up before it is believed (docs/contracts.md, "A client driver").
pub(super) fn check(done: &Done, window: Duration) -> Result<(), Stopped> {
    let wrong = |what: String| {
        Err(Stopped::failed("counts", format!("the driver's account does not add up: {what}")))
    };
    let classes = done.errors.keys().chain(done.total.errors.keys());
    if let Some(class) = classes.into_iter().find(|name| load::ErrorClass::from_name(name).is_none()) {
        return wrong(format!("the error class {class:?} is not of the contract"));
    }
    let errors = sum(done.errors.values());
    let all = sum(done.total.errors.values());
    let latencies = sum(done.latency_us.iter().map(|(_, count)| count));
    let ended = errors.and_then(|errors| errors.checked_add(done.successes)?.checked_add(done.in_flight));
    let total = all.and_then(|all| all.checked_add(done.total.successes));
    if ended != Some(done.attempts) {
        let Done { attempts, successes, in_flight, .. } = done;
        return wrong(format!(
            "window: {attempts} attempts, {successes} successes, {errors:?} errors, {in_flight} in flight"
        ));
    }
    if total != Some(done.total.attempts) || done.total.successes < done.successes {
        let Total { attempts, successes, .. } = &done.total;
        return wrong(format!("total: {attempts} attempts, {successes} successes, {all:?} errors"));
    }
    if latencies != Some(done.successes) {
        return wrong(format!("{latencies:?} latencies of {} successes", done.successes));
    }
    // A driver's scheduler may end its window late, and never early.
    let told = Duration::from_micros(done.elapsed_us);
    if told < window.mul_f64(0.9) || told > window * 3 + SLACK {
        return wrong(format!(
            "a window of {:.3} s where {:.3} s was asked",
            told.as_secs_f64(),
            window.as_secs_f64()
        ));
    }
    Ok(())
}

/// `None` where the sum is beyond any count.
fn sum<'a>(counts: impl Iterator<Item = &'a u64>) -> Option<u64> {
    counts.copied().try_fold(0, u64::checked_add)
}

/// CPU seconds of the serving threads between two moments, and the share of that time.
fn share(before: (Snapshot, Instant), after: (Snapshot, Instant)) -> (f64, f64) {
    let cpu = after.0.cpu.saturating_sub(before.0.cpu).as_secs_f64();
    let time = after.1.duration_since(before.1).as_secs_f64();
    (cpu, cpu / time.max(f64::MIN_POSITIVE))
}

fn measurement(place: &Place<'_>, done: Done, server: Snapshot, used: Use, busy: (f64, f64)) -> Measurement {
    let latency = Latency::from_buckets(done.latency_us);
    let mut system = place.system_use(used);
    if !done.version.is_empty() {
        system.version = done.version;
    }
    Measurement {
        elapsed_s: Duration::from_micros(done.elapsed_us).as_secs_f64(),
        attempts: done.attempts,
        successes: done.successes,
        errors: done.errors,
        in_flight: done.in_flight,
        units: done.successes,
        payload_bytes: done.successes * 2,
        response_us: latency,
        system,
        generator: GeneratorUse {
            cpu_s: busy.0,
            busiest_core: busy.1 / place.placement.generator.len().max(1) as f64,
            cores: place.own(&place.placement.generator),
            backend: String::new(),
        },
        server: Some(ServerCounts {
            requests: server.requests,
            responses: server.responses,
            connections: server.connections,
            peak_connections: server.peak_connections,
            client_attempts: done.total.attempts,
            client_successes: done.total.successes,
            client_errors: done.total.errors,
        }),
        ..Measurement::default()
    }
}
