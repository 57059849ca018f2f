//! Why a comparison has no verdict although its interval would give one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{FEWEST_ROUNDS, LEVEL, Location, LogRatio, Verdict, median};

use super::Estimate;
use crate::figures::callers_apart;
use crate::observation::Measurement;

/// Why a comparison is undecided for another reason than too few rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Withheld {
    /// The generator held one of the two back: the figure of that scenario is a lower bound.
    LowerBound,
    /// Other builds of the same systems give another verdict.
    OtherBuild,
    /// The windows have so few answers that those at their edges could change the verdict.
    ShortWindow,
    /// The speed still changed inside the windows.
    Drift,
    /// The rate of the open loop is near what one of the two can do at all, or arrivals were sent late.
    Overdriven,
}

impl Withheld {
    /// Whether the interval says nothing of the truth. Otherwise it does, and only the verdict is open.
    pub fn denies_the_interval(self) -> bool {
        match self {
            Self::LowerBound | Self::Drift | Self::Overdriven => true,
            Self::OtherBuild | Self::ShortWindow => false,
        }
    }
}

/// A drift matters unless the ratio is clear of so many times the drift. A speed that approaches its limit exponentially, over
/// three times the length of the window, has still that far to go.
const TO_GO: f64 = 6.0;

/// By how much the logarithm of the speed changed from the first half of the windows to the second. None if the trials
/// together do not show that it did: the interval of their mean, widened by what the halves' edges leave open, contains zero.
pub(super) fn drift<'a>(trials: impl Iterator<Item = &'a Measurement> + Clone) -> Option<f64> {
    let changes = trials.clone().filter_map(|m| {
        let (first, second) = m.tenths.split_at(m.tenths.len() / 2);
        let count = |half: &[u64]| half.iter().sum::<u64>() as f64;
        Some((count(second) / count(first)).ln()).filter(|change| change.is_finite())
    });
    // Each half may have one answer more or less of each caller.
    let off = trials.map(|m| 4.0 * callers_apart(m) / (m.successes as f64).max(1.0));
    let changes: Vec<f64> = changes.collect();
    let location = Location::of(&changes).filter(|_| changes.len() >= FEWEST_ROUNDS)?;
    let (low, high) = location.within(median(off).unwrap_or(0.0)).interval(LEVEL);
    (low > 0.0 || high < 0.0).then_some(location.estimate)
}

/// Whether what the interval says is withheld from the reader, and why.
pub(super) fn withheld(
    verdict: Verdict,
    seen: &LogRatio,
    threshold: f64,
    (a, b): (&Estimate, &Estimate),
) -> Option<Withheld> {
    // A lower bound may be better than it looks, so it can be neither slower nor equal.
    let held_back = match verdict {
        Verdict::Slower => a.is_lower_bound(),
        Verdict::Faster => b.is_lower_bound(),
        Verdict::NoDifference => a.is_lower_bound() || b.is_lower_bound(),
        Verdict::Undecided { .. } => {
            return is_short(seen, threshold).then_some(Withheld::ShortWindow);
        }
    };
    let change = a.drift.unwrap_or(0.0).abs() + b.drift.unwrap_or(0.0).abs();
    let clear = seen.low.max(-seen.high).max(0.0);
    if held_back {
        Some(Withheld::LowerBound)
    } else {
        (change > threshold && clear < TO_GO * change).then_some(Withheld::Drift)
    }
}

/// Whether the interval would give a verdict if the edges of windows left nothing open.
fn is_short(seen: &LogRatio, threshold: f64) -> bool {
    let bound = seen.location.bound;
    let exact = LogRatio {
        location: seen.location.within(0.0),
        low: seen.low + bound,
        high: seen.high - bound,
        ..*seen
    };
    bound > 0.0 && exact.verdict(threshold, exact.location.p()).is_decided()
}
