//! A claim that is quoted outside the store, in a README: which scenarios it sets beside each other, and by how much they differed.
//! Later findings say whether it is still true. Pure.

use serde::{Deserialize, Serialize};
use stats::Verdict;

use crate::experiment::Figure;
use crate::findings::{By, Claim, Comparison, FigureView, Findings, Ratio};
use crate::observation::Scenario;

/// What a quoted claim says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quoted {
    /// The figure.
    pub figure: Figure,
    /// What differs between the two scenarios.
    pub by: By,
    /// The scenario that is compared. It names the experiment.
    pub scenario: Scenario,
    /// The scenario that it is compared with.
    pub against: Scenario,
    /// How many times better the first is than the second, with the interval of the claim.
    pub ratio: Ratio,
    /// The verdict on the first.
    pub verdict: Verdict,
}

/// How a quoted claim stands beside the findings of a later run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing {
    /// The later run says the same.
    Holds(Ratio),
    /// The intervals have something in common, but the later run is undecided.
    Open(Ratio),
    /// The intervals have nothing in common, or the verdict is another one.
    Fails(Ratio),
    /// The later run has no ratio of the two scenarios.
    Unjudged,
}

impl Quoted {
    /// The first claim of a figure. None if it has none about a ratio, and of a search.
    ///
    /// That there is no difference is a claim about several ratios. It is quoted with the one that is farthest from 1.
    pub fn of(e: &FigureView<'_>) -> Option<Self> {
        let comparison = match e.claims.first().filter(|_| e.tuned.is_none())? {
            Claim::Knob { comparison, .. }
            | Claim::Cliff { comparison, .. }
            | Claim::Systems { comparison, .. }
            | Claim::Undecided { comparison, .. } => comparison,
            Claim::NoDifference { by, .. } => farthest(e, by)?,
            Claim::DependsOn { .. } | Claim::Unanswered { .. } => return None,
        };
        let scenario = |at: usize| Some(e.estimates.get(at)?.scenario.clone());
        Some(Self {
            figure: e.figure,
            by: comparison.by.clone(),
            scenario: scenario(comparison.scenario)?,
            against: scenario(comparison.against)?,
            ratio: comparison.known()?,
            verdict: comparison.verdict,
        })
    }

    /// Whether its numbers can be those of a claim. What a file says need not be.
    pub fn is_possible(&self) -> bool {
        let Ratio { estimate, low, high } = self.ratio;
        low > 0.0
            && low <= estimate
            && estimate <= high
            && self.scenario.experiment == self.against.experiment
    }

    /// How it stands beside later findings.
    pub fn beside(&self, later: &Findings) -> Standing {
        let mut views = later.views();
        let of_it = |e: &FigureView| e.name == self.scenario.experiment && e.figure == self.figure;
        let Some((e, ratio, verdict)) = views.find(of_it).and_then(|e| {
            let (ratio, verdict) = e.comparisons.iter().find_map(|c| self.seen(&e, c))?;
            Some((e, ratio, verdict))
        }) else {
            return Standing::Unjudged;
        };
        let apart = ratio.high < self.ratio.low || ratio.low > self.ratio.high;
        let other = verdict.is_decided() && self.verdict.is_decided() && verdict != self.verdict;
        match apart || other || self.is_contradicted(&e) {
            true => Standing::Fails(ratio),
            false if self.verdict.is_decided() && !verdict.is_decided() => Standing::Open(ratio),
            false => Standing::Holds(ratio),
        }
    }

    /// What a comparison says of its two scenarios, in its order.
    fn seen(&self, e: &FigureView<'_>, c: &Comparison) -> Option<(Ratio, Verdict)> {
        let (one, other) = (&e.estimates.get(c.scenario)?.scenario, &e.estimates.get(c.against)?.scenario);
        let ratio = c.known()?;
        if (one, other) == (&self.scenario, &self.against) {
            return Some((ratio, c.verdict));
        }
        ((other, one) == (&self.scenario, &self.against)).then(|| (ratio.inverse(), turned(c.verdict)))
    }

    /// Whether another comparison says what the claim excludes: that there is a difference, or that another system is better than the
    /// one that leads.
    fn is_contradicted(&self, e: &FigureView<'_>) -> bool {
        let is_it = |at: usize| e.estimates.get(at).is_some_and(|of| of.scenario == self.scenario);
        e.comparisons.iter().filter(|c| c.by == self.by).any(|c| match (self.verdict, c.verdict) {
            (Verdict::NoDifference, Verdict::Faster | Verdict::Slower) => true,
            (Verdict::Faster, Verdict::Slower) => self.by == By::System && is_it(c.scenario),
            (Verdict::Faster, Verdict::Faster) => self.by == By::System && is_it(c.against),
            _ => false,
        })
    }
}

/// The comparison whose ratio is farthest from 1, of those of the same kind.
fn farthest<'a>(e: &FigureView<'a>, by: &By) -> Option<&'a Comparison> {
    let distance = |c: &Comparison| c.known().map_or(0.0, |ratio| ratio.estimate.ln().abs());
    let known = e.comparisons.iter().filter(|c| c.by == *by && c.known().is_some());
    known.max_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// The verdict on the other of two.
fn turned(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Faster => Verdict::Slower,
        Verdict::Slower => Verdict::Faster,
        other => other,
    }
}
