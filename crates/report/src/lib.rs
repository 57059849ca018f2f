//! Reports: findings for the terminal, as Markdown, JSON and CSV; latencies as HdrHistogram logs.
//!
//! Knows findings, how people read numbers ([`number`]) and how findings are said (`words`). Computes nothing: what is shown was found by `lab::findings`; nothing
//! that was found is left out, except that CSV has the tables only.

mod compare;
mod csv;
mod hlog;
mod html;
mod json;
mod markdown;
pub mod number;
mod parts;
pub mod published;
mod svg;
mod text;
mod words;

pub use crate::compare::{comparison_markdown, comparison_text};
pub use crate::csv::csv;
pub use crate::hlog::{Interval, hlog};
pub use crate::html::{Run, html};
pub use crate::json::{COMPARISON_SCHEMA, SCHEMA, comparison_json, json, schemas};
pub use crate::markdown::markdown;
pub use crate::text::text;
pub use crate::words::{answer, headlines};

use lab::findings::{Cell, Column, Outlier};

use crate::number::{show, times};

/// A cell as people read it.
fn cell(column: &Column, cell: &Cell) -> String {
    match (cell, column.unit) {
        (Cell::Number(number), Some(unit)) => show(*number, unit),
        (Cell::Number(number), None) => number.to_string(),
        (Cell::Text(word), _) => printable(word),
        (Cell::Empty, _) => "-".to_owned(),
    }
}

/// A trial that lies far from the others, in a line.
fn outlier(outlier: &Outlier) -> String {
    let because = if outlier.because.is_empty() {
        "nothing that was seen explains it".to_owned()
    } else {
        outlier.because.join("; ")
    };
    let Outlier { scenario, round, ratio, .. } = outlier;
    format!(
        "outlier: {scenario} in round {round} was {} as fast as its median, and counts: {because}",
        times(*ratio)
    )
}

/// Text from files and programs under test without what could move a terminal's cursor.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod made_up;
#[cfg(test)]
mod tests;
