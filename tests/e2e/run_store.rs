//! What a run has measured is kept, however the run ends.

use std::fs;

use crate::support;
use crate::support::home::Home;
use crate::support::{Ended, Guarded, until};
use lab::observation::Observation;

/// A system whose third start waits as long as the file `hold` exists. The run then pauses in the middle, with at least
/// two finished trials of this system.
const GATE: &str = "n=$(cat count 2>/dev/null || echo 0)
echo $((n + 1)) > count.new
mv count.new count
if [ \"$n\" -ge 2 ]; then while [ -e hold ]; do sleep 0.02; done; fi
exec \"$narrows\" serve --any \"$port\"";

const ROUNDS: u32 = 3;
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
