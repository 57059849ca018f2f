//! The options of a saved question, as the crates read them that know their values. What is read can be saved and read again,
//! and can be used. The type of a whole question is in the program `narrows`, which is no library, so the names of the options
//! are repeated here.
#![no_main]

use answers::{Answer, Capture, Check, Head};
use lab::ask::ProxyProtocol;
use lab::meter::Meter;
use libfuzzer_sys::fuzz_target;
use load::target::Url;
use load::{Slo, Tally};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use systems::{Figure, template};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nSet-Cookie: a=b\r\n\r\n";
const BODY: &[u8] = br#"{"items":[1,2],"t":"x"}"#;

fuzz_target!(|input: &str| {
    // A store has it as JSON: a verb with its options.
    let Ok(Value::Object(question)) = serde_json::from_str(input) else { return };
    for options in question.values() {
        sent(options);
        driven(options);
        reached(options);
    }
});

/// An option that is saved. None if it is refused: its type does not know it, or would save it differently.
fn read<T: Serialize + DeserializeOwned>(options: &Value, name: &str) -> Option<T> {
    let saved = options.get(name)?;
    let read: T = serde_json::from_value(saved.clone()).ok()?;
    let again = serde_json::to_value(&read).expect("an option is JSON");
    let second: T = serde_json::from_value(again.clone()).expect("what is saved can be read");
    assert_eq!(serde_json::to_value(&second).expect("the same"), again);
    (again == *saved).then_some(read)
}

/// What is asked of answers.
fn sent(options: &Value) {
    let answer = Answer { head: Head::http1(200, HEAD), body: BODY, length: BODY.len() as u64 };
    for check in read::<Vec<Check>>(options, "expect").unwrap_or_default() {
        let _ = (check.holds(&answer), check.holds_event(BODY), check.statuses());
    }
    for capture in read::<Vec<Capture>>(options, "capture").unwrap_or_default() {
        let _ = capture.take(&answer);
    }
    if let Some(slo) = read::<Slo>(options, "slo") {
        assert!(slo.goal().is_some() || !slo.objectives().is_empty());
        let _ = (slo.answers_needed(), slo.broken(&Tally::default()));
    }
    let _ = read::<ProxyProtocol>(options, "proxy_protocol");
}

/// The program that drives in the place of the generator.
fn driven(options: &Value) {
    let Some(driver) = options.get("driver").and_then(Value::as_str) else { return };
    let words = driver.split_whitespace().map(str::to_owned).collect();
    let reads = read(options, "reads").unwrap_or_default();
    let Ok(meter) = Meter::new(words, reads) else { return };
    assert_eq!(meter.is_timed(), meter.has("duration"));
    for figure in Figure::ALL {
        let _ = meter.lacks(figure);
    }
}

/// The machines, and the commands and URLs of the arms.
fn reached(options: &Value) {
    let texts = |name: &str| read::<Vec<String>>(options, name).unwrap_or_default();
    for list in texts("generators").iter().chain(&read::<String>(options, "sut")) {
        if let Ok(machines) = machines::parse_list(list) {
            assert_eq!(machines.is_empty(), machines::names(&machines).is_empty());
        }
    }
    for arm in texts("arms") {
        let _ = (Url::parse(&arm), template::names(&arm));
    }
}
