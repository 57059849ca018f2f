//! `narrows run` with the real systems, in small and short experiments: every planned trial is measured, and every
//! count adds up.

use std::collections::BTreeMap;
use std::sync::Arc;

use lab::experiment::grid::{Overrides, Request};
use lab::experiment::{Experiment, Figure, Figures, Form, Subject};
use lab::observation::{Observation, Outcome, Timing};
use lab::plan::plan;
use lab::session::{Bench, observe};
use serde_json::Value;
use systems::machine::{Limit, Placement, available_cores};
use systems::{Catalog, Manifest, Workload};

use crate::support::home::{Home, all_took_part};

/// A window in seconds in which every system has answers, even on a busy machine.
pub(crate) const ENOUGH: f64 = 0.3;

/// Runs experiment `e` and returns the systems that took part besides the reference: those that are not missing here.
/// Every planned trial, including the reference's, must be measured without an error, and the stored report must agree.
pub(crate) fn runs(home: &Home, reference: &str) -> Vec<String> {
    runs_with(home, reference, &[], |errors| errors.is_empty())
}

/// The same with these words on the command line, and with errors of classes that `accept` accepts.
pub(crate) fn runs_with(
    home: &Home,
    reference: &str,
    words: &[&str],
    accept: impl Fn(&[String]) -> bool,
) -> Vec<String> {
    let ended = home.run([&["run", "e", "--rounds", "file", "--seed", "1"], words].concat());
    if !all_took_part(&ended) && ended.stderr.contains("nothing to run") {
        return Vec::new();
    }
    let ended = ended.code(0);
    let seen = home.observations();
    assert_eq!(seen.len(), home.planned(), "{ended:#?}");
    let mut systems: Vec<&str> =
        seen.iter().map(|observation| observation.trial.scenario.system.as_str()).collect();
    systems.sort_unstable();
    systems.dedup();
    assert!(systems.contains(&reference), "{systems:?}");
    for system in &systems {
        for m in home.measured(system) {
            assert_eq!(m.attempts, m.successes + m.errors.values().sum::<u64>() + m.in_flight, "{m:#?}");
            assert!(m.attempts > 0 && m.elapsed_s > 0.0, "{system}: {m:#?}");
            let classes: Vec<String> = m.errors.keys().cloned().collect();
            assert!(accept(&classes), "{system}: {:?} {:?}", m.errors, m.first_errors);
            // Failures took some time, and there is an example of each class.
            assert!(m.errors.keys().eq(m.first_errors.keys()), "{system}: {m:#?}");
            let dated = |text: &String| !text.starts_with(' ') && text.ends_with(" s into the window)");
            assert!(m.first_errors.values().all(dated), "{system}: {:?}", m.first_errors);
            assert_eq!(m.mean_error_us > 0.0, !m.errors.is_empty(), "{system}: {m:#?}");
        }
    }
    assert_report(home);
    systems.into_iter().filter(|system| *system != reference).map(str::to_owned).collect()
}

/// Asserts that the report of the run agrees with the store.
fn assert_report(home: &Home) {
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let experiment = &report["experiments"][0];
    assert_eq!(experiment["trials_planned"], experiment["trials_done"], "{report}");
    assert_eq!(experiment["failures"], serde_json::json!([]), "{report}");
    for estimate in experiment["figures"][0]["estimates"].as_array().expect("estimates") {
        let number = |name: &str| estimate[name].as_u64().expect(name);
        let errors: u64 =
            estimate["errors"].as_object().expect("errors").values().filter_map(Value::as_u64).sum();
        let all = number("successes") + errors + number("in_flight");
        assert_eq!((number("attempts"), &estimate["failed"]), (all, &0.into()), "{estimate}");
    }
}

#[test]
fn cowboy2_accepts_uploads_of_every_size() {
    let home = Home::with(&["cowboy2"]);
    let grid = "[[grid]]\nsize = [0, 1, 1461, \"300K\"]\nreuse = false\n\
                [[grid]]\nsize = \"300K\"\nreuse = false\nexpect = true\nconcurrency = 3\nbuffer = 65536\n";
    home.timed_experiment("upload", "[\"cowboy2\"]", 1, ENOUGH, grid);
    if !runs(&home, "reference").is_empty() {
        let sizes = home.measured("cowboy2").into_iter().map(|m| (m.successes, m.payload_bytes));
        assert!(sizes.into_iter().all(|(uploads, bytes)| uploads > 0 && bytes % uploads == 0));
    }
}

// At its default flow size, Cowboy 2.8 sometimes stops reading a kept connection after an upload, in some seconds of
// uploads.
#[test]
#[ignore = "long; `make test-long` runs it"]
fn cowboy2_accepts_uploads_on_kept_connections() {
    let home = Home::with(&["cowboy2"]);
    let grid = "[[grid]]\nsize = 1461\ninitial_stream_flow_size = \"1G\"\n";
    home.timed_experiment("upload", "[\"cowboy2\"]", 9, 0.3, grid);
    runs(&home, "reference");
}

#[test]
fn cowboy2_answers_requests_with_and_without_keep_alive_and_pipelined() {
    let home = Home::with(&["cowboy2"]);
    let grid = "[[grid]]\nconnections = 20\nkeep_alive = [true, false]\n\
                [[grid]]\nconnections = 4\npipeline = 8\nmax_keepalive = 1000000\n";
    home.experiment("requests", "[\"cowboy2\"]", 1, grid);
    runs(&home, "reference");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn erlang_counts_frames_of_every_size_in_every_mode() {
    let home = Home::with(&["erlang-packet"]);
    let grid = "[[grid]]\nframing = [\"0\", \"4\"]\nactive = [\"once\", 40, \"true\"]\nframe_size = [0, 1, 1456, 1457]\n\
                [[grid]]\nframing = [\"0\", \"4\"]\nframe_size = 100000\nconnections = 3\nbuffer = 65536\n";
    home.timed_experiment("frames", "[\"erlang-packet\"]", 1, ENOUGH, grid);
    if !runs(&home, "reference").is_empty() {
        let seen = home.observations();
        assert_eq!(
            seen.iter().filter(|observation| observation.trial.scenario.system == "erlang-packet").count(),
            26
        );
        for m in home.measured("erlang-packet") {
            assert!(m.successes > 0 && m.units >= m.successes, "{m:#?}");
        }
    }
}

#[test]
fn boost_libuv_and_node_answer_requests_with_and_without_keep_alive() {
    let systems = ["boost-asio", "libuv", "node"];
    let home = Home::with(&systems);
    let grid =
        "[[grid]]\nconnections = 30\nkeep_alive = [true, false]\n[[grid]]\nconnections = 3\npipeline = 4\n";
    home.experiment("requests", "[\"boost-asio\", \"libuv\", \"node\"]", 2, grid);
    runs(&home, "reference");
}

/// Current servers.
const SERVERS: [&str; 4] = ["go-http", "hyper", "netty", "uvicorn"];
/// Current receivers of frames.
const RECEIVERS: [&str; 4] = ["erlang-socket", "go-frames", "netty-frames", "tokio-frames"];
/// Current clients.
const CLIENTS: [&str; 7] = ["aiohttp", "go-client", "httpx", "java-http", "libcurl", "reqwest", "undici"];
// The published program sends a zero byte after each answer, which makes all of them errors. It keeps its row, with the
// reason.
#[test]
fn libuv_as_published_is_shown_with_its_errors() {
    let home = Home::with(&["libuv"]);
    let grid = "[[grid]]\nconnections = 5\nkeep_alive = [true, false]\n";
    home.timed_experiment("requests", "[\"libuv\", \"libuv@published\"]", 2, ENOUGH, grid);
    let ended = home.run(["run", "e", "--rounds", "2"]);
    if !all_took_part(&ended) {
        return;
    }
    let published = home.measured("libuv@published");
    assert_eq!(published.len(), 4);
    for m in &published {
        assert!(m.successes == 0 && m.errors.keys().eq(["protocol"]), "{m:#?}");
        assert!(m.first_errors["protocol"].contains(r"\x00"), "{m:#?}");
    }
    assert!(home.measured("libuv").iter().all(|m| m.successes > 0 && m.errors.is_empty()));
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let experiment = &report["experiments"][0];
    assert_eq!(experiment["failures"], serde_json::json!([]), "{report}");
    let rows = experiment["figures"][0]["estimates"].as_array().expect("estimates");
    let published = rows.iter().filter(|row| row["scenario"]["system"] == "libuv@published");
    assert!(
        published.clone().count() == 2 && published.clone().all(|row| row["error_share"] == 1.0),
        "{report}"
    );
    assert!(!experiment["figures"][0]["headlines"].to_string().contains("libuv@published"), "{report}");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn current_servers_answer_requests_with_and_without_keep_alive() {
    let systems = [&SERVERS[..], &["nginx"]].concat();
    let home = Home::with(&systems);
    // nginx must not close a connection, because the requests in its pipeline would be lost.
    let grid = "[[grid]]\nconnections = 30\nkeep_alive = [true, false]\n\
                [[grid]]\nconnections = 3\npipeline = 4\nkeepalive_requests = 1000000\n";
    home.experiment("requests", &format!("{systems:?}"), 1, grid);
    runs(&home, "reference");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn node_and_current_servers_accept_uploads_of_every_size() {
    let systems = [&SERVERS[..], &["node"]].concat();
    let home = Home::with(&systems);
    let grid =
        "[[grid]]\nsize = [0, 1, \"1M\"]\nreuse = [true, false]\n[[grid]]\nsize = \"100K\"\nexpect = true\n";
    home.experiment("upload", &format!("{systems:?}"), 1, grid);
    runs(&home, "reference");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn current_receivers_count_frames_of_every_size() {
    let home = Home::with(&RECEIVERS);
    let grid = "[[grid]]\nframe_size = [0, 1, 1457]\nbuffer = 1460\nread = [\"chunks\", \"exact\"]\n\
                [[grid]]\nframe_size = 100000\nconnections = 3\n";
    home.timed_experiment("frames", &format!("{RECEIVERS:?}"), 1, ENOUGH, grid);
    for system in runs(&home, "reference") {
        let measured = home.measured(&system);
        assert!(measured.iter().all(|m| m.successes > 0 && m.units >= m.successes), "{system}");
    }
}

/// The clients whose libraries say when a request got a connection of the pool (docs/contracts.md).
const TELL_WAITS: [&str; 7] =
    ["aiohttp", "go-client", "gun-poolboy", "httpx", "libcurl", "reference-client", "undici"];

/// Asserts that the server's counts are between the client's successes and its attempts, and that waits are reported
/// for each success or for none.
fn assert_counts_agree(home: &Home, clients: &[String]) {
    if clients.is_empty() {
        return;
    }
    for system in clients.iter().map(String::as_str).chain(["reference-client"]) {
        for m in home.measured(system) {
            let waits = if TELL_WAITS.contains(&system) { m.successes } else { 0 };
            assert_eq!((m.pool_wait_us.count, m.service_us.count), (waits, waits), "{system}");
            let server = m.server.expect("the server's counts");
            assert!(server.client_successes > 0, "{system}: {server:#?}");
            assert!(server.client_successes <= server.responses, "{system}: {server:#?}");
            assert!(server.responses <= server.requests, "{system}: {server:#?}");
            assert!(server.requests <= server.client_attempts, "{system}: {server:#?}");
            let errors: u64 = server.client_errors.values().sum();
            assert_eq!(server.client_attempts, server.client_successes + errors, "{system}: {server:#?}");
        }
    }
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    for estimate in report["experiments"][0]["figures"][0]["estimates"].as_array().expect("estimates") {
        assert_eq!(estimate["counts_agree"], true, "{estimate}");
    }
}

const POOLED: [&str; 2] = ["httpc", "gun-poolboy"];

/// Runs each client with connections that stay open, with announced closes after five requests, and with two pools.
fn announced_closes(clients: &[&str]) {
    let home = Home::with(clients);
    let grid = "[[grid]]\npool_size = 4\nconcurrency = 8\ndelay_ms = 1\ntimeout_ms = 20000\nmax_keepalive = [0, 5]\n\
                [[grid]]\npools = 2\npool_size = 3\nconcurrency = 4\ndelay_ms = 0\ntimeout_ms = 20000\n";
    home.experiment("clients", &format!("{clients:?}"), 1, grid);
    assert_counts_agree(&home, &runs(&home, "reference-client"));
}

/// Runs each client with connections that close after five requests without an announcement.
fn silent_closes(clients: &[&str]) {
    let home = Home::with(clients);
    let grid = "[[grid]]\npool_size = 4\nconcurrency = 8\ndelay_ms = 1\ntimeout_ms = 20000\nmax_keepalive = 5\n\
                close = \"silent\"\n";
    home.experiment("clients", &format!("{clients:?}"), 1, grid);
    // A request that meets the close may fail, with any error that the kernel reports for it.
    let closes =
        |classes: &[String]| classes.iter().all(|class| ["closed_early", "reset"].contains(&&**class));
    assert_counts_agree(&home, &runs_with(&home, "reference-client", &[], closes));
}

/// Runs each client with answers that are always too late, and with connections for only half of the callers.
fn late_answers(clients: &[&str]) {
    let home = Home::with(clients);
    let grid = "[[grid]]\npool_size = 4\nconcurrency = 8\ndelay_ms = 300\ntimeout_ms = 60\n";
    let known = ["request_timeout", "timeout", "pool_wait", "connect_timeout"];
    let late = |classes: &[String]| classes.iter().all(|class| known.contains(&&**class));
    let failed = |seen: Observation| matches!(seen.outcome, Outcome::Measured(m) if !m.errors.is_empty());
    // Long enough for a failure in each trial, even on a slow machine.
    let all_failed = [0.5, 4.0, 16.0].into_iter().any(|window| {
        home.timed_experiment("clients", &format!("{clients:?}"), 1, window, grid);
        runs_with(&home, "reference-client", &[], late);
        home.observations().into_iter().all(failed)
    });
    assert!(all_failed);
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn pooled_clients_count_as_the_server_does() {
    announced_closes(&POOLED);
}

#[test]
fn pooled_clients_count_as_the_server_does_with_silent_closes() {
    silent_closes(&POOLED);
}

#[test]
fn pooled_clients_report_the_first_failure_and_how_long_it_took() {
    late_answers(&POOLED);
}

#[test]
fn current_clients_count_as_the_server_does() {
    announced_closes(&CLIENTS);
}

#[test]
fn current_clients_count_as_the_server_does_with_silent_closes() {
    silent_closes(&CLIENTS);
}

#[test]
fn current_clients_report_the_first_failure_and_how_long_it_took() {
    late_answers(&CLIENTS);
}

/// A system and an experiment made of values, without files, are planned, built, started, driven and stopped.
#[test]
fn systems_and_experiments_from_values_run() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let command = ["{narrows}", "serve", "--any", "{port}"].map(str::to_owned).into();
    let draft = systems::Draft {
        name: "twin".to_owned(),
        workloads: vec![Workload::Requests],
        command,
        dir: home.path().into(),
        home: home.path().into(),
        ..systems::Draft::default()
    };
    let mut catalog = Catalog::new(home.path());
    catalog.insert(Manifest::new(draft).expect("a system"));
    let subject = Subject {
        name: "made".to_owned(),
        title: "Made of values".to_owned(),
        about: String::new(),
        workload: Workload::Requests,
        figures: Figures { first: Figure::RequestsPerS, others: Vec::new() },
        asks: None,
        objective: None,
        published: Vec::new(),
        threshold: 0.05,
    };
    let timing = Timing { warmup_s: 0.05, measure_s: 0.1, timeout_s: 5.0 };
    let grid = [vec![("connections", vec![systems::Value::Integer(2)])]];
    let experiment = Experiment::new(subject, &["twin"], 1, timing, &grid).expect("an experiment");
    let request = Request { experiment, form: Form::Quick, overrides: Overrides::default() };
    let plan = plan(&[request], &catalog, &BTreeMap::new(), 1).expect("a plan");
    assert_eq!(plan.trials.len(), 2, "the twin and the reference");
    let placement = Placement::decide(&available_cores());
    let mut bench =
        Bench::new(catalog, crate::support::NARROWS.into(), placement, Limit::default(), Arc::default());
    for trial in &plan.trials {
        let seen = observe(&mut bench, trial).expect("nobody interrupts");
        let Outcome::Measured(m) = seen.outcome else { panic!("{seen:#?}") };
        assert!(m.successes > 0 && m.errors.is_empty(), "{m:#?}");
    }
}
