//! The whole server stalls for one second in every five. An open loop shows it, and a closed loop hides it.

use std::process::Command;
use std::time::Duration;

use super::compare::{assert_recovered, assert_service, percentile};
use super::endpoint::{Act, Endpoint, Exchange, How, Stall, Truth};
use super::{alone, load, machine, number};

const STALL: Stall =
    Stall { every: Duration::from_secs(5), from: Duration::from_secs(2), until: Duration::from_secs(3) };

/// An endpoint whose answers take a millisecond, except for the stalls.
fn endpoint() -> Endpoint {
    Endpoint::stalling(Some(STALL), |_, _| -> Act { (Duration::from_millis(1), How::Whole) })
}

const MILLISECOND: u64 = 1_000_000;

/// The times from when request `k` was due to its answer, and to its arrival, by the endpoint's clock. The schedule has
/// one request per millisecond. Its beginning is inferred from the request that arrived least late.
struct Intended {
    response: Vec<u64>,
    behind: Vec<u64>,
}

fn intended(exchanges: &[Exchange], completed: usize) -> Intended {
    let mut exchanges = exchanges.to_vec();
    exchanges.sort_unstable_by_key(|exchange| exchange.arrived);
    // Requests in flight at the end were answered but are not counted.
    exchanges.truncate(completed);
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

#[test]
fn an_open_loop_shows_that_the_server_stalled() {
    let (witness, _alone) = alone();
    let endpoint = endpoint();
    let json = load(&[&endpoint.url, "--rate", "1000", "-c", "100", "-d", "10s"]);
    let truth = endpoint.truth();
    let counted = number(&json, "attempts") + number(&json, "dropped");
    assert_eq!((counted, &json["errors"]), (10_000, &serde_json::json!({})), "{json}");
    let truth = intended(&truth.exchanges, number(&json, "completed") as usize);
    for (name, times) in [("response_time_us", &truth.response), ("send_behind_us", &truth.behind)] {
        let times = || times.iter().copied();
        assert_recovered(&format!("stall, open loop, {name}"), &witness, &json[name], times(), times());
    }
    let p99 = json["response_time_us"]["p99"].as_f64().expect("p99 of 10,000");
    // In two of ten seconds the times are spread evenly from 1 s down, so the true p99 is 0.95 s.
    assert!(p99 >= 800_000.0, "{p99}: {json}");
}

#[test]
fn a_closed_loop_hides_a_stall() {
    let (witness, _alone) = alone();
    let endpoint = endpoint();
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
fn wrk_agrees_on_the_same_server() {
    let _alone = alone();
    let endpoint = endpoint();
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
