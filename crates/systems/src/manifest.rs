//! A system's manifest, `systems/NAME/system.toml`: what it is, what it needs, how it is built, started and stopped.
//!
//! Reads one file and checks everything that can be checked without running a program.

mod read;
mod read_knobs;
mod remedies;
mod sent;
mod variant;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::allotment;
use crate::debian::Debian;
use crate::input::{InputError, Source};
use crate::knob::{Knob, Point, Value};
use crate::listening::Listening;
use crate::machine::file_limit;
use crate::template;
use crate::work::{http, tls};
use crate::workload::{Role, Workload};

pub use read::Draft;
pub use remedies::Remedies;
pub use variant::Variant;

/// A checked manifest. Every field is as docs/contracts.md allows, also of one that was deserialised: what could not have been read
/// from a file is refused. One whose clients have a key of their own cannot be serialised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Manifest {
    /// The folder's name. For a variant, `SYSTEM@VARIANT`.
    pub name: String,
    /// Which side of the wire it is on.
    pub role: Role,
    /// The workloads that it can do. Never empty.
    pub workloads: Vec<Workload>,
    /// The language that its program is written in.
    pub language: String,
    /// A description in one line.
    pub about: String,
    /// What it needs to run. All needs must be met.
    pub needs: Vec<Need>,
    /// How it is built. `None` if there is nothing to build.
    pub build: Option<Build>,
    /// How it is run.
    pub program: Program,
    /// Whether it speaks HTTP/2 as well: without asking first, or as h2 in TLS.
    pub http2: bool,
    /// How its clients speak TLS, if the manifest says it. The run gives a server that it starts its certificate.
    pub tls: Option<::tls::Dialing>,
    /// Its answer to `GET /`, if this differs from docs/contracts.md.
    pub answer: Option<OwnAnswer>,
    /// How a server shows that it is ready. Unused for clients.
    pub ready: Ready,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Its own knobs, by name.
    pub knobs: BTreeMap<String, Knob>,
    /// How a value is set in the system's own configuration, by knob of the system or a workload. See [`applied`].
    pub apply: BTreeMap<String, String>,
    /// The absolute path of its folder. Its commands run there.
    pub dir: PathBuf,
    /// The absolute path of the folder that holds systems/ and experiments/. Builds go to its target/.
    pub home: PathBuf,
    /// Which variant of the system this is. `None` for the plain system.
    pub variant: Option<Variant>,
    /// Its version, if whoever made it from values knows it. A build reports another one.
    pub version: Option<String>,
    /// What can be done about a start that fails.
    #[serde(default)]
    pub remedies: Remedies,
}

/// Something that must be installed on the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// Its usual name.
    pub name: String,
    /// A command that exits with 0 if it is installed, and prints its version. Empty if `debian` is enough.
    pub probe: Vec<String>,
    /// A regular expression for the probe's output, whose group 1 is the version. Without one, the version is the first
    /// line.
    pub version: Option<String>,
    /// How a person gets it.
    pub get: String,
    /// The Debian packages that provide it. `narrows systems --install` installs them.
    pub packages: Vec<String>,
    /// The packages of a release of Debian that provide it. `narrows systems --install` fetches them into the cache.
    #[serde(default)]
    pub debian: Option<Debian>,
}

/// How a system is built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The command, which runs in the system's folder. May contain placeholders.
    pub command: Vec<String>,
    /// The command is killed after this time.
    pub timeout: Duration,
    /// A command that prints the version of the library under test. May contain placeholders.
    pub version: Option<Vec<String>>,
    /// What the build reads in addition to the system's folder, `systems/shared`, and the libraries of rebar3 and mix.
    pub inputs: Vec<BuildInput>,
    /// How a person gets what the build fetches, if it cannot.
    pub get: Option<String>,
}

/// Something that a build reads. When it changes, the system is built again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BuildInput {
    /// The value of an environment variable.
    Variable(String),
    /// A file or folder. The path is relative to the system's folder and may contain placeholders, including `{$NAME}`.
    Path(String),
}

/// How a system is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// Narrows starts it for each trial and stops it.
    Started(Start),
    /// Its user has started it. Narrows finds it and leaves it running.
    Attached(Attached),
}

impl Program {
    /// Whether a server is told the path of a Unix socket on which to listen.
    pub fn listens_on_socket(&self) -> bool {
        self.uses("socket")
    }

    /// Whether the start command, its environment or a hook contains the placeholder.
    pub(crate) fn uses(&self, placeholder: &str) -> bool {
        matches!(self, Self::Started(start) if start.uses(placeholder))
    }

    /// Its start command with its environment, or the URL that it is attached to. One line, with placeholders.
    pub fn command_line(&self) -> String {
        match self {
            Self::Attached(attached) => attached.url.clone(),
            Self::Started(start) => {
                let env = start.env.iter().map(|(name, value)| format!("{name}={value}"));
                env.chain(start.command.iter().cloned()).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// A server that its user starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// Its URL, as in the manifest.
    pub url: String,
    /// Where it listens.
    pub listening: Listening,
    /// What its clients call it, if that is not where it listens: the authority of its URL.
    #[serde(default)]
    pub host: Option<String>,
    /// How a person starts it.
    pub get: String,
}

/// An answer to `GET /` that differs from docs/contracts.md, because a published program gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnAnswer {
    /// All bytes of the body. The answer announces their number.
    pub body: String,
    /// Whether the server closes each connection after its answer even if not asked to.
    pub closes: bool,
    /// Why its answers are errors. Such a system fails the check of equal work, but it is driven and shown anyway.
    pub fault: Option<String>,
    /// How its work differs, in a sentence.
    pub about: String,
}

impl OwnAnswer {
    /// The body that docs/contracts.md asks for.
    pub const OK: &str = "ok";
}

/// How a system is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The command. May contain placeholders.
    pub command: Vec<String>,
    /// Variables to add to the environment. Values may contain placeholders.
    pub env: BTreeMap<String, String>,
    /// Variables to add in trials that are profiled, so that a runtime names the functions that it makes: in their windows, too, because
    /// the program is started once.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profile_env: BTreeMap<String, String>,
    /// Whether a server chooses its port itself. Narrows then finds the socket on which its processes listen.
    pub finds_port: bool,
    /// The absolute path of the folder in which it runs. The system's folder, unless the manifest names another.
    pub dir: PathBuf,
    /// Commands around the trials. They may contain the placeholders of `command`.
    pub hooks: Hooks,
}

/// Commands that run around the trials of a system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooks {
    /// Runs once for each point, before its first trial.
    pub setup: Option<Vec<String>>,
    /// Runs before each trial.
    pub prepare: Option<Vec<String>>,
    /// Runs after each trial, when the system has stopped.
    pub conclude: Option<Vec<String>>,
}

impl Hooks {
    /// The commands with their names.
    pub fn all(&self) -> [(&'static str, Option<&Vec<String>>); 3] {
        [
            ("setup", self.setup.as_ref()),
            ("prepare", self.prepare.as_ref()),
            ("conclude", self.conclude.as_ref()),
        ]
    }
}

/// How a server shows that it is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The path of a GET that must answer 200. If `None`, it is enough that the server accepts a connection.
    pub http: Option<String>,
    /// The start has failed after this time.
    pub timeout: Duration,
    /// Whether a program that is busy gets more time, because it may be compiled first. This is so unless a time was given.
    pub more_if_busy: bool,
    /// Whether the socket may belong to a process outside the group, such as a container's. That process is measured.
    pub outside: bool,
}

impl Manifest {
    /// Reads and checks `dir/system.toml`. Returns the plain system, then its variants. `dir` should be absolute.
    pub fn load(dir: &Path) -> Result<Vec<Self>, InputError> {
        Self::parse(&Source::read(&dir.join("system.toml"))?, dir)
    }

    /// Checks the text of a manifest as if it were in `dir`.
    pub fn parse(source: &Source, dir: &Path) -> Result<Vec<Self>, InputError> {
        read::read(source, dir)
    }

    /// Makes a manifest from values, and checks it as if it came from a file.
    ///
    /// # Errors
    /// The first value that docs/contracts.md does not allow, with the reason and what to do.
    pub fn new(draft: Draft) -> Result<Self, InputError> {
        read::drafted(draft)
    }

    /// Whether this is the system `name` or a variant of it.
    pub fn answers_to(&self, name: &str) -> bool {
        let plain = self.name.split_once('@').map_or(self.name.as_str(), |(plain, _)| plain);
        name == self.name || name == plain
    }

    /// Whether it can be spoken to in TLS, or, if not `secured`, in plain text.
    pub fn speaks(&self, secured: bool) -> bool {
        match (&self.program, secured) {
            (Program::Attached(attached), _) => attached.url.starts_with("https://") == secured,
            (program, true) => program.uses("cert"),
            (program, false) => !program.uses("cert") || program.uses(tls::KNOB),
        }
    }

    /// Why it cannot listen at this address of the machine, and what to do; `None` if it can. Clients do not listen, and a Unix
    /// socket has no address.
    pub fn why_unreachable_at(&self, address: IpAddr) -> Option<String> {
        match &self.program {
            _ if self.role == Role::Client || address == Listening::USUAL => None,
            Program::Attached(attached) => {
                Some(format!("its user started it at {}, and Narrows cannot move it", attached.url))
            }
            program if program.uses(ADDRESS) || program.listens_on_socket() => None,
            Program::Started(_) => {
                Some(format!("it listens at {} only: {}", Listening::USUAL, self.remedies.address))
            }
        }
    }

    /// The defaults of its own knobs.
    pub fn defaults(&self) -> Point {
        self.knobs.iter().map(|(name, knob)| (name.clone(), knob.default.clone())).collect()
    }

    /// The values of its own knobs at which it works as systems do that have no such knobs.
    pub fn alike(&self) -> Point {
        self.knobs.iter().filter_map(|(name, knob)| Some((name.clone(), knob.alike.clone()?))).collect()
    }

    /// Whether it can do a workload.
    pub fn does(&self, workload: Workload) -> bool {
        self.workloads.contains(&workload)
    }

    /// The definition of a knob of this system, of the workload, or of all systems, if it applies to that workload.
    pub fn knob(&self, workload: Workload, name: &str) -> Option<&Knob> {
        let of_system = self.knobs.get(name).filter(|knob| knob.workloads.contains(&workload));
        of_system
            .or_else(|| workload.knob(name))
            .or_else(|| self.attached().is_none().then(|| allotment::knob(name))?)
    }

    /// All knobs that apply to a workload, the workload's own first.
    pub fn knobs_in(&self, workload: Workload) -> impl Iterator<Item = (&str, &Knob)> {
        let of_system = self.knobs.iter().filter(move |(_, knob)| knob.workloads.contains(&workload));
        let of_workload = workload.knobs().map(|(name, knob): (&str, &Knob)| (name, knob));
        of_workload.chain(of_system.map(|(name, knob)| (name.as_str(), knob)))
    }

    /// The server to attach to, if its user starts it.
    pub fn attached(&self) -> Option<&Attached> {
        match &self.program {
            Program::Attached(attached) => Some(attached),
            Program::Started(_) => None,
        }
    }

    /// The body of a right answer to `GET /`.
    pub fn answer_body(&self) -> &str {
        self.answer.as_ref().map_or(OwnAnswer::OK, |answer| answer.body.as_str())
    }

    /// The value of a placeholder that means the same in all commands.
    pub(crate) fn constant(&self, name: &str) -> Option<String> {
        let path = |path: &Path| Some(path.to_string_lossy().into_owned());
        match name {
            "dir" => path(&self.dir),
            "home" => path(self.home()),
            "variant" => Some(self.variant.as_ref().map(|variant| variant.name.clone()).unwrap_or_default()),
            name => path(&self.debian(debian_name(name)?)?.folder()?),
        }
    }

    /// The packages of a release of Debian that it needs, by the name of their folder.
    fn debian(&self, name: Option<&str>) -> Option<&Debian> {
        let mut all = self.needs.iter().filter_map(|need| need.debian.as_ref());
        all.find(|debian| debian.name.as_deref() == name)
    }

    /// The folder that holds systems/ and experiments/.
    pub fn home(&self) -> &Path {
        &self.home
    }
}

/// Fills a value into an `apply` of a manifest, in place of `{value}`. Sizes are in bytes.
pub fn applied(apply: &str, value: &Value) -> String {
    let filled = template::expand(apply, |name| match (name, value) {
        (ON_OFF, Value::Boolean(on)) => Some(if *on { "on" } else { "off" }.to_owned()),
        (VALUE | ON_OFF, value) => Some(value.to_string()),
        _ => None,
    });
    filled.unwrap_or_else(|_| apply.to_owned()) // Manifests are checked, but a store may contain anything.
}

/// The placeholder for the value in an `apply`.
pub(crate) const VALUE: &str = "value";
/// The placeholder for a boolean value as `on` or `off`.
pub(crate) const ON_OFF: &str = "on_off";

/// The placeholder for the address at which a server must listen.
pub const ADDRESS: &str = "address";

/// The placeholder for the folder with the packages of a release of Debian. One that has a name is `debian.NAME`.
pub(crate) const DEBIAN: &str = "debian";

/// The name of the folder that a placeholder means. None if it means no folder of packages.
fn debian_name(placeholder: &str) -> Option<Option<&str>> {
    let rest = placeholder.strip_prefix(DEBIAN)?;
    if rest.is_empty() { Some(None) } else { rest.strip_prefix('.').map(Some) }
}

/// The placeholders that are not knobs of the manifest.
pub(crate) const PLACEHOLDERS: [&str; 16] = [
    ADDRESS,
    "port",
    "socket",
    "cert",
    "key",
    "tls",
    http::KNOB,
    allotment::MEMORY,
    allotment::FILES,
    "narrows",
    "dir",
    "out",
    "home",
    allotment::CORES,
    "variant",
    DEBIAN,
];
/// Marks that `{$NAME}`, a variable of the user's environment, is allowed as a placeholder.
pub(crate) const USERS: &str = "$NAME";

/// The values of placeholders in one command. Knobs that the point does not set have their defaults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fill<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) narrows: &'a Path,
    pub(crate) out: &'a Path,
    pub(crate) cores: usize,
    /// What only the start command has.
    pub(crate) start: Option<OfStart<'a>>,
}

/// The values of placeholders that a start command has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfStart<'a> {
    /// The address at which servers listen.
    pub(crate) address: IpAddr,
    /// Where it listens.
    pub(crate) listening: Option<&'a Listening>,
    /// The path of its certificate. That of the key is beside it.
    pub(crate) certificate: Option<&'a Path>,
    /// The values of the knobs.
    pub(crate) point: &'a Point,
}

/// The path of the private key that belongs to a certificate.
pub fn key_of(certificate: &Path) -> PathBuf {
    let mut path = certificate.as_os_str().to_owned();
    path.push(".key");
    path.into()
}

impl Fill<'_> {
    /// The text with every placeholder replaced.
    pub(crate) fn text(&self, text: &str) -> Result<String, String> {
        template::expand(text, |name| self.value(name))
    }

    /// Each argument with every placeholder replaced.
    pub(crate) fn command(&self, command: &[String]) -> Result<Vec<String>, String> {
        command.iter().map(|argument| self.text(argument)).collect()
    }

    pub(crate) fn value(&self, name: &str) -> Option<String> {
        let path = |path: &Path| Some(path.to_string_lossy().into_owned());
        match name {
            "narrows" => path(self.narrows),
            "dir" | "home" | "variant" => self.manifest.constant(name),
            name if debian_name(name).is_some() => self.manifest.constant(name),
            "out" => path(self.out),
            allotment::CORES => Some(self.cores.to_string()),
            allotment::MEMORY => Some(allotment::memory(self.start?.point).unwrap_or(0).to_string()),
            allotment::FILES => {
                Some(allotment::files(self.start?.point).unwrap_or_else(file_limit).to_string())
            }
            ADDRESS => Some(self.start?.address.to_string()),
            "port" => self.start?.listening?.port().map(|port| port.to_string()),
            "socket" => path(self.start?.listening?.socket()?),
            "cert" => path(self.start?.certificate?),
            "key" => path(&key_of(self.start?.certificate?)),
            tls::KNOB => {
                let value = self.start?.point.get(tls::KNOB);
                Some(value.map_or_else(|| tls::OFF.to_owned(), Value::to_string))
            }
            http::KNOB => {
                let value = self.start?.point.get(http::KNOB);
                Some(value.map_or_else(|| http::HTTP1.to_owned(), Value::to_string))
            }
            knob => {
                let point = self.start?.point;
                let knob = self.manifest.knobs.get_key_value(knob)?;
                Some(point.get(knob.0).unwrap_or(&knob.1.default).to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests;
