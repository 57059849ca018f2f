//! What a run has measured is kept, however the run ends.

use std::fs;

use crate::support;
use crate::support::home::Home;
use crate::support::{Ended, Guarded, load, until};
use lab::observation::Observation;

/// A system whose third start waits as long as the file `hold` exists. The run then pauses in the middle, with at least
/// two finished trials of this system.
const GATE: &str = "n=$(cat count 2>/dev/null || echo 0)
echo $((n + 1)) > count.new
mv count.new count
if [ \"$n\" -ge 2 ]; then while [ -e hold ]; do sleep 0.02; done; fi
exec \"$narrows\" serve --any \"$port\"";

const ROUNDS: u32 = 4;
/// Each round has one trial of the gate and one of the reference.
const TRIALS: usize = 2 * ROUNDS as usize;

fn home() -> Home {
    let home = Home::new();
    home.shell_server("gate", GATE, "[ready]\ntimeout_s = 300");
    home.write("systems/gate/hold", "");
    home.experiment("requests", "[\"gate\"]", ROUNDS, "[[grid]]\nconnections = 2\n");
    home
}

/// Starts the run and returns when it has paused.
fn run_into_the_middle(home: &Home) -> Guarded {
    let mut run = home.spawn(&["run", "e", "--rounds", "file"]);
    let count = home.path("systems/gate/count");
    let stands = until(|| {
        assert!(run.running(), "the run ended by itself");
        fs::read_to_string(&count).is_ok_and(|n| n.trim() == "3")
    });
    assert!(stands, "the third trial of the gate does not begin");
    run
}

fn open_the_gate(home: &Home) {
    fs::remove_file(home.path("systems/gate/hold")).expect("the gate was shut");
}

/// Resumes the run, and asserts that earlier observations are unchanged and that none is missing or repeated.
fn resume(home: &Home, before: &[Observation]) {
    open_the_gate(home);
    let missing = TRIALS - before.len();
    let ended = home.run(["run", "--resume", "last"]).code(0);
    let ended = ended.says(&[&format!("run 1: {missing} of {TRIALS} trials")]);
    let after = home.observations();
    assert!(before.iter().all(|kept| after.contains(kept)), "{ended:#?}");
    let trials: Vec<u32> = after.iter().map(|observation| observation.trial.index).collect();
    assert_eq!(trials, (0..TRIALS as u32).collect::<Vec<_>>());
    home.measured("gate");
    home.measured("reference");
    // The gate had started three times, and two of these trials were measured. Then only the missing ones ran.
    let starts = fs::read_to_string(home.path("systems/gate/count")).unwrap();
    assert_eq!(starts.trim(), (ROUNDS + 1).to_string());
    assert!(list(home).contains("finished"), "{}", list(home));
}

fn list(home: &Home) -> String {
    home_report(home, &[]).stdout
}

/// Runs `narrows report`, even during a run.
fn home_report(home: &Home, words: &[&str]) -> Ended {
    home.spawn(&[&["report"], words].concat()).end().code(0)
}

#[test]
fn a_killed_run_keeps_every_finished_trial_and_resumes_with_the_missing_ones() {
    let home = home();
    let run = run_into_the_middle(&home);
    let before = home.observations();
    assert!((2..TRIALS).contains(&before.len()), "{}", before.len());
    run.signal(libc::SIGKILL);
    run.end();
    // The processes that it started end with it.
    home.assert_nothing_left();
    assert_eq!(home.observations(), before);
    let report = home_report(&home, &["last"]);
    assert!(report.stdout.contains(&format!("{} of {TRIALS} trials", before.len())), "{report:#?}");
    assert!(list(&home).contains("unfinished"), "{}", list(&home));
    resume(&home, &before);
}

#[test]
fn an_interrupted_run_ends_at_once_and_says_how_to_resume() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let home = home();
        let run = run_into_the_middle(&home);
        let before = home.observations();
        run.signal(signal);
        let ended = run.end().code(130).says(&["interrupted", "narrows run --resume 1"]);
        home.assert_nothing_left();
        // The finished trials are reported.
        assert!(ended.stdout.contains("`narrows report 1`"), "{ended:#?}");
        assert_eq!(home.observations(), before);
        if signal == libc::SIGINT {
            resume(&home, &before);
        }
    }
}

#[test]
fn a_run_that_is_interrupted_while_driving_leaves_no_process() {
    if !support::has("node") {
        return;
    }
    let home = Home::new();
    // The hundredth request shows that it is being driven. Readiness and the check of equal work need fewer.
    let script = "let n = 0;
        require('http').createServer((request, answer) => {
            if (++n === 100) require('fs').writeFileSync('driven', '');
            answer.end('ok');
        }).listen(port, '127.0.0.1');";
    home.node_server("counting", script, "[ready]\nhttp = \"/\"\ntimeout_s = 120");
    home.timed_experiment("requests", "[\"counting\"]", 1, 3600.0, "[[grid]]\nconnections = 4\n");
    // In one of two orders the reference would run first, for an hour.
    home.write("systems/reference/system.toml", "none");
    let mut run = home.spawn(&["run", "e", "--rounds", "file"]);
    let driven = home.path("systems/counting/driven");
    assert!(until(|| driven.exists() || !run.running()) && run.running());
    run.signal(libc::SIGINT);
    run.end().code(130).says(&["--resume 1"]);
    home.assert_nothing_left();
    assert_eq!(home.observations(), []);
}

#[test]
fn an_interruption_while_system_calls_are_counted_keeps_what_was_measured() {
    if !support::has("node") {
        return;
    }
    let home = Home::new();
    // The first connection has the first request, the second the check of equal work, and the third is measured.
    let script = "let connections = 0;
        require('http').createServer((request, answer) => {
            if (!request.socket.known && ++connections === 4) process.kill(process.ppid, 'SIGINT');
            request.socket.known = true;
            answer.end('ok');
        }).listen(port, '127.0.0.1');";
    home.node_server("counted", script, "[ready]\ntimeout_s = 120");
    home.experiment("requests", "[\"counted\"]", 2, "[[grid]]\nconnections = 1\n");
    // In one of two orders the reference is measured first.
    home.write("systems/reference/system.toml", "none");
    home.run(["run", "e", "--rounds", "file"]).code(130).says(&["--resume 1"]);
    home.assert_nothing_left();
    assert_eq!(home.measured("counted").len(), 1);
}

#[test]
fn a_run_can_be_reported_before_it_has_ended() {
    let home = home();
    let run = run_into_the_middle(&home);
    let done = home.observations().len();
    assert!(list(&home).contains(&format!("{done}/{TRIALS}")), "{}", list(&home));
    for format in ["text", "markdown", "json", "csv"] {
        let report = home_report(&home, &["last", "--format", format]);
        assert!(report.stdout.contains("reference"), "{format}: {report:#?}");
    }
    let report = home_report(&home, &["last", "--format", "json"]).json();
    assert_eq!(report["experiments"][0]["trials_done"], done);
    assert_eq!(report["experiments"][0]["trials_planned"], TRIALS);
    // The report did not disturb the run, which ends normally.
    open_the_gate(&home);
    run.end().code(0);
    home.assert_nothing_left();
    assert_eq!(home.observations().len(), TRIALS);
}

#[test]
fn a_second_report_equals_the_first_and_a_finished_run_has_nothing_to_resume() {
    let home = Home::new();
    home.twin("twin");
    home.experiment("requests", "[\"twin\"]", 3, "[[grid]]\nconnections = 3\n");
    let ended = home.run(["run", "e", "--rounds", "file", "--seed", "5"]).code(0);
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
    home.run(["run", "--resume", "1"]).code(0).says(&["run 1: 0 of 6 trials"]);
    assert_eq!(home.observations(), before);
}

#[test]
fn a_run_without_a_number_of_rounds_ends_by_itself_and_keeps_all_trials() {
    let home = Home::new();
    home.twin("twin");
    home.experiment("requests", "[\"twin\"]", 3, "[[grid]]\nconnections = 3\nkeep_alive = [true, false]\n");
    let ended = home.run(["run", "e", "--budget", "20s"]).code(0);
    let seen = home.observations();
    assert!(seen.len() >= 9 && seen.len() == home.planned(), "{ended:#?}");
    assert!(seen.iter().all(|observation| observation.took_s > 0.0));
    assert!(list(&home).contains("finished"), "{}", list(&home));
    // The store has what it decided, and there is nothing left to resume.
    home.run(["run", "--resume", "last"]).code(0).says(&["run 1: 0 of"]);
    assert_eq!(home.observations(), seen);
}

/// A home with made-up figures and a run of one round.
fn made_up() -> Home {
    let home = Home::new();
    home.twin("twin");
    home.experiment("requests", "[\"twin\"]", 3, "[[grid]]\nconnections = 3\n");
    home.write("truth.toml", "figure = 1000.0");
    home.run(["run", "e", "--rounds", "1", "--fake", "truth.toml"]).code(0);
    home
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
    home.experiment("requests", "[\"twin\"]", 1, "[[grid]]\nconnections = 1\n");
    home.run(["run", "e", "--rounds", "file", "--store", "other.db"]).code(0);
    assert!(home.path("other.db").exists() && !home.path("narrows.db").exists());
    assert!(home_report(&home, &["last", "--store", "other.db"]).stdout.contains("twin"));
    let none = home.run(["report", "last"]).code(1).says(&["narrows.db", "--store"]);
    assert_eq!(none.stdout, "");
    assert!(!home.path("narrows.db").exists(), "looking must not make a store");
    home.run(["report", "7", "--store", "other.db"]).code(1).says(&["no run `7`", "1"]);
    home.write("text.db", "this is no database, however long it may be, and must not be overwritten");
    for verb in [&["run", "e", "--rounds", "file"][..], &["report", "last"]] {
        home.run([verb, &["--store", "text.db"]].concat()).code(1).says(&["text.db is not a database"]);
    }
    // None of these commands left a server running.
    load(&["http://127.0.0.1:1/", "-n", "1"]).code(1);
}
