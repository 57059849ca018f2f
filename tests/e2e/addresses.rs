//! Systems that listen at another address than 127.0.0.1: they are told it, driven there, and found if they do not keep to it.

use std::fs;

use serde_json::Value;

use crate::run_systems::{ENOUGH, runs_with};
use crate::support::home::Home;
use crate::support::{NARROWS, has, until};

const ELSEWHERE: &str = "127.0.0.2";

/// One round of short trials, which decides nothing.
const SHORT: [&str; 8] = ["--rounds", "1", "-d", "400ms", "--warmup", "50ms", "--seed", "1"];

/// A server that notes the address that it is told in the file `seen`.
const NOTED: &str = r#"["sh", "-c", "echo $1 >> seen; exec $0 serve --host $1 --any $2", "{narrows}", "{address}", "{port}"]"#;

fn seen(home: &Home, file: &str) -> Vec<String> {
    let text = fs::read_to_string(home.path(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn systems_of_every_kind_are_measured_at_another_address() {
    let names = ["nginx", "node", "go-http", "haproxy", "uvicorn", "libuv", "erlang-packet", "go-frames"];
    let home = Home::with(&names);
    for (workload, systems, grid) in [
        (
            "requests",
            r#"["nginx", "node", "go-http", "haproxy", "uvicorn", "libuv"]"#,
            "connections = 2\ntls = [\"off\", \"1.3\"]\n",
        ),
        ("frames", r#"["erlang-packet", "go-frames"]"#, "frame_size = 1000\n"),
    ] {
        home.timed_experiment(workload, systems, 1, ENOUGH, &format!("[[grid]]\n{grid}"));
        runs_with(&home, "reference", &["--address", ELSEWHERE], |errors| errors.is_empty());
    }
}

#[test]
fn a_system_that_is_not_told_its_address_takes_no_part() {
    let home = Home::new();
    home.shell_server("deaf", "exec \"$narrows\" serve --any \"$port\"", "");
    home.server("told", NOTED, "");
    home.experiment("requests", r#"["deaf", "told"]"#, 1, "[[grid]]\nconnections = 2\n");
    let ended = home.run(["run", "e", "--rounds", "file", "--address", ELSEWHERE]).code(0);
    ended.says(&["deaf takes no part: it listens at 127.0.0.1 only: use {address} in start.command"]);
    assert_eq!(home.measured("told").len(), 1);
    assert_eq!(seen(&home, "systems/told/seen"), [ELSEWHERE]);
}

#[test]
fn a_run_that_goes_on_listens_where_it_began() {
    let home = Home::new();
    home.server("noted", NOTED, "");
    home.timed_experiment("requests", "[\"noted\"]", 3, 0.5, "[[grid]]\nconnections = 2\n");
    let mut begun = home.spawn(&["run", "e", "--rounds", "file", &format!("--address={ELSEWHERE}")]);
    assert!(until(|| home.observations().len() > 1 || !begun.running()) && begun.running());
    begun.signal(libc::SIGINT);
    begun.end().code(130);
    let before = seen(&home, "systems/noted/seen").len();
    home.run(["run", "--resume", "1", "--address", "127.0.0.1"]).code(2).says(&["cannot be used with"]);
    home.run(["run", "--resume", "1"]).code(0);
    let told = seen(&home, "systems/noted/seen");
    assert!(told.len() > before && told.iter().all(|address| address == ELSEWHERE), "{told:?}");
}

#[test]
fn commands_are_told_the_address() {
    let home = Home::new();
    let server = "sh start.sh {address} {port}";
    home.write("start.sh", &format!("echo $1 >> seen; exec {NARROWS} serve --host $1 -p $2"));
    home.run(["try", server, "--address", ELSEWHERE].into_iter().chain(SHORT)).code(0);
    let secured =
        format!("{NARROWS} serve --host {{address}} -p {{port}} --tls --cert {{cert}} --key {{key}}");
    home.run(["try", &secured, "--address", ELSEWHERE].into_iter().chain(SHORT)).code(0);
    let told = seen(&home, "seen");
    assert!(!told.is_empty() && told.iter().all(|address| address == ELSEWHERE), "{told:?}");
    for observation in home.observations() {
        for measured in home.measured(&observation.trial.scenario.system) {
            assert!(measured.successes > 0 && measured.errors.is_empty(), "{measured:#?}");
        }
    }
    let shown = home.run(["try", server, "--address", ELSEWHERE, "--dry-run"]).code(0);
    assert!(shown.stdout.contains("sh start.sh 127.0.0.2 {port}"), "{shown:#?}");
    let shown = home.run(["try", server, "--dry-run"]).code(0);
    assert!(shown.stdout.contains("sh start.sh 127.0.0.1 {port}"), "{shown:#?}");
}

#[test]
fn a_command_that_listens_elsewhere_is_named_with_what_to_do() {
    let home = Home::new();
    let server = format!("{NARROWS} serve -p {{port}}");
    let ended = home.run(["try", &server, "--address", ELSEWHERE, "--ready", "1s"]).code(1);
    ended.says(&["no connection on 127.0.0.2:", "it listens at 127.0.0.1:", "use {address} in the command"]);
}

#[test]
fn the_check_finds_servers_that_do_not_keep_to_the_address() {
    let home = Home::new();
    let serve = |host: &str| format!(r#"["{{narrows}}", "serve", "--host", "{host}", "--any", "{{port}}"]"#);
    let passed = |host: &str| {
        format!(
            r#"["sh", "-c", "exec $0 serve --host {host} --any $1", "{{narrows}}", "{{port}}", "{{address}}"]"#
        )
    };
    home.server("keeps", &serve("{address}"), "");
    home.server("untold", &serve("127.0.0.1"), "");
    home.server("ignores", &passed("127.0.0.1"), "[ready]\ntimeout_s = 1");
    home.server("everywhere", &passed("0.0.0.0"), "");
    for (system, verdict, seen) in [
        ("keeps", "kept", "at 127.0.0.2, and not at 127.0.0.1"),
        ("untold", "excused", "it listens at 127.0.0.1 only: use {address} in start.command"),
        ("ignores", "broken", "it listens at 127.0.0.1:"),
        ("everywhere", "broken", "told 127.0.0.2, it also listens at 127.0.0.1"),
    ] {
        let ended = home.run(["systems", "--check", system, "--json"]);
        assert_eq!(ended.status.code(), Some(i32::from(verdict == "broken")), "{ended:#?}");
        let json = ended.json();
        let checks = json[0]["checks"].as_array().expect("checks");
        let check = checks.iter().find(|check| check["name"] == "listens where it is told");
        let check = check.unwrap_or(&Value::Null);
        assert_eq!(check["verdict"], verdict, "{json:#}");
        assert!(check["seen"].as_str().is_some_and(|text| text.contains(seen)), "{check:#}");
    }
}

#[test]
fn ipv6_is_an_address_too() {
    if std::net::TcpListener::bind("[::1]:0").is_err() || !has("node") {
        return;
    }
    let home = Home::with(&["node"]);
    let grid = "[[grid]]\nconnections = 2\ntls = [\"off\", \"1.3\"]\n";
    home.timed_experiment("requests", r#"["node"]"#, 1, ENOUGH, grid);
    assert_eq!(runs_with(&home, "reference", &["--address", "::1"], |errors| errors.is_empty()), ["node"]);
}
