//! Pools of clients, in tests during which the machine must not stall too often.

use crate::support::home::Home;

/// A client that gives up a connection opens another in its place, and does not exceed its pool.
#[test]
fn a_pool_whose_requests_time_out_is_not_reported_as_larger() {
    let home = Home::new();
    home.twin_client("patient");
    let grid = "[[grid]]\npool_size = 8\nconcurrency = 8\ndelay_ms = [60, 200]\ntimeout_ms = 60\nmax_keepalive = 0\n";
    home.timed_experiment("clients", "[\"patient\"]", 3, 0.4, grid);
    home.run(["run", "e", "--rounds", "3"]).code(0);
    let seen = home.measured("patient");
    assert!(
        seen.iter().any(|m| m.errors.get("request_timeout").is_some_and(|count| *count > 8)),
        "{seen:#?}"
    );
    // If the machine stalls at the wrong moment, both connections are seen; but not in every trial.
    let peaks: Vec<u64> = seen.iter().filter_map(|m| Some(m.server.as_ref()?.peak_connections)).collect();
    assert!(peaks.len() == 6 && peaks.iter().filter(|peak| **peak == 8).count() >= 2, "{peaks:?}");
}
