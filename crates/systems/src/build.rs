//! Builds a system into `target/systems/NAME`, only if its inputs have changed, and never twice at once.
//!
//! Knows manifests, files and processes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::{Stage, SystemError};
use crate::lock;
use crate::manifest::{Build, Fill, Manifest};
use crate::probe::{Context, first_line};
use crate::stamp::Stamp;
use crate::subprocess::{self, Exit, Waited};
use crate::wait::deadline_in;

/// A built system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// Its build folder.
    pub out: PathBuf,
    /// The version of the library under test, if the manifest says how to ask.
    pub version: Option<String>,
}

/// The timeout of the command that prints the version.
const VERSION_PATIENCE: Duration = Duration::from_secs(20);

/// Builds the system unless its last build had the same inputs. `versions` are those of its needs, as
/// [`crate::probe::in_words`] formats them.
pub fn build(manifest: &Manifest, context: Context<'_>, versions: &str) -> Result<Built, SystemError> {
    let folder = manifest.home().join("target/systems");
    let out = folder.join(&manifest.name);
    let work = Work { manifest, context, versions, out: &out };
    let Some(build) = &manifest.build else {
        if manifest.program.uses("out") {
            fs::create_dir_all(&out)
                .map_err(|e| work.wrong(format!("cannot make {}: {e}", out.display())))?;
        }
        return Ok(Built { out, version: manifest.version.clone() });
    };
    fs::create_dir_all(&folder).map_err(|e| work.wrong(format!("cannot make {}: {e}", folder.display())))?;
    let lock = work.lock(build)?;
    let stamp = work.stamp(build)?;
    let last = fs::read_to_string(work.beside("stamp"));
    let fresh = out.is_dir() && last.is_ok_and(|last| last == stamp.to_string());
    if !fresh {
        work.run(build, stamp)?;
    }
    let version = build.version.as_ref().map(|command| work.version(command)).transpose()?;
    drop(lock);
    Ok(Built { out, version })
}

/// One line that says how the last build with the same inputs failed; `None` if there was none or it succeeded. The
/// next run of the system tries again. `versions` are as for [`build`].
pub fn last_failure(manifest: &Manifest, context: Context<'_>, versions: &str) -> Option<String> {
    let out = manifest.home().join("target/systems").join(&manifest.name);
    let work = Work { manifest, context, versions, out: &out };
    let kept = fs::read_to_string(work.beside("failed")).ok()?;
    let why = kept.strip_prefix(&work.stamp(manifest.build.as_ref()?).ok()?.to_string())?;
    Some(why.trim().to_owned())
}

struct Work<'a> {
    manifest: &'a Manifest,
    context: Context<'a>,
    versions: &'a str,
    out: &'a Path,
}

impl Work<'_> {
    fn wrong(&self, reason: impl Into<String>) -> SystemError {
        SystemError::new(Stage::Build, &self.manifest.name, reason)
    }

    /// `target/systems/NAME.EXTENSION`; not inside the build folder, which belongs to the build.
    fn beside(&self, extension: &str) -> PathBuf {
        self.out.with_file_name(format!("{}.{extension}", self.manifest.name))
    }

    fn lock(&self, build: &Build) -> Result<File, SystemError> {
        let deadline = deadline_in(build.timeout.saturating_add(Duration::from_secs(10)));
        let busy = "another narrows is still building it: wait for it, or stop it";
        lock::take(&self.beside("lock"), deadline, self.context.cancel, busy).map_err(|why| self.wrong(why))
    }

    /// The stamp of the build's current inputs.
    fn stamp(&self, build: &Build) -> Result<Stamp, SystemError> {
        Stamp::of(self.manifest, build, self.context, self.versions).map_err(|why| self.wrong(why))
    }

    fn run(&self, build: &Build, before: Stamp) -> Result<(), SystemError> {
        let cannot = |action: &str, e: io::Error| self.wrong(format!("cannot {action}: {e}"));
        let (stamp_file, failed) = (self.beside("stamp"), self.beside("failed"));
        for old in [&stamp_file, &failed] {
            let _ = fs::remove_file(old);
        }
        match fs::remove_dir_all(self.out) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(cannot("empty its build folder", e)),
            _ => fs::create_dir_all(self.out).map_err(|e| cannot("make its build folder", e))?,
        }
        let log = self.beside("log");
        let command = self.command(&build.command)?;
        let waited = subprocess::log(command, &log, deadline_in(build.timeout), self.context.cancel)
            .map_err(|why| self.wrong(why))?;
        let why = match waited {
            Waited::Exited(Exit::Code(0)) => {
                let stamp = before.settled(self.stamp(build)?);
                return fs::write(stamp_file, stamp.to_string()).map_err(|e| cannot("write the stamp", e));
            }
            Waited::Exited(exit) => format!("the build {exit}"),
            Waited::TimedOut => {
                format!("the build was killed after build.timeout_s = {}", build.timeout.as_secs())
            }
            Waited::Cancelled => {
                return Err(self.wrong(format!("interrupted; its full output is in {}", log.display())));
            }
        };
        let output = subprocess::end_of(&log);
        let last = output.lines().rev().map(str::trim).find(|line| !line.is_empty());
        // Only `narrows systems` reads this file, so a failure to write it does not matter.
        if let Ok(after) = self.stamp(build) {
            let _ = fs::write(failed, format!("{}{}\n", before.settled(after), last.unwrap_or(&why)));
        }
        let get = build.get.as_ref().map(|get| format!("; to get what it fetches: {get}"));
        let reason = format!("{why}; its full output is in {}{}", log.display(), get.unwrap_or_default());
        Err(self.wrong(reason).with_output(output))
    }

    fn version(&self, command: &[String]) -> Result<String, SystemError> {
        let command = self.command(command)?;
        let program = command.get_program().to_string_lossy().into_owned();
        let captured = subprocess::capture(command, deadline_in(VERSION_PATIENCE), self.context.cancel);
        let captured =
            captured.map_err(|e| self.wrong(format!("build.version: cannot start `{program}`: {e}")))?;
        let output = captured.output();
        let line = first_line(&output);
        match captured.waited {
            Waited::Exited(Exit::Code(0)) if !line.is_empty() => Ok(line),
            Waited::Exited(Exit::Code(0)) => {
                Err(self.wrong(format!("build.version: `{program}` printed nothing")))
            }
            Waited::Exited(exit) => {
                Err(self.wrong(format!("build.version: `{program}` {exit}")).with_output(output))
            }
            Waited::TimedOut => {
                let limit = VERSION_PATIENCE.as_secs();
                Err(self.wrong(format!("build.version: `{program}` was killed after {limit} s")))
            }
            Waited::Cancelled => Err(self.wrong("interrupted")),
        }
    }

    fn command(&self, command: &[String]) -> Result<Command, SystemError> {
        let cores = crate::machine::available_cores().len();
        let fill = Fill {
            manifest: self.manifest,
            narrows: self.context.narrows,
            out: self.out,
            cores,
            start: None,
        };
        let mut arguments = fill.command(command).map_err(|why| self.wrong(why))?.into_iter();
        let program = arguments.next().ok_or_else(|| self.wrong("an empty command"))?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.manifest.dir);
        self.manifest.set_environment(&mut command).map_err(|why| self.wrong(why))?;
        Ok(command)
    }
}
