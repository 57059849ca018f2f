//! What others published, beside a run: data that the crate `published` makes and `report` shows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::table::Table;

/// What a run says to the published figures.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Beside {
    /// The published table's name.
    pub published: String,
    /// The document.
    pub source: String,
    /// Each shape that the document shows, and whether it is found again.
    pub shapes: Vec<Shape>,
    /// What stood otherwise than in the document, and what of it did not run.
    pub differences: Vec<String>,
    /// Both figures of each row, as ratios; its notes are the sentences of `shapes` and `differences`.
    pub table: Table,
}

/// One shape, then and today.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Shape {
    /// Whether the shape is the same; None where it cannot be said.
    pub agrees: Option<bool>,
    /// Both in words, with their figures: the crate `published` has them.
    pub text: String,
}
