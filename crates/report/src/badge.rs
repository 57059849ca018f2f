//! A badge of shields.io: the JSON that its endpoint reads (<https://shields.io/badges/endpoint-badge>).

use lab::findings::FigureView;
use lab::quoted::Quoted;
use serde_json::json;

use crate::words::{answer, quoted};

/// The first claim of a figure as a badge. One that is undecided is grey, so that a badge never keeps what was true once.
///
/// # Errors
/// Why there is no ratio, in words that follow the name of the run.
pub fn badge(e: &FigureView<'_>) -> Result<String, String> {
    let claim = Quoted::of(e).ok_or_else(|| format!("there is no ratio for a badge: {}", answer(e)))?;
    let [label, message, color] = quoted::badge(e, &claim);
    Ok(format!("{:#}\n", json!({ "schemaVersion": 1, "label": label, "message": message, "color": color })))
}
