//! Puts findings into English. All sentences are here: claims and the counts that explain them, verdicts, warnings with
//! their remedies, published tables, and the differences between two runs.
//!
//! Computes nothing: `lab::findings` decides what is said, in which order, and with which numbers. [`crate::number`] formats
//! the numbers. Every format shows the same sentences.

mod answer;
mod beside;
mod caption;
mod cases;
mod claims;
mod conditions;
mod doubts;
mod duets;
mod functions;
mod generators;
mod missing;
mod more_cpu;
mod options;
mod per_connection;
pub(crate) mod published;
pub(crate) mod quoted;
mod reasons;
mod runs;
mod tables;
pub(crate) mod tuned;
mod verdicts;
mod warnings;

pub use answer::{answer, headlines};
pub(crate) use answer::{answer_and_reason, capital, first_line, second};
pub(crate) use beside::{beside, beside_in_a_line, caption as caption_beside};
pub(crate) use caption::{Caption, Captioned};
pub use cases::{Case, Grade, Judgement};
pub(crate) use claims::{list, quantity};
pub use conditions::{SUITE, condition, gated};
pub(crate) use duets::duets;
pub use functions::ComparedFunctions;
pub(crate) use functions::functions;
pub use generators::way;
pub(crate) use generators::{generators, generators_in_a_line};
pub use options::Asked;
pub(crate) use per_connection::per_connection;
pub use quoted::standing;
pub use runs::{alone, few_runs, unjudged};
pub(crate) use runs::{between_runs, difference, left_out, machine, without_counterpart};
pub(crate) use tables::{caption, equal_work, fixed, tables};
pub(crate) use verdicts::{compared, noise, verdict};
pub use warnings::{Advice, advice, advice_on_trial};
pub(crate) use warnings::{notes, outlier};

#[cfg(test)]
mod published_tests;
#[cfg(test)]
mod tests;
