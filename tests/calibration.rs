//! Calibration: an endpoint with injected truth, which records what it really did, and Narrows, which must recover it
//! (docs/calibration.md). One test at a time: they measure.

#[path = "calibration/compare.rs"]
mod compare;
#[path = "calibration/endpoint.rs"]
mod endpoint;
#[path = "calibration/faults.rs"]
mod faults;
#[path = "calibration/latency.rs"]
mod latency;
#[path = "calibration/machine.rs"]
mod machine;
#[path = "calibration/stall.rs"]
mod stall;
mod support;
#[path = "calibration/witness.rs"]
mod witness;

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use witness::Witness;

/// Held while a test measures, with a witness of what the machine does.
fn alone() -> (Witness, MutexGuard<'static, ()>) {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    (Witness::new(), one)
}

/// `narrows load --json` on the generator's core; the exit code tells whether anything was verified.
fn load(words: &[&str]) -> Value {
    let core = machine::cores().1.to_string();
    let words = [&["load"], words, &["--cores", &core, "--json"]].concat();
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
