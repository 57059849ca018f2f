//! Trials in which Narrows drives a server: `upload`, `requests` and `frames`.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use load::target::{Body, Expect, FrameStream, Http, Traffic};
use load::{Arrivals, Ending, Job, Moment, Stop, Target};
use systems::Work;
use systems::machine;
use systems::process::Running;
use systems::work::Upload;
use wire::frames::Prefix;

use crate::observation::{Counted, Measurement};
use crate::plan::{COUNTING_S, is_counted};
use crate::session::place::{Place, Stopped};
use crate::session::watch::Watched;

/// Starts the server, checks that it does the work, drives it for the trial's time, counts if it is one for that, and stops it.
pub(super) fn measure(place: &Place<'_>, port: u16) -> Result<Measurement, Stopped> {
    let running = place.start()?;
    check_equal_work(place, port, &running)?;
    let job = job(place, port)?;
    // Told on the generator's thread, at the very ends of the window.
    let watched = Mutex::new(Watched::new(running.sampler()));
    let watch = |moment: Moment<'_>| {
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        match moment {
            Moment::Opened => watched.opened(),
            Moment::Closed => watched.closed(),
            Moment::Passed { .. } => {}
        }
    };
    let tally = place.drive(&job, &watch)?;
    running.check_alive()?;
    let counted = if is_counted(place.trial) { count(place, &job, &running) } else { None };
    let theirs = place.manifest.attached().map(|_| machine::cores_of(running.pid()));
    running.stop();
    let watched = watched.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut measurement = Measurement::of(&tally);
    measurement.system = place.system_use(&watched.used);
    if let Some(cores) = theirs {
        measurement.system.cores = cores; // its user's choice
    }
    measurement.generator.cores = place.own(&place.placement.generator);
    measurement.concurrency = (job.connections * job.pipeline) as u64;
    measurement.connections = job.connections as u64;
    measurement.counted = counted;
    watched.record(&mut measurement);
    Ok(measurement)
}

/// The largest body and the most connections that are counted with.
const COUNTED_BODY: u64 = 16 << 20;
const COUNTED_CONNECTIONS: usize = 100;

/// The same traffic once more, short, while the kernel counts: outside of the window, because counting costs time.
fn count(place: &Place<'_>, measured: &Job, running: &Running) -> Option<Counted> {
    let mut job = measured.clone();
    job.connections = job.connections.min(COUNTED_CONNECTIONS);
    (job.warmup, job.stop) = (Duration::ZERO, Stop::After(Duration::from_secs_f64(COUNTING_S)));
    if let Work::Upload(work) = place.work() {
        job.target.traffic = Traffic::Http(upload(place, work, work.size.min(COUNTED_BODY)));
    }
    let calls = running.calls();
    // What goes wrong here, an interruption too, costs these counts, not the trial, which is measured.
    let tally = place.drive(&job, &|_| {}).ok()?;
    let found = calls.finish();
    let any = found.system_calls.or(found.reads).or(found.instructions).is_some();
    (any && tally.successes > 0).then_some(Counted {
        operations: tally.units,
        bytes: tally.bytes_sent,
        system_calls: found.system_calls,
        reads: found.reads,
        instructions: found.instructions,
    })
}

/// What the trial sends.
fn job(place: &Place<'_>, port: u16) -> Result<Job, Stopped> {
    let (traffic, connections) = match place.work() {
        Work::Upload(work) => (Traffic::Http(upload(place, work, work.size)), work.concurrency),
        Work::Frames(work) => (frames(work.frame_size, None), work.connections),
        Work::Requests(work) => (Traffic::Http(request(place, work.keep_alive)), work.connections),
        Work::Clients(_) => return Err(not_driven()),
    };
    let mut job = Job::new(target(port, traffic), connections as usize, Stop::After(place.window()));
    job.threads = place.threads();
    job.warmup = place.warmup();
    job.timeout = place.timeout();
    if let Work::Requests(work) = place.work() {
        job.pipeline = work.pipeline as usize;
        job.arrivals = place.schedule().map_or(Arrivals::Closed, Arrivals::Open);
        if job.pipeline > 1 && !work.keep_alive {
            return Err(Stopped::failed(
                "drive",
                "pipeline above 1 needs keep_alive = true: a connection that ends with its first answer loses the rest",
            ));
        }
    } else {
        job.ending = Ending::Finish;
    }
    Ok(job)
}

fn target(port: u16, traffic: Traffic) -> Target {
    Target { address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), traffic }
}

fn not_driven() -> Stopped {
    Stopped::failed("drive", "a client is not driven")
}

fn frames(size: u64, count: Option<u64>) -> Traffic {
    Traffic::Frames(FrameStream { size, prefix: Prefix::Four, count })
}

fn request(place: &Place<'_>, keep_alive: bool) -> Http {
    Http { keep_alive, expect: Expect::exactly(place.manifest.answer_body()), ..Http::get("127.0.0.1", "/") }
}

fn upload(place: &Place<'_>, work: &Upload, size: u64) -> Http {
    Http {
        method: "POST".to_owned(),
        path: "/upload".to_owned(),
        body: Body::Pattern(size),
        expect_continue: work.expect && size > 0,
        expect: Expect::exactly(size.to_string()),
        ..request(place, work.reuse)
    }
}

/// A few exchanges of the trial's kind, small, before anything is timed: a server that answers something else is not
/// compared with one that does the work. One whose manifest declares a fault is driven all the same: its row shows its errors,
/// and ranks nothing.
fn check_equal_work(place: &Place<'_>, port: u16, running: &Running) -> Result<(), Stopped> {
    let fault = place.manifest.answer.as_ref().and_then(|answer| answer.fault.as_ref());
    match equal_work(place, port, 100_003)? {
        Some(_) if fault.is_some() => running.check_alive().map_err(Stopped::from),
        Some(wrong) => {
            running.check_alive()?;
            let reason =
                format!("it does not do the work of `{}`: {wrong}; see docs/contracts.md", place.workload());
            Err(Stopped::failed("equal_work", reason).with_output(running.tail()))
        }
        None => running.check_alive().map_err(Stopped::from),
    }
}

/// Three exchanges of the trial's kind; uploads are of this size. What was wrong with the first that failed.
pub(super) fn equal_work(place: &Place<'_>, port: u16, size: u64) -> Result<Option<String>, Stopped> {
    let traffic = match place.work() {
        Work::Upload(work) => Traffic::Http(upload(place, work, size)),
        Work::Frames(_) => frames(10, Some(3)),
        Work::Requests(work) => Traffic::Http(request(place, work.keep_alive)),
        Work::Clients(_) => return Err(not_driven()),
    };
    let mut job = Job::new(target(port, traffic), 1, Stop::Count(3));
    job.timeout = place.timeout().min(Duration::from_secs(5));
    let tally = place.drive(&job, &|_| {})?;
    Ok(tally.first_errors.iter().next().map(|(class, example)| format!("{class}: {example}")))
}
