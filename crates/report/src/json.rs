//! Findings as JSON, for programs: raw numbers, and a schema number that changes when a field does.

use lab::compare::RunComparison;
use lab::findings::Findings;
use serde_json::{Value, json};

/// The version of the JSON's form.
pub const SCHEMA: u32 = 2;

/// One object: `schema`, `environment` as it was saved with the run, `experiments`. Numbers are raw; a table's columns say
/// their units.
pub fn json(findings: &Findings, environment: &Value) -> String {
    let value = json!({ "schema": SCHEMA, "environment": environment, "experiments": findings.experiments });
    format!("{value:#}\n")
}

/// A comparison as one object.
pub fn comparison_json(found: &RunComparison) -> String {
    let value = json!({ "schema": SCHEMA, "comparison": found });
    format!("{value:#}\n")
}
