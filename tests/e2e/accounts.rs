//! Attempts are the sum of successes, errors and requests in flight at the end, in every workload, closed loop or open,
//! whatever fails. An experiment's open loop keeps its schedule or says by how much it did not.

use crate::support::home::Home;
use crate::support::peer::Peer;
use crate::support::{backends, load_json};

fn assert_adds_up(m: &Measurement, arrivals: Arrivals) {
    let errors: u64 = m.errors.values().sum();
    assert_eq!(m.attempts, m.successes + errors + m.in_flight, "{m:#?}");
    assert!(m.attempts + m.dropped > 0, "{m:#?}");
    let given_up: u64 = m.response_us.unanswered.iter().map(|(_, count)| count).sum();
    match arrivals {
        Closed => assert_eq!(m.response_us.count, m.successes, "one time for each success: {m:#?}"),
        // What was due in the window has a time, whenever it ended, unless it failed otherwise than by its timeout.
        Open => assert!(m.response_us.count + given_up <= m.attempts + m.dropped, "{m:#?}"),
    }
    if let Some(server) = &m.server {
        let errors: u64 = server.client_errors.values().sum();
        assert_eq!(server.client_attempts, server.client_successes + errors, "{server:#?}");
    }
}

/// Whether exchanges begin after answers or by a schedule.
#[derive(Clone, Copy)]
enum Arrivals {
    Closed,
    Open,
}

use Arrivals::{Closed, Open};
use measurement::Measurement;

/// Runs `twin` and the reference with this grid, and checks every trial of both.
fn assert_run_adds_up(workload: &str, arrivals: Arrivals, grid: &str) -> Vec<Measurement> {
    let home = Home::new();
    match workload {
        "clients" => home.twin_client("twin"),
        _ => home.twin("twin"),
    }
    home.experiment(workload, "[\"twin\"]", 1, grid);
    home.run(["run", "e", "--rounds", "1"]).code(0);
    let reference = if workload == "clients" { "reference-client" } else { "reference" };
    home.measured(reference).iter().for_each(|m| assert_adds_up(m, arrivals));
    let measured = home.measured("twin");
    measured.iter().for_each(|m| assert_adds_up(m, arrivals));
    measured
}

#[test]
fn counts_of_uploads_add_up() {
    assert_run_adds_up(
        "upload",
        Closed,
        "[[grid]]\nsize = [0, \"100K\"]\nconcurrency = [1, 3]\nreuse = [true, false]\n",
    );
}

#[test]
fn counts_of_frame_streams_add_up() {
    assert_run_adds_up("frames", Closed, "[[grid]]\nframe_size = [0, 1000]\nconnections = [1, 3]\n");
}

#[test]
fn counts_of_requests_add_up() {
    assert_run_adds_up("requests", Closed, "[[grid]]\nconnections = 5\nkeep_alive = [true, false]\n");
    assert_run_adds_up("requests", Closed, "[[grid]]\nconnections = 5\npipeline = 8\n");
}

#[test]
fn counts_of_clients_add_up() {
    // Closes lose some requests. A timeout below the delay loses all.
    let grid = "[[grid]]\npool_size = 2\nconcurrency = 8\ndelay_ms = 1\nmax_keepalive = 5\nclose = [\"announced\", \"silent\"]\n\
                [[grid]]\npool_size = 2\nconcurrency = 8\ndelay_ms = 200\ntimeout_ms = 20\n";
    let lost = assert_run_adds_up("clients", Closed, grid);
    assert!(lost.iter().any(|m| !m.errors.is_empty()));
    for m in lost.iter().filter(|m| !m.errors.is_empty()) {
        assert!(m.errors.keys().eq(m.first_errors.keys()), "an example of each class: {m:#?}");
        assert!(m.first_errors.values().all(|text| text.contains("into the window")), "{m:#?}");
        assert!(m.mean_error_us > 0.0, "{m:#?}");
    }
}

#[test]
fn an_open_loop_of_requests_sends_by_its_schedule() {
    for gaps in ["constant", "poisson"] {
        let grid = format!("[[grid]]\nconnections = 4\nrate = 500\ngaps = \"{gaps}\"\n");
        assert_open(&assert_run_adds_up("requests", Open, &grid), gaps);
    }
}

#[test]
fn an_open_loop_of_clients_sends_by_its_schedule() {
    for gaps in ["constant", "poisson"] {
        let grid = format!(
            "[[grid]]\npool_size = 4\nconcurrency = 4\ndelay_ms = 1\nrate = 500\ngaps = \"{gaps}\"\n"
        );
        assert_open(&assert_run_adds_up("clients", Open, &grid), gaps);
    }
}

/// 500 arrivals per second in a window of 0.1 s: each was sent or is counted as dropped, whatever the machine does.
fn assert_open(measured: &[Measurement], gaps: &str) {
    for m in measured {
        // If the machine stalls, arrivals of the warm-up's 0.05 s may be sent in the window: at most 25, and four that
        // were in flight. Each thread rounds its share.
        let expected = if gaps == "constant" { 46..=83 } else { 20..=130 };
        let arrivals = m.attempts + m.dropped;
        assert!(expected.contains(&arrivals), "{gaps}: {m:#?}");
        assert_eq!(m.service_us.count, m.response_us.count, "{m:#?}");
        assert!(m.response_us.mean >= m.service_us.mean, "{m:#?}");
    }
}

/// The schedule does not wait for a slow server: what cannot be sent is late or dropped, and the report says so.
#[test]
fn an_open_loop_that_is_held_up_is_behind_schedule() {
    let home = Home::new();
    home.twin_client("twin");
    // Two connections with answers after 50 ms carry 40 of 1000 arrivals per second.
    let grid = "[[grid]]\npool_size = 2\nconcurrency = 2\ndelay_ms = 50\nrate = 1000\n";
    home.timed_experiment("clients", "[\"twin\"]", 1, 0.4, grid);
    home.run(["run", "e", "--rounds", "1"]).code(0);
    for m in home.measured("twin") {
        assert_adds_up(&m, Open);
        assert!(m.dropped + m.late > m.successes, "{m:#?}");
    }
    let report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let found = &report["experiments"][0]["figures"][0];
    let warnings = found["warnings"].as_array().expect("warnings");
    assert!(warnings.iter().any(|warning| warning["code"] == "behind_schedule"), "{warnings:?}");
    let columns: Vec<&str> = found["tables"][0]["columns"]
        .as_array()
        .expect("columns")
        .iter()
        .filter_map(|c| c["name"].as_str())
        .collect();
    assert!(
        ["p50", "service p50", "late", "dropped"].iter().all(|name| columns.contains(name)),
        "{columns:?}"
    );
    for row in found["tables"][0]["rows"].as_array().expect("rows") {
        assert!(row["cells"][0].is_null(), "nobody is ranked: {row}");
    }
}

#[test]
fn counts_of_open_loops_add_up_despite_failures() {
    for io in backends() {
        // A third of the requests meet the end of their connection, another third a status.
        let peer = Peer::new(|mut connection| {
            let mut number = 0;
            while connection.request().is_some() {
                number += 1;
                match number % 3 {
                    0 => return,
                    1 => connection.ok(),
                    _ => connection.send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
                }
            }
        });
        let url = peer.url("http");
        let open = |stop: [&str; 2]| {
            let words = ["-c", "4", "--rate", "1k", "--gaps", "poisson", "--reactor", io];
            load_json(&[&[&*url], &words[..], &stop].concat()).1
        };
        open(["-d", "400ms"]);
        // A fixed number of arrivals, so that every class occurs.
        let json = open(["-n", "400"]);
        for class in ["status", "closed_early"] {
            assert!(json["errors"][class].as_u64() > Some(0), "{io}: {json}");
        }
        let status = json["first_errors"]["status"].as_str().expect("an example");
        // The example has the bytes, the connection and the time.
        assert!(status.contains("HTTP/1.1 503 Busy") && status.contains("connection "), "{status}");
        assert!(status.contains("into the window"), "{status}");
    }
}
