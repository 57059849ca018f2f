//! A system's manifest, `systems/NAME/system.toml`: what it is, what it needs, how it is built, started and stopped.
//!
//! Reads one file and checks everything that can be known without running anything.

mod read;
mod read_knobs;
mod variant;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::input::{InputError, Source};
use crate::knob::{Knob, Point, Value};
use crate::template;
use crate::workload::{Role, Workload};

pub use read::Draft;
pub use variant::Variant;

/// A manifest that was checked: every field holds what docs/contracts.md allows.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The folder's name; of a variant `SYSTEM@VARIANT`.
    pub name: String,
    /// Which side of the wire it is on.
    pub role: Role,
    /// What it can do; never empty.
    pub workloads: Vec<Workload>,
    /// The language its program is written in.
    pub language: String,
    /// What it is, in one line.
    pub about: String,
    /// All must be met for it to run here.
    pub needs: Vec<Need>,
    /// How it is built; `None` when there is nothing to build.
    pub build: Option<Build>,
    /// How it comes to run.
    pub program: Program,
    /// What it answers to `GET /`, where that is not what docs/contracts.md asks.
    pub answer: Option<Answer>,
    /// How a server shows that it is ready; not used for clients.
    pub ready: Ready,
    /// The patience between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Its own knobs, by name.
    pub knobs: BTreeMap<String, Knob>,
    /// How a value is set in the system's own configuration, by knob, its own or a workload's; see [`applied`].
    pub apply: BTreeMap<String, String>,
    /// The absolute path of its folder, in which its commands run.
    pub dir: PathBuf,
    /// The absolute path of the folder that holds systems/ and experiments/; builds lie in its target/.
    pub home: PathBuf,
    /// Which variant of the system this is; `None` for the plain one.
    pub variant: Option<Variant>,
}

/// Something that must be on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What people call it.
    pub name: String,
    /// The command that shows it is there, by exiting with 0, and its version.
    pub probe: Vec<String>,
    /// A regular expression over the probe's output; group 1 is the version. Without one: the first line.
    pub version: Option<String>,
    /// How a person gets it.
    pub get: String,
    /// The Debian packages that bring it; `narrows systems --install` installs them.
    pub packages: Vec<String>,
}

/// How a system is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// Run in the system's folder; may hold placeholders.
    pub command: Vec<String>,
    /// It is killed after this.
    pub timeout: Duration,
    /// Prints the version of the library under test; may hold placeholders.
    pub version: Option<Vec<String>>,
    /// What it reads besides its own folder, `systems/shared` and libraries where rebar3 and mix have them.
    pub inputs: Vec<Input>,
    /// How a person gets what it fetches, where it cannot.
    pub get: Option<String>,
}

/// Something that a build reads: when it changes, the system is built again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The value of this environment variable.
    Variable(String),
    /// The file or folder of this path, relative to the system's folder; may hold placeholders, `{$NAME}` among them.
    Path(String),
}

/// How a system comes to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Narrows starts it for each trial, and stops it.
    Started(Start),
    /// Its user has started it; Narrows finds it, and leaves it running.
    Attached(Attached),
}

/// A server that its user starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// Where it is, as the manifest says.
    pub url: String,
    /// The port of 127.0.0.1 that it listens on.
    pub port: u16,
    /// How a person starts it.
    pub get: String,
}

/// An answer to `GET /` other than docs/contracts.md asks for: that of a published program, kept as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Every byte of it; its length is announced.
    pub body: String,
    /// It closes each connection after its answer, asked to or not.
    pub closes: bool,
    /// Why its answers are errors. Such a system is driven and shown, and fails the check of equal work for this.
    pub fault: Option<String>,
    /// What is different about its work, in a sentence.
    pub about: String,
}

impl Answer {
    /// The body that docs/contracts.md asks for.
    pub const OK: &str = "ok";
}

/// How a system is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// May hold placeholders.
    pub command: Vec<String>,
    /// Added to the environment; values may hold placeholders.
    pub env: BTreeMap<String, String>,
}

/// How a server shows that it is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// The path of a GET that answers 200; `None`: that it accepts a connection is enough.
    pub http: Option<String>,
    /// It has failed after this.
    pub timeout: Duration,
}

impl Manifest {
    /// Reads and checks `dir/system.toml`: the plain system, then its variants. `dir` should be absolute.
    pub fn load(dir: &Path) -> Result<Vec<Self>, InputError> {
        Self::parse(&Source::read(&dir.join("system.toml"))?, dir)
    }

    /// Checks a manifest's text as if it lay in `dir`.
    pub fn parse(source: &Source, dir: &Path) -> Result<Vec<Self>, InputError> {
        read::read(source, dir)
    }

    /// A system made of values, checked as a file's would be.
    ///
    /// # Errors
    /// The first value that docs/contracts.md does not allow: the reason, and what to do.
    pub fn new(draft: Draft) -> Result<Self, InputError> {
        read::drafted(draft)
    }

    /// Whether it is the system of this name, or a variant of it.
    pub fn answers_to(&self, name: &str) -> bool {
        let plain = self.name.split_once('@').map_or(self.name.as_str(), |(plain, _)| plain);
        name == self.name || name == plain
    }

    /// Where its own knobs stand when nobody sets them.
    pub fn defaults(&self) -> Point {
        self.knobs.iter().map(|(name, knob)| (name.clone(), knob.default.clone())).collect()
    }

    /// Whether it takes part in a workload.
    pub fn does(&self, workload: Workload) -> bool {
        self.workloads.contains(&workload)
    }

    /// The definition of a knob of this system or of the workload, if it means something in that workload.
    pub fn knob(&self, workload: Workload, name: &str) -> Option<&Knob> {
        let own = self.knobs.get(name).filter(|knob| knob.workloads.contains(&workload));
        own.or_else(|| workload.knob(name))
    }

    /// All knobs that mean something in a workload, the workload's first.
    pub fn knobs_in(&self, workload: Workload) -> impl Iterator<Item = (&str, &Knob)> {
        let own = self.knobs.iter().filter(move |(_, knob)| knob.workloads.contains(&workload));
        let workloads = workload.knobs().map(|(name, knob): (&str, &Knob)| (name, knob));
        workloads.chain(own.map(|(name, knob)| (name.as_str(), knob)))
    }

    /// The server to attach to, if it is one that its user starts.
    pub fn attached(&self) -> Option<&Attached> {
        match &self.program {
            Program::Attached(attached) => Some(attached),
            Program::Started(_) => None,
        }
    }

    /// The body of a right answer to `GET /`.
    pub fn answer_body(&self) -> &str {
        self.answer.as_ref().map_or(Answer::OK, |answer| answer.body.as_str())
    }

    /// What a placeholder stands for wherever it may stand.
    pub(crate) fn constant(&self, name: &str) -> Option<String> {
        let path = |path: &Path| Some(path.to_string_lossy().into_owned());
        match name {
            "dir" => path(&self.dir),
            "home" => path(self.home()),
            "variant" => Some(self.variant.as_ref().map(|variant| variant.name.clone()).unwrap_or_default()),
            _ => None,
        }
    }

    /// The folder that holds systems/ and experiments/.
    pub fn home(&self) -> &Path {
        &self.home
    }
}

/// An `apply` of a manifest with a value in place of `{value}`; sizes in bytes.
pub fn applied(apply: &str, value: &Value) -> String {
    let filled = template::expand(apply, |name| (name == VALUE).then(|| value.to_string()));
    filled.unwrap_or_else(|_| apply.to_owned()) // checked in manifests; a store may hold anything
}

/// What stands for the value in an `apply`.
pub(crate) const VALUE: &str = "value";

/// The names that stand for something other than a knob.
pub(crate) const PLACEHOLDERS: [&str; 7] = ["port", "narrows", "dir", "out", "home", "cores", "variant"];
/// Where placeholders may stand for the user's environment: `{$NAME}`.
pub(crate) const USERS: &str = "$NAME";

/// What placeholders stand for in one command. Knobs missing from `point` stand at their defaults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fill<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) narrows: &'a Path,
    pub(crate) out: &'a Path,
    pub(crate) cores: usize,
    /// Port and knobs have values only for `start`.
    pub(crate) start: Option<(Option<u16>, &'a Point)>,
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

    fn value(&self, name: &str) -> Option<String> {
        let path = |path: &Path| Some(path.to_string_lossy().into_owned());
        match name {
            "narrows" => path(self.narrows),
            "dir" | "home" | "variant" => self.manifest.constant(name),
            "out" => path(self.out),
            "cores" => Some(self.cores.to_string()),
            "port" => self.start?.0.map(|port| port.to_string()),
            knob => {
                let (_, point) = self.start?;
                let knob = self.manifest.knobs.get_key_value(knob)?;
                Some(point.get(knob.0).unwrap_or(&knob.1.default).to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests;
