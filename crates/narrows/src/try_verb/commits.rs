//! `--git`: the commits that are compared. They are checked out and built before the first trial.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, bail};
use revisions::{Clone, LIMIT_BYTES, Repository, Revision};
use serde::{Deserialize, Serialize};
use systems::homes;

use super::Args;
use crate::command::arms::{self, Places, WorkingFolder};
use crate::common::{self, Usage};
use crate::fleet::workshop::{Built, Program, Recipe, Workshop};

/// Commits to compare.
#[derive(Debug, std::clone::Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
#[command(next_help_heading = "Commits")]
pub struct CommitArgs {
    /// Compare commits of this repository: A..B, A...B (B and its merge base with A), or A,B,C. `dirty` is the work tree with
    /// its changes and untracked files. Each commit is a clone in the user's cache, where the command runs. With --sut, its
    /// files are sent to that machine, and it is built there
    #[arg(long, value_name = "A..B", value_delimiter = ',')]
    pub git: Vec<String>,
    /// Build each commit with this command, in `sh -c`, before the first trial
    #[arg(long, value_name = "COMMAND", requires = "git")]
    pub build: Option<String>,
    /// Build each commit N times (1 to 3), each time in a path of another length. A difference counts if every build shows it. Two
    /// builds make a difference by luck with the layout rarer, and are no test at 5 %: --fail-if takes 1 or 3
    #[arg(long, value_name = "N", requires = "git", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=3))]
    pub builds: u32,
    /// Find the first commit after A that is worse than A by the threshold. The exit code is 1 if one is, 0 if B is not worse,
    /// and 125 if it cannot be told
    #[arg(long, requires = "git", conflicts_with = "format")]
    pub bisect: bool,
}

/// The commits that this process has checked out and built. No other process uses their folders as long as this value lives.
pub struct Clones<'a> {
    repository: &'a Repository,
    /// The other machine on which they are built. `None` for this one.
    workshop: Option<Workshop>,
    built: HashMap<(String, u32), Built>,
    held: Vec<Clone>,
}

/// Commits that are checked out and built.
pub struct Commits {
    /// The folders in which the command runs: all commits of the first build, then all of the second.
    pub folders: Vec<Folder>,
    /// How many times each commit was built.
    pub builds: usize,
    /// Whether the folders are on another machine.
    pub there: bool,
    /// What the command line cannot show: that all arms run the same program.
    pub note: Option<String>,
}

/// A commit of one build.
#[derive(Debug, PartialEq, Eq, std::clone::Clone)]
pub struct Folder {
    /// The commit.
    pub revision: Revision,
    /// Which build it is, from 1.
    pub build: u32,
    /// Where the command runs, and what it runs.
    pub built: Built,
}

/// The repository around the current folder.
///
/// # Errors
/// There is none, or no folder for clones.
pub fn repository(dir: &Path, cancel: &Arc<AtomicBool>) -> anyhow::Result<Repository> {
    let cache = homes::cache().context("there is no folder for clones: set XDG_CACHE_HOME or HOME")?;
    Ok(Repository::find(dir, &cache, cancel)?)
}

impl Args {
    /// The first option that contradicts `--git`.
    pub(super) fn check_commits(&self, revisions: &[Revision]) -> Result<(), Usage> {
        let wrong = |why: &str| Err(Usage(why.to_owned()));
        if self.names.len() > revisions.len() {
            return wrong("--names has more names than --git has commits");
        }
        match self.arms.as_slice() {
            [arm] if !arms::is_url(arm) => {}
            [_] => return wrong("--git needs a command: a server that runs already belongs to no commit"),
            _ => return wrong("--git compares commits of one command: give one"),
        }
        if self.save.is_some() {
            return wrong("--save cannot save commits: use it with commands");
        }
        if self.commits.builds == 2 && !self.fail_if.is_empty() {
            return wrong(
                "--fail-if needs --builds 3: two builds of equal code agree on a difference too often to fail a gate",
            );
        }
        let decides = self.commits.builds > 1 || !self.fail_if.is_empty() || !self.command.knobs.is_empty();
        if self.commits.bisect && decides {
            return wrong("--bisect decides by --threshold alone: leave out --builds, --fail-if and --knob");
        }
        if self.commits.bisect && self.unequal {
            return wrong("--bisect compares commits, and --unequal compares nothing: leave one of them out");
        }
        if self.commits.bisect && !self.names.is_empty() {
            return wrong("--bisect calls commits by their ids: leave out --names");
        }
        Ok(())
    }

    /// The first option that names a file of the user's work tree: all commits would use the same one.
    fn check_paths(&self, work_tree: &Path) -> Result<(), Usage> {
        let start = &self.command.start;
        let hooks = [&start.setup, &start.prepare, &start.conclude];
        let texts = self.arms.iter().chain(&start.env).chain(hooks.into_iter().flatten());
        let inside = format!("{}/", work_tree.display());
        match texts.into_iter().find(|text| text.contains(&inside)) {
            Some(text) => Err(Usage(format!(
                "{text:?} names a file of your work tree, which all commits would use: write its path relative to this folder"
            ))),
            None => Ok(()),
        }
    }
}

impl<'a> Clones<'a> {
    pub fn new(repository: &'a Repository, workshop: Option<Workshop>) -> Self {
        Self { repository, workshop, built: HashMap::new(), held: Vec::new() }
    }

    /// This build of a commit. The first call builds it. `program` is the commit's own, if the command runs one.
    fn built(
        &mut self,
        args: &Args,
        program: Option<&Path>,
        revision: &Revision,
        build: u32,
    ) -> anyhow::Result<Built> {
        let key = (revision.commit.clone(), build);
        if let Some(built) = self.built.get(&key) {
            return Ok(built.clone());
        }
        // The files that are sent are those of the first clone. On the other machine, each build has a folder of its own.
        let clone = self.repository.clone_of(revision, if self.workshop.is_some() { 1 } else { build })?;
        let command = args.commits.build.as_deref();
        if command.is_some() {
            let (name, short) = (&revision.name, revision.short());
            let again = if build == 1 { String::new() } else { format!(", build {build}") };
            common::say(format_args!("building {name} ({short} {:?}{again})", revision.subject));
        }
        let built = match &mut self.workshop {
            Some(workshop) => {
                let recipe = Recipe {
                    name: revision.name.clone(),
                    prefix: self.repository.prefix().to_owned(),
                    command: command.map(str::to_owned),
                    program: program.map(Path::to_owned),
                };
                workshop.build(&clone, revision, build, recipe)?
            }
            None => {
                command.map_or(Ok(()), |command| clone.build(command))?;
                let built = Built::look(clone.folder.clone(), program);
                self.held.push(clone);
                built
            }
        };
        self.built.insert(key, built.clone());
        Ok(built)
    }
}

impl Commits {
    /// The commits without clones, for `--dry-run`.
    pub fn named(revisions: Vec<Revision>, dir: &Path) -> Self {
        let built = Built { folder: dir.to_owned(), program: None };
        let folder = |revision| Folder { revision, build: 1, built: built.clone() };
        let folders = revisions.into_iter().map(folder).collect();
        Self { folders, builds: 1, there: false, note: None }
    }

    /// Checks out and builds commits, and says what it does. Old clones are removed if there are too many.
    ///
    /// # Errors
    /// A commit cannot be checked out or built, or lacks the program.
    pub fn prepare(args: &Args, clones: &mut Clones<'_>, revisions: &[Revision]) -> anyhow::Result<Self> {
        let program = program(args)?;
        args.check_paths(clones.repository.work_tree())?;
        let own = program.filter(|program| program.is_relative() && program.components().count() > 1);
        let mut folders = Vec::new();
        for build in 1..=args.commits.builds {
            for revision in revisions {
                let built = clones.built(args, own.as_deref(), revision, build)?;
                if let (Some(Program::Missing), Some(missing)) = (&built.program, &own) {
                    let help = if args.commits.build.is_some() { "" } else { ": --build COMMAND builds it" };
                    bail!("{} has no {}{help}", revision.name, missing.display());
                }
                folders.push(Folder { revision: revision.clone(), build, built });
            }
        }
        clones.repository.tidy(LIMIT_BYTES);
        let there = clones.workshop.is_some();
        let mut commits = Self { folders, builds: args.commits.builds as usize, there, note: None };
        commits.compare_programs(own.as_deref());
        Ok(commits)
    }

    /// The folders of the commits as places in which the command runs, with the names that the user wants.
    pub fn places(&self, names: &[String]) -> Places {
        let count = self.folders.len() / self.builds;
        let place = |(index, folder): (usize, &Folder)| {
            let Folder { revision, build, built } = folder;
            // `HEAD~` would become `HEAD-`.
            let name =
                if revision.name.contains(['~', '^', '@', ':']) { revision.short() } else { &revision.name };
            let name = names.get(index % count).map_or(name, String::as_str);
            WorkingFolder {
                name: if *build == 1 { name.to_owned() } else { format!("{name}-build-{build}") },
                about: format!("{} {}", revision.short(), revision.subject),
                version: revision.short().to_owned(),
                dir: built.folder.clone(),
            }
        };
        let all = self.folders.iter().enumerate().map(place).collect();
        Places { all, builds: self.builds, there: self.there, note: self.described() }
    }

    /// The commits with their ids, and the note.
    fn described(&self) -> String {
        let shown = |Folder { revision, .. }: &Folder| {
            let (name, short) = (&revision.name, revision.short());
            if revision.commit.starts_with(name.as_str()) {
                short.to_owned()
            } else {
                format!("{name} ({short})")
            }
        };
        let first = self.folders.iter().take(self.folders.len() / self.builds);
        let commits = first.map(shown).collect::<Vec<_>>().join(" | ");
        match &self.note {
            Some(note) => format!("{commits}; {note}"),
            None => commits,
        }
    }

    /// Finds out whether commits, or builds of one, have the same program. Builds that are all the same are not measured twice.
    fn compare_programs(&mut self, program: Option<&Path>) {
        let count = self.folders.len() / self.builds;
        let same = |one: &Folder, other: &Folder| one.built.is_same(&other.built);
        let (first, again) = self.folders.split_at(count);
        if self.builds > 1 && first.iter().cycle().zip(again).all(|(first, again)| same(first, again)) {
            common::say(
                "all builds of a commit are equal, byte for byte: another build proves nothing more, so one is measured",
            );
            self.builds = 1;
            self.folders.truncate(count);
        }
        let Some((base, others)) = self.folders.split_first() else { return };
        let others = || others.iter().take(count.saturating_sub(1));
        let one_tree = others().all(|folder| folder.revision.tree == base.revision.tree);
        let note = match program {
            _ if one_tree => Some("A against A: all commits have the same files".to_owned()),
            Some(program) if others().all(|other| same(base, other)) => {
                let program = program.display();
                Some(format!("A against A: all commits have the same {program}, byte for byte"))
            }
            _ => None,
        };
        note.iter().for_each(common::say);
        self.note = note;
    }
}

/// The program that the command runs; for `sh -c`, the first word of its text.
fn program(args: &Args) -> anyhow::Result<Option<PathBuf>> {
    let Some(text) = args.arms.first() else { return Ok(None) };
    let words = arms::words(&systems::Source::new("arm 1", text.as_str()), false);
    let words = if args.command.start.shell { words.unwrap_or_default() } else { words? };
    Ok(words.first().filter(|word| !word.contains('{')).map(PathBuf::from))
}
