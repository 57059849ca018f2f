//! Other machines: `narrows load --gen` and `narrows doctor --sut --gen` over pipes to `narrows agent`. All machines are this one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde_json::Value;

use crate::support::{
    Guarded, NARROWS, Served, assert_nothing_left, carrying, has, installed, load, load_json, mark, narrows,
    new_mark, run, until,
};

/// A machine that is reached through a command.
fn exec(command: &str) -> String {
    format!("exec:{command}")
}

/// Two machines, reached through different commands.
fn two() -> String {
    format!("exec:{NARROWS} agent,exec:env SECOND=1 {NARROWS} agent")
}

fn generators(json: &Value) -> &Vec<Value> {
    json["generators"].as_array().expect("generators")
}

/// A drive of two generators that takes half a minute unless something ends it, when both of them drive.
fn long_drive(server: &Served, machines: &str, mark_of_it: &str) -> Guarded {
    let mut command = narrows(["load", &server.http, "--gen", machines, "-d", "30s", "-c", "4"]);
    let drive = Guarded::spawn(mark(&mut command, mark_of_it));
    assert!(until(|| connections_to(&server.http) >= 4), "both drive");
    drive
}

/// The connections that are open to a server of this machine.
fn connections_to(http: &str) -> usize {
    let port: u16 = http.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let wanted = format!(":{port:04X} 01");
    let sockets = std::fs::read_to_string("/proc/net/tcp").expect("the sockets");
    sockets.lines().filter(|line| line.contains(&wanted)).count()
}

/// The agents with this mark.
fn agents(mark_of_them: &str) -> Vec<i32> {
    let found = carrying(mark_of_them).into_iter();
    let agents = found.filter(|(_, line)| line.trim_end() == format!("{NARROWS} agent"));
    agents.map(|(pid, _)| i32::try_from(pid).expect("a process number")).collect()
}

fn signal(pid: i32, signal: i32) {
    // SAFETY: a plain system call. The process carries the mark of this test, so it is ours.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

#[test]
fn two_generators_share_the_number_without_loss() {
    let server = Served::start(&[]);
    let (code, json) = load_json(&[&server.http, "--gen", &two(), "-n", "1001", "-c", "7"]);
    assert_eq!((code, &json["completed"]), (0, &1001.into()), "{json}");
    let parts: Vec<u64> = generators(&json).iter().filter_map(|part| part["completed"].as_u64()).collect();
    assert_eq!(parts, [501, 500], "{json}");
    assert_eq!(server.counts()[..3], [1001, 1001, 7]);
}

#[test]
fn two_generators_keep_one_schedule_and_know_their_clocks() {
    let server = Served::start(&[]);
    let words = [&*server.http, "--rate", "400", "-d", "1s", "--warmup", "200ms", "-c", "4", "-t", "2"];
    let (code, json) = load_json(&[&words[..], &["--gen", "local", "--gen", &two()]].concat());
    assert_eq!((code, &json["arrivals"]), (0, &400.into()), "{json}");
    assert_eq!(generators(&json).len(), 3, "{json}");
    for generator in generators(&json) {
        // All of them read the same clock.
        let [ahead, error] = ["clock_ahead_us", "clock_error_us"].map(|name| generator[name].as_f64());
        assert!(ahead.map(f64::abs) <= error && error > Some(0.0), "{generator}");
        assert_eq!(generator["round_trip_us"].as_f64().map(|time| time / 2.0 <= error.unwrap()), Some(true));
    }
    assert!(
        json["windows"]["opened_within_us"].is_number() && json["windows"]["doubtful"].is_boolean(),
        "{json}"
    );
}

#[test]
fn a_closed_loop_without_a_warm_up_counts_what_the_server_counts() {
    let server = Served::start(&[]);
    let (code, json) = load_json(&[&server.http, "--gen", &two(), "-d", "300ms", "-c", "4"]);
    assert_eq!(code, 0, "{json}");
    let sum: u64 = generators(&json).iter().filter_map(|part| part["completed"].as_u64()).sum();
    assert_eq!(json["completed"], sum, "{json}");
    let [requests, _, connections, _] = server.counts();
    let in_flight = json["in_flight"].as_u64().expect("a number");
    assert_eq!((requests, connections), (sum + in_flight, 4), "{json}");
}

#[test]
fn frames_bodies_checks_and_tls_are_sent_along() {
    let server = Served::start(&[]);
    let (code, json) = load_json(&[&server.frames, "--gen", &two(), "-n", "1000", "-c", "2"]);
    assert_eq!((code, &json["units"]), (0, &1000.into()), "{json}");
    let echo = format!("{}/echo", server.http);
    let folder = tempfile::tempdir().expect("a folder");
    let body = folder.path().join("body");
    std::fs::write(&body, "a body").expect("a file");
    let words = ["--gen", "local", "-n", "10", "-c", "1", "--expect", "body=a body", "--body"];
    let (code, json) = load_json(&[&[&*echo], &words[..], &[&*format!("@{}", body.display())]].concat());
    assert_eq!((code, &json["completed"]), (0, &10.into()), "{json}");
    let secured = Served::start(&["--tls"]);
    let (code, json) = load_json(&[&secured.http, "--insecure", "--gen", &two(), "-n", "10", "-c", "2"]);
    assert_eq!((code, &json["completed"]), (0, &10.into()), "{json}");
}

#[test]
fn the_log_of_latencies_has_those_of_all_generators() {
    let server = Served::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let words = ["--gen", &two(), "-n", "100", "-c", "2", "--hlog", path.to_str().expect("a path")];
    load(&[&[&*server.http], &words[..]].concat()).code(0);
    let log = std::fs::read_to_string(path).expect("the log");
    let entries = IntervalLogIterator::new(log.as_bytes()).map(|entry| entry.expect("a line of the format"));
    let counts = entries.filter_map(|entry| match entry {
        LogEntry::Interval(line) => {
            let bytes = BASE64_STANDARD.decode(line.encoded_histogram()).expect("base64");
            let found: Histogram<u64> =
                Deserializer::new().deserialize(&mut bytes.as_slice()).expect("a histogram");
            Some(found.len())
        }
        _ => None,
    });
    assert_eq!(counts.collect::<Vec<_>>(), [100, 100], "service and response times: {log}");
}

#[test]
fn the_text_has_a_line_for_each_generator() {
    let server = Served::start(&[]);
    let ended = load(&[&server.http, "--gen", &two(), "-d", "200ms", "-c", "2"]).code(0);
    for line in [&*format!("  exec:{NARROWS} agent: "), "  exec:env SECOND=1", "  windows: opened within "] {
        assert!(
            ended.stdout.lines().any(|printed| printed.replace('\'', "").starts_with(line)),
            "{ended:#?}"
        );
    }
}

#[test]
fn a_generator_that_is_killed_fails_the_run_and_nothing_is_left() {
    let server = Served::start(&[]);
    let mark_of_it = new_mark();
    let drive = long_drive(&server, &two(), &mark_of_it);
    let agents = agents(&mark_of_it);
    assert_eq!(agents.len(), 2, "{agents:?}");
    signal(agents[0], libc::SIGKILL);
    let ended = drive.end().code(1).says(&["machine exec:", "closed the pipe", "killed by signal 9"]);
    assert_eq!(ended.stdout, "", "there is no figure");
    assert_nothing_left(&mark_of_it);
}

#[test]
fn a_generator_that_falls_silent_fails_the_run() {
    let server = Served::start(&[]);
    let mark_of_it = new_mark();
    let drive = long_drive(&server, &two(), &mark_of_it);
    signal(agents(&mark_of_it)[0], libc::SIGSTOP);
    drive.end().code(1).says(&["machine exec:", "has said nothing for 5 s"]);
    assert_nothing_left(&mark_of_it);
}

#[test]
fn agents_end_when_nobody_is_left_at_the_other_end() {
    let server = Served::start(&[]);
    let mark_of_it = new_mark();
    // The shells die with the program, but not the agents, which are only their children.
    let machine = exec(&format!("sh -c '{NARROWS} agent; true'"));
    let drive = long_drive(&server, &format!("{machine},{machine}"), &mark_of_it);
    drive.signal(libc::SIGKILL);
    assert!(!drive.end().status.success());
    assert_nothing_left(&mark_of_it);
}

#[test]
fn agents_end_when_the_other_end_falls_silent() {
    let server = Served::start(&[]);
    let mark_of_it = new_mark();
    let drive = long_drive(&server, &two(), &mark_of_it);
    drive.signal(libc::SIGSTOP);
    // The stopped program cannot reap them.
    assert!(until(|| connections_to(&server.http) == 0), "{:?}", carrying(&mark_of_it));
    drive.signal(libc::SIGCONT);
    drive.end().code(1).says(&["machine exec:"]);
    assert_nothing_left(&mark_of_it);
}

#[test]
fn an_interruption_ends_all_drives_and_shows_what_was_counted() {
    let server = Served::start(&[]);
    let mark_of_it = new_mark();
    let drive = long_drive(&server, &two(), &mark_of_it);
    // The windows open a moment after the connections.
    std::thread::sleep(Duration::from_secs(1));
    drive.signal(libc::SIGINT);
    let ended = drive.end();
    assert!(ended.stdout.contains("(interrupted)") || ended.stderr.contains("interrupted"), "{ended:#?}");
    assert_nothing_left(&mark_of_it);
}

/// Passes on what an agent says, except the replies that its arguments name. Beats go through.
const LESS: &str = r#"
import json, sys
said, out = sys.stdin.buffer, sys.stdout.buffer
while len(head := said.read(4)) == 4:
    text = said.read(int.from_bytes(head, "big"))
    reply = json.loads(text).get("what", "")
    if not set(sys.argv[1:]) & {reply if isinstance(reply, str) else next(iter(reply))}:
        out.write(head + text)
        out.flush()
"#;

#[test]
#[ignore = "long; `make test-long` runs it"]
fn an_agent_that_only_beats_is_given_up() {
    if !has("python3") {
        return;
    }
    let (folder, server) = (tempfile::tempdir().expect("a folder"), Served::start(&[]));
    let script = folder.path().join("less.py");
    std::fs::write(&script, LESS).expect("it is written");
    let given_up = |less: &str, stop: [&str; 2], why: &str| {
        let machine = exec(&format!("sh -c '{NARROWS} agent | python3 {} {less}'", script.display()));
        let words = ["load", &server.http, "--gen", &machine, "-c", "2", "--timeout", "1s"];
        let own = new_mark();
        run(mark(&mut narrows(words.into_iter().chain(stop)), &own)).code(1).says(&["machine exec:", why]);
        assert_nothing_left(&own);
    };
    let (number, time) = (["-n", "50"], ["-d", "1s"]);
    std::thread::scope(|scope| {
        for (less, stop, why) in [
            ("ready", number, "was not ready within 31 s"),
            ("goes closed driven", number, "did not say in time what it counted"),
            ("driven", number, "did not say in time what it counted"),
            ("closed driven", time, "did not say in time what it counted"),
        ] {
            scope.spawn(move || given_up(less, stop, why));
        }
    });
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn machines_that_cannot_be_used_are_named_with_the_reason() {
    let server = Served::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let hello = br#"{"message":"hello","protocol":77,"version":"99.0.0"}"#;
    let other = folder.path().join("other");
    std::fs::write(&other, [&[0, 0, 0, hello.len() as u8], &hello[..]].concat()).expect("a file");
    let cat = exec(&format!("cat {}", other.display()));
    let table: [(&str, &[&str]); 9] = [
        ("exec:no-such-program-at-all", &["cannot start `no-such-program-at-all`", "Install it"]),
        ("exec:echo Welcome to this machine", &["Welcome to this machine", "no message of `narrows agent`"]),
        ("exec:true", &["closed the pipe", "exited with code 0", "try `true` in a shell"]),
        ("exec:sh -c 'echo no agent here >&2; exit 3'", &["exited with code 3", "no agent here"]),
        (r#"exec:sh -c 'printf "\033[31mred\033[0m" >&2; exit 3'"#, &["exited with code 3", "[31mred [0m"]),
        ("exec:cat", &["it repeats what it is sent", "try `cat` in a shell"]),
        ("exec:cat /dev/zero", &["no message of `narrows agent`"]),
        ("exec:sleep 600", &["did not answer within 15 s", "try `sleep 600` in a shell"]),
        (&cat, &["narrows 99.0.0 (pipe version 77)", concat!("here is narrows ", env!("CARGO_PKG_VERSION"))]),
    ];
    std::thread::scope(|scope| {
        for (machine, words) in table {
            let http = &server.http;
            scope.spawn(move || {
                let mark_of_it = new_mark();
                let machines = format!("local,{machine}");
                let mut command = narrows(["load", http, "--gen", &machines, "-d", "1s"]);
                let ended = run(mark(&mut command, &mark_of_it)).code(1).says(words);
                assert!(ended.stderr.contains("machine exec:"), "{ended:#?}");
                assert!(!ended.stderr.contains('\x1b'), "{ended:#?}");
                assert_nothing_left(&mark_of_it);
            });
        }
    });
    assert_eq!(server.counts()[0], 0, "nothing was driven");
}

#[test]
fn what_cannot_be_shared_or_sent_is_refused_before_anything_is_driven() {
    let server = Served::start(&[]);
    let refused = |words: &[&str], why: &str| {
        let ended = load(&[&[&*server.http, "--gen", "local,local"], words].concat()).code(2);
        assert!(ended.stderr.contains(why), "{ended:#?}");
    };
    refused(&["-c", "1"], "1 connections cannot be shared by 2 generators");
    refused(&["-n", "1"], "1 requests cannot be shared by 2 generators");
    refused(&["--source", "127.0.0.1"], "--source names addresses of this machine");
    refused(&["--requests", "a"], "--requests cannot be used with --gen yet");
    refused(&["--gen", "gen1"], "write ssh://[user@]host[:port], exec:COMMAND, slurm:N or local");
    assert_eq!(server.counts()[0], 0);
}

#[test]
fn several_generators_find_the_highest_rate_together() {
    let server = Served::start(&[]);
    let words = [&*server.http, "--gen", "local,local", "-c", "4", "-d", "200ms", "--rate", "100"];
    // No rate holds this objective, so the search ends soon.
    let search = ["--find-max-rate", "--slo", "p50<0.0001ms", "--json"];
    let json = load(&[&words[..], &search].concat()).code(3).json();
    assert!(json["holds"].is_null() && json["fails"].is_number(), "{json}");
}

#[test]
fn an_error_of_a_generator_names_its_machine() {
    let ended = load(&["http://127.0.0.1:1", "--gen", "local,local", "-d", "1s", "-c", "2"]).code(1);
    assert!(ended.stderr.contains("machine local: nothing listens at 127.0.0.1:1"), "{ended:#?}");
    let ended = load(&["http://192.0.2.1", "--gen", "local", "-d", "1s"]).code(1);
    assert!(ended.stderr.contains("--allow-remote"), "{ended:#?}");
    let ended = load(&["http://127.0.0.1:1", "--gen", "local", "-d", "1s", "--cores", "100000"]).code(1);
    assert!(ended.stderr.contains("may not run on core 100000"), "{ended:#?}");
}

#[test]
fn doctor_examines_each_machine_and_the_pipe_to_it() {
    let mut command =
        narrows(["doctor", "--json", "--sut", "local", "--gen", &exec(&format!("{NARROWS} agent"))]);
    let json = run(&mut command).code(0).json();
    let machines = json["machines"].as_array().expect("machines");
    let uses: Vec<_> = machines.iter().map(|machine| machine["use"].as_str().expect("a use")).collect();
    assert_eq!(uses, ["sut", "gen"], "{json}");
    for machine in machines {
        let path = &machine["path"];
        let [ahead, error] = ["ahead_ns", "error_ns"].map(|name| path[name].as_i64().expect("a number"));
        assert!(ahead.abs() <= error, "one clock: {path}");
        assert!(path["pipe_bytes_per_s"].as_f64() > Some(0.0), "{path}");
        assert_eq!(machine["agent"]["architecture"], std::env::consts::ARCH);
        let findings = machine["doctor"]["findings"].as_array().expect("findings");
        assert!(findings.iter().any(|finding| finding["what"] == "floor"), "{machine}");
        assert_eq!(machine["interface"]["name"], "lo", "{machine}");
    }
    assert!(machines[1]["way"]["round_trip_us"].as_f64() > Some(0.0), "{json}");
    let ended = run(&mut narrows(["doctor", "--gen", "local"])).code(0);
    assert!(ended.stdout.contains("local (generator; narrows"), "{ended:#?}");
    assert!(ended.stdout.contains("  pipe: round trip "), "{ended:#?}");
}

#[test]
fn an_agent_greets_and_ends_with_its_input() {
    // Its input is /dev/null, which has ended.
    let ended = run(&mut narrows(["agent"])).code(0);
    assert!(ended.stdout.contains("\"hello\""), "its greeting: {ended:#?}");
}

/// A folder with a configuration and keys, and an `ssh` that uses them, whose connections are pipes to an `sshd`.
fn sshd(folder: &Path) -> Option<()> {
    let sshd = installed("sshd")?;
    if !has("ssh") || !has("ssh-keygen") {
        return None;
    }
    let at = |name: &str| folder.join(name).display().to_string();
    for key in ["host", "user"] {
        let made =
            Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]).status();
        assert!(made.expect("it starts").success());
    }
    // SAFETY: a plain system call without arguments.
    if unsafe { libc::geteuid() } == 0 {
        // What the script that starts sshd makes.
        std::fs::create_dir_all("/run/sshd").expect("a folder");
    }
    let server = format!(
        "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nSetEnv PATH=/usr/bin:/bin \
         XDG_CACHE_HOME={}\n",
        at("host"),
        at("user.pub"),
        at("cache")
    );
    let client = format!(
        "Host gen1\n  ProxyCommand {} -i -f {}\n  IdentityFile {}\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  \
         LogLevel ERROR\n",
        sshd.display(),
        at("sshd_config"),
        at("user")
    );
    std::fs::write(at("sshd_config"), server).expect("a file");
    std::fs::write(at("ssh_config"), client).expect("a file");
    let ssh = std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join("ssh"))
        .find(|ssh| ssh.exists())?;
    let script = format!("#!/bin/sh\nexec {} -F {} \"$@\"\n", ssh.display(), at("ssh_config"));
    std::fs::create_dir(at("bin")).expect("a folder");
    std::fs::write(at("bin/ssh"), script).expect("a file");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(at("bin/ssh"), executable).expect("it can be executed");
    Some(())
}

#[test]
fn a_machine_is_reached_through_ssh() {
    let folder = tempfile::tempdir().expect("a folder");
    if sshd(folder.path()).is_none() {
        return;
    }
    let server = Served::start(&[]);
    let path = format!("{}:{}", folder.path().join("bin").display(), std::env::var("PATH").expect("a path"));
    let through = |machine: &str| {
        let mut command = narrows(["load", &server.http, "--gen", machine, "-n", "100", "-c", "2", "--json"]);
        run(command.env("PATH", &path))
    };
    // The machine has no narrows at first. Two shells there find that at the same time.
    let ended = through("ssh://gen1,ssh://gen1").code(0);
    assert_eq!(ended.json()["completed"], 100, "{ended:#?}");
    let programs = folder.path().join("cache/narrows/agents");
    let stored = || -> Vec<PathBuf> {
        let folders = std::fs::read_dir(&programs).into_iter().flatten().flatten();
        let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten());
        files.flatten().map(|file| file.path()).collect()
    };
    let [program] = &stored()[..] else { panic!("one program: {:?}", stored()) };
    assert!(
        std::fs::read(program).expect("it") == std::fs::read(NARROWS).expect("this one"),
        "it is this one"
    );
    let modified = || std::fs::metadata(program).and_then(|about| about.modified()).expect("a time");
    let before = modified();
    through("ssh://gen1,local").code(0);
    assert_eq!(modified(), before, "it is not sent twice");
    let clean = |machine: &str| run(narrows(["agent", "--clean", machine]).env("PATH", &path));
    clean("ssh://gen1").code(0);
    assert!(stored().is_empty() && !programs.exists());
    clean("ssh://no-such-host.invalid").code(1).says(&["machine ssh://no-such-host.invalid"]);
    clean("exec:true").code(1).says(&["run `narrows agent --clean` there"]);
    through("ssh://no-such-host.invalid")
        .code(1)
        .says(&["machine ssh://no-such-host.invalid", "exited with code 255"]);
    assert_eq!(server.counts()[0], 200);
}

/// A folder with a `salloc`, an `srun` and a `scontrol` that know this machine only. `salloc` says in `log` what it was asked for, and
/// how its allocation ended. If `waits` exists, nothing is granted. As with Slurm, SIGTERM gives back what there is.
fn slurm(folder: &Path) -> String {
    let bin = folder.join("bin");
    std::fs::create_dir(&bin).expect("a folder");
    let log = folder.join("log").display().to_string();
    let waits = folder.join("waits").display().to_string();
    let salloc = format!(
        "done=withdrawn\ntrap 'echo $done >>{log}' EXIT\ntrap 'exit 1' TERM\n\
         echo \"$@\" >>{log}\nwhile [ \"$1\" != sh ]; do shift; done\n\
         if [ -e {waits} ]; then sleep 600 & wait $!; fi\n\
         done='given back'\nexport SLURM_JOB_ID=17 SLURM_JOB_NODELIST='n1 n2'\n\"$@\""
    );
    let srun = format!("echo \"$@\" >>{log}\nwhile [ \"$1\" != sh ]; do shift; done\nexec \"$@\"");
    for (name, text) in [("salloc", salloc), ("srun", srun), ("scontrol", "echo $3".to_owned())] {
        let path = bin.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a file");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, executable).expect("it can be executed");
    }
    format!("{}:{}", bin.display(), std::env::var("PATH").expect("a path"))
}

#[test]
fn an_allocation_of_slurm_is_used_and_given_back_on_every_way_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = slurm(folder.path());
    let server = Served::start(&[]);
    let mark_of_it = new_mark();
    let command = |machines: &str, words: &[&str]| {
        let mut command = narrows([&["load", &server.http, "--gen", machines, "--json"], words].concat());
        mark(&mut command, &mark_of_it).env("PATH", &path).env("XDG_CACHE_HOME", folder.path().join("cache"));
        command
    };
    let log = || std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    let ended = |what: &str| log().matches(what).count();

    let json = run(&mut command("slurm:2 -p short", &["-n", "100", "-c", "2"])).code(0).json();
    let names: Vec<&Value> = generators(&json).iter().map(|generator| &generator["machine"]).collect();
    assert_eq!(names, ["slurm:2 -p short (node n1)", "slurm:2 -p short (node n2)"], "{json}");
    assert!(log().contains("-N 2 -p short sh -c") && log().contains("--jobid 17 -w n2 "), "{}", log());
    assert_eq!(ended("given back"), 1, "{}", log());

    run(&mut command("slurm:3", &["-n", "100", "-c", "3"])).code(1).says(&["`salloc` gave no 3 nodes"]);
    assert_eq!(ended("given back"), 2, "{}", log());

    let drive = Guarded::spawn(&mut command("slurm:2", &["-d", "30s", "-c", "4"]));
    assert!(until(|| connections_to(&server.http) >= 4), "both drive");
    drive.signal(libc::SIGKILL);
    assert!(!drive.end().status.success());
    assert!(until(|| ended("given back") == 3), "{}", log());

    std::fs::write(folder.path().join("waits"), "").expect("a file");
    let waits = Guarded::spawn(&mut command("slurm:2", &["-n", "100", "-c", "2"]));
    assert!(until(|| log().lines().filter(|line| line.contains("--exclusive")).count() == 4), "{}", log());
    waits.signal(libc::SIGINT);
    waits.end().code(130).says(&["interrupted while it waited for Slurm"]);
    assert_eq!(ended("withdrawn"), 1, "{}", log());
    assert_nothing_left(&mark_of_it);
}
