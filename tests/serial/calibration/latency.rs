//! Injected delays, and their percentiles.

use std::time::Duration;

use super::compare::{PERCENTILES, assert_service};
use super::endpoint::{Act, Endpoint, How, Truth};
use super::witness::Witness;
use super::{load, number};
use crate::support::backends;

/// Sends requests to an endpoint with this plan. All must be verified, counted to the byte, and timed as the endpoint
/// did.
fn assert_delays(
    what: &str,
    words: &[&str],
    plan: impl Fn(u64, u64) -> Act + Send + Sync + Copy + 'static,
) -> Vec<Truth> {
    let witness = Witness::new();
    let drive = |io: &str| {
        let endpoint = Endpoint::new(plan);
        let json = load(&[&[endpoint.url.as_str(), "--reactor", io], words].concat());
        let truth = endpoint.truth();
        assert_eq!(json["errors"], serde_json::json!({}), "{json}");
        assert_eq!(number(&json, "completed"), truth.requests(), "{json}");
        assert_eq!(number(&json, "bytes_sent"), truth.received, "{json}");
        assert_eq!(number(&json, "bytes_received"), truth.sent, "{json}");
        let (service, response) = (&json["service_time_us"], &json["response_time_us"]);
        assert_service(&format!("{what}, {io}"), &witness, service, &truth.exchanges);
        // In a closed loop a request is sent when it is due, except that the first ones wait for their connections.
        for (name, _, _) in PERCENTILES {
            assert!(response[name].as_f64() >= service[name].as_f64(), "{name}: {json}");
        }
        truth
    };
    backends().into_iter().map(drive).collect()
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_constant_5_ms_is_measured() {
    let truths = assert_delays("constant 5 ms", &["-n", "2000", "-c", "5"], |_, _| {
        (Duration::from_millis(5), How::Whole)
    });
    assert!(truths.iter().all(|truth| truth.requests() == 2000 && truth.connections == 5));
}

/// In an open loop answers wait in the kernel until the next arrival is due, stamped with the time of their arrival.
#[test]
fn a_constant_5_ms_is_measured_in_an_open_loop() {
    let words = ["-n", "1000", "-c", "20", "--rate", "500"];
    let truths =
        assert_delays("constant 5 ms, open loop", &words, |_, _| (Duration::from_millis(5), How::Whole));
    assert!(truths.iter().all(|truth| truth.requests() == 1000 && truth.connections == 20));
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn one_slow_answer_in_a_hundred_is_measured() {
    // Each hundred begins with its slow one. Of 10,010 the p99 is the 9910th in order, which is the first slow one.
    let truths = assert_delays("1 ms and 100 ms, 99:1", &["-n", "10010", "-c", "20"], |number, _| {
        (Duration::from_millis(if number % 100 == 0 { 100 } else { 1 }), How::Whole)
    });
    for truth in truths {
        let slow = truth.exchanges.iter().filter(|exchange| exchange.inner() >= 100_000_000).count();
        assert!(slow >= 101, "{slow}");
    }
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn an_answer_of_one_byte_per_10_ms_is_measured() {
    let truths =
        assert_delays("a byte per 10 ms", &["-n", "120", "-c", "20"], |_, _| (Duration::ZERO, How::Drip));
    assert!(truths.iter().all(|truth| truth.count(How::Drip) == 120));
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_percentile_that_n_cannot_support_is_null() {
    for n in [1, 19, 20, 99, 100, 999, 1000, 9999, 10_000] {
        let witness = Witness::new();
        let endpoint = Endpoint::new(|_, _| (Duration::ZERO, How::Whole));
        let json = load(&[&endpoint.url, "-n", &n.to_string(), "-c", "1"]);
        let truth = endpoint.truth();
        assert_eq!(truth.requests(), n as u64);
        for times in [&json["service_time_us"], &json["response_time_us"]] {
            for (name, _, needed) in PERCENTILES {
                assert_eq!(times[name].is_null(), n < needed, "{name} of {n}: {times}");
            }
            assert!(times["max"].is_f64() && times["mean"].is_f64(), "{n}: {times}");
        }
        assert_service(&format!("at once, n = {n}"), &witness, &json["service_time_us"], &truth.exchanges);
    }
}
