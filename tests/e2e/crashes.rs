//! Narrows is killed by SIGKILL at random moments: no finished trial is lost or doubled, and `--resume` completes the run. Two
//! runs at once share a store, and a damaged store is read as it was, or is an error.
//!
//! Each test has a few kills or kinds of damage. `NARROWS_CRASHES` sets another number: `NARROWS_CRASHES=100 cargo test --test e2e
//! crashes -- --nocapture` prints what was seen.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use stats::SplitMix64;

use crate::support::fake::Lab;
use crate::support::home::Home;
use crate::support::{Ended, Guarded};

/// How often Narrows is killed, or a store damaged.
fn times(few: u32) -> u32 {
    std::env::var("NARROWS_CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(few)
}

/// What happened to the runs of a test.
#[derive(Debug, Default)]
struct Seen {
    kills: u32,
    /// Those before the run was in the store, between two of its trials, and after its last.
    early: u32,
    within: u32,
    late: u32,
    finished: u32,
}

/// Carries runs out, one after the other, and kills Narrows at random moments until it was killed so many times. After each kill
/// the store must open and have every trial that it had before. `finished` is called after each run.
fn kill(home: &Home, words: &[&str], more: &[&str], kills: u32, finished: impl Fn()) -> Seen {
    let began = Instant::now();
    home.run([words, more].concat()).code(0);
    let (mut longest, all) = (began.elapsed(), home.observations().len());
    finished();
    forget(home);
    let (mut rng, mut seen, mut kept) = (SplitMix64::new(21), Seen::default(), Vec::new());
    while seen.kills < kills || seen.finished == 0 || home.has_run() {
        let begun = home.has_run();
        let resume = [&["run", "--resume", "last"], more].concat();
        let began = Instant::now();
        let mut run = home.spawn(&if begun { resume } else { [words, more].concat() });
        if seen.kills < kills && kept.len() < all {
            let at = longest.mul_f64(rng.unit());
            while run.running() && began.elapsed() < at {
                thread::sleep(Duration::from_millis(1));
            }
            if run.running() {
                run.signal(libc::SIGKILL);
                seen.kills += 1;
            } else if !begun {
                // The first run was slower, and a later moment would be no moment of a run.
                longest = longest.min(began.elapsed());
            }
        }
        let ended = run.end();
        home.assert_nothing_left();
        let now = home.observations();
        assert_eq!(now[..kept.len()], kept, "{ended:#?}");
        let trials: Vec<usize> = now.iter().map(|seen| seen.trial.index as usize).collect();
        assert_eq!(trials, (0..now.len()).collect::<Vec<_>>());
        kept = now;
        if ended.status.code().is_some() {
            ended.code(0);
            assert_eq!(kept.len(), all);
            finished();
            forget(home);
            kept.clear();
            seen.finished += 1;
        } else if !home.has_run() {
            seen.early += 1;
        } else if kept.len() < all {
            seen.within += 1;
        } else {
            seen.late += 1;
        }
    }
    println!("{words:?}: {seen:?}, {all} trials each, killed within {longest:?}");
    seen
}

/// Removes the store.
fn forget(home: &Home) {
    for name in ["narrows.db", "narrows.db-wal", "narrows.db-shm"] {
        let _ = fs::remove_file(home.path(name));
    }
}

#[test]
fn real_runs_that_are_killed_lose_no_trial_and_complete() {
    let home = Home::new();
    home.twin("twin");
    home.experiment("requests", "[\"twin\"]", 4, "[[grid]]\nconnections = [2, 3]\n");
    let seen = kill(&home, &["run", "e", "--rounds", "file"], &[], times(4), || {
        home.measured("twin");
        home.measured("reference");
    });
    assert!(seen.kills >= times(4), "{seen:?}");
}

#[test]
fn the_findings_of_a_run_that_was_killed_are_those_of_one_that_was_not() {
    let lab = Lab::new();
    let more = ["--fake", "truth.toml"];
    for words in [&["run", "e", "--seed", "1", "--rounds", "60"][..], &["run", "e", "--seed", "2"]] {
        let first = std::cell::OnceCell::new();
        // HTML says when the run began.
        let reports = || ["json", "text", "markdown", "csv"].map(|format| lab.report(format));
        let seen = kill(&lab.home, words, &more, times(6), || {
            let reports = reports();
            assert_eq!(first.get_or_init(|| reports.clone()), &reports);
        });
        assert!(seen.kills >= times(6), "{seen:?}");
    }
}

#[test]
fn two_runs_at_once_share_a_store() {
    let home = Home::new();
    home.twin("twin");
    home.experiment("requests", "[\"twin\"]", 3, "[[grid]]\nconnections = 2\n");
    let words = ["run", "e", "--rounds", "file", "--seed", "1"];
    let runs: Vec<Guarded> = (0..3).map(|_| home.spawn(&words)).collect();
    for run in runs {
        run.end().code(0);
    }
    home.assert_nothing_left();
    let listed = home.run(["report"]).code(0).stdout;
    assert_eq!(listed.matches("finished").count(), 3, "{listed}");
    for run in ["1", "2", "3"] {
        let report = home.run(["report", run, "--format", "json"]).code(0).json();
        assert_eq!(report["experiments"][0]["trials_done"], 6, "{report}");
    }
}

/// What a user does with a store. Those that read it come first.
const VERBS: [&[&str]; 4] = [
    &["report", "last"],
    &["report"],
    &["report", "last", "--format", "json"],
    &["run", "--resume", "last", "--fake", "truth.toml"],
];

/// Writes these bytes as the store, and asserts that each verb prints what it printed about the whole store, or says in a line
/// what is wrong, and that reading changes nothing. The list of runs says it instead of the run. Returns how many verbs failed.
fn bear(lab: &Lab, whole: &[Ended], bytes: &[u8], how: &str) -> u32 {
    forget(&lab.home);
    fs::write(lab.home.path("narrows.db"), bytes).expect("a file");
    let mut failed = 0;
    for (words, whole) in VERBS.iter().zip(whole) {
        let ended = lab.narrows(words);
        match ended.status.code() {
            Some(0) if words == &["report"] && ended.stdout.contains(" damaged ") => {
                assert!(ended.stdout.contains("narrows.db cannot be read"), "{how}: {ended:#?}");
                failed += 1;
            }
            Some(0) => assert_eq!(ended.stdout, whole.stdout, "{how}: {words:?}: {ended:#?}"),
            Some(1) => {
                let told = ended.stderr.strip_suffix('\n').expect("a line");
                let line =
                    told.starts_with("narrows: ") && told.contains("narrows.db") && !told.contains('\n');
                assert!(line && ended.stdout.is_empty(), "{how}: {words:?}: {ended:#?}");
                failed += 1;
            }
            _ => panic!("{how}: {words:?}: {ended:#?}"),
        }
        if words[0] == "report" {
            let now = fs::read(lab.home.path("narrows.db")).expect("it");
            assert!(now == bytes, "{how}: it was changed by {words:?}");
        }
    }
    failed
}

#[test]
fn a_damaged_store_is_read_as_it_was_or_named_and_never_changed_by_reading() {
    let lab = Lab::new();
    lab.run(&["--rounds", "2"]).code(0);
    let bytes = fs::read(lab.home.path("narrows.db")).expect("the store");
    let whole = VERBS.map(|words| lab.narrows(words).code(0));
    let (mut rng, mut failed) = (SplitMix64::new(5), [0; 3]);
    for _ in 0..times(8) {
        let at = rng.below(bytes.len() as u64) as usize;
        failed[0] += bear(&lab, &whole, &bytes[..at], &format!("cut off at {at}"));
        let (bit, mut flipped) = (rng.below(8), bytes.clone());
        flipped[at] ^= 1 << bit;
        failed[1] += bear(&lab, &whole, &flipped, &format!("bit {bit} of byte {at}"));
        // Digits of figures and of indices matter more than letters.
        let digits: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
        let at = digits[rng.below(digits.len() as u64) as usize];
        let (digit, mut replaced) = (b'0' + rng.below(10) as u8, bytes.clone());
        replaced[at] = digit;
        failed[2] += bear(&lab, &whole, &replaced, &format!("digit {digit} at byte {at}"));
    }
    println!(
        "of {} verbs each, failed with files cut off, with a bit and with a digit: {failed:?}",
        4 * times(8)
    );
}
