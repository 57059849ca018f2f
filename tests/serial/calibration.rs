//! Calibration: an endpoint injects delays and faults and records what it really did. Narrows must recover it
//! (docs/calibration.md).

mod compare;
mod endpoint;
mod faults;
mod latency;
mod machine;
mod stall;
mod witness;

use serde_json::Value;

use crate::support;

/// Runs `narrows load --json` on the generator's core. Errors are injected, so only the absence of any right answer may fail it.
fn load(words: &[&str]) -> Value {
    let core = machine::cores().1.to_string();
    let words = [&["load"], words, &["--cores", &core, "--allow-errors", "--json"]].concat();
    let ended = support::run(machine::first(&mut support::narrows(words)));
    let json = ended.json();
    support::assert_adds_up(&json);
    let verified = json["completed"].as_u64() > Some(0);
    assert_eq!(ended.status.code(), Some(i32::from(!verified)), "{ended:#?}");
    json
}

/// A count of the JSON.
fn number(json: &Value, name: &str) -> u64 {
    json[name].as_u64().unwrap_or_else(|| panic!("{name} in {json}"))
}
