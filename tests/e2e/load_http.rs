//! `narrows load http://…` against `narrows serve`, and against servers that check what they receive.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::peer::{Peer, Request};
use crate::support::{Served, backend_name, backends, load, load_json};

/// The fields of `load --json` that users rely on.
const FIELDS: [&str; 11] = [
    "completed",
    "errors",
    "late",
    "dropped",
    "elapsed_s",
    "throughput_per_s",
    "bytes_sent",
    "bytes_received",
    "service_time_us",
    "response_time_us",
    "generator",
];
const PERCENTILES: [&str; 6] = ["p50", "p90", "p99", "p99_9", "max", "mean"];

/// A server that answers `200 ok` to everything, and records the requests.
fn listener() -> (Peer, Arc<Mutex<Vec<Request>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let peer = Peer::new(move |mut connection| {
        while let Some(request) = connection.request() {
            kept.lock().unwrap().push(request);
            connection.ok();
        }
    });
    (peer, seen)
}

#[test]
fn exactly_n_requests_complete_over_exactly_c_kept_connections() {
    for io in backends() {
        let server = Served::start(&["--reactor", io]);
        let url = format!("{}/", server.http);
        let (code, json) = load_json(&[&url, "-n", "1000", "-c", "3", "--reactor", io]);
        assert_eq!((code, &json["completed"]), (0, &1000.into()), "{json}");
        assert_eq!(json["errors"].as_object().map(|errors| errors.len()), Some(0), "{json}");
        assert_eq!(json["generator"]["backend"], backend_name(io));
        assert_eq!(server.counts(), [1000, 1000, 3, 3], "{io}");
    }
}

#[test]
fn with_close_every_request_has_its_own_connection() {
    for io in backends() {
        let server = Served::start(&["--reactor", io]);
        let (code, json) = load_json(&[&server.http, "-n", "200", "-c", "5", "--close", "--reactor", io]);
        assert_eq!((code, &json["completed"]), (0, &200.into()), "{json}");
        let [requests, answers, connections, _] = server.counts();
        assert_eq!([requests, answers, connections], [200; 3], "{io}");
    }
    let (peer, seen) = listener();
    let (_, json) = load_json(&[&peer.url("http"), "-n", "4", "-c", "1", "--close"]);
    assert_eq!(json["completed"], 4, "{json}");
    assert!(seen.lock().unwrap().iter().all(|request| request.header("connection") == Some("close")));
}

#[test]
fn several_threads_share_the_number_without_loss() {
    let server = Served::start(&[]);
    let (code, json) = load_json(&[&server.http, "-n", "1001", "-c", "7", "-t", "3"]);
    assert_eq!((code, &json["completed"]), (0, &1001.into()), "{json}");
    // The last count is not checked, because one thread may finish before another begins.
    assert_eq!(server.counts()[..3], [1001, 1001, 7]);
}

#[test]
fn a_closed_loop_waits_for_each_answer() {
    for io in backends() {
        let early = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&early);
        let peer = Peer::new(move |mut connection| {
            while connection.request().is_some() {
                *counted.lock().unwrap() += connection.unread();
                connection.ok();
            }
        });
        let (code, json) = load_json(&[&peer.url("http"), "-n", "100", "-c", "2", "--reactor", io]);
        assert_eq!((code, &json["completed"]), (0, &100.into()), "{json}");
        assert_eq!(*early.lock().unwrap(), 0, "bytes of a request before the answer to the last");
    }
}

#[test]
fn a_pipeline_of_four_has_four_requests_in_flight_and_not_five() {
    for io in backends() {
        let early = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&early);
        // It answers only when the fourth of four has arrived.
        let peer = Peer::new(move |mut connection| {
            while (0..4).all(|_| connection.request().is_some()) {
                *counted.lock().unwrap() += connection.unread();
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".repeat(4));
            }
        });
        let words = ["-n", "40", "-c", "1", "--pipeline", "4", "--reactor", io];
        let (code, json) = load_json(&[&[&*peer.url("http")], &words[..]].concat());
        assert_eq!((code, &json["completed"]), (0, &40.into()), "{json}");
        assert_eq!((*early.lock().unwrap(), peer.connections()), (0, 1), "{io}");
    }
}

#[test]
fn a_duration_counts_what_was_in_flight_at_its_end() {
    for io in backends() {
        let server = Served::start(&["--reactor", io]);
        let (code, json) =
            load_json(&[&server.http, "-d", "300ms", "--warmup", "100ms", "-c", "4", "--reactor", io]);
        assert_eq!(code, 0, "{json}");
        assert!(json["in_flight"].as_u64().unwrap() <= 4, "{json}");
        let [requests, answers, connections, _] = server.counts();
        assert!(requests >= json["completed"].as_u64().unwrap() && requests >= answers);
        assert_eq!(connections, 4);
    }
}

#[test]
fn every_promised_field_is_in_the_json() {
    let server = Served::start(&[]);
    let (_, json) = load_json(&[&server.http, "-n", "20000", "-c", "8"]);
    for field in FIELDS {
        assert!(!json[field].is_null(), "{field} in {json}");
    }
    for latency in ["service_time_us", "response_time_us"] {
        let mut last = 0.0;
        for percentile in &PERCENTILES[..5] {
            let value = json[latency][percentile].as_f64().unwrap_or_else(|| panic!("{percentile}: {json}"));
            assert!(value >= last, "{percentile} of {json}");
            last = value;
        }
        assert!(json[latency]["mean"].is_f64(), "{json}");
    }
    for field in ["cpu_s", "cpu_us_per_op", "busiest_core"] {
        assert!(json["generator"][field].is_f64(), "{field} in {json}");
    }
    let warnings = json["warnings"].as_array().expect("warnings");
    for field in ["code", "message", "remedy"] {
        assert!(warnings.iter().all(|warning| warning[field].is_string()), "{json}");
    }
}

#[test]
fn a_percentile_that_n_cannot_support_is_null() {
    let server = Served::start(&[]);
    let (_, json) = load_json(&[&server.http, "-n", "3", "-c", "1"]);
    for percentile in ["p90", "p99", "p99_9"] {
        assert!(json["service_time_us"].get(percentile).is_some_and(serde_json::Value::is_null), "{json}");
    }
    assert!(json["service_time_us"]["max"].is_f64(), "{json}");
}

#[test]
fn the_body_is_the_file() {
    let dir = tempfile::tempdir().unwrap();
    // One body is sent together with its head, and one in pieces.
    for size in [5_usize, 700_001] {
        let body: Vec<u8> = (0..size).map(|i| (i * 7 + i / 251) as u8).collect();
        let file = dir.path().join("body");
        std::fs::write(&file, &body).unwrap();
        for io in backends() {
            let (peer, seen) = listener();
            let named = format!("@{}", file.display());
            let words = ["-n", "2", "-c", "1", "--body", &named, "--reactor", io];
            let (code, json) = load_json(&[&[&*peer.url("http")], &words[..]].concat());
            assert_eq!((code, &json["completed"]), (0, &2.into()), "{json}");
            let seen = seen.lock().unwrap();
            assert_eq!(seen.len(), 2);
            assert!(seen.iter().all(|request| request.head.starts_with("POST / HTTP/1.1\r\n")));
            assert!(seen.iter().all(|request| request.body == body), "{size} bytes over {io}");
        }
    }
}

#[test]
fn a_body_of_a_size_has_that_size_and_is_not_zeros() {
    for io in backends() {
        let (peer, seen) = listener();
        let words = ["-n", "2", "-c", "1", "--body-size", "300K", "--reactor", io];
        let (code, json) = load_json(&[&[&*peer.url("http")], &words[..]].concat());
        assert_eq!((code, &json["completed"]), (0, &2.into()), "{json}");
        assert!(json["bytes_sent"].as_u64().unwrap() > 2 * 300 * 1024, "{json}");
        for request in seen.lock().unwrap().iter() {
            assert_eq!(request.body.len(), 300 * 1024);
            assert!(request.body.chunks(64).all(|bytes| bytes.iter().any(|byte| *byte != 0)));
        }
    }
    let server = Served::start(&[]);
    let upload = format!("{}/upload", server.http);
    for size in ["0", "1", "64K", "1M"] {
        let (code, json) = load_json(&[&upload, "-n", "5", "--body-size", size]);
        assert_eq!((code, &json["completed"]), (0, &5.into()), "{size}: {json}");
    }
}

#[test]
fn expect_continue_delays_the_body_until_it_is_requested() {
    for size in ["5", "300K"] {
        for io in backends() {
            let early = Arc::new(Mutex::new(Vec::new()));
            let kept = Arc::clone(&early);
            // No request can have been sent before this. After a second the generator sends the body without being
            // asked, so a body that arrives that late, because the machine stalled, is not early.
            let begin = Instant::now();
            let peer = Peer::new(move |mut connection| {
                let mut sent = begin;
                while let Some(mut request) = connection.head() {
                    let unread = connection.unread();
                    let early = if sent.elapsed() < Duration::from_millis(900) { unread } else { 0 };
                    kept.lock().unwrap().push((request.header("expect").map(str::to_owned), early));
                    connection.send("HTTP/1.1 100 Continue\r\n\r\n");
                    connection.body(&mut request);
                    sent = Instant::now();
                    connection.ok();
                }
            });
            let words = ["-n", "3", "-c", "1", "--body-size", size, "--expect-continue", "--reactor", io];
            let (code, json) = load_json(&[&[&*peer.url("http")], &words[..]].concat());
            assert_eq!((code, &json["completed"]), (0, &3.into()), "{json}");
            let expected = vec![(Some("100-continue".to_owned()), 0); 3];
            assert_eq!(*early.lock().unwrap(), expected, "{size} over {io}");
        }
    }
    let server = Served::start(&[]);
    let upload = format!("{}/upload", server.http);
    let (code, json) = load_json(&[&upload, "-n", "5", "--body-size", "100K", "--expect-continue"]);
    assert_eq!((code, &json["completed"]), (0, &5.into()), "{json}");
}

#[test]
fn a_continue_that_never_comes_is_counted_and_said() {
    for io in backends() {
        let (peer, _) = listener();
        let url = peer.url("http");
        let words = [&url, "-n", "2", "-c", "1", "--body-size", "5", "--expect-continue", "--reactor", io];
        let (code, json) = load_json(&words);
        assert_eq!((code, &json["completed"], &json["no_continue"]), (0, &2.into(), &2.into()), "{json}");
        assert_eq!(json["warnings"][0]["code"], "no_continue", "{json}");
        let ended = load(&words);
        let said = "warning: 2 of 2 uploads got no 100 Continue within 1 s. Remedy: let the server send 100 Continue";
        assert!(ended.stdout.contains(said), "{ended:#?}");
    }
}

#[test]
fn method_and_headers_are_those_of_the_arguments() {
    let (peer, seen) = listener();
    let url = format!("{}/a?b=c", peer.url("http"));
    let words = [&url, "-n", "1", "-c", "1", "-X", "PUT", "-H", "X-One: 1", "-H", "Host: example"];
    assert_eq!(load_json(&words).0, 0);
    let request = seen.lock().unwrap()[0].clone();
    assert!(request.head.starts_with("PUT /a?b=c HTTP/1.1\r\n"), "{request:?}");
    assert_eq!((request.header("x-one"), request.header("host")), (Some("1"), Some("example")));
    assert_eq!(request.head.to_lowercase().matches("\r\nhost:").count(), 1, "{request:?}");
}

#[test]
fn announced_closes_cost_no_requests() {
    for io in backends() {
        let server = Served::start(&["--max-keepalive", "10", "--reactor", io]);
        let (code, json) = load_json(&[&server.http, "-n", "100", "-c", "2", "--reactor", io]);
        assert_eq!((code, &json["completed"]), (0, &100.into()), "{json}");
        assert!(server.counts()[2] >= 10, "{io}");
    }
}

#[test]
fn the_text_says_how_the_attempts_ended() {
    let server = Served::start(&[]);
    let ended = load(&[&server.http, "-n", "30", "-c", "3"]).code(0);
    assert!(ended.stdout.contains("attempts 30 = 30 verified + 0 errors + 0 in flight"), "{ended:#?}");
    assert_eq!(ended.stderr, "");
}
