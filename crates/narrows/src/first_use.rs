//! Shows the commands of systems that did not come with Narrows, before they run for the first time. Knows manifests, and the
//! user's folder for what is kept between runs.
//!
//! A manifest is a program: its probes, its build and its hooks run as the user. Nobody is asked, because a question would stop
//! scripts. The same commands are shown once.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use systems::manifest::Program;
use systems::{Catalog, Manifest, Origin};

use crate::common;

/// Shows what these systems run, unless they came with Narrows or it was shown before.
pub fn show<'a>(catalog: &Catalog, manifests: impl IntoIterator<Item = &'a Manifest>) {
    for manifest in manifests.into_iter().filter(|manifest| !came_along(catalog, manifest)) {
        let text = commands(manifest);
        if !text.is_empty() && !remember(&text) {
            let (name, dir) = (&manifest.name, manifest.dir.display());
            common::say(format_args!("{name} did not come with narrows: {dir} runs these commands\n{text}"));
        }
    }
}

/// Shows what the systems of these names run: see [`show`]. An experiment may also name some that do not exist.
pub fn show_named(catalog: &Catalog, names: &BTreeSet<String>) {
    show(catalog, catalog.manifests().filter(|manifest| names.contains(&manifest.name)));
}

/// Whether a manifest came with the program, or is the program itself.
fn came_along(catalog: &Catalog, manifest: &Manifest) -> bool {
    let built_in = |home: &Path| {
        let homes = catalog.homes().iter();
        let mut known = homes.filter(|home| home.origin == Origin::BuiltIn).map(|home| home.path.as_path());
        // The checkout to which the program belongs may also be the project's home.
        known.any(|path| path == home)
            || std::env::current_exe().is_ok_and(|program| program.starts_with(home))
    };
    // Those made from values have no folder of their own.
    manifest.dir == manifest.home || built_in(&manifest.home)
}

/// All commands of a manifest, one in a line.
fn commands(manifest: &Manifest) -> String {
    let mut lines = Vec::new();
    let mut add = |what: &str, words: &[String]| {
        let words = words.iter().map(String::as_str);
        let shown = shlex::try_join(words.clone()).unwrap_or_else(|_| words.collect::<Vec<_>>().join(" "));
        // A control character could hide the rest of a line on a terminal.
        let plain: String = shown.chars().flat_map(shown_char).collect();
        lines.push(format!("  {what}: {plain}"));
    };
    for need in &manifest.needs {
        if let Some(debian) = &need.debian {
            let packages = debian.packages.iter().cloned();
            add("unpacks", &[format!("{}:", debian.release)].into_iter().chain(packages).collect::<Vec<_>>());
        }
        if !need.probe.is_empty() {
            add("probe", &need.probe);
        }
    }
    if let Some(build) = &manifest.build {
        add("build", &build.command);
        build.version.iter().for_each(|version| add("version", version));
    }
    if let Program::Started(start) = &manifest.program {
        for (name, command) in start.hooks.all() {
            command.iter().for_each(|command| add(name, command));
        }
        let env = start.env.iter().map(|(name, value)| format!("{name}={value}"));
        add("start", &env.chain(start.command.iter().cloned()).collect::<Vec<_>>());
    }
    lines.join("\n")
}

/// A character as it can be shown on one line.
fn shown_char(shown: char) -> Box<dyn Iterator<Item = char>> {
    if printable::is_hidden(shown) {
        Box::new(shown.escape_default())
    } else {
        Box::new(std::iter::once(shown))
    }
}

/// Notes that the user has seen a text. Returns whether it was noted before; where nothing can be noted, it was not.
fn remember(text: &str) -> bool {
    let Some(file) = note(text) else { return false };
    let known = std::fs::read_to_string(&file).is_ok_and(|known| known == text);
    if !known
        && let Some(folder) = file.parent()
        && std::fs::create_dir_all(folder).is_ok()
    {
        let _ = std::fs::write(&file, text);
    }
    known
}

/// The file that has a text that was shown. Its name is only a place: the content decides.
fn note(text: &str) -> Option<PathBuf> {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Some(systems::homes::state()?.join("shown").join(format!("{:016x}", hasher.finish())))
}
