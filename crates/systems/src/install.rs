//! Installs the Debian packages that systems need.
//!
//! Knows packages by name; [`crate::probe`] finds out which are missing. The script `install.sh`, which scripts/install
//! runs as well, does the work. It alone decides about root, sudo and services.

use std::io;
use std::process::Command;

const SCRIPT: &str = include_str!("install.sh");

/// Installs these packages and shows the output of apt-get. Returns false if not all of them were installed; the output
/// says why.
///
/// The script stays in the terminal's process group, so that sudo can ask for a password and Ctrl-C stops apt-get.
pub fn install(packages: &[String]) -> io::Result<bool> {
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "install.sh"]).args(packages);
    Ok(command.status()?.success())
}
