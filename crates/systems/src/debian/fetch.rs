//! Fetches packages of a release with apt, which verifies them, and unpacks them.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::apt::{self, PATCHELF, Update};
use super::{Debian, KEYRING, RECORD, moved};
use crate::keeper::Fleeting;
use crate::lock;
use crate::subprocess::{Captured, Waited, capture};
use crate::wait::deadline_in;

/// How long a command may take that fetches something.
const FETCHING: Duration = Duration::from_secs(1800);
/// How long a command may take that works on files here.
const WORKING: Duration = Duration::from_secs(300);

/// Fetches and unpacks packages, each set into its [`Debian::folder`], and says what it does. Returns those that could not be
/// fetched, with the reason. They do not keep the others from being fetched.
pub fn fetch(
    all: &BTreeSet<Debian>,
    cancel: &AtomicBool,
    say: &mut dyn FnMut(&str),
) -> Vec<(Debian, String)> {
    let mut failed = Vec::new();
    let releases: BTreeSet<&str> = all.iter().map(|debian| debian.release.as_str()).collect();
    for release in releases {
        let of_release: Vec<&Debian> = all.iter().filter(|debian| debian.release == release).collect();
        let why = match of_release.first().and_then(|debian| debian.folder()) {
            Some(folder) => match Fetching::begin(release, &folder, cancel, say) {
                Ok(fetching) => {
                    for debian in of_release {
                        if let Err(why) = fetching.fetch(debian, say) {
                            failed.push((debian.clone(), why));
                        }
                    }
                    continue;
                }
                Err(why) => why,
            },
            None => "there is no folder for a cache: set XDG_CACHE_HOME or HOME".to_owned(),
        };
        failed.extend(of_release.into_iter().map(|debian| (debian.clone(), why.clone())));
    }
    failed
}

/// One release, whose lists are here.
struct Fetching<'a> {
    /// The folder in which apt keeps what it knows of the release.
    state: Fleeting,
    cancel: &'a AtomicBool,
    /// Other processes wait until this is closed.
    _lock: fs::File,
}

impl<'a> Fetching<'a> {
    /// Fetches the lists of a release, from the first place that has it. `folder` is one of the folders to make.
    fn begin(
        release: &str,
        folder: &Path,
        cancel: &'a AtomicBool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, String> {
        let cache = folder.parent().unwrap_or(folder);
        let cannot = |e: io::Error| format!("cannot write {}: {e}", cache.display());
        fs::create_dir_all(cache).map_err(cannot)?;
        let busy = "another narrows is still fetching: wait for it, or stop it";
        let lock = lock::take(&cache.join("lock"), deadline_in(FETCHING), cancel, busy)?;
        // Only the holder of the lock works here, so this is what a process left that was killed with its keeper.
        let state = Fleeting::new(cache.join("new"));
        match fs::remove_dir_all(state.path()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(cannot(e)),
            _ => {}
        }
        let fetching = Self { state, cancel, _lock: lock };
        fetching.lists(release, say)?;
        Ok(fetching)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.state.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.path(name);
        fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
    }

    fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.path(name);
        let made = DirBuilder::new().recursive(true).mode(0o755).create(&path);
        made.map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        Ok(path)
    }

    /// Asks apt for its lists, mirror by mirror.
    fn lists(&self, release: &str, say: &mut dyn FnMut(&str)) -> Result<(), String> {
        let lists = self.folder("lists")?;
        self.folder("lists/partial")?;
        self.write("apt.conf", &apt::config(self.state.path()))?;
        self.write("status", &apt::status())?;
        // The machine's own sources, which apt reads with the machine's own configuration.
        let mut own = Command::new("apt-get");
        own.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
        let own = self.run(own, WORKING).map(|told| told.out).unwrap_or_default();
        let mirrors = apt::mirrors(&own);
        for mirror in &mirrors {
            say(&format!("asking {mirror} for {release}"));
            self.write("sources.list", &apt::source(KEYRING, mirror, release))?;
            let told = self.run(self.apt(&["update"]), FETCHING)?;
            let names = fs::read_dir(&lists).into_iter().flatten().flatten();
            let has_lists =
                names.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().contains("_Packages"));
            match apt::update(told.is_success(), has_lists, &told.output()) {
                Update::Found => return Ok(()),
                Update::Gone => {}
                Update::Failed(why) => return Err(format!("{mirror}: {why}")),
            }
        }
        Err(format!("none of {} has a release of the name {release}", mirrors.join(", ")))
    }

    /// Fetches and unpacks one set of packages. The machine has the lists of their release.
    fn fetch(&self, debian: &Debian, say: &mut dyn FnMut(&str)) -> Result<(), String> {
        let place = debian.folder().ok_or("there is no folder for a cache")?;
        if place.is_dir() {
            return Ok(()); // Another process was quicker.
        }
        say(&format!("fetching {} of {}", debian.packages.join(", "), debian.release));
        let began = Instant::now();
        for last in ["archives", "tree"] {
            let _ = fs::remove_dir_all(self.path(last));
        }
        let files = self.download(debian)?;
        let tree = self.folder("tree")?;
        for file in &files {
            let mut unpack = Command::new("dpkg-deb");
            unpack.arg("--extract").arg(file).arg(&tree);
            self.must(unpack, WORKING)?;
        }
        let failed = |e: io::Error| format!("cannot move the programs to {}: {e}", place.display());
        let settled = moved::settle(&tree, &place).map_err(failed)?;
        self.patch(&tree, &place, &settled.executables)?;
        let names = files.iter().filter_map(|file| apt::named(&file.file_name()?.to_string_lossy()));
        let record: String = names.map(|(name, version)| format!("{name} {version}\n")).collect();
        self.write(&format!("tree/{RECORD}"), &record)?;
        fs::rename(&tree, &place).map_err(failed)?;
        let (megabytes, seconds) = (settled.bytes.div_ceil(1_000_000), began.elapsed().as_secs());
        say(&format!("  {megabytes} MB in {}, after {seconds} s", place.display()));
        Ok(())
    }

    /// Fetches the files of the packages. apt verifies them.
    fn download(&self, debian: &Debian) -> Result<Vec<PathBuf>, String> {
        let archives = self.folder("archives")?;
        self.folder("archives/partial")?;
        let mut words = match debian.dependencies {
            true => vec!["--yes", "--no-remove", "--download-only", "install", "--", PATCHELF],
            false => vec!["download", "--"],
        };
        words.extend(debian.packages.iter().map(String::as_str));
        let mut command = self.apt(&words);
        command.current_dir(&archives);
        self.must(command, FETCHING)?;
        let entries = fs::read_dir(&archives).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> =
            entries.filter(|path| path.extension().is_some_and(|extension| extension == "deb")).collect();
        files.sort_unstable();
        if files.is_empty() { Err("apt-get fetched nothing".to_owned()) } else { Ok(files) }
    }

    /// Lets executables use the interpreter and the libraries of their own folder. patchelf is one of its programs.
    fn patch(&self, tree: &Path, place: &Path, executables: &[(PathBuf, PathBuf)]) -> Result<(), String> {
        let program = tree.join("usr/bin").join(PATCHELF);
        let Some((_, interpreter)) = executables.iter().find(|(path, _)| *path == program) else {
            return Ok(());
        };
        let libraries = moved::libraries(tree);
        // It cannot be changed while it runs, so a copy runs.
        let copy = self.path(PATCHELF);
        fs::copy(&program, &copy).map_err(|e| format!("cannot write {}: {e}", copy.display()))?;
        let patchelf = || {
            let mut command = Command::new(tree.join(interpreter));
            command.arg("--library-path").arg(moved::search_path(tree, &libraries)).arg(&copy);
            command
        };
        let mut own = Vec::new();
        for (executable, _) in executables {
            let mut ask = patchelf();
            ask.arg("--print-rpath").arg(executable);
            own.push(self.must(ask, WORKING)?.out);
        }
        let usual = moved::search_path(place, &libraries);
        for ((interpreter, path), group) in moved::by_search_path(executables, &own, place, &usual) {
            let mut command = patchelf();
            command.arg("--set-interpreter").arg(place.join(interpreter));
            command.args(["--force-rpath", "--set-rpath", path.as_str()]).args(group);
            self.must(command, WORKING)?;
        }
        Ok(())
    }

    /// apt-get with the configuration of this release.
    fn apt(&self, words: &[&str]) -> Command {
        let mut command = Command::new("apt-get");
        command.arg("--quiet").arg("--config-file").arg(self.path("apt.conf")).args(words);
        command
    }

    fn run(&self, mut command: Command, patience: Duration) -> Result<Captured, String> {
        let program = command.get_program().to_string_lossy().into_owned();
        command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
        let captured = capture(command, deadline_in(patience), self.cancel);
        let captured = captured.map_err(|e| format!("cannot start `{program}`: {e}"))?;
        match captured.waited {
            Waited::Exited(_) => Ok(captured),
            Waited::TimedOut => Err(format!("`{program}` was killed after {} s", patience.as_secs())),
            Waited::Cancelled => Err("interrupted".to_owned()),
        }
    }

    /// Runs a command that must succeed.
    fn must(&self, command: Command, patience: Duration) -> Result<Captured, String> {
        let captured = self.run(command, patience)?;
        if captured.is_success() { Ok(captured) } else { Err(apt::why(&captured.output())) }
    }
}
