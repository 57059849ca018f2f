//! Calls of the operating system fail, one after the other: there is never a wrong figure, a lost trial, a hang or a leftover.
//!
//! A library that is loaded first (`faults.c`) makes the n-th call of a function fail. A test tries a few of the calls that there
//! are. `NARROWS_FAULTS=all cargo test --test e2e faults` tries each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use stats::SplitMix64;

use crate::preloaded::library;
use crate::support::fake::Lab;
use crate::support::home::Home;
use crate::support::{
    Ended, Guarded, NARROWS, Served, assert_adds_up, backends, mark, narrows, new_mark, run, until,
};

/// A call that fails.
struct Fault<'a> {
    library: &'a Path,
    function: &'a str,
    /// The call, from 1. With 0 none fails.
    at: u32,
    log: PathBuf,
}

impl Fault<'_> {
    fn variables(&self) -> [(&'static str, String); 4] {
        let Self { library, function, at, log } = self;
        [
            ("LD_PRELOAD", library.display().to_string()),
            ("NARROWS_FAULT", (*function).to_owned()),
            ("NARROWS_FAULT_AT", at.to_string()),
            ("NARROWS_FAULT_LOG", log.display().to_string()),
        ]
    }

    fn put<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.envs(self.variables())
    }

    /// How many calls there were. Zero if the program could not end as usual.
    fn calls(&self) -> u32 {
        fs::read_to_string(&self.log).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// Calls `test` with a fault at some of the calls of each function. `test` returns what became of it.
fn each(folder: &Home, functions: &[&str], test: impl Fn(&Fault) -> Ended) {
    let Some(library) = library("faults") else { return };
    let all = std::env::var("NARROWS_FAULTS").is_ok_and(|text| text == "all");
    let mut rng = SplitMix64::new(7);
    for function in functions {
        let fault = |at| Fault { library: &library, function, at, log: folder.path("calls") };
        let none = fault(0);
        test(&none).code(0);
        let calls = none.calls();
        let some = (0..3).map(|_| 1 + rng.below(u64::from(calls.max(1))) as u32);
        let at: Vec<u32> = if all { (1..=calls).collect() } else { some.take(calls as usize).collect() };
        for at in at {
            let ended = test(&fault(at));
            let text = &ended.stderr;
            // Rust's own library ends the program if a new thread gets no second stack.
            let stack = text.contains("alternative stack");
            let ends = matches!(ended.status.code(), Some(0..=3 | 130));
            assert!(stack || ends && !text.contains("panicked"), "call {at} of {function}: {ended:#?}");
        }
    }
}

#[test]
fn a_run_has_the_same_findings_or_says_what_failed_and_can_be_resumed() {
    let lab = Lab::new();
    let words = ["run", "e", "--fake", "truth.toml", "--seed", "1", "--rounds", "2"];
    let forget = || {
        for name in ["narrows.db", "narrows.db-wal", "narrows.db-shm", "narrows.html"] {
            let _ = fs::remove_file(lab.home.path(name));
        }
    };
    lab.home.run(words).code(0);
    let (findings, all) = (lab.report("json"), lab.home.observations());
    each(&lab.home, &["open", "read", "write", "fsync", "rename", "clone", "mmap"], |fault| {
        forget();
        let ended = run(fault.put(&mut lab.home.narrows(words)));
        lab.home.assert_nothing_left();
        let kept = if lab.home.store_path().exists() && lab.home.has_run() {
            lab.home.observations()
        } else {
            Vec::new()
        };
        assert_eq!(all[..kept.len()].len(), kept.len(), "no trial more than there are");
        let same = |ended: &Ended| {
            // A manifest that could not be read leaves its system out, which is said.
            let less = ended.stderr.contains("is left out");
            let (at, function) = (fault.at, fault.function);
            assert!(less || lab.report("json") == findings, "call {at} of {function}: {ended:#?}");
        };
        if ended.status.success() {
            same(&ended);
        } else if lab.home.has_run() {
            lab.home.run(["run", "--resume", "last", "--fake", "truth.toml"]).code(0);
            assert_eq!(
                lab.home.observations()[..kept.len()],
                kept,
                "call {} of {}",
                fault.at,
                fault.function
            );
            same(&ended);
        }
        ended
    });
}

/// Asserts that the result of `load` adds up, and that all is right if it says so.
fn assert_sound(ended: &Ended, fault: &Fault) {
    if !ended.stdout.is_empty() {
        let json = ended.json();
        assert_adds_up(&json);
        if ended.status.success() {
            assert_eq!(json["completed"], 50, "call {} of {}: {json}", fault.at, fault.function);
        }
    }
}

#[test]
fn a_drive_adds_up_or_says_what_failed() {
    let (home, server) = (Home::new(), Served::start(&[]));
    for io in backends() {
        let functions =
            ["open", "read", "write", "clone", "mmap", "connect", "io_uring_enter", "io_uring_setup"];
        each(&home, &functions, |fault| {
            let words = ["load", &server.http, "-n", "50", "-c", "2", "--json", "--reactor", io];
            let ended = run(fault.put(&mut home.narrows(words)));
            home.assert_nothing_left();
            assert_sound(&ended, fault);
            ended
        });
    }
}

#[test]
fn an_agent_adds_up_or_is_named() {
    let (home, server) = (Home::new(), Served::start(&[]));
    each(&home, &["open", "read", "write", "clone", "mmap", "io_uring_setup"], |fault| {
        let variables: Vec<String> = fault.variables().map(|(name, value)| format!("{name}={value}")).into();
        let agent = format!("exec:env {} {NARROWS} agent", variables.join(" "));
        let words = ["load", &server.http, "-n", "50", "-c", "2", "--json", "--gen", &agent];
        let ended = home.run(words);
        assert_sound(&ended, fault);
        ended
    });
}

#[test]
fn a_server_serves_or_ends() {
    let home = Home::new();
    each(&home, &["open", "read", "clone", "mmap", "io_uring_enter", "io_uring_setup"], |fault| {
        let own = new_mark();
        let mut command = narrows(["serve", "--port", "0"]);
        command.stdout(std::process::Stdio::null());
        let mut child = mark(fault.put(&mut command), &own).spawn().expect("it starts");
        let mut lines =
            std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().expect("its errors")));
        let first = lines.next().and_then(Result::ok).unwrap_or_default();
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
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        if !ended {
            let _ = child.kill();
        }
        let status =
            status.unwrap_or_else(|| panic!("call {} of {}: it did not end", fault.at, fault.function));
        Ended { status, stdout: String::new(), stderr: format!("{first}\n{}", rest.join("\n")) }
    });
}

#[test]
fn commands_that_are_tried_leave_nothing() {
    let home = Home::new();
    each(&home, &["fsync", "rename", "clone"], |fault| {
        let server = format!("{NARROWS} serve -p {{port}}");
        let more = ["--rounds", "1", "--warmup", "10ms", "-d", "50ms", "-c", "2"];
        let words = [&["try", &server, &server][..], &more].concat();
        let ended = Guarded::spawn(fault.put(&mut home.narrows(words))).end();
        home.assert_nothing_left();
        ended
    });
}
