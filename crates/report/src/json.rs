//! Findings as JSON, for programs. Numbers are raw, and each document has a schema version.

use lab::compare::RunComparison;
use lab::findings::{ExperimentFindings, FigureFindings, FigureView, Findings, Gate, Shared, Silence};
use serde::Serialize;
use serde_json::Value;

use crate::words::{Advice, Asked, Caption, advice, caption, caption_beside, headlines};

/// The schema version of a report.
pub const SCHEMA: u32 = 10;
/// The schema version of a comparison.
pub const COMPARISON_SCHEMA: u32 = 5;

/// The findings of a run. Numbers are raw, and a table's columns have their units.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Report"))]
struct Document<'a> {
    /// The schema version. It changes if a field is removed or changes its meaning.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: u32,
    /// The kernel, CPU, limits and versions that were saved with the run.
    environment: &'a Value,
    /// The experiments, in the order in which they ran.
    experiments: Vec<Section<'a>>,
    /// The conditions of `--fail-if`. Missing if there are none.
    #[serde(default, skip_serializing_if = "<[Gate]>::is_empty")]
    gates: &'a [Gate],
}

/// The findings of one experiment.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Experiment"))]
struct Section<'a> {
    #[serde(flatten)]
    shared: &'a Shared,
    /// What each of its figures says, the first in front. A search has its first only.
    figures: Vec<OfFigure<'a>>,
}

/// What one figure of an experiment says, and the sentences of its report.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ExperimentFigure"))]
struct OfFigure<'a> {
    #[serde(flatten)]
    found: &'a FigureFindings,
    /// The claims in words, in the same order. The first is the headline. Of a search: its answer, and what stands below it.
    headlines: Vec<String>,
    /// Why there is no claim. Null if there is one, and if a search has the answer.
    silence: Option<Silence>,
    /// The warnings in words, in the same order.
    advice: Vec<Advice>,
    /// The words above and below each of `tables`, in their order.
    captions: Vec<Caption>,
    /// The words above and below each table of `beside`, in their order: what is found again of the published table.
    captions_beside: Vec<Caption>,
}

impl<'a> Section<'a> {
    fn of(found: &'a ExperimentFindings) -> Self {
        let figures = found.figures.iter().zip(found.views()).map(|(found, e)| OfFigure::of(found, &e));
        Self { shared: &found.shared, figures: figures.collect() }
    }
}

impl<'a> OfFigure<'a> {
    fn of(found: &'a FigureFindings, e: &FigureView<'_>) -> Self {
        Self {
            found,
            headlines: headlines(e),
            silence: e.silence(),
            advice: e.warnings.iter().map(|warning| advice(warning, Asked::of(e))).collect(),
            captions: e.tables.iter().map(|table| caption(e, table)).collect(),
            captions_beside: e.beside.iter().map(|beside| caption_beside(e, beside)).collect(),
        }
    }
}

/// A comparison of two runs, or of scenarios of runs. Ratios say how many times faster the second is.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Comparison"))]
struct Compared<'a> {
    /// The schema version. It changes if a field is removed or changes its meaning.
    #[cfg_attr(feature = "schema", schemars(extend("const" = COMPARISON_SCHEMA)))]
    schema: u32,
    /// The comparison.
    comparison: &'a RunComparison,
}

/// An object with `schema`, `environment` and `experiments`, as described by docs/schema/report.schema.json.
pub fn json(findings: &Findings, environment: &Value) -> String {
    let experiments = findings.experiments.iter().map(Section::of).collect();
    pretty(&Document { schema: SCHEMA, environment, experiments, gates: &findings.gates })
}

/// An object with `schema` and `comparison`, as described by docs/schema/comparison.schema.json.
pub fn comparison_json(found: &RunComparison) -> String {
    pretty(&Compared { schema: COMPARISON_SCHEMA, comparison: found })
}

pub(crate) fn pretty(document: &impl Serialize) -> String {
    // Only a map with keys that are not strings could fail, and there is none.
    let text = serde_json::to_string_pretty(document).unwrap_or_default();
    format!("{text}\n")
}

/// The JSON Schemas (draft 2020-12) of [`json`], [`comparison_json`], [`verdict_json`](crate::verdict_json) and
/// [`history_json`](crate::history_json), and that of the ledger of `narrows try`, by the names of the files in docs/schema.
#[cfg(feature = "schema")]
pub fn schemas() -> [(&'static str, String); 5] {
    let text = |schema: schemars::Schema| format!("{:#}\n", schema.to_value());
    [
        ("report.schema.json", text(schemars::schema_for!(Document))),
        ("comparison.schema.json", text(schemars::schema_for!(Compared))),
        ("verdict.schema.json", text(crate::verdict::schema())),
        ("history.schema.json", text(crate::history::schema())),
        ("ledger.schema.json", text(schemars::schema_for!(lab::ledger::Ledger))),
    ]
}
