//! Measures the network between the generators and the machine of the systems, with Narrows' own server at its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{anyhow, bail};
use load::target::{Body, Expect, Http, Target, Traffic};
use load::{Ending, Job, Stop, Tally};
use machines::MachineError;
use measurement::{BULKS, Path};
use serve::CounterSnapshot;

use super::generators::{Cores, Generators, Request};

/// How long each of the two measurements takes.
const WINDOW: Duration = Duration::from_millis(300);
/// How long the connections have to reach the speed of the network before it is measured.
const WARMUP: Duration = Duration::from_millis(200);
/// The body that is sent there and back.
const BODY: usize = 256 << 10;
/// On a way with a longer round trip, what TCP takes for larger exchanges is measured, too.
const FAR_US: f64 = 1000.0;
/// How long exchanges of each of [`BULKS`] are made: for so many round trips, because TCP needs some exchanges to open its window.
const BULK_ROUND_TRIPS: f64 = 30.0;
/// The shortest and the longest time for them, in seconds.
const BULK_WINDOW_S: [f64; 2] = [0.5, 5.0];
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
    let round_trip_us = short.service.all().min() as f64 / 1e3;
    let bulk_us = match round_trip_us > FAR_US {
        true => bulk_us(generators, server, round_trip_us, cancel)?,
        false => None,
    };
    let connections = CONNECTIONS * generators.number();
    let before = counts()?;
    let Some(long) = drive(generators, job(server, echo(server, BODY), connections, WARMUP), cancel)? else {
        return Ok(None);
    };
    let worked = counts()?.cpu.saturating_sub(before.cpu).as_secs_f64();
    let whole = (long.elapsed + WARMUP).as_secs_f64() * threads as f64;
    let machines_were_busy = long.busiest > BUSY || worked / whole > BUSY;
    let seconds = long.elapsed.as_secs_f64();
    let carried = long.bytes_received.min(long.bytes_sent) as f64 / seconds.max(f64::MIN_POSITIVE);
    // On a far way these connections may not fill the network, or they lose packets. The exchanges of one connection show how fast
    // its bytes follow each other.
    let in_a_row = bulk_us.map_or(0.0, in_a_row);
    let bytes_per_s = (!machines_were_busy && carried > 0.0).then_some(carried.max(in_a_row));
    Ok(Some(Path { round_trip_us, bytes_per_s, bulk_us }))
}

/// The bytes per second at which the bytes of a larger exchange follow each other, without the round trip and without the burst
/// that a link lets pass at once. 0 if the two times are too close.
fn in_a_row([_, mid_us, large_us]: [f64; 3]) -> f64 {
    let [_, mid, large] = BULKS;
    let longer_us = large_us - mid_us;
    if longer_us > mid_us / 10.0 { 2e6 * (large - mid) as f64 / longer_us } else { 0.0 }
}

/// See [`Path::bulk_us`]. `None` if an exchange failed or the user interrupted.
fn bulk_us(
    generators: &mut Generators,
    server: SocketAddr,
    round_trip_us: f64,
    cancel: &AtomicBool,
) -> anyhow::Result<Option<[f64; 3]>> {
    let [shortest, longest] = BULK_WINDOW_S;
    let window = Duration::from_secs_f64((BULK_ROUND_TRIPS * round_trip_us / 1e6).clamp(shortest, longest));
    let mut all = [0.0; 3];
    for (size, time_us) in BULKS.into_iter().zip(&mut all) {
        let target = Target { address: server.into(), traffic: Traffic::Http(echo(server, size as usize)) };
        // On a slow way at least one exchange ends.
        let job = Job { ending: Ending::Finish, ..Job::new(target, 1, Stop::After(window)) };
        let Some(tally) = drive(generators, job, cancel)? else {
            return Ok(None);
        };
        // A way that is too slow or too lossy for them can still be measured with smaller ones.
        if !tally.errors.is_empty() || tally.successes == 0 {
            return Ok(None);
        }
        *time_us = tally.service.all().min() as f64 / 1e3;
    }
    Ok(Some(all))
}

/// An exchange with so many bytes in each direction.
fn echo(server: SocketAddr, size: usize) -> Http {
    Http {
        method: "POST".to_owned(),
        body: Body::Bytes(Arc::new(vec![b'x'; size])),
        expect: Expect { length: Some(size as u64), ..Expect::default() },
        ..Http::get(server.to_string(), "/echo")
    }
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
