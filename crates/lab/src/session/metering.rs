//! The generator that is another program: it drives a server for a window, and says itself what it measured
//! ([`Meter`](crate::meter::Meter)).

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::fault::{ErrorClass, Example, Fault, Seen};
use load::{Job, Moment, Stop, Tally};
use measurement::Metered;
use reactor::Address;
use systems::alongside::{Alongside, Exit, Waited, Worked};
use systems::template;
use systems::wait::deadline_in;
use systems::work::Clients;

use crate::meter::{Found, Meter};
use crate::observation::Stage;
use crate::session::generator::{Driven, Generator, Serving};
use crate::session::trial_error::TrialError;

/// How long it drives before the server is watched at work: it must have made its connections.
const BEGUN: Duration = Duration::from_millis(250);

/// A meter on these cores.
#[derive(Clone, Copy)]
pub(super) struct Metering<'a> {
    pub meter: &'a Meter,
    pub cores: &'a [usize],
}

impl Generator for Metering<'_> {
    fn drive(&self, job: &Job, cancel: &AtomicBool, watch: &load::Watch<'_>) -> Result<Driven, TrialError> {
        let warms_up = !job.warmup.is_zero() && self.meter.is_timed();
        let warmed_up = if warms_up { self.ended(job, job.warmup, cancel).map(drop) } else { Ok(()) };
        // The other of a duet waits for this one also if it has failed.
        if let Some(meeting) = &job.rendezvous {
            meeting.meet(self.cores.len(), || cancel.load(Ordering::Relaxed));
        }
        warmed_up?;
        let window = window(job);
        watch(Moment::Opened);
        let began = Instant::now();
        let ended = self.ended(job, window, cancel);
        let elapsed = began.elapsed();
        watch(Moment::Closed);
        let worked = ended?;
        let found = self.meter.read(&worked.out).map_err(|why| self.wrong(why, &worked))?;
        Ok(Driven {
            tally: tally(&found, &worked, elapsed, self.cores),
            elsewhere: None,
            metered: Some(self.metered(&found)),
        })
    }

    fn works(&self, job: &Job, cancel: &AtomicBool, watch: &load::Watch<'_>) -> Result<bool, TrialError> {
        let window = window(job);
        // It is killed when it has been watched for long enough.
        let mut program = self.start(job, BEGUN + window)?;
        if program.wait(deadline_in(BEGUN), cancel) != Waited::TimedOut {
            return Ok(false);
        }
        watch(Moment::Opened);
        let waited = program.wait(deadline_in(window), cancel);
        watch(Moment::Closed);
        Ok(matches!(waited, Waited::TimedOut | Waited::Exited(Exit::Code(0))))
    }

    fn serve(&self, _work: &Clients) -> Result<Box<dyn Serving + '_>, TrialError> {
        Err(TrialError::failed(Stage::Drive, "another program drives servers and serves no clients"))
    }

    fn is_here(&self) -> bool {
        true
    }

    fn meter(&self) -> Option<&Meter> {
        Some(self.meter)
    }
}

impl Metering<'_> {
    /// Runs the program, which is to drive for this time, to its end.
    ///
    /// # Errors
    /// It did not exit with 0, or not within the timeout beside that time.
    fn ended(&self, job: &Job, time: Duration, cancel: &AtomicBool) -> Result<Worked, TrialError> {
        let driving = if self.meter.is_timed() { Meter::duration(time) } else { Duration::ZERO };
        let mut program = self.start(job, time)?;
        let waited = program.wait(deadline_in(driving.saturating_add(job.timeout)), cancel);
        let worked = program.end();
        let why = match waited {
            Waited::Exited(Exit::Code(0)) => return Ok(worked),
            Waited::Cancelled => return Err(TrialError::Interrupted),
            Waited::TimedOut if self.meter.is_timed() => {
                format!(
                    "it did not end within {:?} after its time of {driving:?} and was killed",
                    job.timeout
                )
            }
            Waited::TimedOut => format!(
                "it did not end within {:?} and was killed: --driver-timeout gives it more time",
                job.timeout
            ),
            Waited::Exited(exit) => format!("it {exit}"),
        };
        Err(self.wrong(why, &worked))
    }

    fn start(&self, job: &Job, time: Duration) -> Result<Alongside, TrialError> {
        let failed =
            |why: String| TrialError::failed(Stage::Drive, format!("the driver {}: {why}", self.meter.name));
        let words = self.meter.command.iter().map(|word| filled(word, job, time));
        let mut words = words.collect::<Result<Vec<_>, _>>().map_err(failed)?.into_iter();
        let program = words.next().unwrap_or_default();
        let mut command = Command::new(&program);
        command.args(words);
        Alongside::start(command, self.cores)
            .map_err(|error| failed(format!("cannot start `{program}`: {error}")))
    }

    /// An error of the program, with the last line of its standard error, or else of its output.
    fn wrong(&self, why: String, worked: &Worked) -> TrialError {
        let last = worked.last_line().map(printable::printable);
        let said = last.map_or_else(String::new, |line| format!(": {line:.200}"));
        let reason = format!("the driver {}: {why}{said}", self.meter.name);
        TrialError::failed(Stage::Drive, reason).with_output(&worked.shown())
    }

    fn metered(&self, found: &Found) -> Metered {
        Metered {
            by: self.meter.name.clone(),
            per_s: found.per_s,
            p50_us: found.p50_us,
            p99_us: found.p99_us,
        }
    }
}

/// How long the window of a job is to last.
fn window(job: &Job) -> Duration {
    match job.stop {
        Stop::After(window) => window,
        Stop::Count(_) => Duration::ZERO,
    }
}

/// A word of the command with its placeholders filled in.
fn filled(word: &str, job: &Job, time: Duration) -> Result<String, String> {
    let (tcp, socket) = match &job.target.address {
        Address::Tcp(address) => (Some(address), None),
        Address::Unix(path) => (None, Some(path)),
    };
    template::expand(word, |name| match name {
        "host" => tcp.map(|address| address.ip().to_string()),
        "port" => tcp.map(|address| address.port().to_string()),
        "socket" => socket.map(|path| path.display().to_string()),
        "connections" => Some(job.connections.to_string()),
        "duration" => Some(Meter::duration(time).as_secs().to_string()),
        _ => None,
    })
    .map_err(|why| format!("{why}: where the server listens has no such part"))
}

/// What a program says of its failures, as the example of a failure.
fn example(failures: &str) -> Example {
    Example {
        fault: Fault { class: ErrorClass::Other, seen: Seen::Nothing },
        check: None,
        told: Some(Arc::from(failures)),
        heard: Seen::Nothing,
        into_window: Duration::ZERO,
        connection: None,
        exchange: None,
    }
}

/// What was found, as if Narrows' own generator had counted it.
fn tally(found: &Found, worked: &Worked, elapsed: Duration, cores: &[usize]) -> Tally {
    let window_s = elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    // A rate may be that of a part of the window only, but without a count nothing more is known.
    let successes = found.requests.unwrap_or((found.per_s * window_s).round() as u64);
    let failed = found.failed;
    let on_average = worked.cpu.as_secs_f64() / window_s / cores.len().max(1) as f64;
    let mut tally = Tally {
        attempts: successes.saturating_add(failed),
        successes,
        units: successes,
        elapsed,
        cpu: worked.cpu,
        busiest: on_average.max(worked.busiest.as_secs_f64() / window_s).min(1.0),
        ..Tally::default()
    };
    if failed > 0 {
        if let Some(count) = tally.errors.get_mut(ErrorClass::Other as usize) {
            *count = failed;
        }
        tally.first_errors.insert(ErrorClass::Other, example(&found.failures));
    }
    tally
}
