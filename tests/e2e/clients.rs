//! The workload `clients` shows what a published table hid: how a pool that fails fast behaves when the server closes
//! each connection after its 100th request (docs/contracts.md, "A client driver").

use measurement::Measurement;

use crate::support::has;
use crate::support::home::Home;

/// The number of requests after which the server closes a connection.
const KEEP: u64 = 100;
/// The number of connections of the pool.
const POOL: u64 = 4;

/// A home with the driver of tests/support/fail_fast.js, as `fail-fast`.
fn home() -> Home {
    let home = Home::new();
    home.write("systems/fail-fast/fail_fast.js", include_str!("../support/fail_fast.js"));
    let knob = |name: &str, default: u32| {
        format!("[knobs.{name}]\ntype = \"integer\"\ndefault = {default}\nabout = \"of a test\"\n")
    };
    let manifest = format!(
        "name = \"fail-fast\"\nrole = \"client\"\nworkloads = [\"clients\"]\nlanguage = \"JavaScript\"\nabout = \"of a test\"\n\
         [start]\ncommand = [\"node\", \"fail_fast.js\", \"{{backoff_ms}}\", \"{{attempts}}\"]\n{}{}",
        knob("backoff_ms", 500),
        knob("attempts", 0)
    );
    home.write("systems/fail-fast/system.toml", &manifest);
    home
}

/// The codes of the report's warnings about the only scenario of `fail-fast`.
fn warnings(home: &Home, max_keepalive: u64) -> Vec<String> {
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let all = report["experiments"][0]["figures"][0]["warnings"].as_array().expect("warnings").clone();
    let scenario = format!("fail-fast max_keepalive={max_keepalive}");
    let concerns = |warning: &&serde_json::Value| {
        let scenarios = warning["scenarios"].as_array().expect("scenarios");
        scenarios.is_empty() || scenarios.iter().any(|name| name.as_str() == Some(scenario.as_str()))
    };
    all.iter().filter(concerns).map(|warning| warning["code"].as_str().expect("a code").to_owned()).collect()
}

/// The measurements of the driver's trials: against the closing server, and against the other one.
fn measured(home: &Home) -> [Vec<Measurement>; 2] {
    let with = |limit: u64| {
        let of_server = home.observations().into_iter().filter(move |seen| {
            let scenario = &seen.trial.scenario;
            scenario.system == "fail-fast"
                && matches!(scenario.work(), systems::Work::Clients(work) if work.max_keepalive == limit)
        });
        of_server
            .map(|seen| match seen.outcome {
                lab::observation::Outcome::Measured(m) => *m,
                lab::observation::Outcome::Failed(failure) => panic!("{failure:#?}"),
            })
            .collect::<Vec<_>>()
    };
    [with(KEEP), with(0)]
}

/// With a fixed number of attempts, as in the published table, each connection has 100 successes and everything else
/// fails.
#[test]
fn a_pool_that_fails_fast_follows_the_published_law_of_errors() {
    if !has("node") {
        return;
    }
    let home = home();
    // No connection is opened twice in the trial, so the law of one reconnect cycle holds.
    let attempts = 4000;
    let grid = format!(
        "[[grid]]\npool_size = {POOL}\nconcurrency = 32\ndelay_ms = 1\nbackoff_ms = 600000\nattempts = {attempts}\nmax_keepalive = [{KEEP}, 0]\n"
    );
    home.timed_experiment("clients", "[\"fail-fast\"]", 1, 2.0, &grid);
    home.run(["run", "e", "--rounds", "1"]).code(0);
    let [closing, open] = measured(&home);
    for m in &closing {
        let server = m.server.as_ref().expect("counts");
        let errors: u64 = server.client_errors.values().sum();
        assert_eq!((server.client_attempts, server.client_successes), (attempts, KEEP * POOL), "{server:#?}");
        // 1 - 100 * pool / attempts
        assert_eq!(errors, attempts - KEEP * POOL, "{server:#?}");
        assert_eq!((server.connections, server.closes, server.peak_connections), (POOL, POOL, POOL));
    }
    for m in &open {
        let server = m.server.as_ref().expect("counts");
        assert_eq!((server.client_attempts, server.client_successes), (attempts, attempts), "{server:#?}");
        assert_eq!((server.connections, server.closes), (POOL, 0));
    }
}

/// Over a fixed time each connection has 100 successes each time it is opened, with a pause of 500 ms in between.
#[test]
fn the_law_of_errors_holds_in_each_cycle_of_a_fixed_time_and_is_warned_of() {
    if !has("node") {
        return;
    }
    let home = home();
    let grid = format!(
        "[[grid]]\npool_size = {POOL}\nconcurrency = 32\ndelay_ms = 5\nmax_keepalive = [{KEEP}, 0]\n"
    );
    // Long enough for more than one cycle, even on a slow machine.
    let found = [1.5, 6.0, 24.0].into_iter().find_map(|window| {
        home.timed_experiment("clients", "[\"fail-fast\"]", 1, window, &grid);
        home.run(["run", "e", "--rounds", "1"]).code(0);
        let found = measured(&home);
        let closes = |m: &Measurement| m.server.as_ref().expect("counts").closes;
        found[0].iter().all(|m| closes(m) > POOL).then_some(found)
    });
    let [closing, open] = found.expect("more than one cycle");
    for m in &closing {
        let server = m.server.as_ref().expect("counts");
        assert!(server.client_successes >= KEEP * server.closes, "{server:#?}");
        assert!(server.client_successes <= KEEP * server.connections, "{server:#?}");
        assert!(m.errors["busy"] > m.successes, "{:?}", m.errors);
        // Requests that a close failed were to be the 101st of their connection.
        assert!(m.error_ordinals.keys().all(|ordinal| *ordinal == KEEP + 1), "{:?}", m.error_ordinals);
        assert_eq!(server.peak_connections, POOL);
    }
    for m in &open {
        let server = m.server.as_ref().expect("counts");
        assert_eq!((server.connections, server.closes), (POOL, 0), "{server:#?}");
        assert!(m.errors.is_empty() && server.client_errors.is_empty(), "{server:#?}");
    }
    let (closing, open) = (warnings(&home, KEEP), warnings(&home, 0));
    for code in ["fail_fast", "errors_on_schedule"] {
        assert!(closing.iter().any(|seen| seen == code), "{code}: {closing:?}");
        assert!(!open.iter().any(|seen| seen == code), "{code}: {open:?}");
    }
}

/// The reference client reports the wait for its pool separately from the service, and the report shows both.
#[test]
fn the_wait_for_a_connection_of_the_pool_is_separate_from_the_service_time() {
    let home = Home::new();
    home.twin_client("twin");
    let grid = "[[grid]]\npool_size = 2\nconcurrency = 8\ndelay_ms = 2\n";
    home.timed_experiment("clients", "[\"twin\"]", 1, 0.5, grid);
    home.run(["run", "e", "--rounds", "1"]).code(0);
    for m in home.measured("twin") {
        let (wait, service) = (&m.pool_wait_us, &m.service_us);
        assert_eq!((wait.count, service.count, m.response_us.count), (m.successes, m.successes, m.successes));
        // Eight callers share two connections: three of four wait, and an answer takes at least the delay.
        assert!(service.min >= 1_900.0 && wait.mean > service.mean, "{wait:?} {service:?}");
        let both = wait.mean + service.mean;
        assert!((m.response_us.mean - both).abs() < 0.01 * both, "{both} {}", m.response_us.mean);
    }
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let columns =
        report["experiments"][0]["figures"][0]["tables"][0]["columns"].as_array().expect("columns").clone();
    for name in ["wait p50", "wait p99", "service p50", "service p99"] {
        assert!(columns.iter().any(|column| column["name"] == name), "{name}: {columns:?}");
    }
}
