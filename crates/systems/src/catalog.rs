//! All systems of a home folder: the valid manifests, and the errors of the others.
//!
//! Knows folders and manifests. Starts nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

use crate::input::{InputError, nearest};
use crate::manifest::Manifest;
use crate::reference;
use crate::workload::Workload;

/// The known systems: Narrows' own endpoints, every folder under `home/systems` with a `system.toml`, and its variants.
#[derive(Debug, Clone)]
pub struct Catalog {
    home: PathBuf,
    entries: BTreeMap<String, Result<Manifest, InputError>>,
}

/// Why a system or the home folder is not available.
#[derive(Debug, Clone, thiserror::Error, Diagnostic)]
pub enum CatalogError {
    /// No system has this name.
    #[error("no system is called `{name}`")]
    Unknown {
        /// The requested name.
        name: String,
        /// The nearest name, and all known names.
        #[help]
        help: String,
    },
    /// The system's manifest is broken.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Broken(InputError),
    /// No folder has both systems/ and experiments/.
    #[error("{message}")]
    NoHome {
        /// Where the search looked.
        message: String,
        /// What to do.
        #[help]
        help: String,
    },
}

impl Catalog {
    /// A catalog of the systems that need no file, which are Narrows' own endpoints. Systems are built under `home`.
    pub fn new(home: &Path) -> Self {
        // Manifests need absolute paths, because programs are started in other folders.
        let home = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
        let references = reference::drafts(&home).map(|draft| (draft.name.clone(), Manifest::new(draft)));
        Self { entries: references.into(), home }
    }

    /// Loads all manifests of a home, in addition to Narrows' own endpoints. A manifest replaces a known system of the
    /// same name. A broken manifest does not affect the others.
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

    /// Adds a system. Replaces one of the same name.
    pub fn insert(&mut self, manifest: Manifest) {
        self.entries.insert(manifest.name.clone(), Ok(manifest));
    }

    /// The folder that holds systems/ and experiments/.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Finds a system by name. The error names the nearest system, or says what is wrong with the manifest.
    pub fn get(&self, name: &str) -> Result<&Manifest, CatalogError> {
        // The variants of a broken manifest are unknown, but its error is known.
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

    /// The systems with valid manifests, sorted by name.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.entries.values().filter_map(|entry| entry.as_ref().ok())
    }

    /// The errors of broken manifests, by folder.
    pub fn broken(&self) -> impl Iterator<Item = (&str, &InputError)> {
        self.entries.iter().filter_map(|(name, entry)| entry.as_ref().err().map(|e| (name.as_str(), e)))
    }

    /// Narrows' own endpoint for a workload. It is the ceiling that every figure is compared with.
    pub fn reference_for(&self, workload: Workload) -> Option<&Manifest> {
        self.get(workload.reference()).ok().filter(|manifest| manifest.does(workload))
    }
}

/// Finds the folder that holds systems/ and experiments/. This is `explicit` or else `NARROWS_HOME`, if given;
/// otherwise the first ancestor of the current folder, or else of the executable, that has both.
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
mod tests;
