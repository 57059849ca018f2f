//! `narrows run` with servers that the user started: they are found, measured, and left running.

use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::support;
use crate::support::home::Home;
use crate::support::peer::Peer;
use crate::support::{Guarded, Served, has, until};
use lab::observation::Stage;
use measurement::Measurement;

/// A manifest that names a server at this address.
fn attach(home: &Home, url: &str, more: &str) {
    let manifest = format!(
        "name = \"mine\"\nrole = \"server\"\nworkloads = [\"requests\"]\nlanguage = \"none\"\nabout = \"of a test\"\n\
         attach = \"{url}\"\nget = \"type this\"\n{more}"
    );
    home.write("systems/mine/system.toml", &manifest);
}

#[test]
fn a_users_server_is_measured_and_keeps_running() {
    let home = Home::new();
    let url = format!("http://127.0.0.1:{}", systems::free_port().expect("a free port"));
    attach(&home, &url, "");
    // Long enough for answers in each trial, even on a busy machine.
    home.timed_experiment("requests", "[\"mine\"]", 2, 1.0, "[[grid]]\nconnections = 4\n");
    let ended = home.run(["run", "e", "--rounds", "file"]);
    let why = format!("mine takes no part: a server at {url} is missing (type this)");
    assert!(ended.stderr.contains(&why), "{ended:#?}");
    let listed = home.run(["systems"]).code(0).stdout;
    assert!(listed.contains(&format!("(nothing listens on {}): type this", &url[7..])), "{listed}");

    let mut server = Served::start(&[]);
    attach(&home, &server.http, "");
    let listed = home.run(["systems"]).code(0).stdout;
    assert!(listed.contains(&format!("attached to narrows (process {})", server.pid())), "{listed}");
    home.run(["run", "e", "--rounds", "file"]).code(0);
    let measured: Vec<Measurement> = home.measured("mine");
    assert_eq!(measured.len(), 2);
    for m in &measured {
        assert!(m.successes > 0 && m.errors.is_empty(), "{m:#?}");
        assert!(
            m.system.cpu_s > 0.0 && m.system.peak_pss_bytes > 0 && m.system.context_switches > 0,
            "{m:#?}"
        );
        assert!(m.system.version.contains(&server.pid().to_string()), "{m:#?}");
    }
    assert!(server.running(), "Narrows ended a server that is not its own");
    let ended = home.run(["run", "e", "--rounds", "file", "--set", "anything=1"]);
    assert!(ended.stderr.contains("no system of these experiments has a knob `anything`"), "{ended:#?}");
}

#[test]
fn the_declared_answer_is_checked() {
    let home = Home::new();
    let server = Served::start(&[]);
    home.experiment("requests", "[\"mine\"]", 1, "[[grid]]\nconnections = 2\n");
    attach(&home, &server.http, "[answer]\nbody = \"\"\nabout = \"another answer\"\n");
    home.run(["run", "e", "--rounds", "file"]);
    let failed = home.failed("mine");
    assert_eq!(failed[0].stage, Stage::EqualWork);
    assert!(failed[0].reason.contains("length"), "{failed:#?}");

    // A system that declares a fault has a row, but no rank.
    attach(
        &home,
        &server.http,
        "[answer]\nbody = \"\"\nfault = \"two bytes too many\"\nabout = \"another answer\"\n",
    );
    home.run(["run", "e", "--rounds", "file"]).code(0);
    let measured = home.measured("mine");
    assert!(measured[0].successes == 0 && measured[0].errors["length"] > 0, "{measured:#?}");
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let advice = report["experiments"][0]["figures"][0]["advice"].to_string();
    assert!(advice.contains("mine does not do the work of the others: another answer"), "{advice}");
}

#[test]
fn a_run_that_is_stopped_and_goes_on_loses_nothing() {
    let server = Peer::new(|mut connection| {
        while connection.request().is_some() {
            thread::sleep(Duration::from_millis(20));
            connection.ok();
        }
    });
    let home = Home::new();
    let mut run = home.spawn(&["try", &server.url("http"), "--rounds", "1", "-d", "300ms", "-c", "2"]);
    while run.running() {
        run.signal(libc::SIGSTOP);
        thread::sleep(Duration::from_millis(5));
        run.signal(libc::SIGCONT);
        thread::sleep(Duration::from_millis(25));
    }
    run.end().code(0);
    home.assert_all_right("a server beside a run that is stopped and goes on");
}

#[test]
fn a_users_server_that_ends_costs_only_its_own_trials() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let port = systems::free_port().expect("a free port");
    // The check of equal work makes three requests. Then each of two connections makes one.
    let script = format!(
        "let n = 0; require('http').createServer((q, a) => {{ a.end('ok'); if (++n > 4) process.exit(0); }}).listen({port}, '127.0.0.1')"
    );
    let mut command = Command::new("node");
    support::plain(&mut command);
    let mut server = Guarded::spawn(command.args(["-e", &script]));
    assert!(until(|| TcpStream::connect(("127.0.0.1", port)).is_ok()), "it never listened");
    attach(&home, &format!("http://127.0.0.1:{port}"), "");
    home.timed_experiment("requests", "[\"mine\"]", 2, 1.0, "[[grid]]\nconnections = 2\n");
    home.run(["run", "e", "--rounds", "file"]).code(1);
    assert!(!server.running());
    let failed = home.failed("mine");
    let stages: Vec<Stage> = failed.iter().map(|failure| failure.stage).collect();
    assert_eq!(stages, [Stage::System, Stage::Start], "{failed:#?}");
    assert!(failed[0].reason.contains("has ended"), "{failed:#?}");
    assert!(
        failed[1].reason.contains("nothing listens on") && failed[1].reason.contains("type this"),
        "{failed:#?}"
    );
    assert_eq!(home.measured("reference").len(), 2, "once in each round");
}
