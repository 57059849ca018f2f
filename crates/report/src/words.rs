//! Findings in English: the one place that has sentences. Claims and the counts that explain them, why there is none, verdicts,
//! warnings with their remedies, and what two runs differ in.
//!
//! Knows what is claimed, and computes none of it: the order, the numbers and what is said at all are those of `lab::findings`;
//! how a number looks is [`crate::number`]'s to know. Every form shows the same sentences.

mod beside;
mod claims;
mod doubts;
pub(crate) mod published;
mod runs;
mod tables;
mod verdicts;
mod warnings;

pub(crate) use beside::{beside, caption as caption_beside};
pub use claims::{answer, headlines};
pub use runs::{alone, unjudged};
pub(crate) use runs::{difference, floor, machine, without_counterpart};
pub(crate) use tables::{Caption, Captioned, caption, tables};
pub(crate) use verdicts::{NO_FLOOR, compared, verdict};
pub use warnings::{Advice, advice, advice_on_trial};
pub(crate) use warnings::{notes, outlier};

#[cfg(test)]
mod published_tests;
#[cfg(test)]
mod tests;
