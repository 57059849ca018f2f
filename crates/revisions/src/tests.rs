//! Against real repositories.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;

use super::*;

/// A user's repository and a cache.
struct Users {
    root: TempDir,
}

impl Users {
    /// With one commit for each text of the file `app`; each has a tag `v1`, `v2`, ….
    fn new(texts: &[&str]) -> Self {
        let users = Self { root: TempDir::new().expect("a folder") };
        fs::create_dir_all(users.top().join("sub")).expect("a folder");
        users.git(&["init", "-q", "-b", "main"]);
        users.write("sub/keep", "");
        users.write(".gitignore", "built\n");
        for (index, text) in texts.iter().enumerate() {
            users.write("app", text);
            users.git(&["add", "-A"]);
            users.git(&["commit", "-q", "-m", &format!("app says {text}")]);
            users.git(&["tag", &format!("v{}", index + 1)]);
        }
        users
    }

    fn top(&self) -> PathBuf {
        self.root.path().join("repository")
    }

    fn cache(&self) -> PathBuf {
        self.root.path().join("cache")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.top().join(name), text).expect("a file");
    }

    fn git(&self, words: &[&str]) -> String {
        git(&self.top(), words)
    }

    fn repository(&self) -> Repository {
        Repository::find(&self.top(), &self.cache(), &Arc::new(AtomicBool::new(false))).expect("a repository")
    }

    fn resolve(&self, text: &str) -> std::result::Result<Vec<Revision>, String> {
        self.repository().resolve(&[text.to_owned()]).map_err(|trouble| trouble.to_string())
    }
}

fn git(folder: &Path, words: &[&str]) -> String {
    let who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always"];
    let ended = Command::new("git").args(who).args(words).current_dir(folder).output().expect("git");
    assert!(ended.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8_lossy(&ended.stdout).trim().to_owned()
}

/// Every file below a folder with its content and its time, and every folder.
fn all_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, known) = (entry.path(), entry.metadata().expect("its data"));
        let content = if known.is_dir() { Vec::new() } else { fs::read(&path).expect("a file") };
        found.push((path.clone(), content, known.modified().expect("a time")));
        if known.is_dir() {
            found.extend(all_below(&path));
        }
    }
    found.sort();
    found
}

/// Asserts that nothing below the folder has changed.
fn as_before(folder: &Path, before: &[(PathBuf, Vec<u8>, std::time::SystemTime)]) {
    let now = all_below(folder);
    let new: Vec<&PathBuf> = now.iter().filter(|one| !before.contains(one)).map(|(path, ..)| path).collect();
    assert!(new.is_empty() && now.len() == before.len(), "changed: {new:?}");
}

#[test]
fn commits_are_named_as_in_git() {
    let users = Users::new(&["one", "two", "three"]);
    users.git(&["checkout", "-q", "-b", "side", "v2"]);
    users.write("other", "x");
    users.git(&["add", "-A"]);
    users.git(&["commit", "-q", "-m", "a side"]);
    let subjects = |text: &str| -> Vec<String> {
        let found = users.resolve(text).expect("they exist");
        found.into_iter().map(|revision| format!("{} {}", revision.name, revision.subject)).collect()
    };
    assert_eq!(subjects("v1..main"), ["v1 app says one", "main app says three"]);
    assert_eq!(subjects("main..."), ["merge-base app says two", "HEAD a side"]);
    assert_eq!(subjects("v1.."), ["v1 app says one", "HEAD a side"]);
    let all = users.repository().resolve(&["v1".to_owned(), "v2".to_owned(), "main~0".to_owned()]);
    assert_eq!(all.expect("they exist").len(), 3);
    let id = users.git(&["rev-parse", "v1"]);
    assert_eq!(users.resolve(&format!("{id}..v2")).expect("they exist")[0].name, id[..9]);
    for (wrong, why) in [
        ("v1", "one commit is not enough"),
        ("v1..nowhere", "no commit `nowhere`"),
        ("--all..v1", "no commit `--all`"),
    ] {
        let told = users.resolve(wrong).expect_err(wrong);
        assert!(told.contains(why), "{wrong}: {told}");
    }
}

#[test]
fn a_clone_has_the_files_of_its_commit_and_keeps_what_was_built() {
    let users = Users::new(&["one", "two"]);
    let before = all_below(&users.top());
    let repository = users.repository();
    let found = repository.resolve(&["v1..v2".to_owned()]).expect("they exist");
    let one = repository.clone_of(&found[0], 1).expect("a clone");
    let two = repository.clone_of(&found[1], 1).expect("a clone");
    let app = |clone: &Clone| fs::read_to_string(clone.top.join("app")).expect("a file");
    assert_eq!([app(&one), app(&two)], ["one", "two"]);
    one.build("cp app built; echo changed > app; git describe --tags > version").expect("a build");
    assert_eq!(fs::read_to_string(one.top.join("version")).expect("a file"), "v1\n");
    let held = repository.clone_of(&found[0], 1).expect_err("it is held").to_string();
    assert!(held.contains("another narrows uses"), "{held}");
    drop(one);
    let one = repository.clone_of(&found[0], 1).expect("a clone");
    assert_eq!(app(&one), "one", "what the commit has is as in the commit");
    assert!(one.top.join("built").exists(), "what was built is kept");
    let again = repository.clone_of(&found[0], 2).expect("a clone");
    assert_eq!(app(&again), "one");
    assert_ne!(again.top.as_os_str().len(), one.top.as_os_str().len());
    as_before(&users.top(), &before);

    // All are held, so none is removed; then all are.
    repository.tidy(0);
    assert!(one.top.is_dir() && two.top.is_dir() && again.top.is_dir());
    drop((one, again));
    repository.tidy(0);
    let left = fs::read_dir(two.top.parent().expect("the clones")).expect("a folder").flatten();
    let left: Vec<PathBuf> = left.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    assert_eq!(left, std::slice::from_ref(&two.top));
}

#[test]
fn a_failed_build_shows_its_output_and_an_interrupted_one_leaves_nothing() {
    let users = Users::new(&["one"]);
    let cancel = Arc::new(AtomicBool::new(false));
    let repository =
        Repository::find(&users.top().join("sub"), &users.cache(), &cancel).expect("a repository");
    let revision = repository.revision("v1").expect("it exists");
    let clone = repository.clone_of(&revision, 1).expect("a clone");
    assert!(clone.folder.ends_with("sub"));
    let told = clone.build("echo this is why; exit 3").expect_err("it fails").to_string();
    assert!(told.contains("the build of v1 exited with code 3") && told.ends_with("this is why"), "{told}");
    std::thread::scope(|scope| {
        let build = scope.spawn(|| clone.build("touch begun; sleep 60"));
        while !clone.folder.join("begun").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(matches!(build.join().expect("a thread"), Err(Trouble::Interrupted)));
    });
    assert!(!clone.top.exists());
}

#[test]
fn the_work_tree_with_its_changes_is_a_commit_of_its_own() {
    let users = Users::new(&["one", "two"]);
    users.write("app", "three");
    users.write("new file", "new");
    users.write("built", "ignored");
    users.git(&["add", "new file"]);
    fs::remove_file(users.top().join("sub/keep")).expect("a file");
    let before = all_below(&users.top());
    let found = users.resolve("HEAD..dirty").expect("they exist");
    assert_eq!(found, users.resolve("HEAD..dirty").expect("they exist"), "the same files have the same id");
    let repository = users.repository();
    for build in [1, 2] {
        let clone = repository.clone_of(&found[1], build).expect("a clone");
        assert_eq!(fs::read_to_string(clone.top.join("app")).expect("a file"), "three");
        assert_eq!(fs::read_to_string(clone.top.join("new file")).expect("a file"), "new");
        assert!(!clone.top.join("built").exists() && !clone.top.join("sub/keep").exists());
    }
    as_before(&users.top(), &before);
    // What a killed build and a killed git leave.
    let clone = repository.clone_of(&found[1], 1).expect("a clone");
    let top = clone.top.clone();
    fs::write(top.join("half"), "written").expect("a file");
    fs::write(top.with_extension("building"), "").expect("a file");
    fs::write(top.join(".git/index.lock"), "").expect("a file");
    drop(clone);
    let again = repository.revision("dirty").expect("it is there");
    let clone = repository.clone_of(&again, 1).expect("a clone");
    assert!(clone.top == top && !top.join("half").exists() && top.join("new file").exists());
    // A damaged one is made anew.
    drop(clone);
    fs::remove_dir_all(top.join(".git/objects")).expect("its objects");
    let clone = repository.clone_of(&repository.revision("dirty").expect("it is made"), 1).expect("a clone");
    assert!(clone.top.join("new file").exists());

    fs::create_dir(users.top().join("other")).expect("a folder");
    git(&users.top().join("other"), &["init", "-q"]);
    let told = users.resolve("HEAD..dirty").expect_err("it would be empty");
    assert!(told.contains("other/ is a repository of its own"), "{told}");
    let clean = Users::new(&["one"]);
    let found = clean.resolve("HEAD..dirty").expect("they exist");
    assert_eq!(found[0].commit, found[1].commit);
}

#[test]
fn a_shallow_clone_is_told_how_to_get_the_rest() {
    let users = Users::new(&["one", "two", "three"]);
    let shallow = users.root.path().join("shallow");
    let from = format!("file://{}", users.top().display());
    git(users.root.path(), &["clone", "-q", "--depth", "1", &from, "shallow"]);
    let repository =
        Repository::find(&shallow, &users.cache(), &Arc::new(AtomicBool::new(false))).expect("it is one");
    let told = repository.resolve(&["v1..HEAD".to_owned()]).expect_err("it is not there").to_string();
    assert!(told.contains("fetch-depth: 0") && told.contains("--unshallow"), "{told}");
    let head = repository.revision("HEAD").expect("it is there");
    let clone = repository.clone_of(&head, 1).expect("a clone");
    assert_eq!(fs::read_to_string(clone.top.join("app")).expect("a file"), "three");
}

#[test]
fn submodules_are_checked_out_from_the_users_own() {
    let users = Users::new(&["one"]);
    let library = Users::new(&["library one"]);
    let from = library.top().display().to_string();
    users.git(&["submodule", "--quiet", "add", "--name", "the lib.path", &from, "lib"]);
    users.git(&["commit", "-q", "-m", "a library"]);
    // Its origin is gone, and the user has what is needed.
    let commit = git(&users.top().join("lib"), &["rev-parse", "HEAD"]);
    drop(library);
    let repository = users.repository();
    let clone = repository.clone_of(&repository.revision("HEAD").expect("it exists"), 1).expect("a clone");
    assert_eq!(fs::read_to_string(clone.top.join("lib/app")).expect("a file"), "library one");
    assert_eq!(git(&clone.top.join("lib"), &["rev-parse", "HEAD"]), commit);
    let files = clone.files().expect("the names");
    assert!(files.contains(&"lib/app".to_owned()) && files.contains(&"app".to_owned()), "{files:?}");
    users.write("lib/app", "changed");
    let told = users.resolve("HEAD..dirty").expect_err("it would be lost");
    assert!(told.contains("the submodule lib has changes"), "{told}");
}

#[test]
fn a_commit_that_was_sent_is_built_as_its_clone() {
    let users = Users::new(&["one"]);
    let repository = users.repository();
    let revision = repository.revision("HEAD").expect("it exists");
    let clone = repository.clone_of(&revision, 1).expect("a clone");
    fs::write(clone.top.join("built"), "here").expect("a file");
    let (there, never) = (users.root.path().join("there"), AtomicBool::new(false));
    let place = |build| Sent::place(&there, &revision.commit, build);
    let mut sent = place(1).expect("a place");
    assert!(!sent.is_there() && sent.is_of(&revision.commit, 1) && !sent.is_of(&revision.commit, 2));
    let taken = place(1).expect_err("it is taken").to_string();
    assert!(taken.contains("another narrows uses"), "{taken}");
    let files = clone.files().expect("the names");
    for part in systems::parcel::Parts::of(&clone.top, &files) {
        sent.take(&part.expect("a part")).expect("it is taken");
    }
    let mut build = |prefix: &str, command| sent.build(("HEAD", Path::new(prefix)), command, &never);
    let folder = build("sub", Some("cat ../app >../built")).expect("it is built");
    assert_eq!(fs::read_to_string(folder.join("../built")).expect("a file"), "one");
    assert_eq!(build("sub", None).expect("it is there"), folder);
    for prefix in ["none", "../..", "/"] {
        assert!(build(prefix, Some("true")).expect_err("no folder").to_string().contains("has no folder"));
    }
    let failed = build("", Some("echo why; exit 3")).expect_err("it fails").to_string();
    assert!(failed.contains("HEAD exited with code 3") && failed.contains("why"), "{failed}");
    let mut empty = place(2).expect("another place");
    let told = empty.build(("HEAD", Path::new("")), None, &never).expect_err("nothing came").to_string();
    assert!(told.contains("has no files that can be sent"), "{told}");
    // What was sent and built stays for the next time, and goes after a build that was interrupted.
    drop(sent);
    let mut sent = place(1).expect("a place");
    assert!(sent.is_there() && folder.join("../built").exists());
    let interrupted = sent.build(("HEAD", Path::new("")), Some("sleep 60"), &AtomicBool::new(true));
    assert!(matches!(interrupted, Err(Trouble::Interrupted)) && !sent.is_there());
    for odd in ["", "HEAD", "../../../../../../../../../../../../../etc", &"g".repeat(40)] {
        assert!(Sent::place(&there, odd, 1).is_err(), "{odd}");
    }
}

#[test]
fn the_first_worse_commit_is_found_and_unclear_ones_are_passed_over() {
    let texts: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let users = Users::new(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let repository = users.repository();
    let id = |name: &str| repository.revision(name).expect("it exists").commit;
    for (first, skipped) in [(2, None), (13, None), (20, None), (13, Some(8)), (13, Some(12))] {
        let mut search = Bisect::new(&id("v1"), &id("v20"));
        let mut tried = 0;
        let end = loop {
            let commit = match search.next(&repository).expect("a step") {
                Next::Try { commit, .. } => commit,
                end => break end,
            };
            tried += 1;
            let number = (1..=20).find(|n| id(&format!("v{n}")) == commit).expect("one of them");
            match number {
                n if Some(n) == skipped => search.skip(&commit),
                n if n < first => search.good(&commit),
                _ => search.worse(&commit),
            }
        };
        assert!(tried <= 7, "{tried}");
        match skipped {
            Some(12) => {
                let Next::Unclear(left) = end else { panic!("{end:?}") };
                assert_eq!(left.len(), 2);
            }
            _ => assert_eq!(end, Next::Found(id(&format!("v{first}")))),
        }
    }
}
