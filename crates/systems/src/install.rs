//! Installs the Debian packages that systems need.
//!
//! Knows packages by name; which of them are missing is [`crate::probe`]'s to say. The work is done by `install.sh`, which
//! scripts/install runs as well: one place decides about root, sudo and services.

use std::io;
use std::process::Command;

const SCRIPT: &str = include_str!("install.sh");

/// Installs these packages, and shows what apt-get prints. False if it could not install all of them; then it has said why.
///
/// The script stays in the terminal's own process group, so that sudo can ask for a password and Ctrl-C ends apt-get.
pub fn install(packages: &[String]) -> io::Result<bool> {
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "install.sh"]).args(packages);
    Ok(command.status()?.success())
}
