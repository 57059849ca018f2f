//! The schedule of an open loop. Pure.

use serde::{Deserialize, Serialize};

use super::about::KnobReader;

/// The arrivals of an open loop, which follow a schedule that does not depend on answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rate {
    /// Arrivals per second, above zero.
    pub per_s: u64,
    /// Whether gaps are exponential, as those of independent users. Otherwise they are constant.
    pub poisson: bool,
}

impl Rate {
    /// Reads the knobs `rate` and `gaps`. `None` for a closed loop.
    pub(super) fn read(knobs: &KnobReader) -> Result<Option<Self>, String> {
        let (per_s, poisson) = (knobs.number("rate")?, Self::poisson(knobs)?);
        Ok((per_s > 0).then_some(Self { per_s, poisson }))
    }

    /// Reads the knob `gaps`: whether they are exponential.
    pub(super) fn poisson(knobs: &KnobReader) -> Result<bool, String> {
        knobs.is("gaps", "poisson")
    }
}
