//! The places of a trial on the bench: each has a system and its driver's side.
//!
//! A trial has one place. What starts, marks, samples and stops works on a list of them, so that two systems can be driven at
//! the same time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use load::{Arrivals, Script};
use measurement::Measurement;
use systems::allotment;
use systems::contact::Access;
use systems::machine::Placement;
use systems::manifest::Program;
use systems::process::Running;
use systems::unread::Unread;
use systems::{Launch, Listening, Manifest, Role, Work, Workload};

use crate::ask::{Ask, Bytes, Demand, ProxyProtocol};
use crate::observation::{Stage, Trial};
use crate::session::driver::{Driver, Orders, schedule};
use crate::session::generator::Generator;
use crate::session::metering::Metering;
use crate::session::profiling::Profiling;
use crate::session::trial_error::TrialError;
use crate::session::window::Readings;
use crate::session::{clients, drive};

/// What docs/contracts.md asks of a server: a stream, or `GET /` and the answer that its manifest declares.
fn contract(manifest: &Manifest, work: &Work) -> Ask {
    if let Work::Streams(work) = work {
        return Ask::for_stream(work);
    }
    let answer = Demand::Content(Bytes(manifest.answer_body().as_bytes().to_vec()));
    Ask { status: Some(200), answer, ..Ask::get("/") }
}

/// Everything that is needed to execute one trial on the bench.
pub(super) struct Place<'a> {
    pub trial: &'a Trial,
    pub manifest: &'a Manifest,
    pub placement: &'a Placement,
    pub generator: &'a dyn Generator,
    /// The other program that drives in the generator's place, if the trial's ask names one.
    pub metering: Option<Metering<'a>>,
    pub cancel: &'a AtomicBool,
    pub launch: Launch<'a>,
    pub version: String,
    pub profiling: &'a Mutex<Profiling>,
    /// The requests of the file that the trial's ask may name.
    pub script: Option<&'a Arc<Script>>,
}

/// Measures what is at these places, at the same time.
pub(super) fn measure(places: &[Place<'_>]) -> Result<Vec<Measurement>, TrialError> {
    let unread = Unread::from_now();
    let measured = between_hooks(places, || {
        let (servers, clients): (Vec<_>, Vec<_>) =
            places.iter().partition(|place| place.manifest.role == Role::Server);
        if clients.is_empty() { drive::measure(&servers) } else { at_once(clients, clients::measure) }
    });
    match unread.found() {
        // An unread file can also make a system seem to have failed.
        Some(why) if !matches!(measured, Err(TrialError::Interrupted)) => {
            let reason = format!("what the system did is not known, because Narrows could not read {why}");
            Err(TrialError::failed(Stage::Counts, reason))
        }
        _ => measured,
    }
}

/// Does something between the `prepare` and the `conclude` of all systems.
fn between_hooks<T>(
    places: &[Place<'_>],
    act: impl FnOnce() -> Result<T, TrialError>,
) -> Result<T, TrialError> {
    match places {
        [] => act(),
        [first, others @ ..] => first.between_hooks(|| between_hooks(others, act)),
    }
}

/// Does something with each of these at the same time. The first is done on this thread, and each other one on a thread of its
/// own. The first failure is the result.
pub(super) fn at_once<P: Send, T: Send>(
    all: impl IntoIterator<Item = P>,
    act: impl Fn(P) -> Result<T, TrialError> + Sync,
) -> Result<Vec<T>, TrialError> {
    let (mut all, act) = (all.into_iter(), &act);
    let Some(first) = all.next() else { return Ok(Vec::new()) };
    thread::scope(|scope| {
        let others: Vec<_> = all.map(|other| scope.spawn(move || act(other))).collect();
        let mut done = vec![act(first)];
        done.extend(others.into_iter().map(|other| match other.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }));
        done.into_iter().collect()
    })
}

impl Place<'_> {
    /// The work of the trial.
    pub(super) fn work(&self) -> &Work {
        self.trial.scenario.work()
    }

    pub(super) fn workload(&self) -> Workload {
        self.work().workload()
    }

    /// Whether its runtime was told to write the names of its functions.
    pub(super) fn names_functions(&self) -> bool {
        matches!(&self.manifest.program, Program::Started(start) if self.trial.profiled && !start.profile_env.is_empty())
    }

    /// Starts the system and waits until it is ready.
    pub(super) fn start(&self) -> Result<Running, TrialError> {
        let mut running = self.launch.start()?;
        match running.wait_ready(Instant::now() + self.manifest.ready.timeout, self.cancel) {
            Ok(()) => Ok(running),
            Err(_) if self.cancelled() => Err(TrialError::Interrupted),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// What drives: another program, or the generator.
    pub(super) fn generator(&self) -> &dyn Generator {
        match &self.metering {
            Some(metering) => metering,
            None => self.generator,
        }
    }

    /// The driver of a server.
    pub(super) fn driver(&self) -> Driver<'_> {
        Driver { generator: self.generator(), cancel: self.cancel, meeting: None }
    }

    /// The driver's orders for a server that listens there.
    pub(super) fn orders(&self, server: &Listening) -> Orders {
        let ask = self.trial.ask.as_deref().cloned().unwrap_or_else(|| contract(self.manifest, self.work()));
        let (http2, tls) = (self.launch.http2, self.launch.tls.cloned());
        let opening = ask.proxy_protocol.map(ProxyProtocol::opening);
        let host = self.manifest.attached().and_then(|attached| attached.host.clone());
        Orders {
            work: *self.work(),
            access: Access { server: server.clone(), tls, http2, opening, host },
            ask,
            script: self.script.cloned(),
            timing: self.trial.timing,
            arrivals: schedule(self.work(), self.trial.round).map_or(Arrivals::Closed, Arrivals::Open),
        }
    }

    /// Runs the system's `setup`, if it has one.
    pub(super) fn set_up(&self) -> Result<(), TrialError> {
        self.hook("setup", self.cancel)
    }

    /// Does something between the system's `prepare` and `conclude`.
    pub(super) fn between_hooks<T>(
        &self,
        act: impl FnOnce() -> Result<T, TrialError>,
    ) -> Result<T, TrialError> {
        self.hook("prepare", self.cancel)?;
        let done = act();
        // What a trial has left must go even if the user interrupted it.
        match (done, self.hook("conclude", &AtomicBool::new(false))) {
            (Ok(_), Err(error)) => Err(error),
            (done, _) => done,
        }
    }

    fn hook(&self, name: &str, cancel: &AtomicBool) -> Result<(), TrialError> {
        let Program::Started(start) = &self.manifest.program else { return Ok(()) };
        let command = start.hooks.all().into_iter().find(|(known, _)| *known == name);
        let Some(command) = command.and_then(|(_, command)| command) else { return Ok(()) };
        match self.launch.hook(name, command, cancel) {
            Err(_) if cancel.load(Ordering::Relaxed) => Err(TrialError::Interrupted),
            ended => Ok(ended?),
        }
    }

    /// The cores to record. Shared cores are not recorded.
    pub(super) fn exclusive(&self, cores: &[usize]) -> Vec<usize> {
        if self.placement.shared { Vec::new() } else { cores.to_vec() }
    }

    /// Adds the readings of the system's side to the driver's measurement.
    pub(super) fn record(&self, readings: &Readings, measurement: &mut Measurement) {
        readings.record(measurement);
        if let Some(files) = allotment::files(self.launch.point) {
            measurement.files = measurement.files.min(files);
        }
        measurement.system.cores = self.exclusive(self.launch.cores);
        measurement.system.unequal =
            self.manifest.answer.as_ref().map(|answer| answer.about.clone()).unwrap_or_default();
        measurement.system.version.clone_from(&self.version);
        measurement.generator.cores = self.exclusive(&self.placement.generator);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_at_once_keeps_its_order_and_needs_all() {
        // Both wait for each other, so they run at the same time.
        let meeting = std::sync::Barrier::new(2);
        let done = at_once([1, 2], |number| {
            meeting.wait();
            Ok(10 * number)
        });
        assert!(matches!(done.as_deref(), Ok([10, 20])));
        let one_fails = |number: i32| if number == 2 { Err(TrialError::Interrupted) } else { Ok(number) };
        assert!(matches!(at_once([1, 2, 3], one_fails), Err(TrialError::Interrupted)));
        assert!(matches!(at_once([], one_fails).as_deref(), Ok([])));
    }
}
