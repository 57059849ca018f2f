//! A temporary home folder with systems of the checkout, systems that the test defines, and its experiments.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab::observation::{Failure, Observation, Outcome};
use lab::store::Store;
use measurement::Measurement;
use tempfile::TempDir;

use super::{
    Ended, Guarded, NARROWS, STATE, assert_nothing_left, checkout, mark, narrows, new_mark, run, skip,
};

/// A temporary home folder.
pub struct Home {
    dir: TempDir,
    mark: String,
}

impl Home {
    /// With nothing but what the program knows itself: the two references.
    pub fn new() -> Self {
        let home = Self { dir: TempDir::new().expect("a temporary folder"), mark: new_mark() };
        // Its runs of commands are its own. What was shown once is not shown again, as for other tests.
        let (own, shared) = (home.path("state/narrows"), Path::new(STATE).join("narrows/shown"));
        [&own, &shared].iter().for_each(|folder| fs::create_dir_all(folder).expect("a folder for state"));
        symlink(shared, own.join("shown")).expect("what was shown");
        fs::create_dir(home.path("systems")).expect("systems/");
        fs::create_dir(home.path("experiments")).expect("experiments/");
        home
    }

    /// A home that also has these systems of the checkout. Their builds are kept for the next test.
    pub fn with(systems: &[&str]) -> Self {
        let home = Self::new();
        let builds = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("systems-built-by-tests");
        fs::create_dir_all(&builds).expect("a folder for builds");
        symlink(builds, home.path("target")).expect("target/");
        systems.iter().chain(&["shared"]).for_each(|name| home.link(name));
        home
    }

    fn link(&self, name: &str) {
        let real = checkout().join("systems").join(name).canonicalize().expect("a system of the checkout");
        symlink(real, self.path("systems").join(name)).expect("a link");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("its folder");
        fs::write(path, text).expect("a file");
    }

    /// A server for `requests` that this shell script starts, with `$narrows` and `$port`. `more` is added to its
    /// manifest.
    pub fn shell_server(&self, name: &str, script: &str, more: &str) {
        self.server(name, r#"["sh", "start.sh", "{narrows}", "{port}"]"#, more);
        self.write(&format!("systems/{name}/start.sh"), &format!("narrows=$1 port=$2\n{script}\n"));
    }

    /// A server for `requests` that is this Node.js program, with `port`.
    pub fn node_server(&self, name: &str, script: &str, more: &str) {
        self.server(name, r#"["node", "server.js", "{port}"]"#, more);
        let script = format!("const port = Number(process.argv[2]);\n{script}\n");
        self.write(&format!("systems/{name}/server.js"), &script);
    }

    /// A command that starts a server of Node.js, which answers this after so many milliseconds.
    pub fn node(&self, name: &str, answer: &str, wait_ms: u32) -> String {
        let script = format!(
            "require('http').createServer((request, answer) => setTimeout(() => {{ answer.statusCode = \
             request.url == '/missing' ? 404 : 200; answer.end({answer}); }}, {wait_ms}))\
             .listen(Number(process.argv[2] || process.env.PORT || 0), '127.0.0.1');\n"
        );
        self.write(name, &script);
        format!("node {name} {{port}}")
    }

    /// A server for `requests` with this start command.
    pub fn server(&self, name: &str, command: &str, more: &str) {
        self.server_of(name, r#"["requests"]"#, command, more);
    }

    /// A server for these workloads.
    pub fn server_of(&self, name: &str, workloads: &str, command: &str, more: &str) {
        let manifest = format!(
            "name = \"{name}\"\nrole = \"server\"\nworkloads = {workloads}\nlanguage = \"none\"\n\
             about = \"of a test\"\n[start]\ncommand = {command}\n{more}\n"
        );
        self.write(&format!("systems/{name}/system.toml"), &manifest);
    }

    /// An honest server: the reference under another name.
    pub fn twin(&self, name: &str) {
        let command = r#"["{narrows}", "serve", "--any", "{port}", "--host", "{address}"]"#;
        self.server_of(name, r#"["upload", "frames", "requests"]"#, command, "");
    }

    /// A client with this start command; `more` is added to its manifest.
    pub fn client(&self, name: &str, command: &str, more: &str) {
        let manifest = format!(
            "name = \"{name}\"\nrole = \"client\"\nworkloads = [\"clients\"]\nlanguage = \"none\"\nabout = \"of a test\"\n\
             [start]\ncommand = {command}\n{more}\n"
        );
        self.write(&format!("systems/{name}/system.toml"), &manifest);
    }

    /// An honest client: the reference client under another name.
    pub fn twin_client(&self, name: &str) {
        self.client(name, r#"["{narrows}", "client"]"#, "");
    }

    /// An experiment `e` with this workload, systems (as TOML), rounds and grid.
    pub fn experiment(&self, workload: &str, systems: &str, rounds: u32, grid: &str) {
        self.timed_experiment(workload, systems, rounds, 0.1, grid);
    }

    pub fn timed_experiment(&self, workload: &str, systems: &str, rounds: u32, measure_s: f64, grid: &str) {
        let figure = match workload {
            "upload" => "ms_per_upload",
            "frames" => "frames_per_s",
            _ => "requests_per_s",
        };
        let mut text = format!(
            "name = \"e\"\ntitle = \"Of a test\"\nworkload = \"{workload}\"\nsystems = {systems}\nfigure = \"{figure}\"\n"
        );
        for form in ["quick", "full"] {
            text += &format!("[{form}]\nrounds = {rounds}\nwarmup_s = 0.05\nmeasure_s = {measure_s}\n");
            text += &grid.replace("[[grid]]", &format!("[[{form}.grid]]"));
            text.push('\n');
        }
        self.write("experiments/e.toml", &text);
    }

    /// A command that runs the program in this home.
    pub fn narrows<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        let mut command = narrows(words);
        self.settle(&mut command);
        command
    }

    /// The same, started by a shell that first runs `first`.
    pub fn narrows_after(&self, first: &str, words: &[&str]) -> Command {
        let mut command = after(first, words);
        self.settle(&mut command);
        command
    }

    /// The same, with this soft limit on open files.
    pub fn narrows_limited(&self, files: u32, words: &[&str]) -> Command {
        let mut command = limited(files, words);
        self.settle(&mut command);
        command
    }

    /// The same, without the rights that open the kernel's counters and mount its tracepoints. Counts of system calls then
    /// come from tracing. A user who has no such rights has none to lose.
    pub fn narrows_uncounted(&self, words: &[&str]) -> Command {
        use std::os::unix::process::CommandExt;
        const CAP_SYS_ADMIN: libc::c_ulong = 21;
        const CAP_PERFMON: libc::c_ulong = 38;
        let mut command = self.narrows(words);
        // SAFETY: plain system calls, which are safe between fork and exec. If they fail, nothing changes.
        unsafe {
            command.pre_exec(|| {
                for right in [CAP_SYS_ADMIN, CAP_PERFMON] {
                    libc::prctl(libc::PR_CAPBSET_DROP, right, 0, 0, 0);
                }
                Ok(())
            });
        }
        command
    }

    fn settle(&self, command: &mut Command) {
        command.env("NARROWS_HOME", self.dir.path()).current_dir(self.dir.path());
        command.env("XDG_STATE_HOME", self.path("state"));
        mark(command, &self.mark);
    }

    /// Runs the program to its end, and asserts that none of its processes is left.
    pub fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Ended {
        let ended = run(&mut self.narrows(words));
        assert_nothing_left(&self.mark);
        ended
    }

    pub fn spawn(&self, words: &[&str]) -> Guarded {
        Guarded::spawn(&mut self.narrows(words))
    }

    pub fn assert_nothing_left(&self) {
        assert_nothing_left(&self.mark);
    }

    /// The file with the newest run: of experiments, or of commands.
    pub fn store_path(&self) -> PathBuf {
        let newest = |path: &PathBuf| {
            let began = Store::read(path).and_then(|store| store.newest_unix_s());
            began.ok().flatten().map_or(0, |began_s| (began_s * 1e3) as u64)
        };
        let stores = ["narrows.db", "state/narrows/narrows.db"].map(|name| self.path(name));
        stores.into_iter().max_by_key(newest).expect("two")
    }

    fn store(&self) -> Option<Store> {
        Store::read(&self.store_path()).ok()
    }

    /// Whether the store has a run.
    pub fn has_run(&self) -> bool {
        self.store().is_some_and(|store| store.resolve("last").is_ok())
    }

    /// The number of trials that the last run planned.
    pub fn planned(&self) -> usize {
        let store = self.store().expect("a store");
        let run = store.resolve("last").expect("a run");
        store.header(run).expect("its plan").plan.trials.len()
    }

    /// The observations of the last run; none if there is no run.
    pub fn observations(&self) -> Vec<Observation> {
        let Some(store) = self.store() else { return Vec::new() };
        store.resolve("last").and_then(|run| store.observations(run)).unwrap_or_default()
    }

    /// Asserts that each trial of the newest run was measured, with answers that were all right. `what` was measured.
    pub fn assert_all_right(&self, what: &str) {
        let trials = self.observations();
        let right = |m: &Measurement| m.successes > 0 && m.errors.is_empty();
        let all = trials.iter().all(|seen| matches!(&seen.outcome, Outcome::Measured(m) if right(m)));
        assert!(all, "{what}: {trials:#?}");
    }

    /// The measurements of a system's trials. All of them must have succeeded.
    pub fn measured(&self, system: &str) -> Vec<Measurement> {
        let measured: Vec<Measurement> = self
            .observations()
            .into_iter()
            .filter(|seen| seen.trial.scenario.system == system)
            .map(|seen| match seen.outcome {
                Outcome::Measured(measured) => *measured,
                Outcome::Failed(failure) => panic!("{:?}: {failure:#?}", seen.trial.scenario),
            })
            .collect();
        assert!(!measured.is_empty(), "no trial of {system}");
        measured
    }

    /// The failures of a system's trials. All of them must have failed.
    pub fn failed(&self, system: &str) -> Vec<Failure> {
        let failed: Vec<Failure> = self
            .observations()
            .into_iter()
            .filter(|seen| seen.trial.scenario.system == system)
            .map(|seen| match seen.outcome {
                Outcome::Failed(failure) => failure,
                Outcome::Measured(measured) => panic!("{:?}: {measured:#?}", seen.trial.scenario),
            })
            .collect();
        assert!(!failed.is_empty(), "no trial of {system}");
        failed
    }
}

/// A command that runs the program with these arguments and this soft limit on open files.
pub fn limited(files: u32, words: &[&str]) -> Command {
    after(&format!("ulimit -Sn {files}"), words)
}

/// A command that runs the program with these arguments, started by a shell that first runs `first`.
fn after(first: &str, words: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{first}; exec \"$0\" \"$@\""), NARROWS]).args(words);
    super::plain(&mut command);
    command
}

/// Whether every system took part. Reports a system whose needs are missing as skipped.
pub fn all_took_part(ended: &Ended) -> bool {
    let mut all = true;
    for line in ended.stderr.lines() {
        if let Some((system, why)) = line.split_once(" takes no part: ") {
            skip(system, why);
            all = false;
        }
    }
    all
}
