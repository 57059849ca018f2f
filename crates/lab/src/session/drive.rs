//! Trials in which Narrows drives a server: `upload`, `requests` and `frames`.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use load::target::{Body, Expect, Frames, Http, Traffic};
use load::{Ending, Job, Moment, Stop, Tally, Target};
use systems::machine;
use systems::process::Running;
use systems::sample::{Sampler, Use};
use systems::{Value, Workload};
use wire::frames::Prefix;

use crate::observation::Measurement;
use crate::session::place::{Place, Stopped};

/// Starts the server, checks that it does the work, drives it for the trial's time, and stops it.
pub(super) fn measure(place: &Place<'_>, port: u16) -> Result<Measurement, Stopped> {
    let running = place.start()?;
    check_equal_work(place, port, &running)?;
    let job = job(place, port)?;
    // Told on the generator's thread, at the very ends of the window.
    let watched = Mutex::new(Watched { sampler: Some(running.sampler()), ..Watched::default() });
    let watch = |moment| {
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        match moment {
            Moment::Opened => watched.opened(),
            Moment::Closed => watched.closed(),
        }
    };
    let tally = place.drive(&job, &watch)?;
    running.check_alive()?;
    let theirs = place.manifest.attached().map(|_| machine::cores_of(running.pid()));
    running.stop();
    let watched = watched.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut measurement = measurement(place, &tally, watched.used);
    if let Some(cores) = theirs {
        measurement.system.cores = cores; // its user's choice
    }
    measurement.concurrency = (job.connections * job.pipeline) as u64;
    measurement.stolen_s = watched.stolen_s;
    measurement.time_wait = watched.time_wait;
    measurement.ports = machine::ports();
    measurement.files = machine::file_limit();
    Ok(measurement)
}

/// What is read at the ends of the window.
#[derive(Default)]
struct Watched {
    sampler: Option<Sampler>,
    used: Use,
    stolen_s: f64,
    time_wait: u64,
}

impl Watched {
    fn opened(&mut self) {
        self.stolen_s = machine::stolen_s();
        if let Some(sampler) = &mut self.sampler {
            sampler.mark();
        }
    }

    fn closed(&mut self) {
        if let Some(sampler) = self.sampler.take() {
            self.used = sampler.finish();
        }
        self.stolen_s = machine::stolen_s() - self.stolen_s;
        self.time_wait = machine::time_wait();
    }
}

/// What the trial sends.
fn job(place: &Place<'_>, port: u16) -> Result<Job, Stopped> {
    let timing = Stop::After(place.window());
    let (traffic, connections) = match place.workload() {
        Workload::Upload => {
            (Traffic::Http(upload(place, place.number("size")?)), place.number("concurrency")?)
        }
        Workload::Frames => {
            let frames = Frames { size: place.number("frame_size")?, prefix: Prefix::Four, count: None };
            (Traffic::Frames(frames), place.number("connections")?)
        }
        Workload::Requests => (Traffic::Http(request(place)), place.number("connections")?),
        Workload::Clients => return Err(Stopped::failed("drive", "a client is not driven")),
    };
    let mut job = Job::new(target(port, traffic), connections as usize, timing);
    job.threads = place.threads();
    job.warmup = place.warmup();
    job.timeout = place.timeout();
    if place.workload() == Workload::Requests {
        job.pipeline = place.number("pipeline")? as usize;
        if job.pipeline > 1 && place.says("keep_alive", &Value::Boolean(false)) {
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

fn request(place: &Place<'_>) -> Http {
    Http {
        method: "GET".to_owned(),
        host: "127.0.0.1".to_owned(),
        path: "/".to_owned(),
        headers: Vec::new(),
        body: Body::None,
        keep_alive: place.says("keep_alive", &Value::Boolean(true)),
        expect_continue: false,
        ids: false,
        expect: Expect { status: Some(200), body: Some(place.manifest.answer_body().as_bytes().to_vec()) },
    }
}

fn upload(place: &Place<'_>, size: u64) -> Http {
    Http {
        method: "POST".to_owned(),
        path: "/upload".to_owned(),
        body: Body::Pattern(size),
        keep_alive: place.says("reuse", &Value::Boolean(true)),
        expect_continue: place.says("expect", &Value::Boolean(true)) && size > 0,
        expect: Expect { status: Some(200), body: Some(size.to_string().into_bytes()) },
        ..request(place)
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
    let traffic = match place.workload() {
        Workload::Upload => Traffic::Http(upload(place, size)),
        Workload::Frames => Traffic::Frames(Frames { size: 10, prefix: Prefix::Four, count: Some(3) }),
        Workload::Requests | Workload::Clients => Traffic::Http(request(place)),
    };
    let mut job = Job::new(target(port, traffic), 1, Stop::Count(3));
    job.timeout = place.timeout().min(Duration::from_secs(5));
    let tally = place.drive(&job, &|_| {})?;
    Ok(tally.first_errors.iter().next().map(|(class, example)| format!("{class}: {example}")))
}

fn measurement(place: &Place<'_>, tally: &Tally, used: Use) -> Measurement {
    let mut m = Measurement::of(tally);
    m.system = place.system_use(used);
    m.generator.cores = place.own(&place.placement.generator);
    m
}
