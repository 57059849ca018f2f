//! Pure statistics: samples to estimates, and the random numbers that a recorded seed must replay for ever.
//!
//! Knows numbers only: no I/O, no clocks, no units, no idea of what a trial or a system is.

mod percentile;
mod rng;
mod sample;

pub use percentile::{merge_buckets, percentile_of_buckets, samples_needed};
pub use rng::{SplitMix64, shuffle};
pub use sample::{NotASample, Sample, Spread, median, median_ratio};
