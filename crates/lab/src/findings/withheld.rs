//! Why a comparison has no verdict although its interval would give one; and whether systems were warm.

use measurement::{COMPILING, Measurement};
use serde::{Deserialize, Serialize};
use stats::{FEWEST_ROUNDS, LEVEL, Location, LogRatio, Verdict, median};

use super::Estimate;

/// Why a comparison is undecided for another reason than too few rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Compilers still worked in the windows, as those of a JVM do until it is warm.
    Compiling,
    /// The rate of the open loop is near what one of the two can do at all, or arrivals were sent late.
    Overdriven,
}

impl Withheld {
    /// Whether the interval says nothing of the truth. Otherwise it does, and only the verdict is open.
    pub fn denies_the_interval(self) -> bool {
        match self {
            Self::LowerBound | Self::Compiling | Self::Overdriven => true,
            Self::OtherBuild | Self::ShortWindow | Self::Drift => false,
        }
    }
}

/// How far a speed that still changes may have to go, as so many times what it changed by from half to half of the windows. An
/// exponential approach over four times the length of the window has still that far to go. A JVM compiles in stages, and one that
/// gained 7 % had still a factor of 3 to go, which is more: seen as a bound on both sides of a ratio, it is covered.
const TO_GO: f64 = 8.0;

/// Whether a system was warm in the windows, which a warm-up had preceded. A schedule that sets the speed hides how it changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warmth {
    /// By how much the logarithm of the speed changed from the first half of the windows to the second. None if the trials
    /// together do not show it, and without a warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<f64>,
    /// By how much the logarithm of the figure may still change because of that drift. 0 if the drift does not matter.
    #[serde(default)]
    pub to_go: f64,
    /// Whether compilers still worked in the windows, so that the figure is that of a cold machine.
    #[serde(default)]
    pub compiling: bool,
}

impl Warmth {
    /// What all trials of a scenario show, and those of them in which callers set the speed. A drift of less than half the
    /// threshold, which is a logarithm, does not matter.
    pub(super) fn of<'a>(
        all: impl Iterator<Item = &'a Measurement>,
        paced_by_callers: impl Iterator<Item = &'a Measurement> + Clone,
        threshold: f64,
    ) -> Self {
        let drift = drift(paced_by_callers);
        let matters = drift.map(f64::abs).filter(|drift| *drift > threshold / 2.0);
        // In half of the trials or more.
        let share = median(all.filter_map(|m| m.system.compiling_share()));
        Self {
            drift,
            to_go: matters.map_or(0.0, |drift| TO_GO * drift),
            compiling: share.is_some_and(|share| share > COMPILING),
        }
    }
}

/// By how much the logarithm of the speed changed from the first half of the windows to the second. None if the trials
/// together do not show that it did: the interval of their mean, widened by what whole answers leave open, contains zero.
fn drift<'a>(trials: impl Iterator<Item = &'a Measurement> + Clone) -> Option<f64> {
    let changes = trials.clone().filter_map(|m| {
        let (first, second) = m.tenths.split_at(m.tenths.len() / 2);
        let count = |half: &[u64]| half.iter().sum::<u64>() as f64;
        Some((count(second) / count(first)).ln()).filter(|change| change.is_finite())
    });
    let off = trials.map(whole_answers);
    let changes: Vec<f64> = changes.collect();
    let location = Location::of(&changes).filter(|_| changes.len() >= FEWEST_ROUNDS)?;
    // A comparison is of two scenarios, and a false alarm of either would withhold its verdict.
    let (low, high) = location.within(median(off).unwrap_or(0.0)).interval(LEVEL / 2.0);
    (low > 0.0 || high < 0.0).then_some(location.estimate)
}

/// By how much the logarithm of the speed may seem to change although it does not, because each half has whole answers.
///
/// Two halves hold as many answers of a caller whose answers take equally long, or one more or less. All callers may have the one
/// more in the same half, and in each trial in the same: their answers keep the distances with which they began. A half of `n / 2`
/// then has `c / 2` more and the other as many less, whose ratio is that of `n + c` and `n - c`. One answer more is allowed, because
/// answers do not take exactly equally long.
fn whole_answers(m: &Measurement) -> f64 {
    let share = (m.concurrency as f64 + 1.0) / (m.successes as f64).max(1.0);
    if share < 1.0 { 2.0 * share.atanh() } else { f64::INFINITY }
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
            let why =
                if a.warmth.to_go + b.warmth.to_go > 0.0 { Withheld::Drift } else { Withheld::ShortWindow };
            return is_left_open(seen, threshold).then_some(why);
        }
    };
    if a.warmth.compiling || b.warmth.compiling {
        return Some(Withheld::Compiling);
    }
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
