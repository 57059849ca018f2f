//! Findings as JSON, for programs: raw numbers, and a schema number that changes when a field does.

use lab::compare::RunComparison;
use lab::findings::{ExperimentFindings, Findings};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// The version of the JSON's form.
pub const SCHEMA: u32 = 2;

/// What Narrows found in a run. Numbers are raw; a table's columns say their units.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Report")]
struct Document<'a> {
    /// The version of this form: another number wherever a field is removed or means something else.
    #[schemars(extend("const" = SCHEMA))]
    schema: u32,
    /// Kernel, CPU, limits, versions: whatever was saved with the run.
    environment: &'a Value,
    /// In the order in which they ran.
    experiments: &'a [ExperimentFindings],
}

/// One object: `schema`, `environment`, `experiments`, as docs/schema/report.schema.json describes it.
pub fn json(findings: &Findings, environment: &Value) -> String {
    let document = Document { schema: SCHEMA, environment, experiments: &findings.experiments };
    // Only a map whose keys are no strings could fail, and there is none.
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    format!("{text}\n")
}

/// The JSON Schema (draft 2020-12) of [`json`]: what docs/schema/report.schema.json holds.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Document);
    format!("{:#}\n", schema.to_value())
}

/// A comparison as one object.
pub fn comparison_json(found: &RunComparison) -> String {
    let value = json!({ "schema": SCHEMA, "comparison": found });
    format!("{value:#}\n")
}
