//! Calls of the operating system fail, one after the other: there is never a wrong figure, a lost trial, a hang or a leftover.
//!
//! A library that is loaded first (`faults.c`) makes a call of a function fail. A test tries a few of the calls that there are. Trials
//! make thousands of calls, and how many depends on the clock, so there only the first call from each place of the program counts.
//! `make faults` tries each until none is left, and with `FAULTS=open:131,read` only those of `open`, from the 131st on, and of `read`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lab::observation::{Observation, Outcome};
use stats::SplitMix64;

use crate::preloaded::library;
use crate::support::fake::Lab;
use crate::support::home::Home;
use crate::support::{Ended, NARROWS, Served, assert_adds_up, backends, mark, narrows, new_mark, run, until};

/// The functions that fail. Each command is tried with all of them, although it may never call some.
const FUNCTIONS: [&str; 10] = [
    "open",
    "read",
    "write",
    "fsync",
    "rename",
    "clone",
    "mmap",
    "connect",
    "io_uring_enter",
    "io_uring_setup",
];

/// What counts: each call of a function, or the first from each place of the program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Call,
    Place,
}

/// A call that fails.
struct Fault<'a> {
    library: &'a Path,
    function: &'a str,
    by: By,
    /// The call or the place, from 1. With 0 none fails.
    at: u32,
    log: PathBuf,
}

impl Fault<'_> {
    fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("NARROWS_FAULT", self.function.to_owned()),
            ("NARROWS_FAULT_BY", if self.by == By::Place { "place" } else { "call" }.to_owned()),
            ("NARROWS_FAULT_AT", self.at.to_string()),
            ("NARROWS_FAULT_LOG", self.log.display().to_string()),
        ]
    }

    fn put<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.envs(self.variables())
    }

    /// How many calls or places there were. None if the program could not end as usual.
    fn calls(&self) -> Option<u32> {
        fs::read_to_string(&self.log).ok().and_then(|text| text.parse().ok())
    }

    /// Calls `test` with it. Returns whether there were so many calls.
    fn strikes(&self, test: impl Fn(&Self) -> Ended) -> bool {
        let _ = fs::remove_file(&self.log);
        let ended = test(self);
        // Rust's own library ends the program if a new thread gets no second stack.
        let stack = ended.stderr.contains("alternative stack");
        let ends = matches!(ended.status.code(), Some(0..=3 | 130));
        assert!(stack || ends && !ended.stderr.contains("panicked"), "{ended:#?}");
        self.calls().is_none_or(|calls| calls >= self.at)
    }
}

/// The functions to try, and from which call on each is tried. None means a few of them.
fn wanted(said: &str) -> Vec<(&'static str, Option<u32>)> {
    if ["", "all"].contains(&said) {
        return FUNCTIONS.map(|function| (function, (said == "all").then_some(1))).to_vec();
    }
    let one = |word: &str| {
        let (name, from) = word.split_once(':').unwrap_or((word, "1"));
        let function = FUNCTIONS.into_iter().find(|function| *function == name);
        let from: Option<u32> = from.parse().ok().filter(|from| *from > 0);
        let known = function.zip(from);
        let (function, from) =
            known.unwrap_or_else(|| panic!("NARROWS_FAULTS: `{word}` is not FUNCTION[:FROM]"));
        (function, Some(from))
    };
    said.split(',').map(one).collect()
}

/// Calls `test` with a fault at some of the calls of each function. `test` returns what became of it.
fn each(folder: &Home, by: By, test: impl Fn(&Fault) -> Ended) {
    let Some(library) = library("faults") else { return };
    let wanted = wanted(&std::env::var("NARROWS_FAULTS").unwrap_or_default());
    let (mut rng, mut failed) = (SplitMix64::new(7), Vec::new());
    for (function, from) in wanted {
        let fault = |at| Fault { library: &library, function, by, at, log: folder.path("calls") };
        let none = fault(0);
        none.strikes(|fault| test(fault).code(0));
        let calls = none.calls().expect("it ends");
        if calls == 0 {
            continue;
        }
        let few = if by == By::Call { 3 } else { 1 };
        let some: Vec<u32> = (0..few.min(calls)).map(|_| 1 + rng.below(u64::from(calls)) as u32).collect();
        // Runs differ in how many calls they make.
        let numbers: Vec<u32> = from.map_or(some, |from| (from..=2 * calls + 10).collect());
        for at in numbers {
            let strikes = catch_unwind(AssertUnwindSafe(|| fault(at).strikes(&test)));
            match strikes {
                Ok(false) if from.is_some() => break,
                Ok(_) => {}
                // The others are tried too, so that one run shows all.
                Err(_) => failed.push(format!("{at} of {function}")),
            }
        }
        println!("{function}: {calls}");
    }
    assert!(failed.is_empty(), "{} failed: {}", failed.len(), failed.join(", "));
}

/// Removes the stores and reports of a home.
fn forget(home: &Home) {
    for folder in ["", "state/narrows/"] {
        for name in ["narrows.db", "narrows.db-wal", "narrows.db-shm", "narrows.html"] {
            let _ = fs::remove_file(home.path(&format!("{folder}{name}")));
        }
    }
}

/// The observations of a home whose store may not have been made.
fn kept(home: &Home) -> Vec<Observation> {
    if home.store_path().exists() && home.has_run() { home.observations() } else { Vec::new() }
}

/// Asserts that a run has all of its trials, and that each measured what it can measure or says why it failed.
fn assert_whole(home: &Home) {
    let seen = home.observations();
    assert_eq!(seen.len(), home.planned(), "all trials");
    for seen in &seen {
        let Outcome::Measured(found) = &seen.outcome else { continue };
        let system = &found.system;
        let known = found.successes > 0
            && found.generator.cpu_s > 0.0
            && system.cpu_s > 0.0
            && system.peak_pss_bytes > 0
            && system.peak_rss_bytes > 0
            && system.context_switches > 0
            && !system.pss_course.is_empty();
        assert!(known, "{found:#?}");
    }
}

/// Asserts that what a run has kept is whole, or becomes so when it is resumed.
fn assert_kept(home: &Home, ended: &Ended) {
    home.assert_nothing_left();
    let before = kept(home);
    if !ended.status.success() && home.has_run() {
        let store = home.store_path().display().to_string();
        let resumed = home.run(["run", "--resume", "last", "--store", &store]);
        // If no trial before it measured anything, nothing can be said at the end.
        assert!(matches!(resumed.status.code(), Some(0 | 1)), "{resumed:#?}");
        assert_eq!(home.observations()[..before.len()], before, "what was kept stays");
    }
    if ended.status.success() || home.has_run() {
        assert_whole(home);
    }
}

#[test]
fn a_run_has_the_same_findings_or_says_what_failed_and_can_be_resumed() {
    let lab = Lab::new();
    let words = ["run", "e", "--fake", "truth.toml", "--seed", "1", "--rounds", "2"];
    lab.home.run(words).code(0);
    let (findings, all) = (lab.report("json"), lab.home.observations());
    each(&lab.home, By::Call, |fault| {
        forget(&lab.home);
        let ended = run(fault.put(&mut lab.home.narrows(words)));
        lab.home.assert_nothing_left();
        let kept = kept(&lab.home);
        assert_eq!(all[..kept.len()].len(), kept.len(), "no trial more than there are");
        let same = |ended: &Ended| {
            // A manifest that could not be read leaves its system out, which is said.
            let less = ended.stderr.contains("is left out");
            assert!(less || lab.report("json") == findings, "{ended:#?}");
        };
        if ended.status.success() {
            same(&ended);
        } else if lab.home.has_run() {
            lab.home.run(["run", "--resume", "last", "--fake", "truth.toml"]).code(0);
            assert_eq!(lab.home.observations()[..kept.len()], kept);
            same(&ended);
        }
        ended
    });
}

/// Asserts that the result of `load` adds up, and that all is right if it says so.
fn assert_sound(ended: &Ended) {
    if !ended.stdout.is_empty() {
        let json = ended.json();
        assert_adds_up(&json);
        if ended.status.success() {
            assert_eq!(json["completed"], 50, "{json}");
        }
    }
}

#[test]
fn a_drive_adds_up_or_says_what_failed() {
    let (home, server) = (Home::new(), Served::start(&[]));
    for io in backends() {
        each(&home, By::Call, |fault| {
            let words = ["load", &server.http, "-n", "50", "-c", "2", "--json", "--reactor", io];
            let ended = run(fault.put(&mut home.narrows(words)));
            home.assert_nothing_left();
            assert_sound(&ended);
            ended
        });
    }
}

/// io_uring takes only some of what is queued when the kernel has no memory for more (io_uring_enter(2)).
#[test]
fn operations_that_the_kernel_takes_one_by_one_are_all_done() {
    let Some(library) = library("faults").filter(|_| backends().contains(&"uring")) else { return };
    let home = Home::new();
    let fault = |name: &str| {
        let log = home.path(name);
        Fault { library: &library, function: "io_uring_fewer", by: By::Call, at: 0, log }
    };
    let drive = |url: &str, more: &[&str], fault: Option<&Fault>| {
        let words = ["load", url, "-n", "500", "-c", "20", "--json", "--reactor", "uring"];
        let mut command = home.narrows(words.into_iter().chain(more.iter().copied()));
        if let Some(fault) = fault {
            fault.put(&mut command);
        }
        let json = run(&mut command).code(0).json();
        assert_adds_up(&json);
        assert_eq!(json["completed"], 500, "{json}");
    };
    let ways =
        [&[][..], &["--close"], &["--rate", "2000"], &["--http2", "--streams", "10", "--body-size", "4K"]];
    let server = Served::start(&[]);
    for (number, more) in ways.into_iter().enumerate() {
        let fault = fault(&number.to_string());
        drive(&server.http, more, Some(&fault));
        assert!(fault.calls() > Some(10), "{more:?}: {:?}", fault.calls());
    }
    let fault = fault("serve");
    let mut serve = narrows(["serve", "--port", "0", "--frames", "0", "--reactor", "uring"]);
    let server = Served::spawn(fault.put(&mut serve));
    ways.into_iter().for_each(|more| drive(&server.http, more, None));
    let [requests, answers, ..] = server.counts();
    assert_eq!((requests, answers), (2000, 2000));
    assert!(fault.calls() > Some(10), "{:?}", fault.calls());
}

/// A machine whose agent has this fault.
fn agent(fault: &Fault) -> String {
    let variables: Vec<String> = fault.variables().map(|(name, value)| format!("{name}={value}")).into();
    format!("exec:env {} {NARROWS} agent", variables.join(" "))
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn an_agent_adds_up_or_is_named() {
    let (home, server) = (Home::new(), Served::start(&[]));
    each(&home, By::Call, |fault| {
        let words = ["load", &server.http, "-n", "50", "-c", "2", "--json", "--gen", &agent(fault)];
        let ended = home.run(words);
        assert_sound(&ended);
        ended
    });
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_server_serves_or_ends() {
    let home = Home::new();
    for io in backends() {
        each(&home, By::Call, |fault| serve(&home, io, fault));
    }
}

/// Lets a server with a fault answer requests, and stops it.
fn serve(home: &Home, io: &str, fault: &Fault) -> Ended {
    let own = new_mark();
    let mut command = narrows(["serve", "--port", "0", "--reactor", io]);
    command.stdout(std::process::Stdio::null());
    let mut child = mark(fault.put(&mut command), &own).spawn().expect("it starts");
    let (sender, lines) = std::sync::mpsc::channel();
    let said = BufReader::new(child.stderr.take().expect("its errors")).lines();
    std::thread::spawn(move || said.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    // If this line is what could not be written, none comes.
    let first = lines.recv_timeout(Duration::from_secs(10)).unwrap_or_default();
    if let Some(url) = first.strip_prefix("serving ") {
        // It may refuse some of it.
        let words = ["load", url, "-n", "50", "-c", "2", "--json", "--timeout", "5s"];
        let json = run(&mut home.narrows(words));
        if !json.stdout.is_empty() {
            assert_adds_up(&json.json());
        }
    }
    let pid = i32::try_from(child.id()).expect("a process number");
    // SAFETY: a plain system call. The child has not been reaped, so the id is still its own.
    unsafe { libc::kill(pid, libc::SIGTERM) };
    let mut status = None;
    let ended = until(|| {
        status = child.try_wait().expect("its state");
        status.is_some()
    });
    if !ended {
        let _ = child.kill();
    }
    let rest: Vec<String> = lines.iter().collect();
    let status = status.unwrap_or_else(|| panic!("it did not end"));
    Ended { status, stdout: String::new(), stderr: format!("{first}\n{}", rest.join("\n")) }
}

/// Lets calls of commands with real trials fail, and asserts that what they have kept is whole.
fn each_command(home: &Home, command: impl Fn(&Fault) -> Command) {
    each(home, By::Place, |fault| {
        forget(home);
        let ended = run(&mut command(fault));
        assert_kept(home, &ended);
        ended
    });
}

/// A run of trials of a real server.
const RUN: [&str; 6] = ["run", "e", "--rounds", "file", "--seed", "1"];

/// A home with the experiment of `RUN`.
fn with_experiment() -> Home {
    let home = Home::new();
    home.twin("twin");
    home.experiment("requests", "[\"twin\"]", 1, "[[grid]]\nconnections = 2\n");
    home
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_run_of_servers_is_whole_or_says_what_failed_and_can_be_resumed() {
    let home = with_experiment();
    each_command(&home, |fault| {
        let mut command = home.narrows(RUN);
        fault.put(&mut command);
        command
    });
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_run_on_an_agent_is_whole_or_names_it_and_can_be_resumed() {
    let home = with_experiment();
    each_command(&home, |fault| {
        let machines = ["--sut", &agent(fault), "--gen", "local", "--address", "127.0.0.1"];
        home.narrows([&RUN[..], &machines].concat())
    });
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn commands_that_are_tried_are_whole_or_leave_nothing() {
    let home = Home::new();
    each_command(&home, |fault| {
        let server = format!("{NARROWS} serve -p {{port}}");
        let more = ["--rounds", "1", "--warmup", "10ms", "-d", "200ms", "-c", "2"];
        let mut command = home.narrows([&["try", &server, &server][..], &more].concat());
        fault.put(&mut command);
        command
    });
}
