//! The ready-made experiment `open-loop` with the reference alone: what its report must say about the schedule.

use crate::support::home::Home;
use crate::support::{Ended, checkout, narrows, run, squeezed};
use lab::findings::Code;
use lab::observation::Outcome;
use lab::store::Store;
use serde_json::Value;

/// Runs the program in the checkout's home, with a store in the test's home.
fn in_checkout(home: &Home, words: &[&str]) -> Ended {
    let store = home.path("narrows.db");
    let mut command = narrows(words);
    command.args(["--store", store.to_str().expect("a path")]).env("NARROWS_HOME", checkout());
    run(&mut command)
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn an_experiment_with_rates_shows_response_times_and_late_arrivals() {
    let home = Home::new();
    in_checkout(&home, &["run", "open-loop", "--systems", "reference", "--rounds", "1"]).code(0);
    let store = Store::read(&home.path("narrows.db")).expect("a store");
    let last = store.resolve("last").expect("a run");
    let seen = store.observations(last).expect("its trials");
    assert_eq!(seen.len(), 2, "two rates");
    let report = in_checkout(&home, &["report", "last", "--format", "json"]).code(0).json();
    let e = &report["experiments"][0];
    assert_eq!((&e["figure"], &e["failures"]), (&Value::from("p99_us"), &serde_json::json!([])), "{e}");
    let table = &e["figures"][0]["tables"][0];
    let columns: Vec<&str> =
        table["columns"].as_array().expect("columns").iter().filter_map(|c| c["name"].as_str()).collect();
    assert_eq!(columns.iter().filter(|name| **name == "p99").count(), 1, "{columns:?}");
    for name in ["rate", "p50", "service p50", "service p99", "late", "dropped"] {
        assert!(columns.contains(&name), "{name}: {columns:?}");
    }
    for observation in seen.iter().filter(|observation| !observation.trial.twin) {
        let Outcome::Measured(m) = &observation.outcome else { panic!("{observation:#?}") };
        let rate = observation.trial.scenario.work().rate().expect("a rate").per_s;
        // Each arrival of the window is an attempt or was dropped, whatever the machine does.
        let arrivals = (m.attempts + m.dropped) as f64;
        assert!(arrivals >= 0.99 * rate as f64 * observation.trial.timing.measure_s, "{m:#?}");
        let estimates = e["figures"][0]["estimates"].as_array().expect("estimates");
        let row = estimates.iter().find(|e| e["scenario"]["point"]["rate"] == rate).expect("its row");
        // A p99 exists if and only if there are 1000 answers.
        assert_eq!(row["figure"].is_number(), m.response_us.count >= 1000, "{row}");
        assert!(row["late_share"].is_number() && row["dropped_share"].is_number(), "{row}");
    }
    let warnings = e["figures"][0]["warnings"].as_array().expect("warnings");
    let few = serde_json::to_value(Code::TooFewTrials).expect("a code");
    assert!(warnings.iter().any(|warning| warning["code"] == few), "{warnings:?}");
    let text = in_checkout(&home, &["report", "last", "--details"]).code(0).stdout;
    let heading =
        "99th percentile of the response times of all answers in 1 round, from when a request was due";
    assert!(squeezed(&text).contains(heading), "{text}");
}

/// A closed loop has no schedule, so no request is due at a time.
#[test]
fn without_a_rate_it_is_refused() {
    let home = Home::new();
    let words = ["run", "open-loop", "--systems", "reference", "--set", "rate=0,1000"];
    in_checkout(&home, &words)
        .code(1)
        .says(&["a closed loop has no schedule", "give `rate` a value above 0 in every block"]);
}
