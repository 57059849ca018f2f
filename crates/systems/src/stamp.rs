//! Decides what the inputs of a build are, and hashes them. docs/contracts.md, section Build, describes them in words.
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
pub(crate) use tree::is_leftover;
use tree::{Look, Without, text};

/// The hashes of a build's inputs, by name. Two builds with the same stamp have the same result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp(BTreeMap<String, Part>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    hash: u64,
    taken: Taken,
}

/// Which state of an input enters the stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// The state before the build. An edit during the build leads to another build in the next run.
    Before,
    /// The state before the build; if the input did not exist then, the state in which the build left it.
    Fetched,
    /// The state in which the build left it, because the build may write here.
    After,
}

/// The folder in the system's folder from which a build with rebar3 or mix uses libraries as they are.
const CHECKOUTS: &str = "_checkouts";
/// The folders in the system's folder to which rebar3 and mix fetch libraries.
const FETCHED: [&str; 2] = ["_build/default/lib", "_build/deps"];
/// The source folders of a library. A library without any of them is already compiled.
const SOURCES: [&str; 4] = ["src", "lib", "c_src", "apps"];
/// The folders of a library to which its build writes. The library's own files may be there as well.
const MADE: [&str; 2] = ["ebin", "priv"];
/// The file extensions of what compilers make of a library's sources; the files differ between runtimes.
const COMPILED: &[&str] = &["beam", "o", "so"];
/// The same, and the extension of the description that rebar3 and mix generate.
const GENERATED: &[&str] = &["app", "beam", "o", "so"];

impl Stamp {
    /// Hashes the current inputs of a build of the system. `versions` are those of its needs. The error says which
    /// bound an input exceeds.
    pub(crate) fn of(
        manifest: &Manifest,
        build: &Build,
        context: Context<'_>,
        versions: &str,
    ) -> Result<Self, String> {
        let mut dressed = Command::new("");
        let _ = manifest.set_environment(&mut dressed); // if this fails, the build reports it
        let mut taking = Taking { manifest, context, dressed, look: Look::new(), parts: BTreeMap::new() };
        taking.texts("command", build.command.iter().map(String::as_str));
        taking.texts("versions", [versions]);
        let environment = manifest.environment(|name| std::env::var_os(name)).unwrap_or_default();
        taking.texts("environment", environment.iter().flat_map(|(name, value)| [name.as_str(), value]));
        let without = Without { names: &[CHECKOUTS], extensions: &[] };
        taking.files("system", &manifest.dir, without, Taken::Before)?;
        taking.files("shared", &manifest.home().join("systems/shared"), Without::default(), Taken::Before)?;
        build.inputs.iter().try_for_each(|input| taking.input(input))?;
        taking.libraries()?;
        Ok(Self(taking.parts))
    }

    /// The stamp to keep for a build, from the stamp before it (`self`) and the one `after` it. What the build itself
    /// wrote does not count as a change. Any other change during the build leads to another build.
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

/// One line per part.
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
        texts.into_iter().for_each(|part| text(part.as_bytes(), &mut hasher));
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
                // Without a value there is no path; `variable` has recorded that.
                if variables.iter().all(|name| self.value(name).is_some_and(|value| !value.is_empty())) {
                    let path = self.path(written);
                    let ours = path.starts_with(self.manifest.dir.join("_build"))
                        || path.starts_with(self.manifest.home().join("target"));
                    let taken = if ours { Taken::After } else { Taken::Before };
                    self.files(&format!("input {written}"), &path, Without::default(), taken)?;
                }
            }
        }
        Ok(())
    }

    fn variable(&mut self, name: &str) {
        let part = format!("variable {name}");
        match self.value(name) {
            Some(value) => self.texts(&part, ["set", &value]),
            None => self.texts(&part, ["not set"]),
        }
    }

    /// A variable's value as the build sees it: the variant's, or else the one in the environment.
    fn value(&self, name: &str) -> Option<String> {
        let of_variant = self.dressed.get_envs().find(|(key, _)| *key == name).and_then(|(_, value)| value);
        let value = of_variant.map(OsStr::to_owned).or_else(|| std::env::var_os(name));
        value.map(|value| value.to_string_lossy().into_owned())
    }

    /// An input's path with its placeholders filled in.
    fn path(&self, written: &str) -> PathBuf {
        let filled = template::expand(written, |name| match name.strip_prefix('$') {
            Some(variable) => self.value(variable),
            None if name == "narrows" => Some(self.context.narrows.to_string_lossy().into_owned()),
            None => self.manifest.constant(name),
        });
        self.manifest.dir.join(filled.unwrap_or_default()) // was checked when the manifest was read
    }

    /// Adds the libraries in the folders from which builds with rebar3 and mix use them.
    fn libraries(&mut self) -> Result<(), String> {
        let dir = &self.manifest.dir;
        let mut places = vec![(CHECKOUTS.to_owned(), dir.join(CHECKOUTS), Taken::Before)];
        places.extend(FETCHED.map(|place| (place.to_owned(), dir.join(place), Taken::Fetched)));
        for (place, folder, taken) in places {
            let mut libraries: Vec<PathBuf> =
                std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
            libraries.sort_unstable();
            for library in libraries {
                let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if !name.starts_with('.') {
                    self.take_library(&format!("{place}/{name}"), &library, taken)?;
                }
            }
        }
        Ok(())
    }

    /// Adds one library: its sources as they were before the build, and the folders to which its build writes as they
    /// were after it. If it has sources, compiled files do not count at all, because two variants of a system may
    /// compile the same library in turn.
    fn take_library(&mut self, name: &str, library: &Path, taken: Taken) -> Result<(), String> {
        let sources = SOURCES.iter().any(|folder| library.join(folder).is_dir());
        let (compiled, generated) = if sources { (COMPILED, GENERATED) } else { (&[][..], &[][..]) };
        self.files(name, library, Without { names: &MADE, extensions: generated }, taken)?;
        for made in MADE {
            let folder = library.join(made);
            if folder.exists() {
                let without = Without { names: &[], extensions: compiled };
                self.files(&format!("{name}/{made}"), &folder, without, Taken::After)?;
            }
        }
        Ok(())
    }
}
