//! The JSON of reports and comparisons matches the schemas in docs/schema.

use std::fs;

use crate::support::fake::Lab;
use crate::support::home::Home;
use crate::support::made_up::{MadeUp, failed};
use crate::support::schema::{assert_keeps, committed, file};
use serde_json::Value;

/// `NARROWS_WRITE_SCHEMA=1 cargo test -p narrows --test check schemas` updates them.
#[test]
fn the_committed_schemas_are_those_of_the_types() {
    for (name, schema) in report::schemas() {
        if std::env::var_os("NARROWS_WRITE_SCHEMA").is_some() {
            fs::write(file(name), &schema).expect("the schema is written");
        }
        let text = fs::read_to_string(file(name)).expect(name);
        assert!(text == schema, "write {name} anew: NARROWS_WRITE_SCHEMA=1, and mind its version");
    }
}

/// Asserts that these lists have something.
fn assert_filled(of: &Value, lists: &[&str]) {
    for found in lists {
        assert!(of[found].as_array().is_some_and(|all| !all.is_empty()), "{found} in {of}");
    }
}

#[test]
fn the_report_of_a_run_keeps_the_schema() {
    let fails =
        "[[rule]]\nsystem = \"beta\"\nfail = { stage = \"start\", reason = \"it ended\", output = \"\" }\n";
    let lab = Lab::with(fails);
    lab.run(&["--rounds", "3", "--set", "connections=1,4"]).code(0);
    let report: Value = serde_json::from_str(&lab.report("json")).expect("JSON");
    let schema = committed("report.schema.json");
    assert_keeps(&schema, &report);
    let e = &report["experiments"][0];
    assert_filled(e, &["failures", "axes"]);
    assert_filled(&e["figures"][0], &["tables", "estimates", "comparisons"]);
}

#[test]
fn effects_snippets_and_failures_match_the_schema_and_other_fields_do_not() {
    let home = Home::new();
    let made_up = MadeUp { systems: &["alpha", "beta"], threads: 3, buffers: 4, rounds: 5, latencies: 20 };
    made_up.store(
        &home,
        |plan| plan,
        |trial| (trial.index % 17 == 0).then(|| failed("it \u{0}broke", "\u{1b}[31mred")),
    );
    let mut report = home.run(["report", "last", "--format", "json"]).code(0).json();
    let schema = committed("report.schema.json");
    assert_keeps(&schema, &report);
    let e = &report["experiments"][0];
    assert_filled(e, &["failures"]);
    assert_filled(&e["figures"][0], &["headlines", "effects", "snippets", "comparisons"]);
    report["schema"] = Value::from(report::SCHEMA + 1);
    assert!(!schema.is_valid(&report));
    report["schema"] = Value::from(report::SCHEMA);
    report["experiments"][0]["rounds"] = Value::from("three");
    assert!(!schema.is_valid(&report));
}

/// Two runs of the same made-up systems; in the second, trials failed and a system is missing.
#[test]
fn comparisons_keep_their_schema() {
    let home = Home::new();
    let small = MadeUp { systems: &["alpha", "beta"], threads: 2, buffers: 2, rounds: 4, latencies: 20 };
    small.store(&home, |plan| plan, |_| None);
    let fewer = MadeUp { systems: &["alpha"], ..small };
    let fails = |trial: &lab::observation::Trial| (trial.index == 3).then(|| failed("it broke", ""));
    fewer.store(&home, |plan| plan.replace("Of a test", "Of another"), fails);
    let compared = |a: &str, b: &str| home.run(["compare", a, b, "--format", "json"]).code(0).json();
    let schema = committed("comparison.schema.json");
    let mut runs = compared("previous", "last");
    let scenarios = compared("1:e/alpha buffer=1K", "1:e/alpha buffer=2K");
    for found in [&runs, &scenarios] {
        assert_keeps(&schema, found);
        assert_eq!(found["schema"], report::COMPARISON_SCHEMA);
        assert!(found["comparison"]["matched"].as_array().is_some_and(|all| !all.is_empty()), "{found}");
    }
    assert!(runs["comparison"]["unmatched"].as_array().is_some_and(|all| !all.is_empty()), "{runs}");
    runs["comparison"]["matched"][0]["verdict"] = Value::from("rather fast");
    assert!(!schema.is_valid(&runs));
}
