//! Injected faults, and their counts by class.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::compare::assert_recovered;
use super::endpoint::{Act, Endpoint, Exchange, How, Truth};
use super::witness::Witness;
use super::{load, machine, number};
use crate::support::{self, backends};

/// The error class that Narrows must find for each treatment.
fn class(how: How) -> Option<&'static str> {
    match how {
        How::Whole | How::Drip | How::StrayLater | How::CloseAnnounced | How::CloseSilent => None,
        How::Status => Some("status"),
        How::Reset => Some("reset"),
        How::Truncated => Some("closed_early"),
        How::WrongId => Some("wrong_id"),
        How::WrongLength => Some("length"),
        How::WrongContent => Some("wrong_content"),
        How::Stray | How::Spoiled => Some("protocol"),
    }
}

/// The truth as the errors of the JSON.
fn errors(truth: &Truth) -> Value {
    let mut errors: BTreeMap<&str, u64> = BTreeMap::new();
    for (how, count) in truth.counts() {
        if let Some(class) = class(how) {
            *errors.entry(class).or_default() += count;
        }
    }
    json!(errors)
}

fn at_once(how: How) -> Act {
    (Duration::ZERO, how)
}

/// Chooses `per_mille` of all numbers, evenly but irregularly, and always the same ones.
fn chosen(number: u64, per_mille: u64) -> bool {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 0xffff < per_mille * 65_536 / 1000
}

/// Asserts that the counts of both sides are equal for `n` requests. `check` may assert more.
fn assert_counts(
    what: &str,
    n: u64,
    connections: u64,
    plan: impl Fn(u64, u64) -> Act + Send + Sync + Copy + 'static,
    more: impl Fn(&Value, &Truth),
) {
    for io in backends() {
        let endpoint = Endpoint::new(plan);
        let (n, c) = (n.to_string(), connections.to_string());
        let json = load(&[&endpoint.url, "-n", &n, "-c", &c, "--reactor", io]);
        let truth = endpoint.truth();
        let errors = errors(&truth);
        eprintln!(
            "{what}, {io}: injected {:?}; recovered {} and {}",
            truth.counts(),
            json["completed"],
            json["errors"]
        );
        assert_eq!(json["errors"], errors, "{what}, {io}: {json}");
        assert_eq!((number(&json, "attempts"), number(&json, "in_flight")), (truth.requests(), 0), "{json}");
        assert_eq!(n, truth.requests().to_string());
        more(&json, &truth);
    }
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn three_percent_of_answers_with_status_500_are_counted() {
    let plan = |number, _| at_once(if chosen(number, 30) { How::Status } else { How::Whole });
    assert_counts("3 % status 500", 2000, 4, plan, |json, truth| {
        assert!((30..=90).contains(&truth.count(How::Status)));
        assert_eq!(number(json, "bytes_received"), truth.sent);
    });
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn two_percent_of_connections_reset_during_the_answer_are_counted() {
    let plan = |number, _| at_once(if chosen(number, 20) { How::Reset } else { How::Whole });
    assert_counts("2 % resets", 2000, 4, plan, |_, truth| assert!(truth.count(How::Reset) >= 20));
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn five_percent_of_answers_cut_short_are_counted() {
    let plan = |number, _| at_once(if chosen(number, 50) { How::Truncated } else { How::Whole });
    assert_counts("5 % truncated", 2000, 4, plan, |_, truth| assert!(truth.count(How::Truncated) >= 60));
}

#[test]
fn faults_of_several_kinds_are_counted_at_the_same_time() {
    let plan = |number: u64, _| {
        at_once(match number % 20 {
            3 => How::Status,
            7 | 8 => How::Reset,
            11 => How::Truncated,
            13 => How::Stray,
            _ => How::Whole,
        })
    };
    assert_counts("a mixture", 2000, 8, plan, |json, _| {
        let expected = json!({"status": 100, "reset": 200, "closed_early": 100, "protocol": 100});
        assert_eq!(json["errors"], expected);
    });
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn stray_bytes_after_each_answer_are_counted() {
    assert_counts(
        "a stray byte",
        500,
        4,
        |_, _| at_once(How::Stray),
        |json, _| {
            assert_eq!(number(json, "completed"), 0);
        },
    );
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_stray_byte_that_arrives_during_the_next_request() {
    let plan = |_, nth| at_once(if nth == 1 { How::StrayLater } else { How::Spoiled });
    assert_counts("a late stray byte", 500, 4, plan, |_, truth| {
        // The byte is read with the next answer and spoils it.
        assert!(truth.count(How::Spoiled) >= 248, "{:?}", truth.counts());
    });
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn an_announced_close_after_the_100th_request_is_no_error() {
    let plan = |_, nth| at_once(if nth == 100 { How::CloseAnnounced } else { How::Whole });
    assert_counts("close announced", 2000, 4, plan, |json, truth| {
        assert_eq!(number(json, "completed"), 2000);
        assert!((20..=24).contains(&truth.connections), "{}", truth.connections);
    });
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_silent_close_after_the_100th_request_costs_the_next_one() {
    for io in backends() {
        let endpoint =
            Endpoint::new(|_, nth| at_once(if nth == 100 { How::CloseSilent } else { How::Whole }));
        let json = load(&[&endpoint.url, "-n", "2000", "-c", "4", "--reactor", io]);
        let truth = endpoint.truth();
        eprintln!(
            "close silent, {io}: injected {:?}; recovered {} and {}",
            truth.counts(),
            json["completed"],
            json["errors"]
        );
        assert_eq!(number(&json, "completed"), truth.requests(), "{json}");
        // A request that meets the close can never be answered. It depends on a race in the kernel whether its sender
        // sees the end of the stream or a reset.
        let count = |class| json["errors"].get(class).and_then(Value::as_u64).unwrap_or(0);
        let lost = count("closed_early") + count("reset");
        assert_eq!((number(&json, "attempts"), lost), (2000, 2000 - truth.requests()), "{json}");
        let closes = truth.count(How::CloseSilent);
        assert!(lost <= closes && lost + 4 >= closes, "{lost} of {closes}: {json}");
        let firsts = json["first_errors"].as_object().expect("examples");
        assert!(
            firsts.values().all(|text| text.as_str().is_some_and(|text| text.contains("exchange 101"))),
            "{json}"
        );
    }
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_full_accept_queue_is_a_connect_timeout() {
    for io in backends() {
        let full = machine::Full::new();
        let url = format!("http://{}/", full.listener.local_addr().expect("its address"));
        let json = load(&[&url, "-n", "6", "-c", "2", "--timeout", "300ms", "--reactor", io]);
        eprintln!("accept queue full ({}), {io}: injected 6; recovered {}", full.queued(), json["errors"]);
        assert_eq!(
            (&json["errors"], number(&json, "attempts")),
            (&json!({"connect_timeout": 6}), 6),
            "{json}"
        );
    }
}

/// Runs `narrows client` with this configuration, and returns its last line.
fn client(orders: &Value) -> Value {
    let mut lines = tempfile::tempfile().expect("a file");
    write!(lines, "{orders}\n{{\"go\":true}}\n").expect("two lines");
    std::io::Seek::rewind(&mut lines).expect("its beginning");
    let mut command = support::narrows(["client"]);
    let ended = support::run(machine::first(command.stdin(Stdio::from(lines))));
    let last = ended.stdout.lines().last().unwrap_or_default().to_owned();
    serde_json::from_str(&last).unwrap_or_else(|error| panic!("{error}: {ended:#?}"))
}

#[test]
fn answers_with_a_wrong_id_length_or_content_are_counted() {
    let witness = Witness::new();
    let endpoint = Endpoint::new(|number, _| {
        let how = match number % 50 {
            7 | 31 => How::WrongId,
            13 => How::WrongLength,
            22 => How::WrongContent,
            44 => How::Status,
            _ => How::Whole,
        };
        (Duration::from_millis(2), how)
    });
    let done = client(
        &json!({"url": endpoint.url, "pools": 2, "pool_size": 4, "concurrency": 8, "timeout_ms": 5000,
        "warmup_ms": 200, "duration_ms": 2000}),
    );
    let truth = endpoint.truth();
    let total = &done["total"];
    eprintln!("client: injected {:?}; recovered {total}", truth.counts());
    assert_eq!(total["errors"], errors(&truth), "{done}");
    assert_eq!(
        (number(total, "attempts"), number(total, "successes")),
        (truth.requests(), truth.count(How::Whole))
    );
    assert_eq!(truth.connections, 8);
    let failed: u64 = done["errors"].as_object().expect("errors").values().filter_map(Value::as_u64).sum();
    assert_eq!(number(&done, "attempts"), number(&done, "successes") + failed + number(&done, "in_flight"));
    assert_latency(&witness, &done, &truth);
}

/// Asserts that the driver's latencies in the window are those of the whole run, because the delay is constant.
fn assert_latency(witness: &Witness, done: &Value, truth: &Truth) {
    let pairs = done["latency_us"].as_array().expect("pairs");
    let micros: Vec<u64> = pairs
        .iter()
        .flat_map(|pair| {
            let [value, count] = [0, 1].map(|place| pair[place].as_u64().expect("a number"));
            std::iter::repeat_n(value, usize::try_from(count).expect("a count"))
        })
        .collect();
    let percentile = |p: f64| micros[(p / 100.0 * micros.len() as f64).ceil() as usize - 1] as f64;
    let shown = json!({"p50": percentile(50.0), "p90": percentile(90.0), "p99": percentile(99.0)});
    let verified = || truth.exchanges.iter().filter(|exchange| exchange.how == How::Whole);
    assert_recovered(
        "client",
        witness,
        &shown,
        verified().map(Exchange::inner),
        verified().map(Exchange::outer),
    );
}
