//! `narrows run` of the workloads `streams` and `chats`: every event is counted and verified.

use crate::run_systems::{ENOUGH, runs};
use crate::support::home::Home;

#[test]
fn streams_of_both_interfaces_are_counted_to_their_last_event() {
    // A chat also has its role, its end and `[DONE]`.
    for (workload, events) in [("streams", 5), ("chats", 5 + 3)] {
        let home = Home::new();
        for system in ["a", "b"] {
            let command = r#"["{narrows}", "serve", "--any", "{port}", "--host", "{address}"]"#;
            home.server_of(system, &format!("[\"{workload}\"]"), command, "");
        }
        let grid = "[[grid]]\nconnections = 4\nevents = 5\ngap_ms = [0, 5]\nevent_size = 3000\n";
        home.timed_experiment(workload, r#"["a", "b"]"#, 1, ENOUGH, grid);
        assert_eq!(runs(&home, "reference"), ["a", "b"]);
        for m in home.measured("a").into_iter().chain(home.measured("b")) {
            // The window ends with its last stream, so that none is cut.
            assert_eq!((m.in_flight, m.events), (0, events * m.successes), "{m:#?}");
            assert!(m.first_event_us.is_some(), "{m:#?}");
        }
    }
}

#[test]
fn proxies_and_servers_of_today_stream() {
    let home = Home::with(&["direct", "nginx-proxy", "haproxy-proxy", "caddy-proxy", "node", "go-http"]);
    let systems = r#"["direct", "nginx-proxy", "haproxy-proxy", "caddy-proxy", "node", "go-http"]"#;
    let grid = "[[grid]]\nconnections = 8\nevents = 4\ngap_ms = 5\n\
                [[grid]]\nconnections = 2\nevents = 4\nproxy_buffering = true\nhttp_no_delay = false\n";
    home.timed_experiment("streams", systems, 1, ENOUGH, grid);
    for system in runs(&home, "reference") {
        assert!(home.measured(&system).iter().all(|m| m.events == 4 * m.successes), "{system}");
    }
    home.assert_nothing_left();
}
