//! Finds out whether this machine has what a system needs: which version, or how to get it.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use printable::{is_hidden, printable};

use crate::attach::Theirs;
use crate::debian::Debian;
use crate::manifest::{Manifest, Need};
use crate::subprocess::{Exit, Waited, capture};
use crate::wait::deadline_in;

/// What probing and building need besides the manifest.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The running binary.
    pub narrows: &'a Path,
    /// Set on Ctrl-C; stops probes and builds.
    pub cancel: &'a AtomicBool,
}

/// Whether a system can run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// Every need is met.
    Ready {
        /// Each need's name and version.
        versions: Vec<(String, String)>,
    },
    /// It cannot run here.
    Missing {
        /// The needs that are not met.
        what: Vec<Missing>,
    },
}

/// A need that is not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its usual name.
    pub name: String,
    /// How to get it.
    pub get: String,
    /// Why its probe failed.
    pub detail: String,
    /// The Debian packages that provide it; empty if it must be installed by hand.
    pub packages: Vec<String>,
    /// The packages of a release of Debian that provide it, if they can be fetched here.
    pub debian: Option<Debian>,
}

/// A probe only prints a version. One that runs longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs each need's probe.
pub fn availability(manifest: &Manifest, context: Context<'_>) -> Availability {
    let mut versions = Vec::new();
    let mut what = unfetched(manifest);
    if !what.is_empty() {
        // The probes would find another runtime.
        return Availability::Missing { what };
    }
    if let Err(unset) = manifest.environment(|name| std::env::var_os(name)) {
        // The probes would find another runtime.
        let get = manifest.variant.as_ref().map(|variant| variant.get.clone()).unwrap_or_default();
        let missing =
            Missing { name: unset.name, get, detail: unset.detail, packages: Vec::new(), debian: None };
        return Availability::Missing { what: vec![missing] };
    }
    if let Some(attached) = manifest.attached() {
        match Theirs::find(attached) {
            Ok(theirs) => versions.push(("attached to".to_owned(), theirs.name())),
            Err(detail) => {
                let name = format!("a server at {}", attached.url);
                let get = attached.get.clone();
                what.push(Missing { name, get, detail, packages: Vec::new(), debian: None });
            }
        }
    }
    for need in &manifest.needs {
        match probe(need, manifest, PATIENCE, context.cancel) {
            Ok(version) => versions.push((need.name.clone(), version)),
            Err(detail) => what.push(Missing {
                name: need.name.clone(),
                get: match &need.debian {
                    Some(debian) if need.get.is_empty() => debian.get_another(),
                    _ => need.get.clone(),
                },
                detail,
                packages: need.packages.clone(),
                debian: None,
            }),
        }
    }
    if what.is_empty() { Availability::Ready { versions } } else { Availability::Missing { what } }
}

/// The needs whose packages of a release are not here.
fn unfetched(manifest: &Manifest) -> Vec<Missing> {
    let of_releases = manifest.needs.iter().filter_map(|need| Some((need, need.debian.as_ref()?)));
    let absent = of_releases.filter_map(|(need, debian)| Some((need, debian, debian.absent()?)));
    let missing = absent.map(|(need, debian, absent)| Missing {
        name: need.name.clone(),
        get: absent.get(debian, &manifest.name),
        detail: absent.detail(),
        packages: absent.packages(),
        debian: absent.can_be_fetched().then(|| debian.clone()),
    });
    missing.collect()
}

/// The needs' names and versions in one line.
pub fn in_words(versions: &[(String, String)]) -> String {
    versions.iter().map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>().join(", ")
}

fn probe(
    need: &Need,
    manifest: &Manifest,
    patience: Duration,
    cancel: &AtomicBool,
) -> Result<String, String> {
    if let (Some(debian), true) = (&need.debian, need.probe.is_empty()) {
        return version(need.version.as_deref(), &debian.version()?);
    }
    let (program, arguments) = need.probe.split_first().ok_or("its probe is empty")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&manifest.dir);
    manifest.set_environment(&mut command)?;
    let captured = capture(command, deadline_in(patience), cancel);
    let captured = captured.map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => format!("`{program}` is not installed"),
        _ => format!("`{program}` cannot be started: {e}"),
    })?;
    let output = plain(&captured.output());
    match captured.waited {
        // A probe that prints nothing found nothing.
        Waited::Exited(Exit::Code(0)) if output.trim().is_empty() => {
            Err(format!("`{program}` printed nothing"))
        }
        Waited::Exited(Exit::Code(0)) => version(need.version.as_deref(), &output),
        Waited::Exited(exit) => Err(format!("`{program}` {exit}{}", quoted(&output))),
        Waited::TimedOut => Err(format!("`{program}` was killed after {patience:?}")),
        Waited::Cancelled => Err("interrupted".to_owned()),
    }
}

fn version(pattern: Option<&str>, output: &str) -> Result<String, String> {
    let output = output.trim();
    let Some(pattern) = pattern else { return Ok(first_line(output)) };
    let pattern = regex::Regex::new(pattern).map_err(|e| e.to_string())?;
    let found = pattern.captures(output).and_then(|groups| groups.get(1).or(groups.get(0)));
    let found = found.map(|found| found.as_str().trim().to_owned());
    found.ok_or_else(|| format!("its version does not match '{pattern}'{}", quoted(output)))
}

/// Text without what moves or colours a terminal. Its lines stay.
fn plain(text: &str) -> String {
    let mut rest = text.chars().peekable();
    let mut plain = String::with_capacity(text.len());
    while let Some(char) = rest.next() {
        match char {
            '\u{1b}' if rest.next_if_eq(&'[').is_some() => {
                // A sequence ends with a letter, or with one of a few signs beside them (ECMA-48).
                while rest.next_if(|char| (' '..='?').contains(char)).is_some() {}
                let _ = rest.next_if(|char| ('@'..='~').contains(char));
            }
            '\n' | '\t' => plain.push(char),
            char if is_hidden(char) => {}
            char => plain.push(char),
        }
    }
    plain
}

fn quoted(output: &str) -> String {
    let line = first_line(output);
    if line.is_empty() { String::new() } else { format!(": {line}") }
}

/// The first line that is not empty as it may be shown, cut to 200 characters.
pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    printable(&line.chars().take(200).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        for (pattern, output, expected) in [
            (None, "\n 27 \nmore", Ok("27")),
            (Some(r"^(\S+)"), " 25.3\n", Ok("25.3")),
            (Some(r"v\d+"), "node v22", Ok("v22")),
            (Some(r"^(\d+)"), "none", Err("its version does not match '^(\\d+)': none")),
        ] {
            let found = version(pattern, output);
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        }
    }

    #[test]
    fn what_moves_a_terminal_is_left_out() {
        for (text, expected) in [
            ("25\n", "25\n"),
            ("\u{1b}[0m\u{1b}[1;31merror\u{1b}[0m: no\r\n", "error: no\n"),
            ("a\u{1b}b\u{7}", "ab"),
            ("\u{1b}[", ""),
            ("\u{1b}[12", ""),
            ("é [1m", "é [1m"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }

    #[test]
    fn probes() {
        let patience = Duration::from_millis(300);
        let manifest = manifest();
        for (script, expected) in [
            ("echo 1.2", Ok("1.2")),
            ("echo 1.3 >&2", Ok("1.3")),
            ("true", Err("`sh` printed nothing")),
            ("echo; printf \"  \\n\" >&2", Err("`sh` printed nothing")),
            ("echo broken >&2; exit 3", Err("`sh` exited with code 3: broken")),
            ("kill -9 $$", Err("`sh` was killed by signal 9")),
            ("echo 1; sleep 600 & exec sleep 600", Err("`sh` was killed after 300ms")),
        ] {
            let probe_command = ["sh", "-c", script].map(str::to_owned).to_vec();
            let need = need(probe_command);
            let patience = if expected.is_ok() { PATIENCE } else { patience };
            let found = probe(&need, &manifest, patience, &AtomicBool::new(false));
            let found = found.as_deref().map_err(String::as_str);
            // On a slow machine any script may miss a short deadline. It must then say so.
            let slow = Err("`sh` was killed after 300ms");
            assert!(found == expected || found == slow, "{script}: {found:?}");
        }
        let need = need(vec!["no-such-program".to_owned()]);
        let found = probe(&need, &manifest, patience, &AtomicBool::new(false));
        assert_eq!(found, Err("`no-such-program` is not installed".to_owned()));
    }

    fn manifest() -> Manifest {
        let text =
            "name='tmp'\nrole='client'\nworkloads=['clients']\nlanguage=''\nabout=''\n[start]\ncommand=['x']";
        let source = crate::input::Source::new("system.toml", text);
        Manifest::parse(&source, Path::new("/tmp")).unwrap().remove(0)
    }

    fn need(probe: Vec<String>) -> Need {
        Need {
            name: "n".to_owned(),
            probe,
            version: None,
            get: String::new(),
            packages: vec![],
            debian: None,
        }
    }
}
