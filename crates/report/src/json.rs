//! Findings as JSON, for programs: raw numbers, and a schema number that changes when a field does.

use lab::findings::Findings;
use serde_json::json;

/// The version of the JSON's form.
pub const SCHEMA: u32 = 1;

/// One object: `schema`, `experiments`. Numbers are raw; a table's columns say their units.
pub fn json(findings: &Findings) -> String {
    let value = json!({ "schema": SCHEMA, "experiments": findings.experiments });
    format!("{value:#}\n")
}
