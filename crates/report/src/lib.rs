//! Reports: findings as text, Markdown, HTML, JSON and CSV, verdicts for continuous integration (GitHub, JUnit, Bencher)
//! and for programs that try candidates, latencies as HdrHistogram logs, and claims that are quoted in Markdown files and badges.
//!
//! [`number`] formats numbers, and `words` has the sentences. This crate computes nothing: it shows what
//! `lab::findings` has found. Only `flame` adds up the stacks of profiles. Every format shows all findings,
//! except that CSV has only the tables, and those for continuous integration have only verdicts or figures.

// What a peer, a file or a user sends reaches this crate, and may not make it panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]

mod badge;
mod bencher;
mod brief;
mod compare;
mod csv;
pub mod date;
mod flame;
mod github;
mod history;
mod hlog;
mod html;
mod json;
mod junit;
mod markdown;
pub mod number;
mod parts;
pub mod published;
mod quote;
mod svg;
mod text;
mod verdict;
mod words;

pub use crate::badge::badge;
pub use crate::bencher::bencher;
pub use crate::brief::{answers, brief, verdicts};
pub use crate::compare::{comparison_markdown, comparison_text};
pub use crate::csv::csv;
pub use crate::flame::Arm;
pub use crate::github::github;
pub use crate::history::{history_csv, history_html, history_json, history_otava, history_text};
pub use crate::hlog::{Interval, hlog};
pub use crate::html::{Run, flame_graph, html};
#[cfg(feature = "schema")]
pub use crate::json::schemas;
pub use crate::json::{COMPARISON_SCHEMA, SCHEMA, comparison_json, json};
pub use crate::junit::junit;
pub use crate::markdown::markdown;
pub use crate::quote::{Damaged, Quote, block, is_name, markers, quotes, replaced};
pub use crate::text::{functions_text, text};
pub use crate::verdict::{Entry, VERDICT_SCHEMA, Verdict, ledger_words, verdict_json};
pub use crate::words::{
    Advice, Asked, Case, ComparedFunctions, Grade, Judgement, SUITE, advice, advice_on_trial, alone, answer,
    condition, few_runs, gated, headlines, standing, unjudged, way,
};

use lab::findings::{Cell, Column};
use printable::printable;

use crate::number::show;

/// Formats a cell.
fn cell(column: &Column, cell: &Cell) -> String {
    match (cell, column.unit) {
        (Cell::Number(number), Some(unit)) => show(*number, unit),
        (Cell::Number(number), None) => number.to_string(),
        (Cell::AtLeast { at_least }, Some(unit)) => format!(">{}", show(*at_least, unit)),
        (Cell::AtLeast { at_least }, None) => format!(">{at_least}"),
        (Cell::Agree(agree), _) => agreement(*agree).to_owned(),
        (Cell::Text(word), _) => printable(word),
        (Cell::Empty, _) => "-".to_owned(),
    }
}

/// Whether two counts agree, in capitals if they do not.
fn agreement(agree: bool) -> &'static str {
    if agree { "agree" } else { "DISAGREE" }
}

#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod made_up;
#[cfg(test)]
mod tests;
