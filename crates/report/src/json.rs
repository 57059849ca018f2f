//! Findings as JSON, for programs: raw numbers, and for each form a schema number that changes when a field does.

use lab::compare::RunComparison;
use lab::findings::{ExperimentFindings, Findings, Silence};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::words::{Advice, Caption, advice, caption, caption_beside, headlines};

/// The version of a report's form.
pub const SCHEMA: u32 = 6;
/// The version of a comparison's form.
pub const COMPARISON_SCHEMA: u32 = 3;

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
    experiments: Vec<Section<'a>>,
}

/// What was found in one experiment, and the sentences that a report has for it.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Experiment")]
struct Section<'a> {
    #[serde(flatten)]
    found: &'a ExperimentFindings,
    /// The claims in words, in their order: the first is the headline.
    headlines: Vec<String>,
    /// Why there is no claim; null where there is one.
    silence: Option<Silence>,
    /// The warnings in words, in their order.
    advice: Vec<Advice>,
    /// The words above and below each of `tables`, in their order.
    captions: Vec<Caption>,
    /// The words above and below each table of `beside`, in their order: what is found again of the published table.
    captions_beside: Vec<Caption>,
}

impl<'a> Section<'a> {
    fn of(found: &'a ExperimentFindings) -> Self {
        let advice = found.warnings.iter().map(advice).collect();
        Self {
            found,
            headlines: headlines(found),
            silence: found.silence(),
            advice,
            captions: found.tables.iter().map(|table| caption(found, table)).collect(),
            captions_beside: found.beside.iter().map(|beside| caption_beside(found, beside)).collect(),
        }
    }
}

/// How two runs, or scenarios of runs, compare. Ratios say how many times faster the second is.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Comparison")]
struct Compared<'a> {
    /// The version of this form: another number wherever a field is removed or means something else.
    #[schemars(extend("const" = COMPARISON_SCHEMA))]
    schema: u32,
    /// All that was found.
    comparison: &'a RunComparison,
}

/// One object: `schema`, `environment`, `experiments`, as docs/schema/report.schema.json describes it.
pub fn json(findings: &Findings, environment: &Value) -> String {
    let experiments = findings.experiments.iter().map(Section::of).collect();
    pretty(&Document { schema: SCHEMA, environment, experiments })
}

/// One object: `schema`, `comparison`, as docs/schema/comparison.schema.json describes it.
pub fn comparison_json(found: &RunComparison) -> String {
    pretty(&Compared { schema: COMPARISON_SCHEMA, comparison: found })
}

fn pretty(document: &impl Serialize) -> String {
    // Only a map whose keys are no strings could fail, and there is none.
    let text = serde_json::to_string_pretty(document).unwrap_or_default();
    format!("{text}\n")
}

/// The JSON Schemas (draft 2020-12) of [`json`] and [`comparison_json`], by the names of the files in docs/schema.
pub fn schemas() -> [(&'static str, String); 2] {
    let text = |schema: schemars::Schema| format!("{:#}\n", schema.to_value());
    [
        ("report.schema.json", text(schemars::schema_for!(Document))),
        ("comparison.schema.json", text(schemars::schema_for!(Compared))),
    ]
}
