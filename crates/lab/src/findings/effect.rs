//! Main effects: for each knob of a grid, the ratio of its best value to its worst, whether it is flat, and the other
//! knobs on which its effect depends.
//!
//! Best and worst are selected by the data, which exaggerates their ratio. Its interval is therefore widened as if every
//! pair of values had been compared (Bonferroni). An interaction is a ratio of ratios within rounds. Holm's method
//! corrects for the number of interactions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stats::{FEWEST_ROUNDS, LEVEL, Location, Verdict, holm};
use systems::Value;

use super::asked::{baseline, groups, is_work};
use super::best::Results;
use super::comparison::log_ratios;
use super::table::varied;
use super::{Estimate, Ratio};
use crate::experiment::grid::Axis;
use crate::observation::Scenario;
use crate::plan::View;

/// The main effect of one knob.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effect {
    /// The knob.
    pub knob: String,
    /// The scenario at the knob's best value, in the group in which it matters most. It is a position in the estimates. The
    /// best value is the highest, or a nearer one that is shown to be as good. If nothing is decided, it is the highest.
    pub best: usize,
    /// The scenario at the knob's worst value.
    pub worst: usize,
    /// The scenarios at other values that are shown to be as good as the highest, within the threshold.
    #[serde(default)]
    pub equal: Vec<usize>,
    /// The scenarios at other values that may be as good: these rounds cannot tell.
    pub ties: Vec<usize>,
    /// The ratio of the best to the worst. Its interval is corrected for the selection of the two.
    pub ratio: Ratio,
    /// `faster` if at least one comparison shows a difference; `no_difference` if none does and all are decided.
    pub verdict: Verdict,
    /// Other knobs on which its effect depends, the strongest first.
    pub depends_on: Vec<Interaction>,
}

/// The effect of a knob is not the same at two values of another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interaction {
    /// The other knob.
    pub knob: String,
    /// The value of the knob that is compared, formatted.
    pub value: String,
    /// The value that it is compared with, formatted.
    pub against: String,
    /// The other knob's value at which that ratio is larger, and the ratio.
    pub most: (String, f64),
    /// The other knob's value at which that ratio is smaller, and the ratio.
    pub least: (String, f64),
    /// The ratio of the larger ratio to the smaller.
    pub ratio: Ratio,
}

/// One effect for each knob that varies and does not set the work, the largest first.
pub(super) fn effects(results: &Results) -> Vec<Effect> {
    let planned = results.planned;
    let mut interactions = interactions(results);
    let axes = varied(planned).filter(|axis| !is_work(planned, axis));
    let mut effects: Vec<Effect> = axes
        .filter_map(|axis| {
            let mut effect = effect(results, axis)?;
            effect.depends_on = interactions.remove(&axis.knob).unwrap_or_default();
            Some(effect)
        })
        .collect();
    effects.sort_by(|a, b| b.ratio.estimate.total_cmp(&a.ratio.estimate));
    effects
}

fn effect(results: &Results, axis: &Axis) -> Option<Effect> {
    let groups = groups(results.planned, &axis.knob);
    let pairs: usize = groups.iter().map(|group| group.len() * (group.len() - 1) / 2).sum();
    let (verdict, best, worst, [equal, ties], location) = match results.best(axis, None) {
        Some(best) => (Verdict::Faster, best.scenario, best.worst, [best.equal, best.ties], best.location),
        None => {
            let extremes = groups.iter().filter_map(|group| extremes(results, group));
            let farthest = extremes.reduce(|a, b| if b.2.estimate > a.2.estimate { b } else { a })?;
            let mut verdicts = results.comparisons_of(axis).map(|c| c.verdict).peekable();
            let flat = verdicts.peek().is_some() && verdicts.all(|v| v == Verdict::NoDifference);
            let verdict = if flat { Verdict::NoDifference } else { Verdict::Undecided { more_rounds: None } };
            (verdict, farthest.0, farthest.1, [Vec::new(), Vec::new()], farthest.2)
        }
    };
    let (low, high) = location.interval(results.rows.level(&location, pairs));
    let ratio = Ratio::of_logs(location.estimate, low, high);
    Some(Effect { knob: axis.knob.clone(), best, worst, equal, ties, ratio, verdict, depends_on: Vec::new() })
}

/// The scenarios with the best and the worst figure of a group, and their ratio.
fn extremes(results: &Results, group: &[usize]) -> Option<(usize, usize, Location)> {
    let Results { planned, estimates, .. } = *results;
    let comparable = || group.iter().copied().filter(|index| estimates[*index].compares());
    let order = |a: &usize, b: &usize| {
        let figure = |index: usize| estimates[index].figure.unwrap_or(f64::NAN);
        planned.figure.advantage(figure(*a), figure(*b)).total_cmp(&1.0)
    };
    let (best, worst) = (comparable().max_by(order)?, comparable().min_by(order)?);
    // A lower bound may be better than it looks.
    if best == worst || estimates[worst].is_lower_bound() {
        return None;
    }
    Some((best, worst, results.rows.ratio(best, worst)?))
}

/// The four scenarios at two values of a knob and two values of another.
struct Square {
    knob: String,
    other: String,
    /// The scenarios at value/other, against/other, value/base, against/base.
    corners: [usize; 4],
    location: Location,
}

/// The interactions of each knob: the strongest with each other knob.
fn interactions(results: &Results) -> BTreeMap<String, Vec<Interaction>> {
    let Results { planned, estimates, rows, .. } = *results;
    let squares = squares(planned, estimates);
    // A square is examined at one look only, whose share of the error it has.
    let p = |square: &Square| square.location.p() * LEVEL / rows.level(&square.location, 1);
    let p = holm(&squares.iter().map(p).collect::<Vec<_>>());
    let least = planned.threshold.ln_1p();
    let significant =
        squares.iter().zip(p).filter(|(square, p)| *p <= LEVEL && square.location.estimate.abs() > least);
    let mut found: BTreeMap<(String, String), &Square> = BTreeMap::new();
    for (square, _) in significant {
        let known = found.entry((square.knob.clone(), square.other.clone())).or_insert(square);
        if square.location.estimate.abs() > known.location.estimate.abs() {
            *known = square;
        }
    }
    let mut by_knob: BTreeMap<String, Vec<Interaction>> = BTreeMap::new();
    for ((knob, _), square) in found {
        let interaction = interaction(results, square, squares.len());
        by_knob.entry(knob).or_default().push(interaction);
    }
    for all in by_knob.values_mut() {
        all.sort_by(|a, b| b.ratio.estimate.total_cmp(&a.ratio.estimate));
    }
    by_knob
}

fn squares(planned: &View<'_>, estimates: &[Estimate]) -> Vec<Square> {
    let axes: Vec<&Axis> = varied(planned).collect();
    let indexes: BTreeMap<&Scenario, usize> =
        planned.scenarios.iter().enumerate().map(|(index, scenario)| (scenario, index)).collect();
    let find = |index: usize, knob: &str, value: &Value| {
        indexes.get(&planned.scenarios[index].with(knob, value)?).copied()
    };
    let mut squares = Vec::new();
    for (i, axis) in axes.iter().enumerate().filter(|(_, axis)| !is_work(planned, axis)) {
        // Interactions are symmetric, so each pair of knobs is taken once.
        let others = axes.iter().enumerate().filter(|(j, other)| *j > i || is_work(planned, other));
        for (_, other) in others {
            for group in groups(planned, &axis.knob) {
                let Some(against) = baseline(planned, axis, &group) else { continue };
                let Some(here) = planned.scenarios[against].point.get(&other.knob) else { continue };
                for value in group.iter().filter(|index| **index != against) {
                    // Each pair of the other knob's values is taken once.
                    let later = other.values.iter().skip_while(|v| *v != here).skip(1);
                    for there in later {
                        let (Some(a), Some(b)) =
                            (find(*value, &other.knob, there), find(against, &other.knob, there))
                        else {
                            continue;
                        };
                        let corners = [a, b, *value, against];
                        squares.extend(square(planned, estimates, axis, other, corners));
                    }
                }
            }
        }
    }
    squares
}

fn square(
    planned: &View<'_>,
    estimates: &[Estimate],
    axis: &Axis,
    other: &Axis,
    corners: [usize; 4],
) -> Option<Square> {
    let corner_estimates = corners.map(|index| &estimates[index]);
    if corner_estimates.iter().any(|e| !e.compares() || e.is_lower_bound()) {
        return None;
    }
    let [a, b, c, d] = corner_estimates.map(|e| &e.by_round);
    let there: BTreeMap<u32, f64> = log_ratios(planned.figure, a, b).into_iter().collect();
    let here = log_ratios(planned.figure, c, d);
    let differences: Vec<f64> =
        here.iter().filter_map(|(round, ratio)| Some(there.get(round)? - ratio)).collect();
    let bound = corner_estimates.iter().map(|e| e.bound()).sum();
    let location = Location::of(&differences).filter(|_| differences.len() >= FEWEST_ROUNDS)?.within(bound);
    Some(Square { knob: axis.knob.clone(), other: other.knob.clone(), corners, location })
}

fn interaction(results: &Results, square: &Square, squares: usize) -> Interaction {
    let Results { planned, rows, .. } = *results;
    let axis = |knob: &str| planned.axes.iter().find(|axis| axis.knob == knob);
    let show = |index: usize, knob: &str| match (axis(knob), planned.scenarios[index].point.get(knob)) {
        (Some(axis), Some(value)) => axis.show(value),
        _ => String::new(),
    };
    let ratio_at = |a: usize, b: usize| rows.ratio(a, b).map_or(1.0, |location| location.estimate.exp());
    let [a, b, c, d] = square.corners;
    let (low, high) = square.location.interval(rows.level(&square.location, squares));
    let ratio = Ratio::of_logs(square.location.estimate, low, high);
    let there = (show(a, &square.other), ratio_at(a, b));
    let here = (show(c, &square.other), ratio_at(c, d));
    let (most, least) = if there.1 >= here.1 { (there, here) } else { (here, there) };
    Interaction {
        knob: square.other.clone(),
        value: show(a, &square.knob),
        against: show(b, &square.knob),
        most,
        least,
        ratio: ratio.upwards(),
    }
}
