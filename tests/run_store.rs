//! What a run has measured stays, whatever becomes of the run.

mod support;

use std::fs;

use lab::observation::Observation;
use support::home::Home;
use support::{Ended, Guarded, load, until};

/// A system whose third start waits as long as the file `hold` is there: a run that stands still in its middle, with two
/// finished trials of it at least.
const GATE: &str = "n=$(cat count 2>/dev/null || echo 0)
echo $((n + 1)) > count.new
mv count.new count
if [ \"$n\" -ge 2 ]; then while [ -e hold ]; do sleep 0.02; done; fi
exec \"$narrows\" serve --any \"$port\"";

const ROUNDS: u32 = 4;
/// Each round has one trial of the gate and two of the reference.
const TRIALS: usize = 3 * ROUNDS as usize;

fn home() -> Home {
    let home = Home::new();
    home.shell_server("gate", GATE, "[ready]\ntimeout_s = 300");
    home.write("systems/gate/hold", "");
    home.experiment("requests", "[\"gate\"]", ROUNDS, "[[grid]]\nconnections = 2\n");
    home
}

/// Starts the run and returns when it stands still.
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

/// Resumes, and asserts that what was there before is there unchanged, and that nothing is missing or double.
fn resume(home: &Home, before: &[Observation]) {
    open_the_gate(home);
    let missing = TRIALS - before.len();
    let ended = home.run(["run", "--resume", "last"]).code(0);
    let ended = ended.says(&[&format!("run 1: {missing} of {TRIALS} trials")]);
    let after = home.observations();
    assert!(before.iter().all(|kept| after.contains(kept)), "{ended:#?}");
    let trials: Vec<u32> = after.iter().map(|each| each.trial.index).collect();
    assert_eq!(trials, (0..TRIALS as u32).collect::<Vec<_>>());
    home.measured("gate");
    home.measured("reference");
    // The gate started thrice, of which twice were measured; then only what was missing.
    let starts = fs::read_to_string(home.path("systems/gate/count")).unwrap();
    assert_eq!(starts.trim(), (ROUNDS + 1).to_string());
    assert!(list(home).contains("finished"), "{}", list(home));
}

fn list(home: &Home) -> String {
    home_report(home, &[]).stdout
}

/// `narrows report`, also while a run is under way.
fn home_report(home: &Home, words: &[&str]) -> Ended {
    home.spawn(&[&["report"], words].concat()).end().code(0)
}

#[test]
fn a_killed_run_keeps_every_finished_trial_and_resumes_with_what_is_missing() {
    let home = home();
    let run = run_into_the_middle(&home);
    let before = home.observations();
    assert!((2..TRIALS).contains(&before.len()), "{}", before.len());
    run.signal(libc::SIGKILL);
    run.end();
    // What it had started ends with it.
    home.assert_nothing_left();
    assert_eq!(home.observations(), before);
    let report = home_report(&home, &["last"]);
    assert!(report.stdout.contains(&format!("{} of {TRIALS} trials", before.len())), "{report:#?}");
    assert!(list(&home).contains("unfinished"), "{}", list(&home));
    resume(&home, &before);
}

#[test]
fn an_interrupted_run_ends_at_once_keeps_its_trials_and_says_how_to_resume() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let home = home();
        let run = run_into_the_middle(&home);
        let before = home.observations();
        run.signal(signal);
        let ended = run.end().code(130).says(&["interrupted", "narrows run --resume 1"]);
        home.assert_nothing_left();
        // The trials that were finished are reported.
        assert!(ended.stdout.contains("reference"), "{ended:#?}");
        assert_eq!(home.observations(), before);
        if signal == libc::SIGINT {
            resume(&home, &before);
        }
    }
}

#[test]
fn an_interrupted_run_leaves_nothing_while_a_system_is_driven() {
    if !support::has("node") {
        return;
    }
    let home = Home::new();
    // Its hundredth request shows that it is driven: readiness and the check of equal work need fewer.
    let script = "let n = 0;
        require('http').createServer((request, answer) => {
            if (++n === 100) require('fs').writeFileSync('driven', '');
            answer.end('ok');
        }).listen(port, '127.0.0.1');";
    home.node_server("counting", script, "[ready]\nhttp = \"/\"\ntimeout_s = 120");
    home.timed_experiment("requests", "[\"counting\"]", 1, 3600.0, "[[grid]]\nconnections = 4\n");
    // The reference would take its hour first in one of two orders.
    fs::remove_file(home.path("systems/reference")).unwrap();
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
    // Of the connections that ask for something, the first checks that it does the work, the second is measured.
    let script = "let connections = 0;
        require('http').createServer((request, answer) => {
            if (!request.socket.known && ++connections === 3) process.kill(process.ppid, 'SIGINT');
            request.socket.known = true;
            answer.end('ok');
        }).listen(port, '127.0.0.1');";
    home.node_server("counted", script, "[ready]\ntimeout_s = 120");
    home.experiment("requests", "[\"counted\"]", 2, "[[grid]]\nconnections = 1\n");
    // In one of two orders the reference would be measured, too.
    fs::remove_file(home.path("systems/reference")).unwrap();
    home.run(["run", "e", "--rounds", "file"]).code(130).says(&["--resume 1"]);
    home.assert_nothing_left();
    assert_eq!(home.measured("counted").len(), 1);
}

#[test]
fn a_run_can_be_reported_while_it_is_under_way() {
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
    // The report did not disturb the run, which ends as if nothing had been.
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
            assert!(ended.stdout.starts_with(&first), "the run itself printed {}", ended.stdout);
        }
    }
    let before = home.observations();
    home.run(["run", "--resume", "1"]).code(0).says(&["run 1: 0 of 9 trials"]);
    assert_eq!(home.observations(), before);
}

#[test]
fn a_run_without_a_number_of_rounds_ends_by_itself_and_keeps_all() {
    let home = Home::new();
    home.twin("twin");
    home.experiment("requests", "[\"twin\"]", 3, "[[grid]]\nconnections = 3\nkeep_alive = [true, false]\n");
    let ended = home.run(["run", "e", "--budget", "20s"]).code(0);
    let seen = home.observations();
    assert!(seen.len() >= 15 && seen.len() == home.planned(), "{ended:#?}");
    assert!(seen.iter().all(|each| each.took_s > 0.0));
    assert!(list(&home).contains("finished"), "{}", list(&home));
    // What it decided is in the store, and nothing is left to do.
    home.run(["run", "--resume", "last"]).code(0).says(&["run 1: 0 of"]);
    assert_eq!(home.observations(), seen);
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
    // Nothing of all this left a server behind that a load would reach.
    load(&["http://127.0.0.1:1/", "-n", "1"]).code(1);
}
