//! How much more CPU time one of two scenarios takes for a unit of work, and in which functions.

use std::collections::{BTreeMap, BTreeSet};

use profile::Profile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{LEVEL, Location};

use super::functions::{Functions, functions};
use super::{ByScenario, Compared, Comparison, Ratio, by_scenario};
use crate::experiment::Figure;
use crate::figures::figure_of;
use crate::observation::{Outcome, Scenario};

/// The CPU time that two scenarios take for a unit of work, in the rounds that have both. Scenarios are positions in the estimates.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CpuDifference {
    /// The scenario that takes less.
    pub less: usize,
    /// The scenario that takes more.
    pub more: usize,
    /// What the one that takes less takes, seconds: the median of its trials.
    pub less_s: f64,
    /// How many times more the other one takes, with an interval.
    pub ratio: Ratio,
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

/// The differences between scenarios of which some figure says that they differ.
pub(super) fn differences(figures: &[Compared<'_>]) -> Vec<CpuDifference> {
    let comparisons = figures.iter().flat_map(|figure| &figure.comparisons);
    // Figures may contradict each other about which is better, but each pair has one difference.
    let pairs =
        comparisons.filter_map(Comparison::better_first).map(|[one, other]| (one.min(other), one.max(other)));
    let pairs: BTreeSet<(usize, usize)> = pairs.collect();
    let Some(figure) = figures.first() else { return Vec::new() };
    let trials = by_scenario(&figure.observations);
    pairs.into_iter().filter_map(|pair| difference(figure, &trials, pair)).collect()
}

fn difference(
    figure: &Compared<'_>,
    trials: &ByScenario<'_>,
    (one, other): (usize, usize),
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
    let (low, high) = ratio.interval(LEVEL);
    let less_s = stats::median(least.cpu_s.values().copied())?;
    let found = functions(&ratio, [&least.profiles, &most.profiles]);
    Some(CpuDifference {
        less,
        more,
        less_s,
        ratio: Ratio::of_logs(ratio.estimate, low, high),
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
