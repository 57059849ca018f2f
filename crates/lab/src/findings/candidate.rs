//! What a figure says of the one candidate beside its base: whether to take it.

use serde::{Deserialize, Serialize};
use stats::{Decision, Verdict};

use super::withheld::Withheld;
use super::{By, Comparison, FigureView, Ratio, Rows};

/// How many times too often the tail of a trimmed mean's t is reached. Of 7 to 30 rounds with normal noise, levels of
/// 0.2 to 5 % are reached 1.0 to 1.4 times as often as they say, and most at 11 and 12 rounds; heavy tails are reached
/// less often. An interval of 95 % hardly suffers, but two such tests of each attempt made 5.3 % of an error of 4 %.
const TAIL: f64 = 1.4;

/// What to do with a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// It is certainly better than the base.
    Accept,
    /// It is certainly not better by the threshold: its whole interval lies below.
    Reject,
    /// Neither is certain.
    Inconclusive,
}

/// The candidate of a run with two scenarios, beside the base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate<'a> {
    /// The comparison of the two.
    pub comparison: &'a Comparison,
    /// The position of the base in the estimates.
    pub base: usize,
    /// The position of the candidate.
    pub candidate: usize,
    /// How many times better the candidate is. None if too few rounds have both.
    pub ratio: Option<Ratio>,
    /// The one-sided p-value for "the candidate is better than the base", for a run that is examined once. It is
    /// half of the comparison's own, which the rounds' log-ratios (or those of duets) give as they give the
    /// interval, times [`TAIL`]; or 1 less that half if the candidate looks worse.
    ///
    /// It is valid at levels up to 5 %, because the run is examined at one time that does not depend on the figures,
    /// and because noise favours both sides alike (docs/statistics.md), so that half of the two-sided error is on
    /// either side. What windows and drifts leave open was taken off the estimate. A ratio that denies its interval
    /// counts as 1, and so does a difference that is certainly below the threshold.
    pub p: f64,
}

impl Candidate<'_> {
    /// What the comparison by itself says.
    pub fn choice(&self, threshold: f64) -> Choice {
        let better = match self.comparison.verdict {
            Verdict::Faster => self.comparison.scenario == self.candidate,
            Verdict::Slower => self.comparison.scenario == self.base,
            Verdict::NoDifference | Verdict::Undecided { .. } => false,
        };
        if better { Choice::Accept } else { self.unless_worth(threshold) }
    }

    /// What to do after such a decision about the attempt.
    pub fn after(&self, decision: Decision, threshold: f64) -> Choice {
        match decision {
            Decision::Accept => Choice::Accept,
            Decision::Reject | Decision::Unconfirmed => self.unless_worth(threshold),
        }
    }

    fn unless_worth(&self, threshold: f64) -> Choice {
        let denied = self.comparison.withheld.is_some_and(Withheld::denies_the_interval);
        match self.ratio.filter(|_| !denied) {
            Some(ratio) if ratio.high < 1.0 + threshold => Choice::Reject,
            _ => Choice::Inconclusive,
        }
    }
}

impl<'a> FigureView<'a> {
    /// The candidate. None unless the experiment sets one system beside its base, and nothing else.
    pub fn candidate(&self) -> Option<Candidate<'a>> {
        let [comparison] = self.comparisons else { return None };
        if comparison.by != By::System || self.base.is_none() {
            return None;
        }
        let Comparison { scenario, against, .. } = *comparison;
        let first = self.is_beside_base(comparison);
        let (candidate, base) = if first { (scenario, against) } else { (against, scenario) };
        let ratio = comparison.ratio.map(|ratio| if first { ratio } else { ratio.inverse() });
        let cold = |at: usize| self.estimates.get(at).is_none_or(|e| e.warmth.compiling);
        let held_back = self.estimates.get(base).is_none_or(|e| e.is_lower_bound());
        let is_small = comparison.verdict == Verdict::NoDifference;
        let known = comparison.known().is_some() && !(cold(base) || cold(candidate) || held_back || is_small);
        let p = match (ratio, comparison.p) {
            (Some(ratio), Some(p)) if known && ratio.estimate > 1.0 => (p / 2.0 * TAIL).min(1.0),
            (Some(_), Some(p)) if known => 1.0 - p / 2.0,
            _ => 1.0,
        };
        Some(Candidate { comparison, base, candidate, ratio, p })
    }

    /// How many more rounds may decide about a candidate: as the comparison says or, with the level of a
    /// ledger, until that is reached. None if no number would, or if it is decided.
    pub fn rounds_to_decide(&self, of: &Candidate<'_>, level: Option<f64>) -> Option<u32> {
        match (of.comparison.verdict, level) {
            (Verdict::Undecided { more_rounds: None }, _) => None,
            (Verdict::Undecided { more_rounds }, None) => more_rounds,
            (_, None) => None,
            (_, Some(level)) => {
                let seen = Rows::of(self).ratio(of.candidate, of.base)?;
                Some(seen.more_rounds(self.threshold.ln_1p(), level))
            }
        }
    }
}

#[cfg(test)]
mod tests;
