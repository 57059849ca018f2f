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
    /// Both, with their figures.
    pub text: String,
}

impl Shape {
    /// As today's rounds decide it; where they do not, its sentence says so.
    pub fn decided(agrees: Option<bool>, mut text: String) -> Self {
        if agrees.is_none() {
            text.push_str("; these rounds do not decide it");
        }
        Self { agrees, text }
    }

    /// The sentence with its verdict.
    pub fn sentence(&self) -> String {
        match self.agrees {
            Some(true) => format!("agrees: {}", self.text),
            Some(false) => format!("differs: {}", self.text),
            None => format!("open: {}", self.text),
        }
    }
}
