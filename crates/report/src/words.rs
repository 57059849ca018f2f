//! Findings in English: the one place that has sentences. Claims and why there is none, the counts that explain them, verdicts.
//!
//! Knows what is claimed, and computes none of it: the order, the numbers and what is said at all are those of `lab::findings`;
//! how a number looks is [`crate::number`]'s to know. Every form shows the same sentences.

mod claims;
mod verdicts;

pub use claims::{answer, headlines};
pub(crate) use verdicts::{NO_FLOOR, compared, tables, verdict};

#[cfg(test)]
mod tests;
