//! How much more CPU time one of two scenarios takes for a unit of work, and in which functions.

use std::collections::{BTreeMap, BTreeSet};

use profile::Profile;
use serde::{Deserialize, Serialize};
use stats::{Design, LEVEL, Location};

use super::functions::{Functions, functions, of_open};
use super::{ByScenario, Compared, Comparison, Ratio, by_scenario};
use crate::experiment::Figure;
use crate::figures::figure_of;
use crate::observation::{Outcome, Scenario};

/// What 5 % is divided by where an interval decides alone. With trimmed means of six rounds and the noise of a shared machine, an interval
/// of 95 % misses in 7 % of simulated runs.
const STRICTER: f64 = 2.0;

/// The CPU time that two scenarios take for a unit of work, in the rounds that have both. Scenarios are positions in the estimates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuDifference {
    /// The scenario that takes less.
    pub less: usize,
    /// The scenario that takes more.
    pub more: usize,
    /// What the one that takes less takes, seconds: the median of its trials.
    pub less_s: f64,
    /// How many times more the other one takes, with an interval. Those of open pairs hold together, at all looks, with those of their
    /// functions.
    pub ratio: Ratio,
    /// Whether no figure tells the two apart, so that this is all that is known of them: one certainly takes more than the other, or
    /// one of its functions does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// In which functions the difference is. None if the arms have fewer than two profiles each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<Functions>,
}

impl CpuDifference {
    /// Whether the one certainly takes more than the other.
    pub fn is_certain(&self) -> bool {
        self.ratio.low > 1.0
    }

    /// How much more the one takes, seconds for a unit of work.
    pub fn more_s(&self) -> f64 {
        self.less_s * (self.ratio.estimate - 1.0)
    }

    /// Whether it is about these two scenarios.
    pub fn is_between(&self, one: usize, other: usize) -> bool {
        (self.less, self.more) == (one, other) || (self.less, self.more) == (other, one)
    }
}

/// The differences between scenarios that some figure tells apart. Of the others: those of which one certainly takes more CPU time, or
/// has a function that certainly takes more. CPU time varies less than speed does on a shared machine. `open_design` says how often
/// the others are examined. None if they are not looked for.
pub(super) fn differences(figures: &[Compared<'_>], open_design: Option<Design>) -> Vec<CpuDifference> {
    let Some(first) = figures.first() else { return Vec::new() };
    let trials = by_scenario(&first.observations);
    // Figures may contradict each other about which is better, but each pair has one difference.
    let pairs = |of: &dyn Fn(&Compared<'_>, &Comparison) -> bool| {
        let chosen = figures
            .iter()
            .flat_map(|figure| figure.comparisons.iter().filter(|c| of(figure, c)))
            .map(|c| (c.scenario.min(c.against), c.scenario.max(c.against)));
        chosen.collect::<BTreeSet<(usize, usize)>>()
    };
    let decided = pairs(&|_, c| c.better_first().is_some());
    let mut open = pairs(&|figure, c| open_design.is_some() && is_open(figure, c));
    open.retain(|pair| !decided.contains(pair));
    // Nothing but its own interval says that an open one differs, so all of these must hold together, at all looks.
    let each = LEVEL / STRICTER / open.len().max(1) as f64;
    let level = |rounds: usize| open_design.map(|design| each * design.share_after(rounds as u32));
    let of_decided = decided.into_iter().filter_map(|pair| difference(first, &trials, pair, |_| None));
    of_decided.chain(open.into_iter().filter_map(|pair| difference(first, &trials, pair, level))).collect()
}

/// Whether a comparison of equal work is undecided for no other reason than that trials vary.
fn is_open(figure: &Compared<'_>, c: &Comparison) -> bool {
    let is_unequal = |at: usize| figure.estimates.get(at).is_none_or(|e| e.unequal);
    let equal_work = c.excess.is_none() && !is_unequal(c.scenario) && !is_unequal(c.against);
    let varies = c.ratio.is_some() && !c.verdict.is_decided() && c.withheld.is_none();
    varies && equal_work && !figure.planned.figure.is_cost()
}

/// The difference of a pair. `open_level` is the level of the interval of an open one, whose difference must be certain, or that of
/// one of its functions.
fn difference(
    figure: &Compared<'_>,
    trials: &ByScenario<'_>,
    (one, other): (usize, usize),
    open_level: impl Fn(usize) -> Option<f64>,
) -> Option<CpuDifference> {
    let arm = |at: usize| Some(Arm::of(figure, trials, &figure.estimates.get(at)?.scenario));
    let (first, second) = (arm(one)?, arm(other)?);
    let log = |block: &u32| Some((second.cpu_s.get(block)? / first.cpu_s.get(block)?).ln());
    let logs: Vec<f64> = first.cpu_s.keys().filter_map(log).collect();
    let ratio = Location::of(&logs)?;
    let (less, more, ratio, [least, most]) = match ratio.estimate >= 0.0 {
        true => (one, other, ratio, [first, second]),
        false => (other, one, Location { estimate: -ratio.estimate, ..ratio }, [second, first]),
    };
    let open_level = open_level(ratio.n);
    let (low, high) = ratio.interval(open_level.unwrap_or(LEVEL));
    let less_s = stats::median(least.cpu_s.values().copied())?;
    let profiles: [&[&Profile]; 2] = [&least.profiles, &most.profiles];
    let found = match open_level {
        // Something certain must be known of an open one: what functions take, if not what the whole takes.
        Some(level) if low <= 0.0 => Some(of_open(&ratio, profiles, level / STRICTER)?),
        _ => functions(&ratio, profiles),
    };
    Some(CpuDifference {
        less,
        more,
        less_s,
        ratio: Ratio::of_logs(ratio.estimate, low, high),
        open: open_level.is_some(),
        functions: found,
    })
}

/// What the trials of a scenario say of its CPU time.
struct Arm<'a> {
    /// Seconds for a unit of work, by block.
    cpu_s: BTreeMap<u32, f64>,
    profiles: Vec<&'a Profile>,
}

impl<'a> Arm<'a> {
    fn of(figure: &Compared<'_>, trials: &ByScenario<'a>, scenario: &Scenario) -> Self {
        let unit = &figure.planned.workload.about().unit;
        let mut arm = Self { cpu_s: BTreeMap::new(), profiles: Vec::new() };
        for observation in trials.get(scenario).into_iter().flatten() {
            let Outcome::Measured(m) = &observation.outcome else { continue };
            let cpu_s = figure_of(Figure::CpuPerUnit, unit, m).filter(|cpu_s| *cpu_s > 0.0);
            arm.cpu_s.extend(cpu_s.map(|cpu_s| (observation.trial.block(), cpu_s)));
            arm.profiles.extend(&m.profile);
        }
        arm
    }
}
