//! What a build was made of. This is the one place that decides what that is; docs/contracts.md, section Build, says it in words.
//!
//! Reads manifests, files and the environment; writes nothing.

mod tree;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::manifest::{Build, BuildInput, Manifest};
use crate::probe::Context;
use crate::template;
use tree::{Look, Without, text};

/// Hashes of all that a build is made of, by what it is. Two builds with the same stamp are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp(BTreeMap<String, Part>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    hash: u64,
    taken: Taken,
}

/// When a part counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// As it was before the build: what is edited while the build runs is built by the next run.
    Before,
    /// The same; but what was not there before was put there by the build.
    Fetched,
    /// As the build left it, for the build may write here.
    After,
}

/// Sources that rebar3 takes as they are, in the system's folder.
const CHECKOUTS: &str = "_checkouts";
/// Where rebar3 and mix put the sources that they fetch, in the system's folder.
const FETCHED: [&str; 2] = ["_build/default/lib", "_build/deps"];
/// Names the folder that mix takes sources from, in place of the one that it fetches to.
const MIX_DEPS: &str = "MIX_DEPS_PATH";
/// What a library that is still to be compiled has; without any of them it is what is compiled already.
const SOURCES: [&str; 4] = ["src", "lib", "c_src", "apps"];
/// The folders of a library that its build writes to; what it brings along itself may lie there, too.
const MADE: [&str; 2] = ["ebin", "priv"];
/// What compilers make of a library's sources, each runtime another.
const COMPILED: &[&str] = &["beam", "o", "so"];
/// The same, and what rebar3 and mix make of a library's description.
const GENERATED: &[&str] = &["app", "beam", "o", "so"];

impl Stamp {
    /// What a build of the system would be made of now. `versions` are those of its needs. The error says what there is too
    /// much of.
    pub(crate) fn of(
        manifest: &Manifest,
        build: &Build,
        context: Context<'_>,
        versions: &str,
    ) -> Result<Self, String> {
        let mut dressed = Command::new("");
        let _ = manifest.set_environment(&mut dressed); // where it fails, the build says so
        let mut taking = Taking { manifest, context, dressed, look: Look::new(), parts: BTreeMap::new() };
        taking.texts("command", build.command.iter().map(String::as_str));
        taking.texts("versions", [versions]);
        let environment = manifest.environment(|name| std::env::var_os(name)).unwrap_or_default();
        taking.texts("environment", environment.iter().flat_map(|(name, value)| [name.as_str(), value]));
        let without = Without { names: &[CHECKOUTS], endings: &[] };
        taking.files("system", &manifest.dir, without, Taken::Before)?;
        taking.files("shared", &context.home.join("systems/shared"), Without::default(), Taken::Before)?;
        build.inputs.iter().try_for_each(|input| taking.input(input))?;
        taking.libraries()?;
        Ok(Self(taking.parts))
    }

    /// The stamp of a build that began at this one and ended at `after`. What the build wrote itself is no change; everything else that has
    /// changed meanwhile is, and leads to a new build.
    pub(crate) fn settled(mut self, after: Self) -> Self {
        self.0.retain(|name, part| part.taken != Taken::After || after.0.contains_key(name));
        for (name, part) in after.0 {
            match part.taken {
                Taken::Before => {}
                Taken::Fetched => drop(self.0.entry(name).or_insert(part)),
                Taken::After => drop(self.0.insert(name, part)),
            }
        }
        self
    }
}

/// A line for each part.
impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, part)| writeln!(f, "{:016x} {name}", part.hash))
    }
}

struct Taking<'a> {
    manifest: &'a Manifest,
    context: Context<'a>,
    /// Has the variant's environment.
    dressed: Command,
    look: Look,
    parts: BTreeMap<String, Part>,
}

impl Taking<'_> {
    fn texts<'t>(&mut self, name: &str, texts: impl IntoIterator<Item = &'t str>) {
        let mut hasher = DefaultHasher::new();
        texts.into_iter().for_each(|each| text(each.as_bytes(), &mut hasher));
        self.parts.insert(name.to_owned(), Part { hash: hasher.finish(), taken: Taken::Before });
    }

    fn files(&mut self, name: &str, path: &Path, without: Without<'_>, taken: Taken) -> Result<(), String> {
        let hash = self.look.digest(path, without)?;
        self.parts.insert(name.to_owned(), Part { hash, taken });
        Ok(())
    }

    fn input(&mut self, input: &BuildInput) -> Result<(), String> {
        match input {
            BuildInput::Variable(name) => self.variable(name),
            BuildInput::Path(written) => {
                let names = template::names(written).unwrap_or_default();
                let variables: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix('$')).collect();
                variables.iter().for_each(|name| self.variable(name));
                // Without a value there is no path; `variable` has said so.
                if variables.iter().all(|name| self.value(name).is_some_and(|value| !value.is_empty())) {
                    let path = self.path(written);
                    let ours = path.starts_with(self.manifest.dir.join("_build"))
                        || path.starts_with(self.context.home.join("target"));
                    let taken = if ours { Taken::After } else { Taken::Before };
                    self.files(&format!("input {written}"), &path, Without::default(), taken)?;
                }
            }
        }
        Ok(())
    }

    fn variable(&mut self, name: &str) {
        let value = self.value(name);
        let of = format!("variable {name}");
        match value {
            Some(value) => self.texts(&of, ["set", &value]),
            None => self.texts(&of, ["not set"]),
        }
    }

    /// A variable's value, as the build sees it.
    fn value(&self, name: &str) -> Option<String> {
        let own = self.dressed.get_envs().find(|(own, _)| *own == name).and_then(|(_, value)| value);
        let value = own.map(OsStr::to_owned).or_else(|| std::env::var_os(name));
        value.map(|value| value.to_string_lossy().into_owned())
    }

    /// An input's path with its placeholders filled in.
    fn path(&self, written: &str) -> PathBuf {
        let filled = template::expand(written, |name| match name.strip_prefix('$') {
            Some(variable) => self.value(variable),
            None if name == "narrows" => Some(self.context.narrows.to_string_lossy().into_owned()),
            None => self.manifest.constant(name),
        });
        self.manifest.dir.join(filled.unwrap_or_default()) // checked when the manifest was read
    }

    /// The sources of libraries, where rebar3 and mix take them from.
    fn libraries(&mut self) -> Result<(), String> {
        let dir = &self.manifest.dir;
        let mut places = vec![(CHECKOUTS.to_owned(), dir.join(CHECKOUTS), Taken::Before)];
        places.extend(FETCHED.map(|place| (place.to_owned(), dir.join(place), Taken::Fetched)));
        if dir.join("mix.exs").exists()
            && let Some(path) = self.value(MIX_DEPS).filter(|path| !path.is_empty())
        {
            places.push((MIX_DEPS.to_owned(), dir.join(path), Taken::Before));
        }
        for (place, folder, taken) in places {
            let mut libraries: Vec<PathBuf> =
                std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
            libraries.sort_unstable();
            for library in libraries {
                let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if !name.starts_with('.') {
                    self.library(&format!("{place}/{name}"), &library, taken)?;
                }
            }
        }
        Ok(())
    }

    /// A library's sources count as they were, what its build writes to as it was left. Where there are sources, what is compiled of
    /// them does not count at all: two variants of a system may compile the same library in turn.
    fn library(&mut self, name: &str, library: &Path, taken: Taken) -> Result<(), String> {
        let sources = SOURCES.iter().any(|folder| library.join(folder).is_dir());
        let (compiled, generated) = if sources { (COMPILED, GENERATED) } else { (&[][..], &[][..]) };
        self.files(name, library, Without { names: &MADE, endings: generated }, taken)?;
        for made in MADE {
            let folder = library.join(made);
            if folder.exists() {
                let without = Without { names: &[], endings: compiled };
                self.files(&format!("{name}/{made}"), &folder, without, Taken::After)?;
            }
        }
        Ok(())
    }
}
