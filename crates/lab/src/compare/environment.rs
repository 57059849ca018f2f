//! Differences between the conditions of two runs: the machine, its settings, the versions, the timing of trials.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Chosen, Matched};
use crate::findings::{ExperimentFindings, Shared};

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// What differs, such as `kernel`, `sysctls net.core.somaxconn` or `frames measure_s`.
    pub what: String,
    /// Its value in the first. `-` if it is unknown.
    pub a: String,
    /// Its value in the second. `-` if it is unknown.
    pub b: String,
    /// Whether it makes the comparison meaningless.
    pub grave: bool,
}

/// Properties of a machine that make a comparison meaningless if they differ.
const GRAVE: [&str; 2] = ["cpu", "cores"];
/// The processors of the generators on other machines. Without it, the generator was on the machine of the systems.
const GENERATORS: &str = "generators";

/// All differences, the grave ones first.
pub(super) fn differences(a: &Chosen, b: &Chosen, matched: &[Matched]) -> Vec<Difference> {
    let mut all = Vec::new();
    values(&mut all, "", &a.environment, &b.environment);
    let compared: BTreeSet<&str> = matched.iter().map(|m| m.experiment.as_str()).collect();
    // Of several experiments of one name, the first.
    let of_b = b.findings.experiments.iter().rev().map(|e| (e.name.as_str(), e));
    let of_b: BTreeMap<&str, &ExperimentFindings> = of_b.collect();
    for left in a.findings.experiments.iter().filter(|e| compared.contains(e.name.as_str())) {
        if let Some(right) = of_b.get(left.name.as_str()) {
            experiment(&mut all, left, right);
        }
    }
    all.sort_by_key(|difference| !difference.grave);
    all
}

/// Whether what is known of two machines makes figures of both incomparable.
pub fn is_another_machine(a: &Value, b: &Value) -> bool {
    let mut all = Vec::new();
    values(&mut all, "", a, b);
    all.iter().any(|difference| difference.grave)
}

/// Whether two experiments ask the same in the same way.
pub(super) fn asks_the_same(a: &Shared, b: &Shared) -> bool {
    let mut all = Vec::new();
    experiment(&mut all, a, b);
    a.name == b.name && a.objective == b.objective && !all.iter().any(|difference| difference.grave)
}

/// Adds the differences between two JSON values, leaf by leaf.
fn values(all: &mut Vec<Difference>, what: &str, a: &Value, b: &Value) {
    if a == b {
        return;
    }
    if let (Value::Object(left), Value::Object(right)) = (a, b) {
        let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let path = if what.is_empty() { name.clone() } else { format!("{what} {name}") };
            let get = |map: &serde_json::Map<String, Value>| map.get(name).cloned().unwrap_or(Value::Null);
            values(all, &path, &get(left), &get(right));
        }
        return;
    }
    let what = if what.is_empty() { "environment" } else { what };
    // An unknown value is not known to differ.
    let grave = what == GENERATORS || GRAVE.contains(&what) && !a.is_null() && !b.is_null();
    all.push(Difference { what: what.to_owned(), a: show(a), b: show(b), grave });
}

fn show(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(_) => "known".to_owned(),
        other => other.to_string(),
    }
}

fn experiment(all: &mut Vec<Difference>, a: &Shared, b: &Shared) {
    let name = &a.name;
    let mut add = |what: String, a: String, b: String, grave: bool| {
        if a != b {
            all.push(Difference { what: format!("{name} {what}"), a, b, grave });
        }
    };
    let form = |e: &Shared| format!("{:?}", e.form).to_lowercase();
    for (what, seconds) in [
        ("warmup_s", (|t| t.warmup_s) as fn(&crate::observation::Timing) -> f64),
        ("measure_s", |t| t.measure_s),
        ("timeout_s", |t| t.timeout_s),
    ] {
        add(what.to_owned(), seconds(&a.timing).to_string(), seconds(&b.timing).to_string(), true);
    }
    let base = |e: &Shared| e.base.as_ref().map_or("-".to_owned(), |base| base.command.clone());
    add("base".to_owned(), base(a), base(b), true);
    let duets = |e: &Shared| e.duets.as_ref().is_some_and(|duets| duets.count).to_string();
    add("duets".to_owned(), duets(a), duets(b), true);
    add("form".to_owned(), form(a), form(b), false);
    for (system, version) in &a.versions {
        if let Some(other) = b.versions.get(system) {
            add(format!("version of {system}"), version.clone(), other.clone(), false);
        }
    }
}
