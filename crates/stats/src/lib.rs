//! Pure statistics: samples to estimates to verdicts, and the random numbers that a recorded seed must replay for ever.
//!
//! Knows numbers only: no I/O, no clocks, no units, no idea of what a trial or a system is.

mod location;
mod looks;
mod noise;
mod percentile;
mod rng;
mod sample;
mod student;
mod verdict;

pub use location::{Location, difference};
pub use looks::{Compared, Design, FEWEST_ROUNDS, LEVEL, LOOKS, NOMINAL, holm};
pub use noise::{Disturbances, Noise};
pub use percentile::{merge_buckets, percentile_of_buckets, samples_needed};
pub use rng::{SplitMix64, shuffle};
pub use sample::{NotASample, Sample, Spread, median, median_ratio};
pub use verdict::{Bar, Verdict, outliers};
