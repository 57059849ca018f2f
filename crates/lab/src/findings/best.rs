//! The best value of a knob: one definition, for the sentences, the main effects, and the lines that apply it.
//!
//! Stands on verdicts, not on figures: the highest of some figures is highest partly by luck. Of the values that are
//! certainly better than what the knob's values are compared with, it is the one nearest to that which cannot be told
//! from the best of them: of 256K and 512K that are equal as far as anybody can say, the smaller. Where no value is
//! certainly better and one is certainly worse, the best is what they are compared with.

use stats::{Bar, Design, FEWEST_ROUNDS, Location, Verdict};
use systems::Value;

use super::asked::{baseline, groups};
use super::comparison::log_ratios;
use super::{By, Comparison, Estimate};
use crate::experiment::grid::Axis;
use crate::plan::Planned;

/// The values of a knob while all else stands still, judged. Scenarios are positions among the estimates.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Best {
    /// The scenario at the best value.
    pub at: usize,
    /// That at the value which the others are compared with; the same as `at` where none is better.
    pub baseline: usize,
    /// That at the worst value.
    pub worst: usize,
    /// Those at values that look better and cannot be told from the best.
    pub ties: Vec<usize>,
    /// Of the best to the worst, inside rounds.
    pub location: Location,
}

/// What the comparisons of an experiment say, and by what they were judged.
#[derive(Clone, Copy)]
pub(super) struct Judgement<'a> {
    pub planned: &'a Planned,
    pub design: Design,
    pub estimates: &'a [Estimate],
    pub comparisons: &'a [Comparison],
    pub bar: Bar,
}

impl<'a> Judgement<'a> {
    /// The knob's best value where it does most; of one system, or of all. None where nothing is decided to differ.
    pub fn best(&self, axis: &Axis, system: Option<&str>) -> Option<Best> {
        let of = |at: usize| system.is_none_or(|name| self.estimates[at].scenario.system == name);
        let groups = groups(self.planned, &axis.knob).into_iter().filter(|group| of(group[0]));
        let each = groups.filter_map(|group| self.of_group(axis, &group));
        each.reduce(|a, b| if b.location.estimate > a.location.estimate { b } else { a })
    }

    /// What was asked of a knob.
    pub fn own(&self, axis: &Axis) -> impl Iterator<Item = &'a Comparison> + use<'a> {
        let by = By::Knob(axis.knob.clone());
        self.comparisons.iter().filter(move |c| c.by == by)
    }

    fn of_group(&self, axis: &Axis, group: &[usize]) -> Option<Best> {
        let baseline = baseline(self.planned, axis, group)?;
        let own: Vec<&Comparison> =
            self.own(axis).filter(|c| c.against == baseline && group.contains(&c.scenario)).collect();
        let gain = |c: &Comparison| c.ratio.map_or(0.0, |ratio| ratio.estimate);
        let better = || own.iter().copied().filter(|c| c.verdict == Verdict::Faster);
        let top = better().max_by(|a, b| gain(a).total_cmp(&gain(b)));
        if top.is_none() && own.iter().all(|c| c.verdict != Verdict::Slower) {
            return None;
        }
        let equal = |c: &&Comparison| {
            top.is_some_and(|top| !self.certain(top.scenario, c.scenario, better().count()))
        };
        let nearest = better().filter(equal).min_by_key(|c| self.distance(axis, group, baseline, c.scenario));
        let at = nearest.map_or(baseline, |c| c.scenario);
        let above = |c: &&Comparison| nearest.is_some_and(|own| gain(c) > gain(own));
        let ties = better().filter(equal).filter(above).map(|c| c.scenario).collect();
        // Of what the generator held back nobody knows that it is the worst.
        let known = own.iter().map(|c| (gain(c), c.scenario)).chain([(1.0, baseline)]);
        let fair = known.filter(|(gain, other)| {
            let e = &self.estimates[*other];
            *gain > 0.0 && *other != at && e.compares() && !e.is_lower_bound()
        });
        let far = fair.filter_map(|(gain, other)| Some((gain, other, self.ratio(at, other)?)));
        let (_, worst, location) = far.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Best { at, baseline, worst, ties, location })
    }

    /// How many times better one scenario is than another, as a logarithm; None of too few rounds.
    pub fn ratio(&self, a: usize, b: usize) -> Option<Location> {
        let rounds = |at: usize| &self.estimates[at].by_round;
        let ratios = log_ratios(self.planned.figure, rounds(a), rounds(b));
        let numbers: Vec<f64> = ratios.into_iter().map(|(_, ratio)| ratio).collect();
        Location::of(&numbers).filter(|_| numbers.len() >= FEWEST_ROUNDS)
    }

    /// Whether one scenario is better than another beyond doubt, the one being the best of so many.
    fn certain(&self, a: usize, b: usize, several: usize) -> bool {
        let (a, b) = (&self.estimates[a], &self.estimates[b]);
        let seen = self.design.compare(&log_ratios(self.planned.figure, &a.by_round, &b.by_round));
        let judged = seen.map(|seen| self.bar.judge(&seen, seen.p * several as f64));
        // What the generator held back may be as good.
        judged == Some(Verdict::Faster) && !b.is_lower_bound()
    }

    /// How many values lie between two of a group, numbers in their order, words in the grid's; of two equally far the
    /// lower.
    fn distance(&self, axis: &Axis, group: &[usize], from: usize, to: usize) -> (usize, usize) {
        let value = |at: usize| self.planned.scenarios[at].point.get(&axis.knob);
        let mut order = group.to_vec();
        if order.iter().all(|at| matches!(value(*at), Some(Value::Integer(_)))) {
            order.sort_by_key(|at| value(*at));
        }
        let place = |at: usize| order.iter().position(|other| *other == at).unwrap_or(0);
        (place(from).abs_diff(place(to)), place(to))
    }
}

#[cfg(test)]
mod tests;
