//! All systems of the homes: the valid manifests, and the errors of the others.
//!
//! Knows folders and manifests. Starts nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use miette::Diagnostic;

use crate::homes::Home;
use crate::input::{InputError, nearest};
use crate::manifest::Manifest;
use crate::reference;
use crate::workload::Workload;

/// The known systems: Narrows' own endpoints, every folder in the `systems` of a home with a `system.toml`, and its variants.
#[derive(Debug, Clone)]
pub struct Catalog {
    homes: Vec<Home>,
    entries: BTreeMap<String, Result<Manifest, InputError>>,
    /// See [`Catalog::insert_there`].
    there: BTreeSet<String>,
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
    /// A folder with systems and experiments is missing.
    #[error("{message}")]
    NoHome {
        /// Which one.
        message: String,
        /// What to do.
        #[help]
        help: String,
    },
}

impl Catalog {
    /// A catalog of the systems that need no file, which are Narrows' own endpoints. They run in `home`, and are built there.
    pub fn new(home: &Path) -> Self {
        Self::of(vec![Home::named(home)])
    }

    /// A catalog of these systems, such as those that another machine has sent, in addition to Narrows' own endpoints. A system
    /// replaces one of the same name.
    pub fn of_systems(home: &Path, systems: impl IntoIterator<Item = Manifest>) -> Self {
        let mut catalog = Self::new(home);
        systems.into_iter().for_each(|system| catalog.insert(system));
        catalog
    }

    /// Loads all manifests of a home, in addition to Narrows' own endpoints.
    pub fn load(home: &Path) -> Self {
        Self::load_all(&[Home::named(home)])
    }

    /// Loads all manifests of these homes, the strongest first, in addition to Narrows' own endpoints. A system replaces those of
    /// the same name in weaker homes. A broken manifest does not affect other systems.
    pub fn load_all(homes: &[Home]) -> Self {
        let mut catalog = Self::of(homes.to_vec());
        for home in homes.iter().rev() {
            let folders = std::fs::read_dir(home.path.join("systems")).into_iter().flatten().flatten();
            let folders = folders.map(|entry| entry.path()).filter(|path| path.join("system.toml").exists());
            folders.for_each(|folder| catalog.add(&folder));
        }
        catalog
    }

    fn of(homes: Vec<Home>) -> Self {
        let first = homes.first().map(|home| home.path.clone()).unwrap_or_default();
        let references = reference::drafts(&first).map(|draft| (draft.name.clone(), Manifest::new(draft)));
        Self { entries: references.into(), homes, there: BTreeSet::new() }
    }

    /// Adds the system of a folder and its variants.
    fn add(&mut self, folder: &Path) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The variants of a system that is replaced go with it.
        let first = format!("{name}@");
        let variants = self.entries.range(first.clone()..).map(|(known, _)| known.clone());
        let variants: Vec<String> = variants.take_while(|known| known.starts_with(&first)).collect();
        variants.iter().chain([&name]).for_each(|known| _ = self.entries.remove(known));
        match Manifest::load(folder) {
            Ok(all) => all.into_iter().for_each(|manifest| self.insert(manifest)),
            Err(error) => _ = self.entries.insert(name, Err(error)),
        }
    }

    /// Adds a system. Replaces one of the same name.
    pub fn insert(&mut self, manifest: Manifest) {
        self.entries.insert(manifest.name.clone(), Ok(manifest));
    }

    /// Adds a system whose folder is on the machine where it will run, which need not be this one.
    pub fn insert_there(&mut self, manifest: Manifest) {
        self.there.insert(manifest.name.clone());
        self.insert(manifest);
    }

    /// Whether a system's folder is on the machine where it will run.
    pub fn is_there(&self, name: &str) -> bool {
        self.there.contains(name)
    }

    /// The homes that it was made of, the strongest first.
    pub fn homes(&self) -> &[Home] {
        &self.homes
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

#[cfg(test)]
mod tests;
