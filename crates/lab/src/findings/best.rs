//! Chooses the best value of a knob, for the claims, the main effects and the snippets alike.
//!
//! The choice depends on verdicts, because the highest of several figures is highest partly by luck. Among the values
//! that are certainly better than the baseline, take those that cannot be told from the highest. The best is the one
//! nearest to the baseline: if 256K and 512K are equally good, it is 256K. If no value is certainly better than the
//! baseline and one is certainly worse, the baseline is the best.

use stats::{Bar, Design, FEWEST_ROUNDS, Location, Verdict};
use systems::Value;

use super::asked::{baseline, groups};
use super::comparison::log_ratios;
use super::{By, Comparison, Estimate};
use crate::experiment::grid::Axis;
use crate::plan::Planned;

/// The best value of a knob in a group of scenarios that differ only in it. Scenarios are positions in the estimates.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Best {
    /// The scenario at the best value.
    pub scenario: usize,
    /// The baseline. It is the same as `scenario` if no value is better.
    pub baseline: usize,
    /// The scenario at the worst value.
    pub worst: usize,
    /// The scenarios at values that look better but cannot be told from the best.
    pub ties: Vec<usize>,
    /// The log-ratio of the best to the worst, within rounds.
    pub location: Location,
}

/// The comparisons of an experiment, and what their verdicts depend on.
#[derive(Clone, Copy)]
pub(super) struct Results<'a> {
    pub planned: &'a Planned,
    pub design: Design,
    pub estimates: &'a [Estimate],
    pub comparisons: &'a [Comparison],
    pub bar: Bar,
}

impl<'a> Results<'a> {
    /// The knob's best value in the group in which the knob matters most, for one system or for all. None if no values
    /// are decided to differ.
    pub fn best(&self, axis: &Axis, system: Option<&str>) -> Option<Best> {
        let matches = |index: usize| system.is_none_or(|name| self.estimates[index].scenario.system == name);
        let groups = groups(self.planned, &axis.knob).into_iter().filter(|group| matches(group[0]));
        let found = groups.filter_map(|group| self.best_in_group(axis, &group));
        found.reduce(|a, b| if b.location.estimate > a.location.estimate { b } else { a })
    }

    /// The comparisons of the knob's values with their baselines.
    pub fn comparisons_of(&self, axis: &Axis) -> impl Iterator<Item = &'a Comparison> + use<'a> {
        let by = By::Knob(axis.knob.clone());
        self.comparisons.iter().filter(move |c| c.by == by)
    }

    fn best_in_group(&self, axis: &Axis, group: &[usize]) -> Option<Best> {
        let baseline = baseline(self.planned, axis, group)?;
        let comparisons: Vec<&Comparison> = self
            .comparisons_of(axis)
            .filter(|c| c.against == baseline && group.contains(&c.scenario))
            .collect();
        let gain = |c: &Comparison| c.ratio.map_or(0.0, |ratio| ratio.estimate);
        let better = || comparisons.iter().copied().filter(|c| c.verdict == Verdict::Faster);
        let top = better().max_by(|a, b| gain(a).total_cmp(&gain(b)));
        if top.is_none() && comparisons.iter().all(|c| c.verdict != Verdict::Slower) {
            return None;
        }
        let equal = |c: &&Comparison| {
            top.is_some_and(|top| !self.certainly_better(top.scenario, c.scenario, better().count()))
        };
        let nearest = better().filter(equal).min_by_key(|c| self.distance(axis, group, baseline, c.scenario));
        let best = nearest.map_or(baseline, |c| c.scenario);
        let looks_better = |c: &&Comparison| nearest.is_some_and(|nearest| gain(c) > gain(nearest));
        let ties = better().filter(equal).filter(looks_better).map(|c| c.scenario).collect();
        // A lower bound cannot be the worst: the system may be better than it looks.
        let gains = comparisons.iter().map(|c| (gain(c), c.scenario)).chain([(1.0, baseline)]);
        let comparable = gains.filter(|(gain, other)| {
            let e = &self.estimates[*other];
            *gain > 0.0 && *other != best && e.compares() && !e.is_lower_bound()
        });
        let ratios = comparable.filter_map(|(gain, other)| Some((gain, other, self.ratio(best, other)?)));
        let (_, worst, location) = ratios.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Best { scenario: best, baseline, worst, ties, location })
    }

    /// The logarithm of how many times better one scenario is than another. None if there are too few rounds.
    pub fn ratio(&self, a: usize, b: usize) -> Option<Location> {
        let rounds = |index: usize| &self.estimates[index].by_round;
        let ratios = log_ratios(self.planned.figure, rounds(a), rounds(b));
        let numbers: Vec<f64> = ratios.into_iter().map(|(_, ratio)| ratio).collect();
        Location::of(&numbers).filter(|_| numbers.len() >= FEWEST_ROUNDS)
    }

    /// Whether scenario `a`, the highest of `candidates`, is certainly better than `b`. The p-value is corrected for the
    /// selection.
    fn certainly_better(&self, a: usize, b: usize, candidates: usize) -> bool {
        let (a, b) = (&self.estimates[a], &self.estimates[b]);
        let seen = self.design.compare(&log_ratios(self.planned.figure, &a.by_round, &b.by_round));
        let verdict = seen.map(|seen| self.bar.judge(&seen, seen.p * candidates as f64));
        // If `b` is a lower bound, it may be as good.
        verdict == Some(Verdict::Faster) && !b.is_lower_bound()
    }

    /// A sort key: the number of values from one scenario's value to another's, then the position of the second.
    /// Integers are in ascending order, other values in the grid's.
    fn distance(&self, axis: &Axis, group: &[usize], from: usize, to: usize) -> (usize, usize) {
        let value = |index: usize| self.planned.scenarios[index].point.get(&axis.knob);
        let mut order = group.to_vec();
        if order.iter().all(|index| matches!(value(*index), Some(Value::Integer(_)))) {
            order.sort_by_key(|index| value(*index));
        }
        let place = |index: usize| order.iter().position(|other| *other == index).unwrap_or(0);
        (place(from).abs_diff(place(to)), place(to))
    }
}

#[cfg(test)]
mod tests;
