//! Tests of verdicts: what they say with and without a ledger, and which of the two each number is of.

use lab::findings::Ratio;
use lab::findings::functions::{Function as Named, Functions};
use serde_json::{Value, json};

use super::*;
use crate::made_up::arms;

fn said(better: f64, ledger: Option<Entry<'_>>) -> Value {
    let of = Verdict { run: 7, report: "narrows report 7", ledger };
    let text = verdict_json(&arms(better), &of).expect("one candidate");
    serde_json::from_str(&text).expect("JSON")
}

fn entry(decision: Decision, confirmation: Option<f64>) -> Entry<'static> {
    let attempt = Attempt { p: 0.0123, level: 0.045, confirmation, decision };
    Entry { file: "l.json", attempts: 3, attempt, first_run: confirmation.map(|_| 6) }
}

#[test]
fn a_verdict_says_what_the_comparison_says() {
    for (better, verdict) in [(1.5, "accept"), (0.7, "reject"), (1.0, "reject")] {
        let said = said(better, None);
        assert_eq!((&said["verdict"], &said["schema"]), (&json!(verdict), &json!(1)), "{said:#}");
        let ratio = said["ratio"].as_f64().expect("a ratio");
        assert!((ratio / better - 1.0).abs() < 0.03, "{said:#}");
        assert_eq!((&said["base"]["name"], &said["candidate"]["name"]), (&json!("base"), &json!("new")));
        assert_eq!(
            (&said["level"], &said["ledger"], &said["rounds"]),
            (&json!(0.05), &Value::Null, &json!(8))
        );
        assert_eq!((&said["unit"], &said["run"]), (&json!("per_second"), &json!(7)));
    }
}

#[test]
fn only_a_ledger_that_accepts_lets_a_verdict_accept() {
    let accepted = said(1.5, Some(entry(Decision::Accept, Some(0.004))));
    assert_eq!((&accepted["verdict"], &accepted["ledger"]["first_run"]), (&json!("accept"), &json!(6)));
    assert_eq!((&accepted["ledger"]["attempts"], &accepted["level"]), (&json!(3), &json!(0.045)));
    for (decision, confirmation) in [(Decision::Reject, None), (Decision::Unconfirmed, Some(0.3))] {
        let open = said(1.5, Some(entry(decision, confirmation)));
        assert_eq!(open["verdict"], "inconclusive");
        assert_eq!(open["rounds_to_decide"], 1, "{open:#}");
    }
    assert_eq!(said(0.7, Some(entry(Decision::Reject, None)))["verdict"], "reject");
}

#[test]
fn a_ledgers_attempt_is_told_in_a_sentence() {
    let first = "attempt 3 of l.json: p is 1.2 %, and the level of this attempt is 4.5 %";
    for (decision, confirmation, rest) in [
        (Decision::Reject, None, ": it is not shown to be better"),
        (
            Decision::Accept,
            Some(0.004),
            "; p is 0.40 % in fresh rounds, whose level is 2.0 %: it is accepted",
        ),
        (
            Decision::Unconfirmed,
            Some(0.3),
            "; p is 30 % in fresh rounds, whose level is 2.0 %: it is not confirmed",
        ),
        (Decision::Unconfirmed, None, ": it was not confirmed"),
    ] {
        assert_eq!(ledger_words(&entry(decision, confirmation)), format!("{first}{rest}"));
    }
}

#[test]
fn the_times_of_functions_are_those_of_the_base_and_of_the_candidate() {
    let change = |name: &str, [first, second]: [f64; 2], half: f64| FunctionChange {
        function: Named { name: name.to_owned(), kernel: name == "sendto" },
        change: PartChange { first, second, low: second - first - half, high: second - first + half },
        at: (name == "check").then(|| "auth.c:42".to_owned()),
    };
    let parts = vec![
        change("check", [0.1, 0.3], 0.05),
        change("sendto", [0.4, 0.3], 0.05),
        change("format", [0.2, 0.21], 0.05),
        change(FEW_SAMPLES, [0.1, 0.3], 0.05),
    ];
    let carrier = Some(change("check", [0.12, 0.33], 0.05));
    let functions = Some(Functions { parts, carrier, caller: None });
    let ratio = Ratio { estimate: 1.2, low: 1.1, high: 1.3 };
    let cpu = CpuDifference { less: 0, more: 1, less_s: 1e-4, ratio, open: false, functions };
    let told = |base: usize| {
        let all = super::functions(&cpu, base).into_iter();
        let micros = |seconds: f64| (seconds * 1e6).round() as u32;
        all.map(|f| (f.name, f.carries, micros(f.base_s), micros(f.candidate_s))).collect::<Vec<_>>()
    };
    let named = |name: &str, carries, base, candidate| (name.to_owned(), carries, base, candidate);
    assert_eq!(told(0), [named("check", true, 12, 33), named("sendto", false, 40, 30)]);
    assert_eq!(told(1), [named("check", true, 33, 12), named("sendto", false, 30, 40)]);
}
