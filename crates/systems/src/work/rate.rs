//! The schedule of an open loop. Pure.

use serde::{Deserialize, Serialize};

use super::about::Words;

/// The arrivals of an open loop, which follow a schedule that knows nothing of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rate {
    /// Arrivals a second, above zero.
    pub per_s: u64,
    /// Exponential gaps, as independent users make them; otherwise all are alike.
    pub poisson: bool,
}

impl Rate {
    /// As the knobs `rate` and `gaps` say; `None` of a closed loop.
    pub(super) fn read(words: &Words) -> Result<Option<Self>, String> {
        let (per_s, poisson) = (words.number("rate")?, words.says("gaps", "poisson")?);
        Ok((per_s > 0).then_some(Self { per_s, poisson }))
    }
}
