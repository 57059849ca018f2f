//! Where runs are saved, and where saved runs are looked for. Looks at the environment, at folders, and at when runs began.
//!
//! An experiment belongs to the folder in which it is, and its runs are saved there. A command is tried anywhere, and a server under
//! test may show the folder in which it runs, so runs of `try` and `tune` are saved elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use lab::store::Store;
use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};
use systems::homes;

use crate::common;

/// The name of a store.
const STORE: &str = "narrows.db";

/// `--store`
#[derive(Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct StoreArg {
    /// The file in which runs are saved [default: narrows.db, for `run` in this folder, for `try` and `tune` in the user's state
    /// folder; saved runs are looked for in the one of the two with the newest run]
    #[arg(long = "store", value_name = "FILE")]
    #[serde(rename = "store")]
    path: Option<PathBuf>,
}

impl StoreArg {
    /// Where a run of experiments is saved.
    pub fn of_experiments(&self) -> PathBuf {
        self.path.clone().unwrap_or_else(|| STORE.into())
    }

    /// Where a run of commands is saved: in the user's state folder, or in this folder if nothing can be written there.
    pub fn of_commands(&self) -> PathBuf {
        if let Some(path) = &self.path {
            return path.clone();
        }
        let Some(path) = users() else { return STORE.into() };
        let folder = path.parent().unwrap_or(Path::new("."));
        let may_write = || Ok(access(folder, Access::WRITE_OK)?);
        match fs::create_dir_all(folder).and_then(|()| may_write()) {
            Ok(()) => path,
            Err(error) => {
                let folder = folder.display();
                common::say(format_args!(
                    "{folder} cannot be written ({error}), so the run is saved in this folder; --store FILE saves it elsewhere"
                ));
                STORE.into()
            }
        }
    }

    /// Where saved runs are looked for: in the store of this folder or in the user's, whichever has the newest run.
    ///
    /// # Errors
    /// Both exist, and one of them cannot be read.
    pub fn newest(&self) -> anyhow::Result<PathBuf> {
        let here = self.of_experiments();
        let users = users().filter(|users| self.path.is_none() && users.exists());
        Ok(match users {
            None => here,
            Some(users) if !here.exists() => users,
            Some(users) => {
                let newest = |path: &Path| Store::read(path)?.newest_unix_s();
                if newest(&users)? > newest(&here)? { users } else { here }
            }
        })
    }
}

/// The store in the user's state folder.
fn users() -> Option<PathBuf> {
    Some(homes::state()?.join(STORE))
}

/// The option that a further command needs to find a store; empty for one in which runs are looked for.
pub fn option(path: &Path) -> String {
    match path == Path::new(STORE) || users().is_some_and(|users| path == users) {
        true => String::new(),
        false => format!(" --store {}", path.display()),
    }
}

/// The name of a file beside a store, with its place if that is another folder.
pub fn shown_beside(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().display();
    let here = path.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    if here { name.to_string() } else { format!("{name} beside it") }
}

/// A path as a user would write it: below this folder, or below `~`.
pub fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let below = |folder: Option<&PathBuf>| path.strip_prefix(folder?).ok();
    let home = std::env::home_dir().filter(|home| home.parent().is_some());
    match (below(here.as_ref()), below(home.as_ref())) {
        (Some(path), _) => path.display().to_string(),
        (None, Some(path)) => format!("~/{}", path.display()),
        (None, None) => path.display().to_string(),
    }
}
