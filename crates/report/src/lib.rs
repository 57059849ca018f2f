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
pub use crate::words::{Advice, advice, advice_on_trial, alone, answer, headlines, unjudged};

use lab::findings::{Cell, Column};

use crate::number::show;

/// A cell as people read it.
fn cell(column: &Column, cell: &Cell) -> String {
    match (cell, column.unit) {
        (Cell::Number(number), Some(unit)) => show(*number, unit),
        (Cell::Number(number), None) => number.to_string(),
        (Cell::Agree(agree), _) => agreement(*agree).to_owned(),
        (Cell::Text(word), _) => printable(word),
        (Cell::Empty, _) => "-".to_owned(),
    }
}

/// Whether two counts agree. It catches the eye where they do not.
fn agreement(agree: bool) -> &'static str {
    if agree { "agree" } else { "DISAGREE" }
}

/// Text from files and programs under test without what could move a terminal's cursor.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod made_up;
#[cfg(test)]
mod tests;
