//! Pools of clients, where it must not happen too often that the machine stands still.

use crate::alone;
use crate::support::home::Home;

/// A client that gives up a connection makes another in its place, and keeps to its pool all the same.
#[test]
fn a_pool_whose_requests_time_out_is_not_called_larger_than_it_is() {
    let _alone = alone();
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
    // A machine that stands still at the wrong moment shows both connections for long; not in every trial.
    let peaks: Vec<u64> = seen.iter().filter_map(|m| Some(m.server.as_ref()?.peak_connections)).collect();
    assert!(peaks.len() == 6 && peaks.iter().filter(|peak| **peak == 8).count() >= 2, "{peaks:?}");
}
