//! Stores and files of runs with made-up figures: a store that is damaged, full or cannot be written, and what a finished run keeps.
//! `tests/e2e/run_store.rs` interrupts runs.

use std::fs;

use crate::support;
use crate::support::Ended;
use crate::support::home::Home;

/// A home with an experiment and made-up figures.
fn home() -> Home {
    let home = Home::new();
    home.twin("twin");
    home.experiment("requests", "[\"twin\"]", 3, "[[grid]]\nconnections = 3\n");
    home.write("truth.toml", "figure = 1000.0");
    home
}

/// The same with a run of one round.
fn made_up() -> Home {
    let home = home();
    home.run(["run", "e", "--rounds", "1", "--fake", "truth.toml"]).code(0);
    home
}

fn list(home: &Home) -> String {
    home_report(home, &[]).stdout
}

/// Runs `narrows report`, even during a run.
fn home_report(home: &Home, words: &[&str]) -> Ended {
    home.spawn(&[&["report"], words].concat()).end().code(0)
}

#[test]
fn a_second_report_equals_the_first_and_a_finished_run_has_nothing_to_resume() {
    let home = home();
    let ended = home.run(["run", "e", "--rounds", "file", "--seed", "5", "--fake", "truth.toml"]).code(0);
    for format in ["text", "markdown", "json", "csv"] {
        let [first, second] = [0, 1].map(|_| home_report(&home, &["last", "--format", format]).stdout);
        assert!(!first.is_empty() && first == second, "{format}");
        let file = home.path("report");
        let written = home_report(&home, &["1", "--format", format, "-o", file.to_str().unwrap()]);
        assert_eq!((written.stdout.as_str(), fs::read_to_string(&file).unwrap()), ("", first.clone()));
        if format == "text" {
            assert!(ended.stdout.contains("`narrows report 1` prints the tables"), "{ended:#?}");
        }
    }
    let before = home.observations();
    home.run(["run", "--resume", "1", "--fake", "truth.toml"]).code(0).says(&["run 1: 0 of 6 trials"]);
    assert_eq!(home.observations(), before);
}

#[test]
fn a_run_without_a_number_of_rounds_ends_by_itself_and_keeps_all_trials() {
    let home = Home::new();
    home.twin("twin");
    home.write("truth.toml", "figure = 1000.0");
    home.experiment("requests", "[\"twin\"]", 3, "[[grid]]\nconnections = 3\nkeep_alive = [true, false]\n");
    let ended = home.run(["run", "e", "--budget", "20s", "--fake", "truth.toml"]).code(0);
    let seen = home.observations();
    assert!(seen.len() >= 9 && seen.len() == home.planned(), "{ended:#?}");
    assert!(seen.iter().all(|observation| observation.took_s > 0.0));
    assert!(list(&home).contains("finished"), "{}", list(&home));
    // The store has what it decided, and there is nothing left to resume.
    home.run(["run", "--resume", "last", "--fake", "truth.toml"]).code(0).says(&["run 1: 0 of"]);
    assert_eq!(home.observations(), seen);
}

/// Asserts that an error is one sentence and repeats nothing.
fn once(ended: Ended, words: &str) {
    assert_eq!((ended.stderr.matches(words).count(), ended.stderr.lines().count()), (1, 1), "{ended:#?}");
}

#[test]
fn an_error_of_a_store_is_reported_once_with_the_remedy() {
    let home = made_up();
    let whole = fs::read(home.path("narrows.db")).unwrap();
    fs::write(home.path("short.db"), &whole[..whole.len() / 2]).unwrap();
    once(home.run(["report", "last", "--store", "short.db"]).code(1), "short.db is damaged");
    for words in [&["report"][..], &["run", "e", "--fake", "truth.toml"]] {
        once(
            home.run([words, &["--store", "systems"]].concat()).code(1),
            "systems is a folder: --store must name a file",
        );
    }
    once(home.run(["compare", "narrows.db", "1"]).code(1), "narrows.db is a store");
}

#[test]
fn a_store_can_be_read_on_a_read_only_file_system() {
    let home = made_up();
    let report = home_report(&home, &["last"]).stdout;
    // SQLite cannot create its file beside the store, not even as root, because the name is a link to itself.
    let beside = home.path("narrows.db-shm");
    let _ = fs::remove_file(&beside);
    std::os::unix::fs::symlink(&beside, &beside).unwrap();
    assert_eq!(home_report(&home, &["last"]).stdout, report);
    assert!(list(&home).contains("run e --rounds 1"));
    home.run(["run", "e", "--fake", "truth.toml"]).code(1).says(&["narrows.db"]);
}

/// A shell command that limits files to a few hundred kilobytes, and makes exceeding the limit an error instead of a
/// signal.
const SMALL_FILES: &str = "trap '' XFSZ; ulimit -f 600";

#[test]
fn a_full_disk_ends_a_run_with_the_number_of_kept_trials_and_how_to_continue() {
    let home = made_up();
    let words = ["run", "e", "--rounds", "60", "--fake", "truth.toml", "--quiet"];
    let ended = support::run(&mut home.narrows_after(SMALL_FILES, &words)).code(1);
    let kept = home.observations().len();
    assert!((1..120).contains(&kept), "{kept}");
    let ended = ended.says(&[
        "narrows.db cannot be read or written",
        &format!("{kept} of 120 trials are kept: `narrows run --resume 2` does what is missing"),
    ]);
    assert!(
        ended.stdout.contains("run 2 is saved") && ended.stderr.matches("I/O error").count() == 1,
        "{ended:#?}"
    );
    home.run(["run", "--resume", "2", "--fake", "truth.toml"]).code(0);
    assert_eq!(home.observations().len(), 120);
}

#[test]
fn a_file_is_written_completely_or_not_at_all() {
    let home = made_up();
    fs::create_dir(home.path("out")).unwrap();
    let files = || fs::read_dir(home.path("out")).unwrap().count();
    let words = ["report", "last", "--format", "html", "-o", "out/run.html"];
    let none = "trap '' XFSZ; ulimit -f 1";
    support::run(&mut home.narrows_after(none, &words)).code(1).says(&["cannot write", "run.html"]);
    assert_eq!(files(), 0);
    home.run(words).code(0);
    let whole = fs::read(home.path("out/run.html")).unwrap();
    support::run(&mut home.narrows_after(none, &words)).code(1);
    assert_eq!((files(), fs::read(home.path("out/run.html")).unwrap()), (1, whole));
    // A path that is not a regular file is written to directly.
    home.run(["report", "last", "-o", "/dev/null"]).code(0);
    home.run(["report", "last", "-o", "/dev/full"]).code(1).says(&["cannot write /dev/full"]);
    home.run(["report", "last", "-o", "systems"]).code(1).says(&["cannot write systems"]);
    // A drive does not begin if its log cannot be written.
    let load = |log: &str| home.run(["load", "http://127.0.0.1:1/", "-n", "1", "--hlog", log]).code(1);
    assert_eq!(load("none/x").says(&["cannot write none/x"]).stdout, "", "it was driven");
    // Nothing listens there, so there is no log either.
    load("out/x").says(&["nothing listens at 127.0.0.1:1"]);
    assert_eq!(files(), 1);
}

#[test]
fn a_store_can_be_named_for_every_verb() {
    let home = Home::new();
    home.twin("twin");
    home.write("truth.toml", "figure = 1000.0");
    home.experiment("requests", "[\"twin\"]", 1, "[[grid]]\nconnections = 1\n");
    home.run(["run", "e", "--rounds", "file", "--store", "other.db", "--fake", "truth.toml"]).code(0);
    assert!(home.path("other.db").exists() && !home.path("narrows.db").exists());
    assert!(home_report(&home, &["last", "--store", "other.db"]).stdout.contains("twin"));
    let none = home.run(["report", "last"]).code(1).says(&["narrows.db", "--store"]);
    assert_eq!(none.stdout, "");
    assert!(!home.path("narrows.db").exists(), "looking must not make a store");
    home.run(["report", "7", "--store", "other.db"]).code(1).says(&["no run `7`", "1"]);
    home.write("text.db", "this is no database, however long it may be, and must not be overwritten");
    for verb in [&["run", "e", "--fake", "truth.toml"][..], &["report", "last"]] {
        home.run([verb, &["--store", "text.db"]].concat()).code(1).says(&["text.db is not a database"]);
    }
}
