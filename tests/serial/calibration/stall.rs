//! The whole server stalls for one second in every five. An open loop shows it, and a closed loop hides it.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::compare::{assert_recovered, assert_service, percentile};
use super::endpoint::{Act, Endpoint, Exchange, How, Stall, Truth};
use super::witness::Witness;
use super::{load, machine, number};

/// A stall for a second of every five, from and until these milliseconds after the first request.
const fn stall(from: u64, until: u64) -> Stall {
    let ms = Duration::from_millis;
    Stall { every: ms(5000), from: ms(from), until: ms(until) }
}

const STALL: Stall = stall(2000, 3000);

/// An endpoint whose answers take a millisecond, except for the stalls.
fn endpoint(stall: Stall) -> Endpoint {
    Endpoint::stalling(Some(stall), |_, _| -> Act { (Duration::from_millis(1), How::Whole) })
}

const MILLISECOND: u64 = 1_000_000;

/// The times from when request `k` was due to its answer, and to its arrival, by the endpoint's clock. The schedule has
/// one request per millisecond. Its beginning is inferred from the request that arrived least late.
struct Intended {
    response: Vec<u64>,
    behind: Vec<u64>,
}

/// Of all exchanges these are the ones that were due in the window, after so many of the warm-up.
fn intended(exchanges: &[Exchange], warmup: usize, window: usize) -> Intended {
    let mut exchanges = exchanges.to_vec();
    exchanges.sort_unstable_by_key(|exchange| exchange.arrived);
    let exchanges = &exchanges[warmup..][..window];
    let due = || (0_u64..).map(|k| k * MILLISECOND);
    let begin = exchanges.iter().zip(due()).map(|(exchange, due)| exchange.arrived - due).min().expect("one");
    let since = |time: fn(&Exchange) -> u64| {
        exchanges.iter().zip(due()).map(|(exchange, due)| time(exchange) - begin - due).collect()
    };
    Intended { response: since(|exchange| exchange.answered), behind: since(|exchange| exchange.arrived) }
}

/// The number of seconds in which requests were held up.
fn stalled(truth: &Truth) -> usize {
    let held = truth.exchanges.iter().filter(|exchange| exchange.inner() > 900 * MILLISECOND);
    let mut ends: Vec<u64> = held.map(|exchange| exchange.answered / (2000 * MILLISECOND)).collect();
    ends.sort_unstable();
    ends.dedup();
    ends.len()
}

/// Drives a stalling endpoint at 1000 requests per second, and compares all arrivals that were due in the window.
fn assert_shown(what: &str, stall: Stall, warmup_s: usize, window_s: usize) -> Value {
    let witness = Witness::new();
    let endpoint = endpoint(stall);
    let [warmup, window] = [warmup_s, window_s].map(|seconds| format!("{seconds}s"));
    let json = load(&[&endpoint.url, "--rate", "1000", "-c", "100", "--warmup", &warmup, "-d", &window]);
    let truth = endpoint.truth();
    let arrivals = window_s * 1000;
    // What is under way when the window opens is an attempt of the window, too.
    let open = (number(&json, "attempts") + number(&json, "dropped")).checked_sub(arrivals as u64);
    assert!(open.is_some_and(|open| if warmup_s == 0 { open == 0 } else { open <= 1000 }), "{json}");
    assert_eq!(json["errors"], serde_json::json!({}), "{json}");
    let truth = intended(&truth.exchanges, warmup_s * 1000, arrivals);
    for (name, times) in [("response_time_us", &truth.response), ("send_behind_us", &truth.behind)] {
        let times = || times.iter().copied();
        assert_recovered(&format!("{what}, {name}"), &witness, &json[name], times(), times());
        assert_eq!(json[name]["lower_bounds"], serde_json::json!([]), "{json}");
    }
    json
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn an_open_loop_shows_that_the_server_stalled() {
    let json = assert_shown("stall, open loop", STALL, 0, 10);
    let p99 = json["response_time_us"]["p99"].as_f64().expect("p99 of 10,000");
    // In two of ten seconds the times are spread evenly from 1 s down, so the true p99 is 0.95 s.
    assert!(p99 >= 800_000.0, "{p99}: {json}");
}

/// A fifth of the arrivals meet the stall, wherever it lies, so the true p90 is half a second.
fn assert_p90(json: &Value) {
    let p90 = json["response_time_us"]["p90"].as_f64().expect("p90 of 5000");
    assert!(p90 >= 300_000.0, "{p90}: {json}");
}

#[test]
fn a_stall_at_the_end_of_the_window_counts() {
    assert_p90(&assert_shown("stall at the end", stall(4000, 5000), 0, 5));
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_stall_at_the_beginning_of_the_window_counts() {
    assert_p90(&assert_shown("stall at the beginning", stall(0, 1000), 0, 5));
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn stalls_across_both_ends_of_the_window_count() {
    // Half of each stall is in the window. Those that it holds up from before the window do not count.
    assert_p90(&assert_shown("stalls across both ends", stall(500, 1500), 1, 5));
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn what_is_never_answered_counts_as_at_least_its_age() {
    let endpoint = endpoint(stall(4000, 5000));
    let url = endpoint.url.clone();
    let json = load(&[&url, "--rate", "200", "-c", "100", "-d", "5s", "--timeout", "300ms"]);
    drop(endpoint.truth());
    assert_eq!(number(&json, "attempts") + number(&json, "dropped"), 1000, "{json}");
    let response = &json["response_time_us"];
    let bounds = response["lower_bounds"].as_array().expect("a list");
    // Some 140 of 1000 arrivals had waited for 300 ms when they were given up.
    for (name, bound) in [("p50", false), ("p90", true), ("p99", true), ("max", true)] {
        assert_eq!(bounds.contains(&name.into()), bound, "{name}: {json}");
    }
    assert!(response["p90"].as_f64().is_some_and(|p90| p90 >= 290_000.0), "{json}");
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_closed_loop_hides_a_stall() {
    let witness = Witness::new();
    let endpoint = endpoint(STALL);
    let json = load(&[&endpoint.url, "-c", "10", "-d", "5s"]);
    let truth = endpoint.truth();
    // Requests in flight at the end were answered but are not counted.
    let answered = truth.requests() - number(&json, "completed");
    assert!(answered <= number(&json, "in_flight"), "{json}");
    assert_eq!(json["errors"], serde_json::json!({}), "{json}");
    assert_service("stall, closed loop", &witness, &json["service_time_us"], &truth.exchanges);
    let service = &json["service_time_us"];
    let (p99, max) = (service["p99"].as_f64().expect("p99"), service["max"].as_f64().expect("a maximum"));
    eprintln!("stall, closed loop: {} requests, longest {max} us", truth.requests());
    // Ten of thousands of requests met the stall, one per connection.
    assert!(p99 < 800_000.0 && max >= 900_000.0, "{json}");
}

/// The figures of wrk in the table of docs/calibration.md:
/// `cargo test -p narrows --test serial -- --ignored --nocapture wrk`.
#[test]
#[ignore = "for docs/calibration.md, by hand: it needs wrk"]
fn wrk_agrees_by_hand_on_the_same_server() {
    let endpoint = endpoint(STALL);
    let mut command = Command::new("wrk");
    command.args(["-t1", "-c10", "-d10s", "--latency", &endpoint.url]);
    let output = machine::first(&mut command).output().expect("wrk runs");
    let truth = endpoint.truth();
    eprintln!("{}", String::from_utf8_lossy(&output.stdout));
    let mut inner: Vec<u64> = truth.exchanges.iter().map(Exchange::inner).collect();
    inner.sort_unstable();
    let shown: Vec<f64> = [50.0, 90.0, 99.0, 99.9, 100.0].map(|p| percentile(&inner, p)).to_vec();
    eprintln!(
        "the endpoint: {} requests, {} stalls, p50 p90 p99 p99.9 max {shown:?} us",
        inner.len(),
        stalled(&truth)
    );
}
