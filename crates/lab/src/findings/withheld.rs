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
    /// The speed still changed inside the windows, and how far it has to go could change the verdict.
    Drift,
    /// The rate of the open loop is near what one of the two can do at all, or arrivals were sent late.
    Overdriven,
}

impl Withheld {
    /// Whether the interval says nothing of the truth. Otherwise it does, and only the verdict is open.
    pub fn denies_the_interval(self) -> bool {
        match self {
            Self::LowerBound | Self::Overdriven => true,
            Self::OtherBuild | Self::ShortWindow | Self::Drift => false,
        }
    }
}

/// How far a speed that still changes may have to go, as so many times what it changed by from half to half of the windows. An
/// exponential approach over four times the length of the window has still that far to go. A JVM compiles in stages, and one that
/// gained 7 % had still a factor of 3 to go, which is more: seen as a bound on both sides of a ratio, it is covered.
const TO_GO: f64 = 8.0;

/// By how much the logarithm of a figure may still change, if the speed drifts by so much. A drift of less than half the threshold
/// does not matter.
pub(super) fn to_go(drift: Option<f64>, threshold: f64) -> f64 {
    drift.map(f64::abs).filter(|drift| *drift > threshold / 2.0).map_or(0.0, |drift| TO_GO * drift)
}

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
    // A comparison is of two scenarios, and a false alarm of either would withhold its verdict.
    let (low, high) = location.within(median(off).unwrap_or(0.0)).interval(LEVEL / 2.0);
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
            let why = if a.to_go + b.to_go > 0.0 { Withheld::Drift } else { Withheld::ShortWindow };
            return is_left_open(seen, threshold).then_some(why);
        }
    };
    held_back.then_some(Withheld::LowerBound)
}

/// Whether the interval would give a verdict if the edges of windows and drifts left nothing open.
fn is_left_open(seen: &LogRatio, threshold: f64) -> bool {
    let bound = seen.location.bound;
    let exact = LogRatio {
        location: seen.location.within(0.0),
        low: seen.low + bound,
        high: seen.high - bound,
        ..*seen
    };
    bound > 0.0 && exact.verdict(threshold, exact.location.p()).is_decided()
}
