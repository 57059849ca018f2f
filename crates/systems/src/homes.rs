//! Finds the folders in which systems and experiments lie. Looks at folders and at the environment, and reads no files.
//!
//! A home has a folder `systems`, a folder `experiments`, or both. Where two homes have something of the same name, the stronger
//! one counts.

use std::env;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::catalog::CatalogError;

/// A folder with systems/ and experiments/.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// Its absolute path.
    pub path: PathBuf,
    /// Why it counts.
    pub origin: Origin,
}

/// Why a home counts. The strongest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// `NARROWS_HOME` names it.
    Named,
    /// It belongs to the project in which the user is: a folder `narrows`, or a checkout of Narrows.
    Project,
    /// It belongs to the user: `narrows` in the user's data folder.
    User,
    /// It came with the program.
    BuiltIn,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Named => "NARROWS_HOME",
            Self::Project => "the project",
            Self::User => "the user",
            Self::BuiltIn => "built in",
        })
    }
}

/// The name of a project's home and of the user's.
pub const FOLDER: &str = "narrows";

impl Home {
    /// A home that was named.
    pub fn named(path: &Path) -> Self {
        // Manifests need absolute paths, because programs are started in other folders.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { path, origin: Origin::Named }
    }
}

/// All homes, the strongest first. A program that lies in a checkout of Narrows uses the checkout; another one asks `unpacked` for
/// what came with it.
///
/// # Errors
/// `NARROWS_HOME` names no home, or `unpacked` fails.
pub fn find(unpacked: impl FnOnce() -> io::Result<PathBuf>) -> Result<Vec<Home>, CatalogError> {
    let here = |path: io::Result<PathBuf>| path.and_then(|path| path.canonicalize()).ok();
    let mut found = Vec::new();
    let mut add = |path: Option<PathBuf>, origin: Origin| {
        let path = path.filter(|path| found.iter().all(|home: &Home| home.path != *path));
        found.extend(path.map(|path| Home { path, origin }));
    };
    add(named()?, Origin::Named);
    add(here(env::current_dir()).and_then(|folder| project(&folder)), Origin::Project);
    add(users().filter(|path| is_home(path)), Origin::User);
    let checkout = here(env::current_exe()).and_then(|program| checkout(&program));
    let built_in = match checkout {
        Some(checkout) => checkout,
        None => unpacked().map_err(|e| CatalogError::NoHome {
            message: format!("cannot unpack the systems and experiments that came with narrows: {e}"),
            help: "set XDG_CACHE_HOME to a folder that can be written".to_owned(),
        })?,
    };
    add(Some(built_in), Origin::BuiltIn);
    Ok(found)
}

fn named() -> Result<Option<PathBuf>, CatalogError> {
    let Some(path) = env::var_os("NARROWS_HOME").filter(|value| !value.is_empty()).map(PathBuf::from) else {
        return Ok(None);
    };
    match path.canonicalize() {
        Ok(home) if is_home(&home) => Ok(Some(home)),
        _ => Err(CatalogError::NoHome {
            message: format!("NARROWS_HOME, {}, has neither systems/ nor experiments/", path.display()),
            help: "name a folder that does; `narrows init` makes one".to_owned(),
        }),
    }
}

/// The home of the project in which `folder` is.
fn project(folder: &Path) -> Option<PathBuf> {
    let at = |folder: &Path| {
        let own = folder.join(FOLDER);
        if is_home(&own) { Some(own) } else { Some(folder.to_owned()).filter(|folder| is_checkout(folder)) }
    };
    folder.ancestors().find_map(at)
}

fn checkout(program: &Path) -> Option<PathBuf> {
    program.ancestors().find(|folder| is_checkout(folder)).map(Path::to_owned)
}

/// The user's home, whether it exists or not (XDG Base Directory Specification).
fn users() -> Option<PathBuf> {
    Some(base("XDG_DATA_HOME", ".local/share")?.join(FOLDER))
}

/// The folder for what can be made again (XDG Base Directory Specification).
pub fn cache() -> Option<PathBuf> {
    Some(base("XDG_CACHE_HOME", ".cache")?.join(FOLDER))
}

/// The folder for what is kept between runs but belongs to no project (XDG Base Directory Specification).
pub fn state() -> Option<PathBuf> {
    Some(base("XDG_STATE_HOME", ".local/state")?.join(FOLDER))
}

/// The folder that a variable names, or else one in the user's own folder.
fn base(variable: &str, usual: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| Some(env::home_dir()?.join(usual)))
}

fn is_home(folder: &Path) -> bool {
    folder.join("systems").is_dir() || folder.join("experiments").is_dir()
}

/// Folders called `systems` are common, so a checkout has both.
fn is_checkout(folder: &Path) -> bool {
    folder.join("systems").is_dir() && folder.join("experiments").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projects_home_is_its_folder_narrows_or_a_checkout() {
        let root = tempfile::tempdir().expect("a folder");
        let make = |path: &str| {
            std::fs::create_dir_all(root.path().join(path)).expect("a folder");
            root.path().join(path)
        };
        let deep = make("project/src/deep");
        assert_eq!(project(&deep), None);
        make("project/systems");
        assert_eq!(project(&deep), None, "a folder systems alone is no checkout");
        make("project/experiments");
        assert_eq!(project(&deep), Some(root.path().join("project")));
        make("project/src/narrows/experiments");
        assert_eq!(project(&deep), Some(root.path().join("project/src/narrows")), "the nearest one counts");
    }
}
