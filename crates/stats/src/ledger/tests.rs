//! Tests of the ledger's decisions and of what it reads.

use proptest::prelude::*;

use super::*;

/// A ledger after so many attempts that showed nothing.
fn after(attempts: usize) -> Ledger {
    let mut ledger = Ledger::default();
    for _ in 0..attempts {
        ledger.record(1.0, None);
    }
    ledger
}

#[test]
fn levels_by_hand() {
    for (before, level) in [(0, 2.5 / 51.0), (19, 125.0 / (69.0 * 70.0)), (99, 125.0 / (149.0 * 150.0))] {
        assert!((after(before).level() - level).abs() < 1e-15, "{before}");
    }
}

#[test]
fn an_attempt_is_accepted_if_both_p_values_are_small_enough() {
    let level = Ledger::default().level();
    let above = level * (1.0 + 1e-9);
    for (p, confirmation, decision) in [
        (0.0, Some(0.0), Decision::Accept),
        (level, Some(CONFIRMATION_LEVEL), Decision::Accept),
        (level, Some(0.0201), Decision::Unconfirmed),
        (level, None, Decision::Unconfirmed),
        (above, Some(0.0), Decision::Reject),
        (above, None, Decision::Reject),
        (1.0, Some(1.0), Decision::Reject),
    ] {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.record(p, confirmation), decision, "{p} {confirmation:?}");
        assert_eq!(ledger.attempts(), [Attempt { p, level, confirmation, decision }]);
    }
}

#[test]
fn what_is_no_p_value_counts_as_one() {
    for none in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e-300, 1.000_001, 7.0] {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.record(none, Some(0.0)), Decision::Reject, "{none}");
        assert_eq!(ledger.record(0.0, Some(none)), Decision::Unconfirmed, "{none}");
        assert_eq!((ledger.attempts()[0].p, ledger.attempts()[1].confirmation), (1.0, Some(1.0)));
    }
}

#[test]
fn passing_and_being_confirmed_by_luck_stays_below_the_promise() {
    let full = after(MOST_ATTEMPTS);
    let mut spent = 0.0;
    for (number, attempt) in (1..).zip(full.attempts()) {
        spent += attempt.level;
        let known = 2.5 * f64::from(number) / (f64::from(number) + 50.0);
        assert!((spent - known).abs() < 1e-12 && spent * CONFIRMATION_LEVEL < LEVEL, "{number}: {spent}");
    }
}

#[test]
fn a_full_ledger_accepts_nothing_and_does_not_grow() {
    let mut ledger = after(MOST_ATTEMPTS - 1);
    assert!(!ledger.is_full());
    assert_eq!(ledger.record(0.0, Some(0.0)), Decision::Accept);
    assert!(ledger.is_full() && ledger.level() == 0.0);
    assert_eq!(ledger.record(0.0, Some(0.0)), Decision::Reject);
    assert_eq!(ledger.attempts().len(), MOST_ATTEMPTS);
}

#[test]
fn a_ledger_that_is_read_goes_on_where_it_was() {
    let mut ledger = after(3);
    ledger.record(0.001, Some(0.01));
    ledger.record(0.002, None);
    let read: Ledger = serde_json::from_str(&serde_json::to_string(&ledger).unwrap()).unwrap();
    assert_eq!((read.level(), read), (ledger.level(), ledger));
    assert_eq!(serde_json::from_str::<Ledger>(r#"{"attempts":[]}"#).unwrap(), Ledger::default());
}

#[test]
fn a_ledger_that_cannot_be_is_not_read() {
    let attempt = |p: &str, level: &str, confirmation: &str| {
        format!(r#"{{"p":{p},"level":{level},"confirmation":{confirmation},"decision":"reject"}}"#)
    };
    let good = attempt("1", "0.01", "null");
    for (attempts, said) in [
        (vec![good.clone(); MOST_ATTEMPTS + 1].join(","), "has 100001 attempts"),
        ([good.clone(), attempt("1.5", "0.01", "null")].join(","), "attempt 2 of this ledger has 1.5"),
        (attempt("1", "-1", "null"), "attempt 1 of this ledger has -1"),
        (attempt("1", "0.01", "2"), "attempt 1 of this ledger has 2"),
        (attempt("null", "0.01", "null"), "invalid type: null"),
        (good.replace("reject", "perhaps"), "unknown variant `perhaps`"),
        (good.replace("level", "lever"), "unknown field `lever`"),
    ] {
        let error = serde_json::from_str::<Ledger>(&format!(r#"{{"attempts":[{attempts}]}}"#)).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    let all = vec![good; MOST_ATTEMPTS].join(",");
    assert!(serde_json::from_str::<Ledger>(&format!(r#"{{"attempts":[{all}]}}"#)).unwrap().is_full());
}

proptest! {
    #[test]
    fn levels_fall_and_what_is_accepted_never_exceeds_them(
        figures in proptest::collection::vec((any::<f64>(), proptest::option::of(any::<f64>())), 0..300),
        small in proptest::collection::vec((0.0..0.1_f64, proptest::option::of(0.0..0.1_f64)), 0..300),
    ) {
        let mut ledger = Ledger::default();
        let mut last = LEVEL;
        for (p, confirmation) in figures.into_iter().chain(small) {
            let level = ledger.level();
            prop_assert!(level > 0.0 && level < last, "{level} after {last}");
            last = level;
            let accepted = ledger.record(p, confirmation) == Decision::Accept;
            let both = (0.0..=level).contains(&p)
                && confirmation.is_some_and(|fresh| (0.0..=CONFIRMATION_LEVEL).contains(&fresh));
            prop_assert_eq!(accepted, both);
        }
    }
}
