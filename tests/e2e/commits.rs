//! `narrows try --git`: commits of a user's repository, built and compared.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;

use crate::support::{self, Ended, Guarded, NARROWS, assert_nothing_left, has, mark, narrows, new_mark, run};

const SHORT: [&str; 10] = ["--rounds", "5", "-d", "300ms", "--warmup", "50ms", "--seed", "1", "-c", "4"];
/// One round, which decides nothing.
const ONCE: [&str; 10] = ["--rounds", "1", "-d", "300ms", "--warmup", "50ms", "--seed", "1", "-c", "4"];
/// Long enough for a slow commit to give more than twenty answers.
const LONGER: [&str; 10] = ["--rounds", "5", "-d", "800ms", "--warmup", "50ms", "--seed", "1", "-c", "4"];

/// A user's repository, whose runs and clones go to folders of their own.
struct Project {
    root: TempDir,
    mark: String,
}

impl Project {
    fn new() -> Self {
        let project = Self { root: TempDir::new().expect("a folder"), mark: new_mark() };
        fs::create_dir(project.top()).expect("a folder");
        project.git(&["init", "-q", "-b", "main"]);
        project
    }

    /// With a server of Node.js in each commit, which waits so many milliseconds before it answers. The commits have the tags
    /// `v0`, `v1`, ….
    fn waiting(waits_ms: &[u32]) -> Self {
        let project = Self::new();
        for (index, wait_ms) in waits_ms.iter().enumerate() {
            project.write("app.js", &waits(*wait_ms));
            project.write("number", &index.to_string());
            project.commit(&format!("v{index}"));
        }
        project
    }

    fn top(&self) -> PathBuf {
        self.root.path().join("project")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.top().join(name), text).expect("a file");
    }

    fn git(&self, words: &[&str]) {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
        let ended = Command::new("git").args(who).args(words).current_dir(self.top()).output().expect("git");
        assert!(ended.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ended.stderr));
    }

    fn commit(&self, tag: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", &format!("this is {tag}")]);
        self.git(&["tag", tag]);
    }

    fn command(&self, words: &[&str]) -> Command {
        self.verb("try", words)
    }

    fn verb(&self, verb: &str, words: &[&str]) -> Command {
        let mut command = Command::new(NARROWS);
        support::plain(&mut command);
        mark(&mut command, &self.mark);
        command.arg(verb).args(words).current_dir(self.top());
        command.env("XDG_CACHE_HOME", self.root.path().join("cache"));
        command.env("XDG_STATE_HOME", self.root.path().join("state"));
        command
    }

    /// Runs `narrows try`, and asserts that nothing in the repository has changed and that no process is left.
    fn tries(&self, words: &[&str]) -> Ended {
        let before = all_below(&self.top());
        let ended = run(&mut self.command(words));
        self.is_as(&before);
        ended
    }

    fn is_as(&self, before: &BTreeMap<PathBuf, (Vec<u8>, SystemTime)>) {
        let now = all_below(&self.top());
        let new: Vec<&PathBuf> =
            now.iter().filter(|(path, file)| before.get(*path) != Some(file)).map(|(path, _)| path).collect();
        assert!(new.is_empty() && now.len() == before.len(), "changed: {new:?}");
        assert_nothing_left(&self.mark);
    }

    /// The folders of commits in the cache.
    fn clones(&self) -> Vec<PathBuf> {
        let all = entries(self.root.path().join("cache/narrows/revisions")).flat_map(entries);
        all.filter(|path| path.is_dir()).collect()
    }

    /// The options for a machine that shares nothing with this one but the program: it has another cache and another folder.
    fn elsewhere(&self) -> [String; 4] {
        let (script, cache) = (self.root.path().join("machine"), self.root.path().join("there"));
        let agent = format!("cd /; XDG_CACHE_HOME={} exec {NARROWS} agent", cache.display());
        fs::write(&script, agent).expect("a file");
        ["--sut", &format!("exec:sh {}", script.display()), "--address", "127.0.0.1"].map(str::to_owned)
    }

    /// The folders of commits on that machine.
    fn clones_there(&self) -> Vec<PathBuf> {
        let all = entries(self.root.path().join("there/narrows/agents/revisions"));
        all.filter(|path| path.is_dir()).collect()
    }
}

fn entries(folder: PathBuf) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// A server of Node.js that answers after so many milliseconds.
fn waits(ms: u32) -> String {
    format!(
        "require('http').createServer((request, answer) => setTimeout(() => answer.end('ok'), {ms}))\
         .listen(Number(process.argv[2]), '127.0.0.1');\n"
    )
}

/// Every file and folder below one, with its content and its time.
fn all_below(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, known) = (entry.path(), entry.metadata().expect("its data"));
        let content = if known.is_dir() { Vec::new() } else { fs::read(&path).expect("a file") };
        found.insert(path.clone(), (content, known.modified().expect("a time")));
        if known.is_dir() {
            found.extend(all_below(&path));
        }
    }
    found
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn the_slower_commit_is_found_and_the_checkout_is_as_before() {
    if !has("git") || !has("node") {
        return;
    }
    let project = Project::waiting(&[20, 100]);
    let words = ["node built.js {port}", "--git", "v0..HEAD", "--build", "cp app.js built.js"];
    let ended = project.tries(&[&words[..], &LONGER].concat()).code(0);
    assert!(ended.stdout.contains("v0 leads") && ended.stdout.contains("than HEAD"), "{ended:#?}");
    assert!(ended.stderr.contains("building v0 (") && ended.stderr.contains("\"this is v1\""), "{ended:#?}");
    assert_eq!(project.clones().len(), 2);
    assert!(project.root.path().join("state/narrows/narrows.db").is_file());

    let gate = [&words[..], &LONGER, &["--fail-if", "rate<0.9"]].concat();
    project.tries(&gate).code(3).says(&["failed: HEAD"]);
    // The clones of a run are not saved with it.
    let store = project.root.path().join("state/narrows/narrows.db");
    let again = ["run", "--resume", "last", "--store", store.to_str().expect("a path")];
    run(&mut narrows(again)).code(1).says(&["cannot be continued", "runs it again"]);

    // They are quoted with their ids, and their history has both runs.
    let readme = project.root.path().join("README.md");
    fs::write(&readme, "<!-- narrows:begin try -->\n<!-- narrows:end try -->\n").expect("a file");
    let (store, readme) = (store.to_str().expect("a path"), readme.to_str().expect("a path"));
    run(&mut narrows(["report", "--store", store, "--readme", readme])).code(0);
    let quoted = support::squeezed(&fs::read_to_string(readme).expect("the README"));
    assert!(quoted.contains("**v0 leads: it is ") && quoted.contains("Commits: HEAD "), "{quoted}");
    let history = run(&mut narrows(["history", "--store", store, "--format", "otava"])).code(0).stdout;
    assert_eq!(history.lines().count(), 3, "{history}");

    // The work tree with a change and a new file, which HEAD lacks.
    project.write("app.js", "require('./new.js')(20);\n");
    project.write("new.js", &format!("module.exports = (ms) => {{ {} }};\n", waits(20)));
    let words = ["node app.js {port}", "--git", "HEAD..dirty"];
    let ended = project.tries(&[&words[..], &LONGER].concat()).code(0);
    assert!(ended.stdout.contains("dirty leads") && ended.stdout.contains("than HEAD"), "{ended:#?}");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn builds_must_agree_and_equal_ones_prove_nothing_more() {
    if !has("git") || !has("node") {
        return;
    }
    let project = Project::waiting(&[20, 100]);
    // Further builds of v1 are faster than v0. If they were as fast, a test for a difference would find one now and then.
    let build = format!("cp app.js built.js; case $PWD in *again) echo \"{}\" > built.js;; esac", waits(4));
    let words = ["node built.js {port}", "--git", "v0..v1", "--builds", "3"];
    let gate = ["--build", &build, "--fail-if", "rate<0.9", "--inconclusive", "pass"];
    let ended = project.tries(&[&words[..], &LONGER, &gate].concat()).code(0);
    assert!(!ended.stdout.contains("leads"), "{ended:#?}");
    let said = support::squeezed(&ended.stdout);
    assert!(said.contains("another build of the same commits does not show it"), "{ended:#?}");

    let both = ["--build", "cp app.js built.js", "--fail-if", "rate<0.9"];
    let ended = project.tries(&[&words[..], &LONGER, &both].concat()).code(3);
    assert!(
        ["v0 leads", "v0-build-2 leads", "v0-build-3 leads"].iter().all(|said| ended.stdout.contains(said)),
        "{ended:#?}"
    );
    assert!(support::squeezed(&ended.stdout).contains("rounds of each of 3 builds"), "{ended:#?}");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn equal_programs_are_said_to_be_a_against_a() {
    if !has("git") {
        return;
    }
    let project = Project::new();
    for tag in ["v0", "v1"] {
        project.write("number", tag);
        project.commit(tag);
    }
    let build = format!("cp {NARROWS} server");
    let words = ["./server serve -p {port}", "--git", "v0..v1", "--build", &build, "--builds", "2"];
    let ended = project.tries(&[&words[..], &ONCE].concat()).code(0);
    let ended = ended.says(&["A against A: all commits have the same ./server", "proves nothing more"]);
    assert!(!ended.stdout.contains("try-build-2"), "{ended:#?}");
    let same =
        ["sh -c 'exec $NARROWS serve -p {port}'", "--env", &format!("NARROWS={NARROWS}"), "--git", "v0,v0"];
    project
        .tries(&[&same[..], &ONCE].concat())
        .code(0)
        .says(&["A against A: all commits have the same files"]);
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn the_first_worse_commit_is_found() {
    if !has("git") || !has("node") {
        return;
    }
    let project = Project::waiting(&[20, 20, 20, 100, 100, 100]);
    let search = |range: &str, build: &str| {
        let words =
            ["node app.js {port}", "--bisect", "--threshold", "0.5", "--git", range, "--build", build];
        project.tries(&[&words[..], &SHORT].concat())
    };
    let ended = search("v0..v5", "true").code(1);
    let said = ended.stdout.lines().last().unwrap_or_default();
    assert!(
        said.starts_with("the first commit that is worse than v0 is") && said.contains("\"this is v3\""),
        "{said}"
    );
    assert!(search("v0..v2", "true").code(0).stdout.contains("v2 is not worse than v0"));
    search("v0..v5", "exit 1").code(125).says(&["the build of v0 exited with code 1"]);
    search("v0..nowhere", "true").code(125).says(&["no commit `nowhere`"]);
    // A commit that ends at once is passed over.
    project.git(&["checkout", "-q", "v2"]);
    project.write("app.js", "process.exit(3);\n");
    project.commit("broken");
    project.write("app.js", &waits(100));
    project.commit("slow");
    let ended = search("v2..slow", "true").code(125).says(&["cannot be measured", "exited with code 3"]);
    assert!(ended.stdout.contains("is one of"), "{ended:#?}");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn commits_are_built_on_the_machine_of_the_systems() {
    if !has("git") || !has("node") {
        return;
    }
    let project = Project::new();
    // More than is sent at once, and what git keeps besides contents.
    let big: Vec<u8> = (0..20_000_000_u32).map(|n| (n % 251) as u8).collect();
    fs::write(project.top().join("big"), &big).expect("a file");
    project.write("run.sh", "#!/bin/sh\nexec node inside \"$1\"\n");
    fs::set_permissions(project.top().join("run.sh"), fs::Permissions::from_mode(0o755)).expect("a mode");
    symlink("app.js", project.top().join("inside")).expect("a link");
    symlink("/etc/hostname", project.top().join("outside")).expect("a link");
    for (tag, wait_ms) in [("v0", 20), ("v1", 100)] {
        project.write("app.js", &waits(wait_ms));
        project.commit(tag);
    }
    let there = project.elsewhere();
    let there: Vec<&str> = there.iter().map(String::as_str).collect();
    let words = ["./run.sh {port}", "--git", "v0..v1", "--build", "test ! -e outside && echo >>built"];
    for times in 1..=2 {
        let ended = project.tries(&[&words[..], &ONCE, &there].concat()).code(0);
        let both = ended.stdout.contains("v0") && ended.stdout.contains("v1");
        assert!(both && !ended.stdout.contains("failed"), "{ended:#?}");
        let said = ended.stderr.contains("not sent (1: outside)");
        assert_eq!(said, times == 1, "the files are sent once: {ended:#?}");
        let clones = project.clones_there();
        assert_eq!(clones.len(), 2);
        for clone in clones {
            assert!(fs::read(clone.join("big")).expect("a file") == big, "the file is there as it was");
            assert_eq!(fs::read(clone.join("built")).expect("a file").len(), times, "what was built stays");
        }
    }
    assert!(project.clones().iter().all(|clone| !clone.join("built").exists()), "nothing is built here");
    let fails = ["./run.sh {port}", "--git", "v0..v1", "--build", "echo why; exit 4"];
    project.tries(&[&fails[..], &there].concat()).code(1).says(&["machine", "exited with code 4", "why"]);
    let lacks = ["./none {port}", "--git", "v0..v1"];
    project.tries(&[&lacks[..], &there].concat()).code(1).says(&["v0 has no ./none: --build COMMAND"]);
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_submodule_that_is_fetched_later_is_sent() {
    if !has("git") || !has("node") {
        return;
    }
    let (project, library) = (Project::waiting(&[1]), Project::waiting(&[1]));
    let lends = |name: &str| library.root.path().join(name);
    let from = lends("project").display().to_string();
    project.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "lib"]);
    project.commit("v1");
    project.git(&["submodule", "--quiet", "deinit", "--all", "--force"]);
    fs::remove_dir_all(project.top().join(".git/modules")).expect("it goes");
    fs::rename(lends("project"), lends("away")).expect("it goes away");
    let there = project.elsewhere();
    let words = ["node app.js {port}", "--git", "v1..v1", "--build", "cat lib/app.js"];
    let words: Vec<&str> =
        words.iter().chain(&ONCE).copied().chain(there.iter().map(String::as_str)).collect();
    project.tries(&words).code(1).says(&["lib/app.js: No such file"]);
    fs::rename(lends("away"), lends("project")).expect("it comes back");
    project.tries(&words).code(0);
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn the_first_worse_commit_is_found_elsewhere() {
    if !has("git") || !has("node") {
        return;
    }
    let project = Project::waiting(&[20, 20, 100]);
    let there = project.elsewhere();
    let there: Vec<&str> = there.iter().map(String::as_str).collect();
    let words = ["node app.js {port}", "--bisect", "--threshold", "0.5", "--git", "v0..v2"];
    let ended = project.tries(&[&words[..], &SHORT, &there].concat()).code(1);
    assert!(ended.stdout.lines().last().is_some_and(|said| said.contains("\"this is v2\"")), "{ended:#?}");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn reasons_of_commits_are_tested_with_their_clones() {
    if !has("git") || !has("cc") {
        return;
    }
    let project = Project::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/e2e/functions.c");
    let program = project.root.path().join("functions");
    let built = Command::new("cc").args(["-O2", "-g", "-o"]).arg(&program).arg(source).status();
    assert!(built.expect("cc").success());
    for (tag, reads) in [("v0", 1 << 20), ("v1", 100)] {
        project.write("run.sh", &format!("exec {} $1 0 0 {reads}\n", program.display()));
        project.commit(tag);
    }
    let body = project.root.path().join("body");
    fs::write(&body, vec![b'x'; 64 << 10]).expect("a file");
    let body = format!("@{}", body.display());
    let words = ["sh run.sh {port}", "--no-duet", "--body", &body, "--git", "v0..v1"];
    project.tries(&[&words[..], &SHORT].concat()).code(0);
    let counted = run(&mut project.verb("report", &["last", "--format", "json"])).code(0).json();
    if counted["experiments"][0]["figures"][0]["estimates"][0]["work"]["bytes_per_read"].is_null() {
        return;
    }
    let said = run(&mut project.verb("why", &["last"])).code(0).stdout;
    assert!(said.contains("reads of 100 bytes") && said.contains("This alone makes "), "{said}");
    project.git(&["tag", "-f", "v1", "v0"]);
    run(&mut project.verb("why", &["1"])).code(1).says(&["v1 was", "compare them again"]);
}

/// Interrupts the build of a commit, and asserts that nothing is left.
fn is_interrupted(elsewhere: bool) {
    if !has("git") {
        return;
    }
    let project = Project::new();
    project.write("app", "");
    project.commit("v0");
    let before = all_below(&project.top());
    let there = if elsewhere { project.elsewhere().to_vec() } else { Vec::new() };
    let words = ["./app {port}", "--git", "v0..v0", "--build", "touch begun; sleep 60 & sleep 60"];
    let words: Vec<&str> = words.into_iter().chain(there.iter().map(String::as_str)).collect();
    let clones = || if elsewhere { project.clones_there() } else { project.clones() };
    let guarded = Guarded::spawn(&mut project.command(&words));
    let deadline = Instant::now() + Duration::from_secs(30);
    while !clones().iter().any(|clone| clone.join("begun").exists()) {
        assert!(Instant::now() < deadline, "the build has not begun");
        std::thread::sleep(Duration::from_millis(10));
    }
    guarded.signal(libc::SIGINT);
    guarded.end().code(130).says(&["interrupted before the first trial"]);
    project.is_as(&before);
    assert_eq!(clones(), Vec::<PathBuf>::new());
}

#[test]
fn an_interrupted_build_leaves_nothing() {
    is_interrupted(false);
    is_interrupted(true);
}

#[test]
fn what_cannot_be_compared_is_said_before_anything_is_built() {
    if !has("git") {
        return;
    }
    let project = Project::waiting(&[20, 20]);
    let own = format!("{} {{port}}", project.top().join("app").display());
    for (words, code, why) in [
        (vec!["./app {port}", "--git", "v0..nowhere"], 1, "no commit `nowhere`"),
        (vec!["./app {port}", "--git", "v0"], 1, "write two"),
        (vec!["./app {port}", "--git", "v0..v1"], 1, "--build COMMAND builds it"),
        (
            vec!["./app {port}", "--git", "v0..v1", "--builds", "2", "--fail-if", "rate<0.9"],
            2,
            "--fail-if needs --builds 3",
        ),
        (vec!["./app {port}", "--git", "v0..v1", "--build", "echo why; exit 4"], 1, "exited with code 4"),
        (vec!["./app {port}", "./b {port}", "--git", "v0..v1"], 2, "give one"),
        (vec!["http://127.0.0.1:1/", "--git", "v0..v1"], 2, "belongs to no commit"),
        (vec!["./app {port}", "--git", "v0..v1", "--save", "x"], 2, "--save cannot save commits"),
        (vec!["./app {port}", "--build", "true"], 2, "--git"),
        (vec![&own, "--git", "v0..v1"], 2, "relative to this folder"),
        (vec!["node app.js {port}", "--git", "v0..dirty", "--bisect"], 2, "`dirty` is none"),
        (vec!["node app.js {port}", "--git", "v1..v0", "--bisect"], 2, "write v1...v0"),
        (vec!["node app.js {port}", "--git", "v0..v1", "--bisect", "--names", "a"], 2, "leave out --names"),
    ] {
        project.tries(&words).code(code).says(&[why]);
    }
    let shown = project.tries(&["./app {port}", "--git", "v0..v1", "--dry-run"]).code(0);
    assert_eq!(shown.stdout, "v0: ./app {port}\nv1: ./app {port}\n");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_ledger_keeps_the_commits_of_its_attempts_and_refuses_another_base() {
    if !has("git") || !has("node") {
        return;
    }
    let project = Project::waiting(&[100, 1, 2]);
    let ledger = project.root.path().join("ledger.json");
    let of = |commits: &str| {
        let options = ["--no-duet", "--format", "verdict", "--ledger", ledger.to_str().expect("a path")];
        project.tries(&[&["node app.js {port}", "--git", commits][..], &options, &LONGER].concat())
    };
    let verdict = of("v0,v1").code(0).json();
    assert_eq!(
        (&verdict["verdict"], &verdict["candidate"]["name"]),
        (&"accept".into(), &"v1".into()),
        "{verdict:#}"
    );
    let kept = fs::read_to_string(&ledger).expect("the ledger");
    let kept: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    let commits = [&kept["question"]["base"]["commit"], &kept["attempts"][0]["candidate"]["commit"]];
    let commits = commits.map(|commit| commit.as_str().expect("a commit"));
    assert!(commits.iter().all(|commit| commit.len() == 40) && commits[0] != commits[1], "{kept:#}");
    of("v1,v2").code(2).says(&["keeps another session", "let --git begin with it"]);
}
