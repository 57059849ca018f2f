//! `narrows try --ledger` and `--format verdict` with made-up figures: one candidate beside its base, and what a session keeps.

use std::fs::{self, File};

use serde_json::Value;

use crate::support::Ended;
use crate::support::fake::Try;
use crate::support::schema::{assert_keeps, committed};

const VERDICT: [&str; 2] = ["--format", "verdict"];
const LEDGER: [&str; 2] = ["--ledger", "ledger.json"];

const SLOW: &str = "./slow {port}";
/// As slow as the first.
const COPY: &str = "./copy {port}";
const QUICK: &str = "./quick {port}";

fn servers() -> Try {
    Try::new("[[rule]]\nsystem = \"quick\"\nbetter = 100.0\n")
}

fn tries(tried: &Try, arms: &[&str], options: &[&[&str]]) -> Ended {
    tried.tries(&[arms, &options.concat(), &["--rounds", "4", "--no-duet"]].concat())
}

fn kept(tried: &Try) -> Value {
    let text = fs::read_to_string(tried.home.path("ledger.json")).expect("the ledger");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_ledger_accepts_what_is_better_keeps_what_was_tried_and_refuses_another_session() {
    let tried = servers();
    let verdict = tries(&tried, &[SLOW, QUICK], &[&LEDGER, &VERDICT]).code(0).json();
    assert_keeps(&committed("verdict.schema.json"), &verdict);
    assert_eq!(verdict["verdict"], "accept", "{verdict:#}");
    assert!(verdict["ratio"].as_f64().is_some_and(|ratio| ratio > 2.0), "{verdict:#}");
    assert_eq!((&verdict["ledger"]["first_run"], &verdict["run"]), (&Value::from(1), &Value::from(2)));
    assert_eq!(verdict["equal_work"]["checked"], true, "{verdict:#}");
    assert!(verdict["report"].as_str().is_some_and(|report| report.starts_with("narrows report 2")));

    let second = tries(&tried, &[SLOW, COPY], &[&LEDGER]).code(0);
    assert!(second.stdout.contains("attempt 2 of ledger.json: p is "), "{second:#?}");
    let ledger = kept(&tried);
    assert_keeps(&committed("ledger.schema.json"), &ledger);
    let attempts = ledger["attempts"].as_array().expect("attempts");
    let of = |field: &str| attempts.iter().map(|attempt| attempt[field].clone()).collect::<Vec<_>>();
    assert_eq!(attempts.len(), 2);
    assert_eq!(of("complete"), [true, true]);
    assert_eq!((&of("decision")[0], &of("verdict")[0]), (&Value::from("accept"), &Value::from("accept")));
    assert_ne!(of("verdict")[1], "accept", "{ledger:#}");
    assert!(of("level")[1].as_f64() < of("level")[0].as_f64());
    assert_eq!(attempts[0]["confirmation"]["run"], 2);

    for (arms, more, said) in [
        ([COPY, QUICK], &[][..], "its base is `./slow {port}`"),
        ([SLOW, QUICK], &["--path", "/other"], "its --path is not set"),
        ([SLOW, QUICK], &["--figure", "p50"], "use --figure rate"),
    ] {
        let refused = tries(&tried, &arms, &[&LEDGER, more]).code(2);
        refused.says(&["ledger.json keeps another session", said]);
    }
    assert_eq!(kept(&tried), ledger);
}

#[test]
fn a_damaged_or_locked_ledger_is_refused_before_anything_is_measured() {
    let tried = servers();
    let path = tried.home.path("ledger.json");
    let damaged = "{\n  \"schema\": 1,\n  \"asks\": {}\n}\n";
    fs::write(&path, damaged).expect("the ledger");
    let refused = tries(&tried, &[SLOW, QUICK], &[&LEDGER]).code(1);
    refused.says(&["ledger.json is damaged: line 3", "unknown field `asks`"]);
    assert_eq!(fs::read_to_string(&path).expect("the ledger"), damaged);
    fs::remove_file(&path).expect("the ledger");
    let lock = File::create(tried.home.path("ledger.json.lock")).expect("the lock");
    lock.lock().expect("it is free");
    tries(&tried, &[SLOW, QUICK], &[&LEDGER]).code(1).says(&["another process uses ledger.json"]);
    assert!(!path.exists() && !tried.home.has_run());
}

#[test]
fn a_verdict_needs_no_ledger_and_is_about_two_arms() {
    let tried = servers();
    let schema = committed("verdict.schema.json");
    let worse = tries(&tried, &[QUICK, SLOW], &[&VERDICT]).code(0).json();
    assert_keeps(&schema, &worse);
    assert_eq!((&worse["verdict"], &worse["ledger"]), (&Value::from("reject"), &Value::Null), "{worse:#}");
    let again = tried.home.run(["report", "last", "--format", "verdict"]).code(0).json();
    assert_eq!(again, worse);
    let open = tried.tries(&[&[SLOW, COPY, "--rounds", "2"][..], &VERDICT].concat()).code(0).json();
    assert_keeps(&schema, &open);
    assert_eq!(
        (&open["verdict"], &open["rounds_to_decide"]),
        (&Value::from("inconclusive"), &Value::from(1))
    );
    tries(&tried, &[SLOW, COPY, QUICK], &[&VERDICT]).code(2).says(&["one candidate beside its base"]);
    tries(&tried, &[SLOW, QUICK], &[&LEDGER, &["--format", "json"]]).code(2).says(&["--ledger prints"]);
    assert!(!tried.home.path("ledger.json").exists());
}
