//! Measures the network between the generators and the machine of the systems, with Narrows' own server at its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{anyhow, bail};
use lab::observation::Path;
use load::target::{Body, Expect, Http, Target, Traffic};
use load::{Job, Stop, Tally};
use machines::MachineError;
use serve::CounterSnapshot;

use super::generators::{Cores, Generators, Request};

/// How long each of the two measurements takes.
const WINDOW: Duration = Duration::from_millis(300);
/// How long the connections have to reach the speed of the network before it is measured.
const WARMUP: Duration = Duration::from_millis(200);
/// The body that is sent there and back.
const BODY: usize = 256 << 10;
/// The connections of each generator meanwhile.
const CONNECTIONS: usize = 4;
/// If a core of a generator or a thread of the server worked more than this share of the time, the network was not the limit.
const BUSY: f64 = 0.7;

/// Measures the way to a server of Narrows at this address. `counts` asks the server for its counts. `None` if the user
/// interrupted.
///
/// # Errors
/// A generator failed, or does not reach the address.
pub fn measure(
    generators: &mut Generators,
    server: SocketAddr,
    threads: usize,
    counts: &mut dyn FnMut() -> anyhow::Result<CounterSnapshot>,
    cancel: &AtomicBool,
) -> anyhow::Result<Option<Path>> {
    let one = Http::get(server.to_string(), "/");
    let short = drive(generators, job(server, one, 1, Duration::ZERO), cancel);
    let Some(short) = short.map_err(|error| with_address(error, server))? else {
        return Ok(None);
    };
    if short.successes == 0 {
        let first = short.first_errors.iter().next();
        let seen = first.map_or_else(String::new, |(class, example)| format!(" ({class}: {example})"));
        bail!("the first generator got no answer from {}{seen}: {}", server.ip(), advice(server));
    }
    let echo = Http {
        method: "POST".to_owned(),
        body: Body::Bytes(Arc::new(vec![b'x'; BODY])),
        expect: Expect { length: Some(BODY as u64), ..Expect::default() },
        ..Http::get(server.to_string(), "/echo")
    };
    let connections = CONNECTIONS * generators.number();
    let before = counts()?;
    let Some(long) = drive(generators, job(server, echo, connections, WARMUP), cancel)? else {
        return Ok(None);
    };
    let worked = counts()?.cpu.saturating_sub(before.cpu).as_secs_f64();
    let whole = (long.elapsed + WARMUP).as_secs_f64() * threads as f64;
    let machines_were_busy = long.busiest > BUSY || worked / whole > BUSY;
    let seconds = long.elapsed.as_secs_f64();
    let carried = long.bytes_received.min(long.bytes_sent) as f64 / seconds.max(f64::MIN_POSITIVE);
    Ok(Some(Path {
        round_trip_us: short.service.all().min() as f64 / 1e3,
        bytes_per_s: (!machines_were_busy && carried > 0.0).then_some(carried),
    }))
}

/// What to do if the address may be the wrong one.
fn advice(server: SocketAddr) -> String {
    format!(
        "if the generators know the machine of the systems by another address than {}, name that with --address",
        server.ip()
    )
}

/// Adds what to do to what a generator says of its drive. That a machine is gone is not the fault of the address.
fn with_address(error: anyhow::Error, server: SocketAddr) -> anyhow::Error {
    match error.downcast_ref::<MachineError>() {
        Some(said) if !said.gone => anyhow!("{error:#}; {}", advice(server)),
        _ => error,
    }
}

fn job(server: SocketAddr, http: Http, connections: usize, warmup: Duration) -> Job {
    let target = Target { address: server.into(), traffic: Traffic::Http(http) };
    Job { warmup, ..Job::new(target, connections, Stop::After(WINDOW)) }
}

fn drive(generators: &mut Generators, job: Job, cancel: &AtomicBool) -> anyhow::Result<Option<Tally>> {
    let request = Request { job: &job, wait: None, cores: Cores::All };
    Ok(generators.drive(&request, cancel, &|_| {})?.map(|together| together.tally))
}
