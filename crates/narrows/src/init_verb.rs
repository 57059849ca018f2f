//! `narrows init`: makes a folder `narrows` with an example of a system and of an experiment.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use systems::homes::FOLDER;

use crate::common::{self, End};

/// `narrows init`
#[derive(clap::Args)]
pub struct Args {}

/// The example's files, by their paths in the folder.
const FILES: [(&str, &str); 4] = [
    (".gitignore", "/target\n"),
    ("systems/app/system.toml", include_str!("init_verb/system.toml")),
    ("systems/app/server.py", include_str!("init_verb/server.py")),
    ("experiments/app.toml", include_str!("init_verb/experiment.toml")),
];

/// Makes the folder in the current one.
pub fn run(_: &Args) -> End {
    let folder = Path::new(FOLDER);
    if fs::symlink_metadata(folder).is_ok() {
        bail!("{FOLDER} exists already; its systems/ and experiments/ are used from here");
    }
    for (name, text) in FILES {
        let path = folder.join(name);
        let context = || format!("cannot write {}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(folder)).with_context(context)?;
        fs::write(&path, text).with_context(context)?;
    }
    common::print(format!(
        "{FOLDER}/systems/app is an example of a system, and {FOLDER}/experiments/app.toml asks about its knob.\n\
         `narrows run` runs it; `narrows systems --check app` checks the system. Put yours in their place.\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}
