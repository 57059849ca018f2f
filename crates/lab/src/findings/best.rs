//! Chooses the best value of a knob, for the claims, the main effects and the snippets alike.
//!
//! Among the values that are certainly better than the baseline, the one with the highest estimate is the best, unless
//! another is *shown* to be within the threshold of it. Of those, the best is the one nearest to the baseline: if 256K and
//! 512K are known to be equally good, it is 256K. That a value cannot be told from the highest is no reason to prefer it,
//! because the difference may be a factor of two. If no value is certainly better than the baseline and one is certainly
//! worse, the baseline is the best.

use std::collections::BTreeMap;

use stats::{Location, Verdict};
use systems::Value;

use super::Rows;
use super::asked::{baseline, groups};
use super::{By, Comparison, Estimate};
use crate::experiment::grid::Axis;
use crate::plan::View;

/// The best value of a knob in a group of scenarios that differ only in it. Scenarios are positions in the estimates.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Best {
    /// The scenario at the best value.
    pub scenario: usize,
    /// The baseline. It is the same as `scenario` if no value is better.
    pub baseline: usize,
    /// The scenario at the worst value.
    pub worst: usize,
    /// The scenarios at other values that are shown to be within the threshold of the highest, or have it.
    pub equal: Vec<usize>,
    /// The scenarios at other values that may be as good: they are not certainly worse than the highest.
    pub ties: Vec<usize>,
    /// The log-ratio of the best to the worst, within rounds.
    pub location: Location,
}

/// The comparisons of an experiment, and what their verdicts depend on.
#[derive(Clone, Copy)]
pub(super) struct Results<'a> {
    pub planned: &'a View<'a>,
    pub estimates: &'a [Estimate],
    pub rows: &'a Rows,
    pub comparisons: &'a [Comparison],
}

impl<'a> Results<'a> {
    /// The knob's best value in the group in which the knob matters most, for one system or for all. None if no values
    /// are decided to differ.
    pub fn best(&self, axis: &Axis, system: Option<&str>) -> Option<Best> {
        let matches = |index: usize| system.is_none_or(|name| self.estimates[index].scenario.system == name);
        let groups = groups(self.planned, &axis.knob).into_iter().filter(|group| matches(group[0]));
        let mut with_baseline: BTreeMap<usize, Vec<&Comparison>> = BTreeMap::new();
        for comparison in self.comparisons_of(axis) {
            with_baseline.entry(comparison.against).or_default().push(comparison);
        }
        let found = groups.filter_map(|group| {
            let baseline = baseline(self.planned, axis, &group)?;
            self.best_in_group(axis, &group, with_baseline.get(&baseline)?)
        });
        found.reduce(|a, b| if b.location.estimate > a.location.estimate { b } else { a })
    }

    /// The comparisons of the knob's values with their baselines.
    pub fn comparisons_of(&self, axis: &Axis) -> impl Iterator<Item = &'a Comparison> + use<'a> {
        let by = By::Knob(axis.knob.clone());
        self.comparisons.iter().filter(move |c| c.by == by)
    }

    /// `comparisons` are those of the group's values with its baseline.
    fn best_in_group(&self, axis: &Axis, group: &[usize], comparisons: &[&'a Comparison]) -> Option<Best> {
        let baseline = comparisons.first()?.against;
        let gain = |c: &Comparison| c.ratio.map_or(0.0, |ratio| ratio.estimate);
        let better = || comparisons.iter().copied().filter(|c| c.verdict == Verdict::Faster);
        let top = better().max_by(|a, b| gain(a).total_cmp(&gain(b)));
        if top.is_none() && comparisons.iter().all(|c| c.verdict != Verdict::Slower) {
            return None;
        }
        let count = better().count();
        let as_good = |c: &&Comparison| {
            top.is_some_and(|top| c.scenario == top.scenario || self.within(top.scenario, c.scenario, count))
        };
        let places = self.places(axis, group);
        let place = |scenario: usize| places.get(&scenario).copied().unwrap_or(0);
        let distance = |to: usize| (place(baseline).abs_diff(place(to)), place(to));
        let nearest = better().filter(as_good).min_by_key(|c| distance(c.scenario));
        let best = nearest.map_or(baseline, |c| c.scenario);
        let may_be_as_good = |c: &&Comparison| {
            let top_is_better = |top: &Comparison| {
                top.scenario != c.scenario && self.certainly_better(top.scenario, c.scenario, count)
            };
            c.scenario != best && !top.is_some_and(top_is_better)
        };
        let (equal, ties): (Vec<&Comparison>, Vec<&Comparison>) =
            better().filter(may_be_as_good).partition(|c| as_good(c));
        let [equal, ties] = [equal, ties].map(|all| all.into_iter().map(|c| c.scenario).collect());
        // A lower bound cannot be the worst: the system may be better than it looks.
        let gains = comparisons.iter().map(|c| (gain(c), c.scenario)).chain([(1.0, baseline)]);
        let comparable = gains.filter(|(gain, other)| {
            let e = &self.estimates[*other];
            *gain > 0.0 && *other != best && e.compares() && !e.is_lower_bound()
        });
        let ratios =
            comparable.filter_map(|(gain, other)| Some((gain, other, self.rows.ratio(best, other)?)));
        let (_, worst, location) = ratios.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Best { scenario: best, baseline, worst, equal, ties, location })
    }

    /// Whether scenario `a`, the highest of `candidates`, is shown to be better than `b` by less than the threshold.
    fn within(&self, a: usize, b: usize, candidates: usize) -> bool {
        let shown = self.rows.ratio(a, b).is_some_and(|location| {
            let (_, high) = location.interval(self.rows.level(&location, candidates));
            high < self.planned.threshold.ln_1p()
        });
        // If `a` is a lower bound, it may be far better.
        shown && !self.estimates[a].is_lower_bound()
    }

    /// Whether scenario `a`, the highest of `candidates`, is certainly better than `b`. The p-value is corrected for the
    /// selection.
    fn certainly_better(&self, a: usize, b: usize, candidates: usize) -> bool {
        let seen = self.rows.compare(a, b, 0.0);
        let threshold = self.planned.threshold.ln_1p();
        let verdict = seen.map(|seen| seen.verdict(threshold, seen.p * candidates as f64));
        // If `b` is a lower bound, it may be as good.
        verdict == Some(Verdict::Faster) && !self.estimates[b].is_lower_bound()
    }

    /// Where the values of scenarios are among those of their group. Integers are in ascending order, other values in the grid's.
    fn places(&self, axis: &Axis, group: &[usize]) -> BTreeMap<usize, usize> {
        let value = |index: usize| self.planned.scenarios[index].point.get(&axis.knob);
        let mut order = group.to_vec();
        if order.iter().all(|index| matches!(value(*index), Some(Value::Integer(_)))) {
            order.sort_by_key(|index| value(*index));
        }
        order.into_iter().enumerate().map(|(place, scenario)| (scenario, place)).collect()
    }
}

#[cfg(test)]
mod tests;
