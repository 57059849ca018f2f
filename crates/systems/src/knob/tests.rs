//! Tables of accepted and refused values, and round trips as properties.

use proptest::prelude::*;

use super::*;

fn knob(kind: Kind) -> Knob {
    let words = ["inet", "socket"].map(|word| Value::Text(word.to_owned())).to_vec();
    let values = if matches!(kind, Kind::Choice | Kind::Any) { words } else { vec![] };
    let default = Value::Integer(1);
    Knob { workloads: vec![Workload::Upload], ..Knob::new(kind, default, values) }
}

#[test]
fn sizes() {
    for (text, bytes) in
        [("0", 0), ("1460", 1460), ("64K", 65536), ("64k", 65536), ("1M", 1 << 20), ("1G", 1 << 30)]
    {
        assert_eq!(parse_size(text), Ok(bytes));
    }
    for text in ["", "K", "-1", "+1", "1.5M", "64KB", "6 4", "ä", "9999999999G", "99999999999999999999"] {
        assert!(parse_size(text).is_err(), "{text}");
    }
    for (bytes, text) in [(0, "0"), (1460, "1460"), (65536, "64K"), (1 << 20, "1M"), (3 << 30, "3G")] {
        assert_eq!(show_size(bytes), text);
    }
}

#[test]
fn refusals_name_the_allowed_values() {
    let bounded = Knob { min: Some(1), max: Some(1 << 20), ..knob(Kind::Size) };
    for (knob, text, part) in [
        (knob(Kind::Choice), "sockett", "one of `inet`, `socket`; did you mean `socket`?"),
        (knob(Kind::Any), "x", "one of `inet`, `socket` or an integer"),
        (knob(Kind::Boolean), "yes", "true or false"),
        (knob(Kind::Integer), "64K", "an integer"),
        (bounded.clone(), "2M", "`2M` is not allowed: use a size such as 1460, 64K, 1M or 1G from 1 to 1M"),
        (bounded, "x", "not a size"),
    ] {
        let refusal = knob.parse(text).unwrap_err();
        assert!(refusal.contains(part), "{refusal}");
    }
    let check = |kind, value| knob(kind).check(&value).unwrap_err();
    assert!(check(Kind::Integer, Value::Text("5".into())).contains("without the quotes"));
    assert!(check(Kind::Boolean, Value::Integer(1)).contains("true or false"));
    assert!(check(Kind::Size, Value::Integer(-1)).contains("not allowed"));
    let digits = Knob { values: vec![Value::Text("4".into())], ..knob(Kind::Choice) };
    assert!(digits.check(&Value::Integer(4)).unwrap_err().contains("quotes"));
}

proptest! {
    #[test]
    fn size_round_trip(bytes in 0..=i64::MAX) {
        prop_assert_eq!(parse_size(&show_size(bytes)), Ok(bytes));
    }

    #[test]
    fn size_round_trip_of_round_numbers(n in 0i64..1024, shift in 0u32..50) {
        prop_assert_eq!(parse_size(&show_size(n << shift)), Ok(n << shift));
    }

    #[test]
    fn values_round_trip(number in any::<i64>(), flag in any::<bool>()) {
        for (kind, value) in [
            (Kind::Integer, Value::Integer(number)),
            (Kind::Any, Value::Integer(number)),
            (Kind::Size, Value::Integer(number.saturating_abs())),
            (Kind::Boolean, Value::Boolean(flag)),
            (Kind::Any, Value::Text("inet".into())),
            (Kind::Choice, Value::Text("socket".into())),
        ] {
            let knob = knob(kind);
            prop_assert_eq!(knob.check(&value), Ok(value.clone()));
            prop_assert_eq!(knob.parse(&knob.show(&value)), Ok(value.clone()));
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC*") {
        for kind in [Kind::Integer, Kind::Size, Kind::Boolean, Kind::Choice, Kind::Any] {
            let knob = knob(kind);
            if let Ok(value) = knob.parse(&text) {
                prop_assert_eq!(knob.check(&value), Ok(value));
            }
        }
    }
}
