//! Claims: what a reader takes away, as values. Each says what a knob does to the figure while the others stand still, as far as
//! it is decided. `report` has the words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{FEWEST_ROUNDS, Verdict};

use super::asked::CLIFF;
use super::reason::{self, Reason};
use super::{By, Comparison, Effect, Estimate, ExperimentFindings, Interaction};
use crate::experiment::grid::Axis;
use crate::plan::Planned;

/// One thing that may be said. Scenarios are positions among the estimates.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "claim", rename_all = "snake_case")]
pub enum Claim {
    /// A value of a knob is faster or slower than what the knob's values are compared with.
    Knob {
        /// What is claimed: its verdict is `faster` or `slower`.
        comparison: Comparison,
        /// Whether the difference is so large that the knob is the narrow place.
        narrow: bool,
        /// Whether the value that it is compared with is the system's default.
        default: bool,
        /// The scenarios at values that cannot be told from the faster one.
        ties: Vec<usize>,
        /// The counts that explain it.
        reasons: Vec<Reason>,
    },
    /// More is lost between two neighbouring values than the additional work explains.
    Cliff {
        /// The deepest fall.
        comparison: Comparison,
        /// The counts that explain it.
        reasons: Vec<Reason>,
    },
    /// One system is faster than another at the same work.
    Systems {
        /// The largest difference: its verdict is `faster` or `slower`.
        comparison: Comparison,
        /// Whether one of the two says that its work is another.
        unequal: bool,
        /// The counts that explain it.
        reasons: Vec<Reason>,
    },
    /// All values of a knob, or all systems, are equal as far as it matters.
    NoDifference {
        /// The knob, or the systems.
        by: By,
        /// The largest difference that is not worth having, as a share.
        threshold: f64,
        /// What the others are compared with.
        against: usize,
        /// Whether that is the system's default.
        default: bool,
    },
    /// Nothing is decided to differ, and something is open.
    Undecided {
        /// The largest ratio of those that are open.
        comparison: Comparison,
        /// Whether the value that it is compared with is the system's default.
        default: bool,
        /// So many comparisons are decided to be no difference ...
        equal: usize,
        /// ... of so many.
        of: usize,
    },
    /// The effect of a knob is not the same at two values of another.
    DependsOn {
        /// The knob.
        knob: String,
        /// On what its effect depends most.
        interaction: Interaction,
    },
}

/// Why there is no claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Silence {
    /// Trials are still to come.
    NotYet,
    /// No system ran but the reference.
    NoSystem,
    /// Every trial of every system failed.
    NothingMeasured,
    /// There is one system at one point.
    OneScenario,
    /// No two scenarios differ in one thing only.
    NothingComparable,
    /// A comparison takes more rounds.
    TooFewRounds,
    /// No comparison has a ratio, because of errors or for want of figures.
    NoRatio,
    /// What was compared is unremarkable.
    NothingStandsOut,
}

/// How much claims that are no difference weigh; what differs weighs the logarithm of its ratio.
const OPEN: f64 = -1.0;
const FLAT: f64 = -2.0;

/// One claim for each knob that varies, and for the systems, the largest effect first; then what is undecided, then what is
/// flat; last, which knob's effect depends on another.
pub(super) fn claims(
    planned: &Planned,
    estimates: &[Estimate],
    comparisons: &[Comparison],
    effects: &[Effect],
) -> Vec<Claim> {
    let page = Page { planned, estimates };
    let mut claims: Vec<(f64, Claim)> = Vec::new();
    for axis in planned.axes.iter().filter(|axis| axis.values.len() > 1) {
        let own = |by: &By| matches!(by, By::Knob(knob) | By::Step(knob) if *knob == axis.knob);
        let of: Vec<&Comparison> = comparisons.iter().filter(|c| own(&c.by)).collect();
        claims.extend(match of.first().map(|c| &c.by) {
            Some(By::Step(_)) => page.cliff(&of),
            Some(_) => page.knob(axis, &of, effects.iter().find(|effect| effect.knob == axis.knob)),
            None => None,
        });
    }
    let of: Vec<&Comparison> = comparisons.iter().filter(|c| c.by == By::System).collect();
    claims.extend(page.systems(&of));
    claims.sort_by(|a, b| b.0.total_cmp(&a.0));
    let depends = effects.iter().filter_map(|effect| {
        let interaction = effect.depends_on.first()?.clone();
        Some(Claim::DependsOn { knob: effect.knob.clone(), interaction })
    });
    claims.into_iter().map(|(_, claim)| claim).chain(depends).collect()
}

impl Claim {
    /// The knob that it is about; None of systems.
    pub fn knob(&self) -> Option<&str> {
        match self {
            Self::Knob { comparison, .. } | Self::Cliff { comparison, .. } => comparison.by.knob(),
            Self::Undecided { comparison, .. } => comparison.by.knob(),
            Self::NoDifference { by, .. } => by.knob(),
            Self::DependsOn { knob, .. } => Some(knob),
            Self::Systems { .. } => None,
        }
    }
}

impl ExperimentFindings {
    /// Why there is no claim; None where there is one.
    pub fn silence(&self) -> Option<Silence> {
        let few = self.comparisons.iter().all(|c| (c.rounds as usize) < FEWEST_ROUNDS);
        let systems: Vec<&Estimate> = self.estimates.iter().filter(|e| !e.is_reference()).collect();
        let why = if self.trials_done < self.trials_planned {
            Silence::NotYet
        } else if systems.is_empty() {
            Silence::NoSystem
        } else if systems.iter().all(|e| e.trials == 0) {
            Silence::NothingMeasured
        } else if self.comparisons.is_empty() && systems.len() == 1 {
            Silence::OneScenario
        } else if self.comparisons.is_empty() {
            Silence::NothingComparable
        } else if few && (self.rounds as usize) < FEWEST_ROUNDS {
            Silence::TooFewRounds
        } else if self.comparisons.iter().all(|c| c.ratio.is_none()) {
            Silence::NoRatio
        } else {
            Silence::NothingStandsOut
        };
        self.claims.is_empty().then_some(why)
    }
}

/// What was measured, and where.
struct Page<'a> {
    planned: &'a Planned,
    estimates: &'a [Estimate],
}

/// How large a decided difference is.
fn size(c: &Comparison) -> f64 {
    match c.verdict {
        Verdict::Faster | Verdict::Slower => far(c),
        _ => 0.0,
    }
}

fn far(c: &Comparison) -> f64 {
    c.ratio.map_or(0.0, |ratio| ratio.estimate.ln().abs())
}

/// The first of those that are largest.
fn largest<'a>(
    of: impl Iterator<Item = &'a Comparison>,
    size: fn(&Comparison) -> f64,
) -> Option<&'a Comparison> {
    of.reduce(|a, b| if size(b) > size(a) { b } else { a })
}

fn decided<'a>(of: &[&'a Comparison]) -> Option<&'a Comparison> {
    let clear = of.iter().copied().filter(|c| matches!(c.verdict, Verdict::Faster | Verdict::Slower));
    largest(clear.filter(|c| c.ratio.is_some()), size)
}

/// The largest decided difference where the knob does most, with the ties of what is better. Better is only said of the best
/// value.
fn told<'a>(of: &[&'a Comparison], effect: &'a Effect) -> Option<(&'a Comparison, &'a [usize])> {
    let best = of.iter().find(|c| c.scenario == effect.best && c.verdict == Verdict::Faster);
    let baseline = best.map_or(effect.best, |c| c.against);
    let slower = of.iter().filter(|c| c.against == baseline && c.verdict == Verdict::Slower);
    let c = decided(&best.into_iter().chain(slower).copied().collect::<Vec<_>>())?;
    Some((c, if c.verdict == Verdict::Faster { &effect.ties } else { &[] }))
}

impl Page<'_> {
    /// Whether a scenario stands where the system does when nobody says anything.
    fn at_default(&self, axis: &Axis, at: usize) -> bool {
        let scenario = &self.planned.scenarios[at];
        let value = scenario.point.get(&axis.knob);
        value.is_some() && value == self.planned.default_of(&scenario.system, axis)
    }

    fn knob(&self, axis: &Axis, of: &[&Comparison], effect: Option<&Effect>) -> Option<(f64, Claim)> {
        let at_default = |at: usize| self.at_default(axis, at);
        if let Some((c, ties)) = effect.and_then(|effect| told(of, effect)) {
            let claim = Claim::Knob {
                narrow: c.ratio?.upwards().estimate >= CLIFF,
                default: at_default(c.against),
                ties: ties.to_vec(),
                reasons: self.reasons(c),
                comparison: c.clone(),
            };
            return Some((size(c), claim));
        }
        self.open(of, at_default)
    }

    /// The same work by different systems.
    fn systems(&self, of: &[&Comparison]) -> Option<(f64, Claim)> {
        let Some(c) = decided(of) else { return self.open(of, |_| false) };
        let unequal = self.estimates[c.scenario].unequal != self.estimates[c.against].unequal;
        Some((size(c), Claim::Systems { unequal, reasons: self.reasons(c), comparison: c.clone() }))
    }

    /// Of what nothing is decided to differ: that it is equal, or what is largest of what is open.
    fn open(&self, of: &[&Comparison], at_default: impl Fn(usize) -> bool) -> Option<(f64, Claim)> {
        let equal = of.iter().filter(|c| c.verdict == Verdict::NoDifference).count();
        if let Some(first) = of.first().filter(|_| equal == of.len()) {
            let (threshold, default) = (self.planned.threshold, at_default(first.against));
            let claim =
                Claim::NoDifference { by: first.by.clone(), threshold, against: first.against, default };
            return Some((FLAT, claim));
        }
        let open = of.iter().copied().filter(|c| !c.verdict.is_decided() && c.ratio.is_some());
        let comparison = largest(open, far)?.clone();
        let default = at_default(comparison.against);
        Some((OPEN, Claim::Undecided { comparison, default, equal, of: of.len() }))
    }

    /// The deepest fall between neighbouring values that is deeper than the step from one to the other explains.
    fn cliff(&self, of: &[&Comparison]) -> Option<(f64, Claim)> {
        let cliffs = of.iter().copied().filter(|c| c.is_cliff() && c.ratio.is_some());
        let c = largest(cliffs, size)?;
        Some((size(c), Claim::Cliff { reasons: self.reasons(c), comparison: c.clone() }))
    }

    fn reasons(&self, c: &Comparison) -> Vec<Reason> {
        let (a, b) = (&self.estimates[c.scenario], &self.estimates[c.against]);
        let (better, worse) = if c.verdict == Verdict::Faster { (a, b) } else { (b, a) };
        reason::between(self.planned.workload, better, worse)
    }
}
