//! Main effects: for each knob of a grid, how far its best value lies from its worst, whether it is flat, and on which other
//! knob that depends.
//!
//! Best and worst are chosen by the data, which flatters them: their interval is widened as if every pair of values had been
//! compared (Bonferroni). An interaction is a ratio of ratios inside rounds, corrected by Holm among all of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Bar, Design, FEWEST_ROUNDS, LEVEL, Location, Verdict, holm};
use systems::Value;

use super::asked::{baseline, groups, is_work};
use super::best::Judgement;
use super::comparison::log_ratios;
use super::table::varied;
use super::{Estimate, Ratio};
use crate::experiment::grid::Axis;
use crate::observation::Scenario;
use crate::plan::Planned;

/// What one knob does.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Effect {
    /// The knob.
    pub knob: String,
    /// The scenario at its best value, where it matters most; a position among the estimates. The best is the value nearest to
    /// what the others are compared with that cannot be told from the highest; without a verdict, the highest.
    pub best: usize,
    /// The same at its worst value.
    pub worst: usize,
    /// The same at values that look better and cannot be told from the best.
    pub ties: Vec<usize>,
    /// Of the best to the worst; the interval allows for the choice of the two.
    pub ratio: Ratio,
    /// `faster`: it matters, by one of its comparisons. `no_difference`: it is flat, by all of them.
    pub verdict: Verdict,
    /// Other knobs on which its effect depends, the strongest first.
    pub depends_on: Vec<Interaction>,
}

/// The effect of a knob is not the same at two values of another.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Interaction {
    /// The other knob.
    pub knob: String,
    /// The values of the knob that are compared, as people read them: this one ...
    pub value: String,
    /// ... against this one.
    pub against: String,
    /// The other knob's value where that ratio is larger, and the ratio.
    pub most: (String, f64),
    /// The other knob's value where it is smaller, and the ratio.
    pub least: (String, f64),
    /// The one ratio to the other.
    pub ratio: Ratio,
}

/// One for each knob that varies and does not set the work.
pub(super) fn effects(judgement: &Judgement) -> Vec<Effect> {
    let Judgement { planned, design, estimates, bar, .. } = *judgement;
    let mut interactions = interactions(planned, design, estimates, bar);
    let axes = varied(planned).filter(|axis| !is_work(planned, axis));
    let mut effects: Vec<Effect> = axes
        .filter_map(|axis| {
            let mut effect = effect(judgement, axis)?;
            effect.depends_on = interactions.remove(&axis.knob).unwrap_or_default();
            Some(effect)
        })
        .collect();
    effects.sort_by(|a, b| b.ratio.estimate.total_cmp(&a.ratio.estimate));
    effects
}

fn effect(judgement: &Judgement, axis: &Axis) -> Option<Effect> {
    let groups = groups(judgement.planned, &axis.knob);
    let pairs: usize = groups.iter().map(|group| group.len() * (group.len() - 1) / 2).sum();
    let flat = judgement.own(axis).next().is_some()
        && judgement.own(axis).all(|c| c.verdict == Verdict::NoDifference);
    let (verdict, best, worst, ties, location) = match judgement.best(axis, None) {
        Some(best) => (Verdict::Faster, best.at, best.worst, best.ties, best.location),
        None => {
            let each = groups.iter().filter_map(|group| extremes(judgement, group));
            let far = each.reduce(|a, b| if b.2.estimate > a.2.estimate { b } else { a })?;
            let verdict = if flat { Verdict::NoDifference } else { Verdict::Undecided { more_rounds: None } };
            (verdict, far.0, far.1, Vec::new(), far.2)
        }
    };
    let (low, high) = location.interval(judgement.design.level(pairs));
    let ratio = Ratio::of_logs(location.estimate, low, high);
    Some(Effect { knob: axis.knob.clone(), best, worst, ties, ratio, verdict, depends_on: Vec::new() })
}

/// The highest and the lowest of values of which none is decided to be better than another.
fn extremes(judgement: &Judgement, group: &[usize]) -> Option<(usize, usize, Location)> {
    let Judgement { planned, estimates, .. } = *judgement;
    let fair = || group.iter().copied().filter(|at| estimates[*at].compares());
    let order = |a: &usize, b: &usize| {
        let figure = |at: usize| estimates[at].figure.unwrap_or(f64::NAN);
        planned.figure.advantage(figure(*a), figure(*b)).total_cmp(&1.0)
    };
    let (best, worst) = (fair().max_by(order)?, fair().min_by(order)?);
    // A value that the generator held back may be better than it looks.
    if best == worst || estimates[worst].is_lower_bound() {
        return None;
    }
    Some((best, worst, judgement.ratio(best, worst)?))
}

/// Two values of a knob at two values of another: positions of value/other, against/other, value/base, against/base.
struct Square {
    knob: String,
    other: String,
    at: [usize; 4],
    location: Location,
}

/// By knob, the strongest for each other knob.
fn interactions(
    planned: &Planned,
    design: Design,
    estimates: &[Estimate],
    bar: Bar,
) -> BTreeMap<String, Vec<Interaction>> {
    let squares = squares(planned, estimates);
    let p = holm(&squares.iter().map(|s| design.corrected(s.location.p())).collect::<Vec<_>>());
    let least = bar.floor.map(|floor| floor.max(bar.threshold));
    let sure = squares.iter().zip(p).filter(|(square, p)| {
        *p <= LEVEL && least.is_some_and(|least| square.location.estimate.abs() > least)
    });
    let mut found: BTreeMap<(String, String), &Square> = BTreeMap::new();
    for (square, _) in sure {
        let known = found.entry((square.knob.clone(), square.other.clone())).or_insert(square);
        if square.location.estimate.abs() > known.location.estimate.abs() {
            *known = square;
        }
    }
    let mut by_knob: BTreeMap<String, Vec<Interaction>> = BTreeMap::new();
    for ((knob, _), square) in found {
        let interaction = interaction(planned, design, estimates, square, squares.len());
        by_knob.entry(knob).or_default().push(interaction);
    }
    for all in by_knob.values_mut() {
        all.sort_by(|a, b| b.ratio.estimate.total_cmp(&a.ratio.estimate));
    }
    by_knob
}

fn squares(planned: &Planned, estimates: &[Estimate]) -> Vec<Square> {
    let axes: Vec<&Axis> = varied(planned).collect();
    let known: BTreeMap<&Scenario, usize> =
        planned.scenarios.iter().enumerate().map(|(at, scenario)| (scenario, at)).collect();
    let find =
        |of: usize, knob: &str, value: &Value| known.get(&planned.scenarios[of].with(knob, value)?).copied();
    let mut squares = Vec::new();
    for (i, axis) in axes.iter().enumerate().filter(|(_, axis)| !is_work(planned, axis)) {
        // Of two knobs that both may matter, each depends on the other: told once.
        let others = axes.iter().enumerate().filter(|(j, other)| *j > i || is_work(planned, other));
        for (_, other) in others {
            for group in groups(planned, &axis.knob) {
                let Some(against) = baseline(planned, axis, &group) else { continue };
                let Some(here) = planned.scenarios[against].point.get(&other.knob) else { continue };
                for value in group.iter().filter(|at| **at != against) {
                    // Each pair of the other's values once: those behind this one.
                    let later = other.values.iter().skip_while(|v| *v != here).skip(1);
                    for there in later {
                        let (Some(a), Some(b)) =
                            (find(*value, &other.knob, there), find(against, &other.knob, there))
                        else {
                            continue;
                        };
                        let at = [a, b, *value, against];
                        squares.extend(square(planned, estimates, axis, other, at));
                    }
                }
            }
        }
    }
    squares
}

fn square(
    planned: &Planned,
    estimates: &[Estimate],
    axis: &Axis,
    other: &Axis,
    at: [usize; 4],
) -> Option<Square> {
    let each = at.map(|at| &estimates[at]);
    if each.iter().any(|e| !e.compares() || e.is_lower_bound()) {
        return None;
    }
    let [a, b, c, d] = each.map(|e| &e.by_round);
    let there: BTreeMap<u32, f64> = log_ratios(planned.figure, a, b).into_iter().collect();
    let here = log_ratios(planned.figure, c, d);
    let both: Vec<f64> = here.iter().filter_map(|(round, ratio)| Some(there.get(round)? - ratio)).collect();
    let location = Location::of(&both).filter(|_| both.len() >= FEWEST_ROUNDS)?;
    Some(Square { knob: axis.knob.clone(), other: other.knob.clone(), at, location })
}

fn interaction(
    planned: &Planned,
    design: Design,
    estimates: &[Estimate],
    square: &Square,
    several: usize,
) -> Interaction {
    let axis = |knob: &str| planned.axes.iter().find(|axis| axis.knob == knob);
    let show = |at: usize, knob: &str| match (axis(knob), planned.scenarios[at].point.get(knob)) {
        (Some(axis), Some(value)) => axis.show(value),
        _ => String::new(),
    };
    let ratio_at = |a: usize, b: usize| {
        let ratios = log_ratios(planned.figure, &estimates[a].by_round, &estimates[b].by_round);
        let numbers: Vec<f64> = ratios.into_iter().map(|(_, ratio)| ratio).collect();
        Location::of(&numbers).map_or(1.0, |l| l.estimate.exp())
    };
    let [a, b, c, d] = square.at;
    let (low, high) = square.location.interval(design.level(several));
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
