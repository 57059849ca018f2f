//! All systems of a home folder: the good manifests, and what is wrong with the others.
//!
//! Knows folders and manifests; starts nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

use crate::input::{InputError, nearest};
use crate::manifest::Manifest;
use crate::reference;
use crate::workload::Workload;

/// Narrows' own endpoints, every folder under `home/systems` that has a `system.toml`, and each variant in it.
#[derive(Debug, Clone)]
pub struct Catalog {
    home: PathBuf,
    entries: BTreeMap<String, Result<Manifest, InputError>>,
}

/// Why a system or the home folder cannot be had.
#[derive(Debug, Clone, thiserror::Error, Diagnostic)]
pub enum CatalogError {
    /// No system has this name.
    #[error("no system is called `{name}`")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name and all known ones.
        #[help]
        help: String,
    },
    /// The system's manifest is broken.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Broken(InputError),
    /// There is no folder with systems/ and experiments/.
    #[error("{message}")]
    NoHome {
        /// Where it was looked for.
        message: String,
        /// What to do.
        #[help]
        help: String,
    },
}

impl Catalog {
    /// What the program knows without a file: Narrows' own endpoints. Systems are built under `home`.
    pub fn new(home: &Path) -> Self {
        // Manifests hold absolute paths: programs are started in other folders.
        let home = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
        let references = reference::drafts(&home).map(|draft| (draft.name.clone(), Manifest::new(draft)));
        Self { entries: references.into(), home }
    }

    /// The same with all manifests of the home; one that has the name of a system that is known stands in its place. One that is
    /// broken does not stop the others.
    pub fn load(home: &Path) -> Self {
        let mut catalog = Self::new(home);
        let folders = std::fs::read_dir(catalog.home.join("systems")).into_iter().flatten().flatten();
        let folders = folders.map(|entry| entry.path()).filter(|path| path.join("system.toml").exists());
        let name = |dir: &Path| dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for dir in folders {
            match Manifest::load(&dir) {
                Ok(all) => {
                    all.into_iter().for_each(|manifest| catalog.insert(manifest));
                }
                Err(error) => {
                    catalog.entries.insert(name(&dir), Err(error));
                }
            }
        }
        catalog
    }

    /// Adds a system, in place of one that has its name.
    pub fn insert(&mut self, manifest: Manifest) {
        self.entries.insert(manifest.name.clone(), Ok(manifest));
    }

    /// The folder that holds systems/ and experiments/.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// A system by name. The error names the nearest, or shows what is wrong in its manifest.
    pub fn get(&self, name: &str) -> Result<&Manifest, CatalogError> {
        // The variants of a broken manifest are not known; what is wrong with it is.
        let folder = || name.split_once('@').and_then(|(folder, _)| self.entries.get(folder));
        let entry = self.entries.get(name).or_else(|| folder().filter(|entry| entry.is_err()));
        match entry {
            Some(Ok(manifest)) => Ok(manifest),
            Some(Err(error)) => Err(CatalogError::Broken(error.clone())),
            None => {
                let names = || self.entries.keys().map(String::as_str);
                let near = nearest(name, names()).map(|near| format!("did you mean `{near}`? "));
                let known = names().collect::<Vec<_>>().join(", ");
                let help = format!("{}known: {known}", near.unwrap_or_default());
                Err(CatalogError::Unknown { name: name.to_owned(), help })
            }
        }
    }

    /// The systems whose manifests are good, by name.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.entries.values().filter_map(|entry| entry.as_ref().ok())
    }

    /// What is wrong with the others, by folder.
    pub fn broken(&self) -> impl Iterator<Item = (&str, &InputError)> {
        self.entries.iter().filter_map(|(name, entry)| entry.as_ref().err().map(|e| (name.as_str(), e)))
    }

    /// Narrows' own endpoint for a workload: the ceiling that every figure is compared with.
    pub fn reference_for(&self, workload: Workload) -> Option<&Manifest> {
        self.get(workload.reference()).ok().filter(|manifest| manifest.does(workload))
    }
}

/// The folder that holds systems/ and experiments/: `explicit`, else `NARROWS_HOME`, else the first ancestor of the
/// current folder, then of the executable, that has both.
pub fn find_home(explicit: Option<&Path>) -> Result<PathBuf, CatalogError> {
    let named = match explicit {
        Some(path) => Some((path.to_owned(), "the folder given as home")),
        None => {
            std::env::var_os("NARROWS_HOME").filter(|v| !v.is_empty()).map(|v| (v.into(), "NARROWS_HOME"))
        }
    };
    if let Some((path, origin)) = named {
        return match path.canonicalize() {
            Ok(home) if is_home(&home) => Ok(home),
            _ => Err(CatalogError::NoHome {
                message: format!("{origin}, {}, does not hold systems/ and experiments/", path.display()),
                help: "name the folder that does: a checkout of Narrows".to_owned(),
            }),
        };
    }
    let starts = [std::env::current_dir(), std::env::current_exe()];
    let starts = starts.into_iter().flatten().filter_map(|path| path.canonicalize().ok()).collect::<Vec<_>>();
    let found = starts.iter().flat_map(|path| path.ancestors()).find(|folder| is_home(folder));
    found.map(Path::to_owned).ok_or_else(|| CatalogError::NoHome {
        message: "no folder with systems/ and experiments/ above the current one or above the program"
            .to_owned(),
        help: "run narrows inside its checkout, or set NARROWS_HOME to it".to_owned(),
    })
}

fn is_home(folder: &Path) -> bool {
    folder.join("systems").is_dir() && folder.join("experiments").is_dir()
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
