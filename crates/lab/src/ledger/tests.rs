//! Tests of what a ledger keeps, and of what it refuses.

use serde_json::json;

use super::*;

fn arm(command: &str) -> Arm {
    Arm { command: command.to_owned(), commit: None }
}

fn question() -> Question {
    let options = [("connections", json!(4)), ("path", json!("/a"))];
    let options = options.map(|(name, value)| (name.to_owned(), value)).into();
    Question { figure: "rate".to_owned(), base: arm("./a {port}"), options }
}

/// An attempt for each p-value, with that of its fresh rounds.
fn kept(p: &[(f64, Option<f64>)]) -> Ledger {
    let mut ledger = Ledger::new(question());
    for (run, (p, fresh)) in (1..).zip(p) {
        ledger.begin(arm("./b {port}"), 1.5, run);
        let fresh = fresh.map(|p| Confirmation { run: 100 + run, rounds: 9, ratio: None, p });
        ledger.end((9, None, *p), fresh, |decision| match decision {
            Decision::Accept => Choice::Accept,
            _ => Choice::Inconclusive,
        });
    }
    ledger
}

#[test]
fn what_is_read_is_what_was_written_and_goes_on_at_the_same_level() {
    let kept = kept(&[(0.4, None), (0.001, Some(0.01)), (0.001, Some(0.5)), (0.001, None)]);
    let read = Ledger::parse(&kept.text()).unwrap();
    assert_eq!((read.level(), &read), (kept.level(), &kept));
    let decisions: Vec<Decision> = kept.attempts().iter().map(|attempt| attempt.decision).collect();
    use Decision::{Accept, Reject, Unconfirmed};
    assert_eq!(decisions, [Reject, Accept, Unconfirmed, Unconfirmed]);
    assert_eq!(kept.attempts()[1].verdict, Choice::Accept);
}

#[test]
fn an_attempt_that_begins_is_spent() {
    let mut kept = kept(&[]);
    let first = kept.level();
    kept.begin(arm("./b"), 2.0, 7);
    assert!(kept.level() < first);
    let read = Ledger::parse(&kept.text()).unwrap();
    assert!(!read.attempts()[0].complete && read.level() == kept.level());
    assert_eq!(read.attempts()[0].level, first);
}

#[test]
fn a_p_value_that_is_none_counts_as_one() {
    let kept = kept(&[(f64::NAN, Some(0.0)), (2.0, None)]);
    assert!(kept.attempts().iter().all(|attempt| attempt.p == 1.0 && attempt.decision == Decision::Reject));
    Ledger::parse(&kept.text()).unwrap();
}

#[test]
fn a_damaged_file_is_refused_with_its_place_and_its_field() {
    let good = kept(&[(0.4, None), (0.001, Some(0.01))]).text();
    for (from, to, said) in [
        (
            "\"p\": 0.4",
            "\"p\": \"x\"",
            "line 25, column 14: invalid type: string \"x\", expected f64, in `\"p\": \"x\",`",
        ),
        ("\"run\": 1,", "\"ran\": 1,", "unknown field `ran`"),
        ("\"complete\": true,", "", "missing field `complete`"),
        ("\"p\": 0.4", "\"p\": 1.4", "`p` of attempt 1 is 1.4, which is not between 0 and 1"),
        ("\"p\": 0.01", "\"p\": -0.01", "`confirmation.p` of attempt 2 is not between 0 and 1"),
        ("\"level\": 0.049", "\"level\": 0.059", "`level` of attempt 1 is 0.059"),
        ("\"decision\": \"reject\"", "\"decision\": \"accept\"", "is accept, and the rule gives reject"),
        ("\"schema\": 1", "\"schema\": 9", "`schema` is 9, and this version reads 1"),
        (
            "\"figure\": \"rate\",",
            "\"figure\": \"rate\",\n\"more\": 1,",
            "line 5, column 6: unknown field `more`",
        ),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let error = Ledger::parse(&text).unwrap_err();
        assert!(error.contains(said), "{from}: {error}");
    }
    assert!(Ledger::parse("").unwrap_err().contains("line 1, column 0: EOF"));
    let cut = &good[..good.len() / 2];
    assert!(Ledger::parse(cut).unwrap_err().contains("EOF"));
}

#[test]
fn another_question_is_refused_with_what_would_mend_it() {
    let kept = Ledger::new(question());
    assert_eq!(kept.refuses(&question()), None);
    let with = |change: fn(&mut Question)| {
        let mut asked = question();
        change(&mut asked);
        kept.refuses(&asked).unwrap()
    };
    let other = with(|asked| asked.base.command = "./c".to_owned());
    assert_eq!(other, "its base is `./a {port}`, and this one is `./c`: give it first");
    assert!(with(|asked| asked.base.commit = Some("abc".to_owned())).contains("at commit abc"));
    assert!(with(|asked| asked.figure = "p99".to_owned()).ends_with("use --figure rate"));
    let more = with(|asked| _ = asked.options.insert("connections".to_owned(), json!(8)));
    assert_eq!(more, "its --connections is 4, and this one is 8: leave --connections as it was");
    let less = with(|asked| _ = asked.options.remove("path"));
    assert!(less.contains("its --path is \"/a\", and this one is not set"));
    assert!(with(|asked| _ = asked.options.insert("no-duet".to_owned(), json!(true))).contains("--no-duet"));
}

#[test]
fn a_ledger_takes_as_long_to_read_as_it_is_long() {
    cost::is_near_linear(200, |count| {
        let text = kept(&vec![(0.5, None); count]).text();
        move || assert_eq!(Ledger::parse(&text).unwrap().attempts().len(), count)
    });
}
