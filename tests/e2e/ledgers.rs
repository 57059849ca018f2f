//! `narrows try --ledger` and `--format verdict`: one candidate beside its base, and what a session keeps.

use std::fs::{self, File};

use libc::SIGINT;
use serde_json::Value;

use crate::support::home::Home;
use crate::support::schema::{assert_keeps, committed};
use crate::support::{Ended, has, until};

/// Enough answers of servers that wait, in a second or two. They leave their core idle, so they are no duets.
const SHORT: [&str; 11] =
    ["--rounds", "4", "-d", "800ms", "--warmup", "50ms", "--seed", "1", "-c", "4", "--no-duet"];

const VERDICT: [&str; 2] = ["--format", "verdict"];
const LEDGER: [&str; 2] = ["--ledger", "ledger.json"];

/// A folder with a server that waits long, its copy, and one that does not.
fn servers() -> (Home, [String; 3]) {
    let home = Home::new();
    let servers = [("slow.js", 100), ("copy.js", 100), ("quick.js", 1)];
    let commands = servers.map(|(name, wait_ms)| home.node(name, "'ok'", wait_ms));
    (home, commands)
}

fn tries(home: &Home, arms: &[&str], options: &[&[&str]]) -> Ended {
    home.run([&["try"][..], arms, &options.concat(), &SHORT].concat())
}

fn kept(home: &Home) -> Value {
    let text = fs::read_to_string(home.path("ledger.json")).expect("the ledger");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_ledger_accepts_what_is_better_keeps_what_was_tried_and_refuses_another_session() {
    if !has("node") {
        return;
    }
    let (home, [slow, copy, quick]) = servers();
    let verdict = tries(&home, &[&slow, &quick], &[&LEDGER, &VERDICT]).code(0).json();
    assert_keeps(&committed("verdict.schema.json"), &verdict);
    assert_eq!(verdict["verdict"], "accept", "{verdict:#}");
    assert!(verdict["ratio"].as_f64().is_some_and(|ratio| ratio > 2.0), "{verdict:#}");
    assert_eq!((&verdict["ledger"]["first_run"], &verdict["run"]), (&Value::from(1), &Value::from(2)));
    assert_eq!(verdict["equal_work"]["checked"], true, "{verdict:#}");
    assert!(verdict["report"].as_str().is_some_and(|report| report.starts_with("narrows report 2")));

    let second = tries(&home, &[&slow, &copy], &[&LEDGER]).code(0);
    assert!(second.stdout.contains("attempt 2 of ledger.json: p is "), "{second:#?}");
    let ledger = kept(&home);
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
        ([&copy, &quick], &[][..], "its base is `node slow.js {port}`"),
        ([&slow, &quick], &["--path", "/other"], "its --path is not set"),
        ([&slow, &quick], &["--figure", "p50"], "use --figure rate"),
    ] {
        let arms = arms.map(String::as_str);
        tries(&home, &arms, &[&LEDGER, more]).code(2).says(&["ledger.json keeps another session", said]);
    }
    assert_eq!(kept(&home), ledger);
}

#[test]
fn a_damaged_or_locked_ledger_is_refused_before_anything_is_measured() {
    if !has("node") {
        return;
    }
    let (home, [slow, _, quick]) = servers();
    let damaged = "{\n  \"schema\": 1,\n  \"asks\": {}\n}\n";
    home.write("ledger.json", damaged);
    let refused = tries(&home, &[&slow, &quick], &[&LEDGER]).code(1);
    refused.says(&["ledger.json is damaged: line 3", "unknown field `asks`"]);
    assert_eq!(fs::read_to_string(home.path("ledger.json")).expect("the ledger"), damaged);
    fs::remove_file(home.path("ledger.json")).expect("the ledger");
    let lock = File::create(home.path("ledger.json.lock")).expect("the lock");
    lock.lock().expect("it is free");
    tries(&home, &[&slow, &quick], &[&LEDGER]).code(1).says(&["another process uses ledger.json"]);
    assert!(!home.path("ledger.json").exists() && !home.has_run());
}

#[test]
fn an_attempt_that_is_interrupted_is_spent_and_does_not_go_on() {
    if !has("node") {
        return;
    }
    let (home, [slow, _, quick]) = servers();
    let words =
        ["try", &slow, &quick, "--ledger", "ledger.json", "--rounds", "50", "-d", "400ms", "--no-duet"];
    let running = home.spawn(&words);
    assert!(until(|| home.path("ledger.json").exists()));
    running.signal(SIGINT);
    running.end().code(130).says(&["attempt 1 of ledger.json is spent"]);
    let attempt = &kept(&home)["attempts"][0];
    assert_eq!((&attempt["complete"], &attempt["decision"]), (&Value::from(false), &Value::from("reject")));
    home.run(["run", "--resume", "1"]).code(1).says(&["it is an attempt of a ledger"]);
    home.assert_nothing_left();
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn a_verdict_needs_no_ledger_and_is_about_two_arms() {
    if !has("node") {
        return;
    }
    let (home, [slow, copy, quick]) = servers();
    let schema = committed("verdict.schema.json");
    let worse = tries(&home, &[&quick, &slow], &[&VERDICT]).code(0).json();
    assert_keeps(&schema, &worse);
    assert_eq!((&worse["verdict"], &worse["ledger"]), (&Value::from("reject"), &Value::Null), "{worse:#}");
    let again = home.run(["report", "last", "--format", "verdict"]).code(0).json();
    assert_eq!(again, worse);
    let few =
        [&["try", &slow, &copy, "--rounds", "2", "-d", "800ms", "--warmup", "50ms"][..], &VERDICT].concat();
    let open = home.run(few).code(0).json();
    assert_keeps(&schema, &open);
    assert_eq!(
        (&open["verdict"], &open["rounds_to_decide"]),
        (&Value::from("inconclusive"), &Value::from(1))
    );
    tries(&home, &[&slow, &copy, &quick], &[&VERDICT]).code(2).says(&["one candidate beside its base"]);
    tries(&home, &[&slow, &quick], &[&LEDGER, &["--format", "json"]]).code(2).says(&["--ledger prints"]);
    assert!(!home.path("ledger.json").exists());
}
