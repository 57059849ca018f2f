//! Which system to take: the leader at one point of the work, the systems that may be as fast, and the rest in order.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use stats::Verdict;

use super::asked::{Field, fields};
use super::{Comparison, Estimate, Ratio};
use crate::plan::View;

/// A system behind the leader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Behind {
    /// Its scenario, as a position in the estimates.
    pub scenario: usize,
    /// How many times faster the leader is. None if it is not certainly faster.
    pub ratio: Option<Ratio>,
}

/// The order of the systems at one point.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Order {
    /// The leader against the fastest system that is certainly slower. Its verdict is `faster`.
    pub lead: Comparison,
    /// The systems that are shown to be as fast as the leader, within the threshold.
    pub equal: Vec<usize>,
    /// The systems that may be as fast: no other is certainly faster than them.
    pub ties: Vec<usize>,
    /// The others, the fastest first, without the one that the leader is compared with.
    pub rest: Vec<Behind>,
    /// The leaders at other points of the work, where they are other systems.
    pub elsewhere: Vec<usize>,
}

/// The order at the point at which most comparisons are decided: of the systems at their defaults, or of those at like settings.
/// None if none is decided at any point.
pub(super) fn order(
    planned: &View<'_>,
    estimates: &[Estimate],
    comparisons: &[&Comparison],
    alike: bool,
) -> Option<Order> {
    let fields: Vec<Field> = fields(planned).into_iter().filter(|field| field.alike == alike).collect();
    // Points have no scenario in common.
    let places =
        fields.iter().enumerate().flat_map(|(at, field)| field.scenarios.iter().map(move |s| (*s, at)));
    let places: BTreeMap<usize, usize> = places.collect();
    let mut points: Vec<Vec<&Comparison>> = vec![Vec::new(); fields.len()];
    for c in comparisons.iter().copied().filter(|c| c.ratio.is_some()) {
        let [one, other] = [c.scenario, c.against].map(|at| places.get(&at));
        if let Some(point) = one.filter(|_| one == other).and_then(|at| points.get_mut(*at)) {
            point.push(c);
        }
    }
    let decided = |point: &[&Comparison]| point.iter().filter(|c| winner(c).is_some()).count();
    points.retain(|point| decided(point) > 0);
    // The first of those with the most, in the plan's order.
    points.sort_by_key(|point| (usize::MAX - decided(point), point.iter().map(|c| c.against).min()));
    let (first, others) = points.split_first()?;
    let mut order = order_at(planned, estimates, first)?;
    let system = |at: usize| &planned.scenarios[at].system;
    let others = others.iter().filter_map(|point| order_at(planned, estimates, point));
    let leaders = others.map(|other| other.lead.scenario);
    order.elsewhere = leaders.filter(|at| system(*at) != system(order.lead.scenario)).collect();
    Some(order)
}

fn order_at(planned: &View<'_>, estimates: &[Estimate], comparisons: &[&Comparison]) -> Option<Order> {
    let all: BTreeSet<usize> = comparisons.iter().flat_map(|c| [c.scenario, c.against]).collect();
    let losers: BTreeSet<usize> = comparisons.iter().filter_map(|c| Some(winner(c)?.1)).collect();
    let winners: BTreeSet<usize> = comparisons.iter().filter_map(|c| Some(winner(c)?.0)).collect();
    let figure = |index: usize| estimates[index].figure.unwrap_or(f64::NAN);
    let by_speed = |a: &usize, b: &usize| planned.figure.advantage(figure(*b), figure(*a)).total_cmp(&1.0);
    let mut all: Vec<usize> = all.into_iter().collect();
    all.sort_by(by_speed);
    let leader = *all.iter().find(|index| winners.contains(index) && !losers.contains(index))?;
    let of_leader = comparisons.iter().filter(|c| [c.scenario, c.against].contains(&leader));
    let of_leader = of_leader.map(|c| seen_from(leader, c)).map(|c| (c.against, c));
    let of_leader: BTreeMap<usize, Comparison> = of_leader.collect();
    let (ties, behind): (Vec<usize>, Vec<usize>) =
        all.into_iter().filter(|index| *index != leader).partition(|index| !losers.contains(index));
    let beaten = |other: &usize| of_leader.get(other).filter(|c| c.verdict == Verdict::Faster);
    let shown = |other: &usize| of_leader.get(other).is_some_and(|c| c.verdict == Verdict::NoDifference);
    let (equal, ties): (Vec<usize>, Vec<usize>) = ties.into_iter().partition(shown);
    let lead = behind.iter().find_map(beaten)?.clone();
    let rest = behind.iter().filter(|index| **index != lead.against);
    let ratio = |index: &usize| beaten(index).and_then(|c| c.ratio);
    let rest = rest.map(|index| Behind { scenario: *index, ratio: ratio(index) }).collect();
    Some(Order { lead, equal, ties, rest, elsewhere: Vec::new() })
}

/// The faster and the slower scenario of a decided comparison.
fn winner(c: &Comparison) -> Option<(usize, usize)> {
    match c.verdict {
        Verdict::Faster => Some((c.scenario, c.against)),
        Verdict::Slower => Some((c.against, c.scenario)),
        _ => None,
    }
}

/// The same comparison with this scenario as the first.
fn seen_from(first: usize, c: &Comparison) -> Comparison {
    if c.scenario == first {
        return c.clone();
    }
    let verdict = match c.verdict {
        Verdict::Faster => Verdict::Slower,
        Verdict::Slower => Verdict::Faster,
        other => other,
    };
    let ratio = c.ratio.map(|ratio| ratio.inverse());
    Comparison { scenario: c.against, against: c.scenario, ratio, verdict, ..c.clone() }
}
