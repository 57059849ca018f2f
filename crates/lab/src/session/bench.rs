//! The bench on which systems are tested: assigns cores, builds systems and executes trials.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use load::Script;
use measurement::Measurement;
use systems::allotment;
use systems::build::{Built, build};
use systems::machine::{Environment, Limit, Placement};
use systems::manifest::Program;
use systems::probe::{self, Availability, Context};
use systems::trace;
use systems::{Catalog, Launch, Listening, Manifest, Point, Role, Scratch, SystemError};
use tls::{Dialing, KeyKind};

use crate::ask::Ask;
use crate::duet::{Duet, Refusal};
use crate::observation::{Failure, Outcome, Scenario, Stage, Timing, Trial, shown_reason};
use crate::plan::Plan;
use crate::session::certificates::{self, Certificates};
use crate::session::generator::{Generator, Here};
use crate::session::metering::Metering;
use crate::session::place::{self, Place};
use crate::session::profiling::Profiling;
use crate::session::room::{self, Room};
use crate::session::trial_error::TrialError;
use crate::session::{Executor, Interrupted, Look, Speed};

/// Executes trials on this machine.
pub struct Bench {
    catalog: Catalog,
    narrows: PathBuf,
    placement: Placement,
    cancel: Arc<AtomicBool>,
    /// The address of this machine at which servers listen.
    pub(super) address: IpAddr,
    /// The limit of open files for Narrows and its systems.
    files: Limit,
    /// The versions of what systems need, by system, as far as they were probed.
    versions: HashMap<String, String>,
    built: HashMap<String, Result<Built, SystemError>>,
    /// The requests of a file, if they are sent.
    script: Option<Arc<Script>>,
    /// How the setup of each point of a system ended. A failed one is not repeated within a run.
    set_up: HashMap<(String, Point), Result<(), Failure>>,
    /// The number of Unix sockets so far.
    sockets: u32,
    /// What servers that speak TLS get. None until one is started.
    certificates: Option<Certificates>,
    /// What drives servers and serves clients.
    generator: Box<dyn Generator>,
    /// What profiles need from trial to trial.
    profiling: Mutex<Profiling>,
    /// Where sockets and certificates are. None until one is needed.
    scratch: Option<Scratch>,
    tell: fn(&str),
}

impl Bench {
    /// A bench for the systems of `catalog`. `narrows` is the path of the running program.
    pub fn new(
        catalog: Catalog,
        narrows: PathBuf,
        placement: Placement,
        files: Limit,
        cancel: Arc<AtomicBool>,
    ) -> Self {
        let (versions, built, set_up) = (HashMap::new(), HashMap::new(), HashMap::new());
        let (sockets, certificates, scratch, script) = (0, None, None, None);
        let generator = Box::new(Here { cores: placement.generator.clone() });
        Self {
            catalog,
            narrows,
            placement,
            cancel,
            address: Listening::USUAL,
            files,
            versions,
            built,
            script,
            set_up,
            sockets,
            certificates,
            generator,
            profiling: Mutex::default(),
            scratch,
            tell: |_| {},
        }
    }

    /// Passes to `tell` what a person should know while a system starts.
    pub fn telling(self, tell: fn(&str)) -> Self {
        Self { tell, ..self }
    }

    /// Adds a system, and replaces one of the same name.
    pub fn know(&mut self, manifest: Manifest) {
        self.built.remove(&manifest.name);
        self.catalog.insert(manifest);
    }

    /// Lets another generator drive the servers and serve the clients. The systems then have all cores of this machine.
    pub fn driven_by(mut self, generator: Box<dyn Generator>) -> Self {
        let Placement { system, generator: cores, shared } = &mut self.placement;
        system.extend(std::mem::take(cores));
        system.sort_unstable();
        system.dedup();
        *shared = false;
        self.generator = generator;
        self
    }

    /// Lets servers listen at this address of this machine from now on, instead of the usual one.
    pub fn listen_at(&mut self, address: IpAddr) {
        // The certificates of before name another address.
        (self.address, self.certificates) = (address, None);
    }

    /// Records the versions that a probe found of what a system needs. The system's build depends on them.
    pub fn record_versions(&mut self, system: &str, versions: &[(String, String)]) {
        self.versions.insert(system.to_owned(), probe::in_words(versions));
    }

    fn context(&self) -> Context<'_> {
        Context { narrows: &self.narrows, cancel: &self.cancel }
    }

    /// Builds a system, unless that was tried before.
    ///
    /// # Errors
    /// The first failure, again on each call: a failed build is not repeated within a run.
    pub fn build(&mut self, system: &str) -> Result<Built, SystemError> {
        if let Some(known) = self.built.get(system) {
            return known.clone();
        }
        let manifest = self.catalog.get(system).map_err(|error| SystemError {
            stage: systems::Stage::Build,
            system: system.to_owned(),
            reason: error.to_string(),
            output: String::new(),
        })?;
        let versions = self.versions.get(system).map_or("", String::as_str);
        let built = build(manifest, self.context(), versions);
        if !self.cancel.load(Ordering::Relaxed) {
            self.built.insert(system.to_owned(), built.clone());
        }
        built
    }

    /// Calls `act` with the place of a trial.
    pub(super) fn with_place<T>(
        &mut self,
        trial: &Trial,
        act: impl FnOnce(&Place<'_>) -> Result<T, TrialError>,
    ) -> Result<T, TrialError> {
        let prepared = self.prepare_place(trial)?;
        let end = act(&self.place(trial, &prepared)?);
        prepared.clean_up();
        end
    }

    /// Calls `act` with the places of trials that happen at the same time.
    fn with_places<T>(
        &mut self,
        trials: &[&Trial],
        act: impl FnOnce(&[Place<'_>]) -> Result<T, TrialError>,
    ) -> Result<T, TrialError> {
        let prepared = trials.iter().map(|trial| self.prepare_place(trial)).collect::<Result<Vec<_>, _>>()?;
        let places = trials.iter().zip(&prepared).map(|(trial, prepared)| self.place(trial, prepared));
        let end = act(&places.collect::<Result<Vec<_>, _>>()?);
        prepared.iter().for_each(Prepared::clean_up);
        end
    }

    /// Builds systems whose trials have at most so many connections. See [`Executor::prepare`].
    pub fn prepare_systems(
        &mut self,
        systems: &BTreeSet<String>,
        connections: u64,
        say: &mut dyn FnMut(&str),
    ) {
        let Limit { before, now, .. } = self.files;
        if now > before {
            say(&format!(
                "raised the limit of open files from {before} to {now}, for Narrows and its systems"
            ));
        }
        let Placement { generator, system, shared, .. } = &self.placement;
        say(&match (shared, generator.is_empty()) {
            (_, true) => format!("systems on cores {system:?}"),
            (true, _) => {
                "there is only one core: the system and the generator share it and disturb each other"
                    .to_owned()
            }
            (false, _) => format!("generator on cores {generator:?}, systems on cores {system:?}"),
        });
        if let Some(caution) = Room::read().caution(connections) {
            say(&caution);
        }
        for system in systems {
            if let Err(error) = self.build(system) {
                say(&error.to_string());
                if !error.output.is_empty() {
                    say(&error.output);
                }
            }
        }
    }

    /// Does what a trial's place needs before it can be used: builds the system, chooses where it listens, makes its
    /// certificate, and runs its `setup`.
    fn prepare_place(&mut self, trial: &Trial) -> Result<Prepared, TrialError> {
        let system = &trial.scenario.system;
        let built = self.build(system)?;
        let (listening, certificate) = (self.listening(system)?, self.certificate(trial)?);
        let addresses = if self.generator.is_here() { room::addresses(listening.as_ref()) } else { 0 };
        if let Some(lacks) = Room::read().lacks(trial.scenario.work(), addresses) {
            return Err(TrialError::failed(Stage::Start, lacks));
        }
        let manifest = self.manifest(system)?;
        let version = match (built.version.clone(), self.versions.get(system)) {
            // A variant may have the same library as the plain system, so the versions of its needs are shown too.
            (Some(library), Some(needs)) if manifest.variant.is_some() => Some(format!("{library}, {needs}")),
            (library, needs) => library.or_else(|| needs.cloned()),
        };
        let root = self.certificates.as_ref().map(Certificates::root).filter(|_| certificate.is_some());
        let mut dialing = certificates::dialing(manifest, trial.scenario.work(), root.as_deref());
        if let Some(dialing) = dialing.as_mut().filter(|_| trial.scenario.work().http2()) {
            // No other protocol is accepted in its place.
            dialing.parameters.only_http2();
        }
        let socket = listening.as_ref().filter(|_| manifest.attached().is_none()).and_then(Listening::socket);
        let socket = socket.map(Path::to_owned);
        let version = version.unwrap_or_default();
        let prepared = Prepared { built, listening, certificate, dialing, version, socket };
        self.set_up(trial, &prepared)?;
        Ok(prepared)
    }

    /// Runs the `setup` of a system at a point, unless that was done before.
    fn set_up(&mut self, trial: &Trial, prepared: &Prepared) -> Result<(), TrialError> {
        let point = (trial.scenario.system.clone(), trial.scenario.point.clone());
        let set_up = match self.set_up.get(&point) {
            Some(known) => known.clone(),
            None => match self.place(trial, prepared)?.set_up() {
                Err(TrialError::Interrupted) => return Err(TrialError::Interrupted),
                Err(TrialError::Failed(failure)) => Err(failure),
                Ok(()) => Ok(()),
            },
        };
        self.set_up.insert(point, set_up.clone());
        set_up.map_err(TrialError::Failed)
    }

    /// The place of a trial, for which everything is prepared.
    fn place<'a>(&'a self, trial: &'a Trial, prepared: &'a Prepared) -> Result<Place<'a>, TrialError> {
        let manifest = self.manifest(&trial.scenario.system)?;
        let cores = &self.placement.generator;
        Ok(Place {
            trial,
            manifest,
            placement: &self.placement,
            generator: &*self.generator,
            metering: trial
                .ask
                .as_ref()
                .and_then(|ask| ask.meter.as_ref())
                .map(|meter| Metering { meter, cores }),
            cancel: &self.cancel,
            launch: Launch {
                manifest,
                out: &prepared.built.out,
                address: self.address,
                listening: prepared.listening.as_ref(),
                certificate: prepared.certificate.as_deref(),
                tls: prepared.dialing.as_ref(),
                http2: trial.scenario.work().http2(),
                profiled: trial.profiled,
                point: &trial.scenario.point,
                cores: allotment::cores(&self.placement.system, &trial.scenario.point),
                narrows: &self.narrows,
                tell: self.tell,
            },
            version: prepared.version.clone(),
            profiling: &self.profiling,
            script: self.script.as_ref(),
        })
    }

    fn manifest(&self, system: &str) -> Result<&Manifest, TrialError> {
        self.catalog.get(system).map_err(|error| TrialError::failed(Stage::Build, error.to_string()))
    }

    /// Where a system must listen, or listens already. None for clients, and for servers that choose their port.
    fn listening(&mut self, system: &str) -> Result<Option<Listening>, TrialError> {
        let Ok(manifest) = self.catalog.get(system) else { return Ok(None) };
        Ok(match (manifest.role, &manifest.program) {
            (_, Program::Attached(attached)) => Some(attached.listening.clone()),
            (Role::Server, program) if program.listens_on_socket() => {
                let folder = scratch(&mut self.scratch).map_err(|error| {
                    TrialError::failed(Stage::Start, format!("no folder for its socket: {error}"))
                })?;
                let name = format!("{}.socket", self.sockets);
                self.sockets += 1;
                Some(Listening::Socket(folder.join(name)))
            }
            (Role::Server, Program::Started(start)) if !start.finds_port => {
                let port = systems::free_port_at(self.address)
                    .map_err(|error| TrialError::failed(Stage::Start, format!("no free port: {error}")))?;
                Some(Listening::at(self.address, port))
            }
            (Role::Server | Role::Client, Program::Started(_)) => None,
        })
    }

    /// The certificate of a trial's server, if the server speaks TLS. Without TLS the server gets one as well, because its
    /// command names the file.
    fn certificate(&mut self, trial: &Trial) -> Result<Option<PathBuf>, TrialError> {
        let manifest = self.catalog.get(&trial.scenario.system);
        if !manifest.is_ok_and(|manifest| manifest.attached().is_none() && manifest.speaks(true)) {
            return Ok(None);
        }
        let failed = |error: io::Error| TrialError::failed(Stage::Start, format!("no certificate: {error}"));
        let kind = trial.scenario.work().tls().map_or(KeyKind::P256, |tls| tls.certificate);
        let certificates = match &mut self.certificates {
            Some(known) => known,
            none => {
                let folder = scratch(&mut self.scratch).map_err(failed)?;
                none.insert(Certificates::new(folder.to_owned(), self.address).map_err(failed)?)
            }
        };
        certificates.of(kind).map(Some).map_err(failed)
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(super) fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

/// What a place needs that is made for one trial.
struct Prepared {
    built: Built,
    listening: Option<Listening>,
    certificate: Option<PathBuf>,
    dialing: Option<Dialing>,
    version: String,
    /// The socket that the system makes.
    socket: Option<PathBuf>,
}

impl Prepared {
    /// Removes what the trial leaves behind.
    fn clean_up(&self) {
        if let Some(path) = &self.socket {
            let _ = std::fs::remove_file(path); // Few servers remove it themselves.
        }
    }
}

impl Executor for Bench {
    fn probe(&mut self, systems: &BTreeSet<String>) -> Result<BTreeMap<String, String>, Interrupted> {
        let mut missing = BTreeMap::new();
        for name in systems {
            let Ok(manifest) = self.catalog.get(name) else { continue };
            if let Some(why) = manifest.why_unreachable_at(self.address) {
                missing.insert(name.clone(), why);
                continue;
            }
            match probe::availability(manifest, self.context()) {
                Availability::Ready { versions } => self.record_versions(name, &versions),
                Availability::Missing { what } => {
                    let words: Vec<String> =
                        what.iter().map(|need| format!("{} is missing ({})", need.name, need.get)).collect();
                    missing.insert(name.clone(), shown_reason(&words.join("; ")));
                }
            }
        }
        if self.cancelled() { Err(Interrupted) } else { Ok(missing) }
    }

    fn environment(&self) -> serde_json::Value {
        serde_json::json!(Environment::read(self.files))
    }

    fn prepare(&mut self, plan: &Plan, pending: &[u32], say: &mut dyn FnMut(&str)) {
        let (systems, connections) = super::pending_work(plan, pending);
        self.prepare_systems(&systems, connections, say);
    }

    fn bring(&mut self, script: Arc<Script>) {
        self.script = Some(script);
    }

    fn look(
        &mut self,
        scenario: &Scenario,
        ask: &Ask,
        timing: Timing,
        speed: Speed,
    ) -> Result<Option<Look>, TrialError> {
        self.look_at(scenario, ask, timing, speed).map(Some)
    }

    fn execute(&mut self, trial: &Trial) -> Result<Outcome, Interrupted> {
        trace::say(|| begins(trial));
        let end = self.with_places(&[trial], place::measure).map(|mut measured| measured.pop());
        trace::say(|| ended(&end));
        self.outcome(end)
    }

    fn execute_together(&mut self, trials: &[&Trial]) -> Result<(Vec<Outcome>, Option<Duet>), Interrupted> {
        trials.iter().for_each(|trial| trace::say(|| begins(trial)));
        let refusal = match self.with_places(trials, place::measure) {
            Ok(measured) => {
                let open = trials.iter().any(|trial| trial.scenario.work().is_open_loop());
                let refusal = match &measured[..] {
                    [one, other] => Refusal::of(one, other, open),
                    _ => None,
                };
                match refusal {
                    None => {
                        let outcomes = measured.into_iter().map(|m| Outcome::Measured(Box::new(m)));
                        return Ok((outcomes.collect(), Some(Duet::Held)));
                    }
                    Some(refusal) => refusal,
                }
            }
            Err(TrialError::Failed(_)) if !self.cancelled() => Refusal::Failed,
            Err(_) => return Err(Interrupted),
        };
        trace::say(|| format!("--- no duet, so once more one after the other: {refusal:?}"));
        let outcomes = trials.iter().map(|trial| self.execute(trial)).collect::<Result<_, _>>()?;
        Ok((outcomes, Some(Duet::Refused(refusal))))
    }
}

impl Bench {
    fn outcome(&self, end: Result<Option<Measurement>, TrialError>) -> Result<Outcome, Interrupted> {
        match end {
            // A complete measurement is kept, even if the user interrupted after it.
            Ok(Some(measurement)) => Ok(Outcome::Measured(Box::new(measurement))),
            Err(TrialError::Failed(failure)) if !self.cancelled() => Ok(Outcome::Failed(failure)),
            Ok(None) | Err(_) => Err(Interrupted),
        }
    }
}

/// The first line of a trial's trace.
fn begins(trial: &Trial) -> String {
    let Trial { index, round, scenario, .. } = trial;
    let point = scenario.point.iter().map(|(knob, value)| format!(" {knob}={value}"));
    format!(
        "--- trial {index}, round {round}: {} {}{}",
        scenario.experiment,
        scenario.system,
        point.collect::<String>()
    )
}

/// The last one.
fn ended(end: &Result<Option<Measurement>, TrialError>) -> String {
    match end {
        Ok(Some(measured)) => {
            format!("--- measured {} successes in {:.3} s", measured.successes, measured.elapsed_s)
        }
        Ok(None) => "--- measured nothing".to_owned(),
        Err(TrialError::Failed(failure)) => format!("--- failed at `{}`: {}", failure.stage, failure.reason),
        Err(TrialError::Interrupted) => "--- interrupted".to_owned(),
    }
}

/// The folder for sockets and certificates, which is made when it is first needed.
fn scratch(known: &mut Option<Scratch>) -> io::Result<&Path> {
    let scratch = match known {
        Some(scratch) => scratch,
        none => none.insert(Scratch::new()?),
    };
    Ok(scratch.path())
}
