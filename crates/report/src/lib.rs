//! Reports: findings for the terminal, as Markdown, JSON and CSV; latencies as HdrHistogram logs.
//!
//! Knows findings and how people read numbers. Computes nothing: what is shown was found by `lab::findings`; nothing
//! that was found is left out, except that CSV has the tables only.

mod csv;
mod hlog;
mod json;
mod markdown;
mod number;
pub mod published;
mod text;

pub use crate::csv::csv;
pub use crate::hlog::{Interval, hlog};
pub use crate::json::{SCHEMA, json};
pub use crate::markdown::markdown;
pub use crate::number::show;
pub use crate::text::text;

use lab::findings::{Cell, Column};

/// A cell as people read it.
fn cell(column: &Column, cell: &Cell) -> String {
    match (cell, column.unit) {
        (Cell::Number(number), Some(unit)) => show(*number, unit),
        (Cell::Number(number), None) => number.to_string(),
        (Cell::Text(word), _) => printable(word),
        (Cell::Empty, _) => "-".to_owned(),
    }
}

/// Text from files and programs under test without what could move a terminal's cursor.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests;
