//! Which comparisons an experiment asks for: chosen before anything is measured, so that no chance result chooses them.
//!
//! - Each value of a knob against the system's own default, or where the grid leaves that out, against its first value;
//!   everything else equal.
//! - Knobs that set how much work one operation is: each value against the one below it, as far as the fall is more
//!   than the additional work explains.
//! - The systems in pairs at each point of the workload's knobs, their own knobs at what other values are compared with.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systems::work::Purpose;
use systems::{Point, Value, is_reference};

use crate::experiment::Figure;
use crate::experiment::grid::Axis;
use crate::observation::{Scenario, projection};
use crate::plan::Planned;

/// A fall between neighbouring values beyond what their ratio explains, from which it is called a cliff.
pub const CLIFF: f64 = 1.5;

/// In what two scenarios differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// In this knob; the second stands at what its values are compared with.
    Knob(String),
    /// In this knob, which sets the work: the second does the next smaller amount.
    Step(String),
    /// In the system.
    System,
}

impl By {
    /// The knob; None of systems.
    pub fn knob(&self) -> Option<&str> {
        match self {
            Self::Knob(knob) | Self::Step(knob) => Some(knob),
            Self::System => None,
        }
    }
}

/// A comparison that is asked for; scenarios by their position in the plan.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub scenario: usize,
    pub against: usize,
    pub by: By,
    /// The logarithm of the ratio that says nothing: zero, or what more work explains.
    pub expected: f64,
    /// The logarithm of the smallest ratio worth having.
    pub threshold: f64,
}

/// All of an experiment's.
pub(super) fn asked(planned: &Planned) -> Vec<Asked> {
    let threshold = planned.threshold.ln_1p();
    let mut all = Vec::new();
    for axis in planned.axes.iter().filter(|axis| axis.values.len() > 1) {
        for group in groups(planned, &axis.knob) {
            if is_work(planned, axis) {
                all.extend(steps(planned, axis, group));
                continue;
            }
            let Some(baseline) = baseline(planned, axis, &group) else { continue };
            all.extend(group.into_iter().filter(|at| *at != baseline).map(|scenario| Asked {
                scenario,
                against: baseline,
                by: By::Knob(axis.knob.clone()),
                expected: 0.0,
                threshold,
            }));
        }
    }
    let pairs = system_pairs(planned).into_iter();
    all.extend(pairs.map(|(scenario, against)| Asked {
        scenario,
        against,
        by: By::System,
        expected: 0.0,
        threshold,
    }));
    all
}

/// Whether a knob sets the work: that more of it takes longer is no finding. Only cliffs are.
pub(super) fn is_work(planned: &Planned, axis: &Axis) -> bool {
    match planned.workload.purpose(&axis.knob) {
        Purpose::Amount | Purpose::Patience => true,
        // The time of one upload among several that share a machine is work, too.
        Purpose::Sharing => planned.figure == Figure::MsPerUpload,
        // More requests a second are not more work for one of them: whether its response time keeps is the question.
        Purpose::Rate => planned.figure != Figure::P99Us,
        Purpose::Behaviour => false,
    }
}

/// The systems' scenarios, by position.
fn own(planned: &Planned) -> impl Iterator<Item = (usize, &Scenario)> {
    planned.scenarios.iter().enumerate().filter(|(_, scenario)| !is_reference(&scenario.system))
}

/// Scenarios that differ in one knob only, in its order.
pub(super) fn groups(planned: &Planned, knob: &str) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<(&str, Point), Vec<usize>> = BTreeMap::new();
    for (at, scenario) in own(planned).filter(|(_, scenario)| scenario.point.contains_key(knob)) {
        let mut rest = scenario.point.clone();
        rest.remove(knob);
        groups.entry((&scenario.system, rest)).or_default().push(at);
    }
    let value = |at: &usize| planned.scenarios[*at].point.get(knob);
    let order = |at: &usize| {
        let axis = planned.axes.iter().find(|axis| axis.knob == knob);
        axis.and_then(|axis| axis.values.iter().position(|v| Some(v) == value(at)))
    };
    let mut groups: Vec<Vec<usize>> = groups.into_values().filter(|group| group.len() > 1).collect();
    groups.iter_mut().for_each(|group| group.sort_by_key(order));
    // In the plan's order, not that of the points' words.
    groups.sort_by_key(|group| group.iter().min().copied());
    groups
}

/// What the other values of a group are compared with.
pub(super) fn baseline(planned: &Planned, axis: &Axis, group: &[usize]) -> Option<usize> {
    let default = planned.default_of(&planned.scenarios[*group.first()?].system, axis);
    let at_default = |at: &&usize| planned.scenarios[**at].point.get(&axis.knob) == default;
    group.iter().find(|at| default.is_some() && at_default(at)).or(group.first()).copied()
}

fn steps(planned: &Planned, axis: &Axis, mut group: Vec<usize>) -> Vec<Asked> {
    let number = |at: usize| match planned.scenarios[at].point.get(&axis.knob) {
        Some(Value::Integer(number)) if *number > 0 => Some(*number as f64),
        _ => None,
    };
    group.retain(|at| number(*at).is_some());
    group.sort_by(|a, b| number(*a).unwrap_or(0.0).total_cmp(&number(*b).unwrap_or(0.0)));
    // As many answers as were asked for: what is done grows with a rate, and falls with the size of one operation.
    let rate = planned.workload.purpose(&axis.knob) == Purpose::Rate;
    let sign = if rate && planned.figure.more_is_better() { 1.0 } else { -1.0 };
    let pairs = group.windows(2).filter_map(|pair| Some((pair, number(pair[0])?, number(pair[1])?)));
    let each = pairs.map(|(pair, small, large)| Asked {
        scenario: pair[1],
        against: pair[0],
        by: By::Step(axis.knob.clone()),
        expected: sign * (large / small).ln(),
        threshold: CLIFF.ln(),
    });
    each.collect()
}

/// Each system's scenario at each point of the workload's knobs, in pairs.
fn system_pairs(planned: &Planned) -> Vec<(usize, usize)> {
    let mut points: BTreeMap<Point, BTreeMap<&str, usize>> = BTreeMap::new();
    for (at, scenario) in own(planned) {
        let shared = projection(planned.workload, &scenario.point);
        let chosen = points.entry(shared).or_default().entry(&scenario.system).or_insert(at);
        if far(planned, scenario) < far(planned, &planned.scenarios[*chosen]) {
            *chosen = at;
        }
    }
    let mut pairs = Vec::new();
    for systems in points.into_values() {
        let mut systems: Vec<usize> = systems.into_values().collect();
        systems.sort_unstable();
        for (i, against) in systems.iter().enumerate() {
            pairs.extend(systems[i + 1..].iter().map(|scenario| (*scenario, *against)));
        }
    }
    pairs.sort_by_key(|(scenario, against)| (*against, *scenario));
    pairs
}

/// How many of a system's own knobs stand elsewhere than at their defaults.
fn far(planned: &Planned, scenario: &Scenario) -> usize {
    let own = planned.axes.iter().filter(|axis| !axis.workload);
    own.filter(|axis| {
        let default = planned.default_of(&scenario.system, axis);
        scenario.point.get(&axis.knob).is_some_and(|value| default != Some(value))
    })
    .count()
}
