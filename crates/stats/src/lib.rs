//! Pure statistics, from samples to estimates to verdicts, and random numbers that a recorded seed reproduces forever.
//!
//! Knows only numbers: no I/O, no clocks, no units, no trials or systems.

// The samples come from what peers and files say, and may not make this crate panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]

mod between;
mod changes;
mod family;
mod ledger;
mod levels;
mod location;
mod looks;
mod noise;
mod panel;
mod parts;
mod percentile;
mod pooled;
mod rng;
mod sample;
mod student;
mod verdict;

pub use between::{BetweenRuns, FEWEST_RUNS};
pub use changes::{Change, FEWEST_TO_CHANGE, changes};
pub use family::{Family, holm};
pub use ledger::{Attempt, CONFIRMATION_LEVEL, Decision, Ledger, MOST_ATTEMPTS};
pub use levels::{Middle, levels};
pub use location::{Location, difference};
pub use looks::{Design, FEWEST_ROUNDS, LEVEL, LOOKS, LogRatio, USUAL_LOOKS};
pub use noise::{Disturbances, Noise};
pub use panel::{MANY, Panel, PanelRow};
pub use parts::{Counted, PartChange, part_changes};
pub use percentile::{
    Percentile, any_percentile, merge_buckets, percentile_of_buckets, percentile_with_ages, samples_needed,
};
pub use pooled::pseudo_values;
pub use rng::{SplitMix64, shuffle};
pub use sample::{NotASample, Sample, Spread, median, median_ratio};
pub use verdict::{Verdict, outliers};
