//! Claims are what a reader takes away: how a knob or the choice of a system affects the figure, all else being equal.
//! They are values; `report` puts them into words.
//!
//! A claim shows one of several comparisons, and what these show decides which. Intervals that each hold by themselves would hold the
//! truth less often there: the highest of six is high by luck, too. So the intervals in claims hold together (Bonferroni) with those
//! of all comparisons from which the claim chose. Their verdicts are corrected already, and stay as they are.

use serde::{Deserialize, Serialize};
use stats::{FEWEST_ROUNDS, Verdict};

use super::asked::CLIFF;
use super::best::Results;
use super::leader::{Behind, Order, order};
use super::reason::{self, Reason, Why};
use super::{By, Causes, Comparison, Effect, Estimate, FigureView, Interaction, Ratio};
use crate::experiment::Asks;
use crate::experiment::grid::Axis;
use crate::plan::View;

/// One claim. Scenarios are positions in the estimates. The interval of its comparison allows for the choice: it holds together with
/// those of all comparisons of the same knob, or of the systems.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "claim", rename_all = "snake_case")]
pub enum Claim {
    /// A value of a knob is faster or slower than the baseline.
    Knob {
        /// The comparison. Its verdict is `faster` or `slower`.
        comparison: Comparison,
        /// Whether the difference is large enough to call the knob a bottleneck.
        narrow: bool,
        /// Whether the baseline is the system's default.
        default: bool,
        /// The scenarios at other values that are shown to be as good as the fastest one, within the threshold.
        #[serde(default)]
        equal: Vec<usize>,
        /// The scenarios at other values that may be as good: these rounds cannot tell.
        ties: Vec<usize>,
        /// The counts that explain the difference.
        reasons: Vec<Reason>,
    },
    /// More is lost between two neighbouring values than the additional work explains.
    Cliff {
        /// The comparison with the largest loss.
        comparison: Comparison,
        /// The counts that explain the loss.
        reasons: Vec<Reason>,
    },
    /// One system leads at the same work.
    Systems {
        /// The leader against the fastest system that is certainly slower. Its verdict is `faster`.
        comparison: Comparison,
        /// The scenarios of the systems that are shown to be as fast as the leader, within the threshold.
        #[serde(default)]
        equal: Vec<usize>,
        /// The scenarios of the systems that may be as fast: these rounds cannot tell.
        ties: Vec<usize>,
        /// The systems behind those, the fastest first.
        rest: Vec<Behind>,
        /// The scenarios of the leaders at other points of the work, where these are other systems.
        #[serde(default)]
        elsewhere: Vec<usize>,
        /// Whether the systems are at like settings, because the defaults of some make them work otherwise than the rest.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        alike: bool,
        /// Whether the manifest of one of the two that are compared says that its work differs.
        unequal: bool,
        /// The counts that explain the difference.
        reasons: Vec<Reason>,
    },
    /// No values of a knob, or no systems, differ by as much as the threshold.
    NoDifference {
        /// What differs between the scenarios: the knob, or the system.
        by: By,
        /// The smallest difference that matters, as a share.
        threshold: f64,
        /// The baseline.
        against: usize,
        /// Whether the baseline is the system's default.
        default: bool,
    },
    /// No comparison shows a difference, and at least one is undecided.
    Undecided {
        /// The undecided comparison with the largest ratio.
        comparison: Comparison,
        /// Whether its baseline is the system's default.
        default: bool,
        /// The number of comparisons that are decided to show no difference.
        equal: usize,
        /// The number of all comparisons.
        of: usize,
    },
    /// The effect of a knob is not the same at two values of another.
    DependsOn {
        /// The knob.
        knob: String,
        /// The knob on which its effect depends most.
        interaction: Interaction,
    },
    /// What the experiment asks about cannot be compared here.
    Unanswered {
        /// `systems`, or the knob.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        asks: Asks,
    },
}

/// Why there is no claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Silence {
    /// Planned trials are not done yet.
    NotYet,
    /// Only the reference ran.
    NoSystem,
    /// Every trial of every system failed.
    NothingMeasured,
    /// There is only one scenario.
    OneScenario,
    /// The systems answer differently, and were measured all the same.
    UnequalWork,
    /// The figure is a count, and the kernel gave none.
    NothingCounted,
    /// No two scenarios differ in exactly one knob or in the system.
    NothingComparable,
    /// Comparisons need more rounds.
    TooFewRounds,
    /// No comparison has a ratio, because of errors or missing figures.
    NoRatio,
    /// The comparisons show nothing that stands out.
    NothingStandsOut,
}

/// The weights of claims without a difference. The weight of a difference is the logarithm of its ratio.
const OPEN: f64 = -1.0;
const FLAT: f64 = -2.0;

/// At most one claim for each knob that varies and one for the systems, or two: at their defaults and at like settings. What the
/// experiment asks about comes first. The others follow: differences, the largest at the top, then what is undecided, then what
/// is flat, then the dependencies between knobs.
pub(super) fn claims(results: &Results, effects: &[Effect], causes: &Causes) -> Vec<Claim> {
    let Results { planned, estimates, .. } = *results;
    let claimer = Claimer { planned, estimates, causes };
    let mut claims: Vec<(f64, Claim)> = Vec::new();
    for axis in planned.axes.iter().filter(|axis| axis.values.len() > 1) {
        let by_knob = together(results, |by| by.knob() == Some(axis.knob.as_str()));
        let by_knob: Vec<&Comparison> = by_knob.iter().collect();
        claims.extend(match by_knob.first().map(|c| &c.by) {
            Some(By::Step(_)) => claimer.cliff(&by_knob),
            Some(_) => claimer.knob(axis, &by_knob, effects.iter().find(|effect| effect.knob == axis.knob)),
            None => None,
        });
    }
    let by_system = together(results, |by| *by == By::System);
    let by_system: Vec<&Comparison> = by_system.iter().collect();
    let systems = claimer.systems(&by_system);
    // The order at like settings comes behind the order at the defaults.
    let weight = systems.as_ref().map_or(OPEN, |(weight, _)| *weight);
    let alike = claimer.order(&by_system, true).map(|(own, claim)| (own.min(weight), claim));
    claims.extend(systems.into_iter().chain(alike));
    claims.sort_by(|a, b| b.0.total_cmp(&a.0));
    let depends = effects.iter().filter_map(|effect| {
        let interaction = effect.depends_on.first()?.clone();
        Some(Claim::DependsOn { knob: effect.knob.clone(), interaction })
    });
    let claims = claims.into_iter().map(|(_, claim)| claim).chain(depends).collect();
    question_first(planned.asks.as_ref(), claims)
}

/// The comparisons by some knob, or of systems, with intervals that hold together. A verdict that says on which side the truth lies
/// is certain by itself, so an interval does not reach beyond.
fn together(results: &Results, by: impl Fn(&By) -> bool) -> Vec<Comparison> {
    let mut all: Vec<Comparison> = results.comparisons.iter().filter(|c| by(&c.by)).cloned().collect();
    let several = all.iter().filter(|c| c.ratio.is_some()).count();
    if several < 2 {
        return all;
    }
    for c in &mut all {
        let Some((own, wide)) = c.ratio.zip(results.rows.ratio_among(c.scenario, c.against, several)) else {
            continue;
        };
        // What a step's verdict sets it beside is the ratio that the additional work explains.
        let edge = c.excess.map_or(1.0, |excess| own.estimate / excess);
        let (low, high) = match c.verdict {
            Verdict::Faster => (wide.low.max(edge), wide.high),
            Verdict::Slower => (wide.low, wide.high.min(edge)),
            Verdict::NoDifference | Verdict::Undecided { .. } => (wide.low, wide.high),
        };
        c.ratio = Some(Ratio { low, high, ..own });
    }
    all
}

/// Puts the claims about what the experiment asks in front: how much it changes, then on what that depends. If there is none,
/// the first claim says that the question has no answer, so that no other effect is taken for it.
fn question_first(asks: Option<&Asks>, mut claims: Vec<Claim>) -> Vec<Claim> {
    let Some(asks) = asks.filter(|_| !claims.is_empty()) else { return claims };
    let answers = |claim: &Claim| claim.knob() == asks.knob();
    if !claims.iter().any(answers) {
        claims.insert(0, Claim::Unanswered { asks: asks.clone() });
    }
    claims.sort_by_key(|claim| !answers(claim));
    claims
}

impl Claim {
    /// The knob that the claim is about. None if it is about systems.
    pub fn knob(&self) -> Option<&str> {
        match self {
            Self::Knob { comparison, .. } | Self::Cliff { comparison, .. } => comparison.by.knob(),
            Self::Undecided { comparison, .. } => comparison.by.knob(),
            Self::NoDifference { by, .. } => by.knob(),
            Self::DependsOn { knob, .. } => Some(knob),
            Self::Unanswered { asks } => asks.knob(),
            Self::Systems { .. } => None,
        }
    }
}

impl FigureView<'_> {
    /// Why there is no claim. None if there is one, or if a search has the answer.
    pub fn silence(&self) -> Option<Silence> {
        let few = self.comparisons.iter().all(|c| (c.rounds as usize) < FEWEST_ROUNDS);
        let systems: Vec<&Estimate> = self.estimates.iter().filter(|e| !e.is_reference()).collect();
        let why = if self.trials_done < self.trials_planned {
            Silence::NotYet
        } else if systems.is_empty() {
            Silence::NoSystem
        } else if systems.iter().all(|e| e.trials == 0) {
            Silence::NothingMeasured
        } else if !self.is_compared() {
            Silence::UnequalWork
        } else if self.figure.needs_counts() && systems.iter().all(|e| e.figure.is_none()) {
            Silence::NothingCounted
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
        (self.claims.is_empty() && self.tuned.is_none()).then_some(why)
    }
}

/// Makes claims from comparisons, each with its weight in the order of claims.
struct Claimer<'a> {
    planned: &'a View<'a>,
    estimates: &'a [Estimate],
    causes: &'a Causes,
}

/// The logarithm of the ratio of a decided difference; 0 for any other verdict.
fn decided_size(c: &Comparison) -> f64 {
    match c.verdict {
        Verdict::Faster | Verdict::Slower => size(c),
        _ => 0.0,
    }
}

/// The logarithm of the ratio, without its sign.
fn size(c: &Comparison) -> f64 {
    c.ratio.map_or(0.0, |ratio| ratio.estimate.ln().abs())
}

/// The first of the largest comparisons.
fn largest<'a>(
    comparisons: impl Iterator<Item = &'a Comparison>,
    size: fn(&Comparison) -> f64,
) -> Option<&'a Comparison> {
    comparisons.reduce(|a, b| if size(b) > size(a) { b } else { a })
}

/// The largest decided difference.
fn decided<'a>(comparisons: &[&'a Comparison]) -> Option<&'a Comparison> {
    let differ =
        comparisons.iter().copied().filter(|c| matches!(c.verdict, Verdict::Faster | Verdict::Slower));
    largest(differ.filter(|c| c.ratio.is_some()), decided_size)
}

/// The largest decided difference in the group in which the knob matters most. Only the best value is claimed to be faster.
fn largest_of_best<'a>(comparisons: &[&'a Comparison], effect: &Effect) -> Option<&'a Comparison> {
    let best = comparisons.iter().find(|c| c.scenario == effect.best && c.verdict == Verdict::Faster);
    let baseline = best.map_or(effect.best, |c| c.against);
    let slower = comparisons.iter().filter(|c| c.against == baseline && c.verdict == Verdict::Slower);
    decided(&best.into_iter().chain(slower).copied().collect::<Vec<_>>())
}

impl Claimer<'_> {
    /// Whether the knob has the system's default value in a scenario.
    fn at_default(&self, axis: &Axis, index: usize) -> bool {
        let scenario = &self.planned.scenarios[index];
        let value = scenario.point.get(&axis.knob);
        value.is_some() && value == self.planned.default_of(&scenario.system, axis)
    }

    fn knob(
        &self,
        axis: &Axis,
        comparisons: &[&Comparison],
        effect: Option<&Effect>,
    ) -> Option<(f64, Claim)> {
        let at_default = |index: usize| self.at_default(axis, index);
        if let Some((effect, c)) =
            effect.and_then(|effect| Some((effect, largest_of_best(comparisons, effect)?)))
        {
            let slower = |other: &&&Comparison| {
                other.against == c.against && other.verdict == Verdict::Slower && other.scenario != c.scenario
            };
            let also_slower: Vec<usize> =
                comparisons.iter().filter(slower).map(|other| other.scenario).collect();
            let beside_best =
                |of: &[usize]| if c.verdict == Verdict::Faster { of.to_vec() } else { Vec::new() };
            let claim = Claim::Knob {
                narrow: c.ratio?.upwards().estimate >= CLIFF,
                default: at_default(c.against),
                equal: beside_best(&effect.equal),
                ties: beside_best(&effect.ties),
                reasons: self.reasons(c, &also_slower),
                comparison: c.clone(),
            };
            return Some((decided_size(c), claim));
        }
        self.no_difference(comparisons, at_default)
    }

    fn systems(&self, comparisons: &[&Comparison]) -> Option<(f64, Claim)> {
        self.order(comparisons, false).or_else(|| self.no_difference(comparisons, |_| false))
    }

    fn order(&self, comparisons: &[&Comparison], alike: bool) -> Option<(f64, Claim)> {
        let Order { lead, equal, ties, rest, elsewhere } =
            order(self.planned, self.estimates, comparisons, alike)?;
        let unequal = self.estimates[lead.scenario].unequal != self.estimates[lead.against].unequal;
        let also_slower: Vec<usize> = rest.iter().map(|behind| behind.scenario).collect();
        let (weight, reasons) = (decided_size(&lead), self.reasons(&lead, &also_slower));
        Some((
            weight,
            Claim::Systems { comparison: lead, equal, ties, rest, elsewhere, alike, unequal, reasons },
        ))
    }

    /// The claim about comparisons that show no difference: all are equal, or the largest of them is undecided.
    fn no_difference(
        &self,
        comparisons: &[&Comparison],
        at_default: impl Fn(usize) -> bool,
    ) -> Option<(f64, Claim)> {
        let equal = comparisons.iter().filter(|c| c.verdict == Verdict::NoDifference).count();
        if let Some(first) = comparisons.first().filter(|_| equal == comparisons.len()) {
            let (threshold, default) = (self.planned.threshold, at_default(first.against));
            let claim =
                Claim::NoDifference { by: first.by.clone(), threshold, against: first.against, default };
            return Some((FLAT, claim));
        }
        let open = comparisons.iter().copied().filter(|c| !c.verdict.is_decided() && c.ratio.is_some());
        let comparison = largest(open, size)?.clone();
        let default = at_default(comparison.against);
        Some((OPEN, Claim::Undecided { comparison, default, equal, of: comparisons.len() }))
    }

    /// The cliff with the largest loss.
    fn cliff(&self, comparisons: &[&Comparison]) -> Option<(f64, Claim)> {
        let cliffs = comparisons.iter().copied().filter(|c| c.is_cliff() && c.ratio.is_some());
        let c = largest(cliffs, decided_size)?;
        Some((decided_size(c), Claim::Cliff { reasons: self.reasons(c, &[]), comparison: c.clone() }))
    }

    /// The counts that explain a difference. Further scenarios that are slower than the better one may contradict some.
    fn reasons(&self, c: &Comparison, also_slower: &[usize]) -> Vec<Reason> {
        let Some(both) = c.better_first() else { return Vec::new() };
        let rows = both.map(|at| &self.estimates[at]);
        let times = c.ratio.map_or(1.0, |ratio| ratio.upwards().estimate);
        let others: Vec<&Estimate> = also_slower.iter().map(|at| &self.estimates[*at]).collect();
        // Only what the better one takes less of makes it better.
        let cpu = self.causes.cpu.iter().find(|cpu| [cpu.less, cpu.more] == both);
        let waits = self.causes.waiting.iter().find(|waits| [waits.less, waits.more] == both);
        let why = Why { cpu, waits };
        reason::between(self.planned.workload, self.planned.figure, times, rows, &others, why)
    }
}
