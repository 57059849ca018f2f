//! Chooses the comparisons of an experiment. They follow from the plan alone, so no chance result can select them.
//!
//! - Each value of a knob is compared with the baseline: the system's default, or the first value if the grid leaves
//!   the default out. All other knobs are equal.
//! - A knob that sets how much work one operation is: each value is compared with the next smaller one, less the loss
//!   that the additional work explains.
//! - Systems are compared in pairs at each point of the workload's knobs, with their own knobs at the baseline. Systems whose
//!   defaults make them work otherwise than the rest are compared at like settings, too, if the grid has these.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use systems::work::Purpose;
use systems::{Point, Value, is_reference};

use crate::experiment::Figure;
use crate::experiment::grid::Axis;
use crate::observation::{Scenario, projection};
use crate::plan::{Planned, View};

/// A fall between neighbouring values is a cliff if it exceeds what the additional work explains by this factor.
pub const CLIFF: f64 = 1.5;

/// What differs between two scenarios.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The value of this knob. The second scenario has the baseline's value.
    Knob(String),
    /// The value of this knob, which sets the work. The second scenario has the next smaller value.
    Step(String),
    /// The system.
    System,
}

impl By {
    /// The knob, if the scenarios differ in one.
    pub fn knob(&self) -> Option<&str> {
        match self {
            Self::Knob(knob) | Self::Step(knob) => Some(knob),
            Self::System => None,
        }
    }
}

/// A comparison that the experiment asks for. Scenarios are positions in the plan.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub scenario: usize,
    pub against: usize,
    pub by: By,
    /// The logarithm of the ratio without an effect: zero, or what the additional work explains.
    pub expected: f64,
    /// The logarithm of the smallest ratio that matters.
    pub threshold: f64,
}

/// All comparisons that the experiment asks for.
pub(super) fn asked(planned: &View<'_>) -> Vec<Asked> {
    // A search chose what to try again, so its rounds prove nothing but what `tuned::advice` takes from them.
    if planned.search.is_some() || !planned.is_compared() {
        return Vec::new();
    }
    let threshold = planned.threshold.ln_1p();
    let mut all = Vec::new();
    for axis in planned.axes.iter().filter(|axis| axis.values.len() > 1) {
        for group in groups(planned, &axis.knob) {
            if is_work(planned, axis) {
                all.extend(steps(planned, axis, group));
                continue;
            }
            let Some(baseline) = baseline(planned, axis, &group) else { continue };
            all.extend(group.into_iter().filter(|scenario| *scenario != baseline).map(|scenario| Asked {
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
    if planned.duet {
        // Others were not measured at the same time.
        let is_base =
            |at: usize| planned.scenarios.get(at).is_some_and(|scenario| planned.is_yardstick(scenario));
        all.retain(|asked| is_base(asked.scenario) || is_base(asked.against));
    }
    all
}

/// Whether a knob sets the work. It is no finding that more work takes longer; only cliffs are findings.
pub(super) fn is_work(planned: &View<'_>, axis: &Axis) -> bool {
    match planned.workload.purpose(&axis.knob) {
        Purpose::Amount | Purpose::Patience => true,
        // Several uploads share the machine, so each takes longer.
        Purpose::Sharing => planned.figure == Figure::MsPerUpload,
        // A higher rate is not more work for one request. The question is whether response times stay the same.
        Purpose::Rate => !planned.figure.needs_rate(),
        Purpose::Tls | Purpose::Behaviour => axis.amount,
    }
}

/// The scenarios other than the reference's, each with its position.
fn systems_scenarios(planned: &Planned) -> impl Iterator<Item = (usize, &Scenario)> {
    planned.scenarios.iter().enumerate().filter(|(_, scenario)| !is_reference(&scenario.system))
}

/// Groups of scenarios that differ in this knob only. Each group is in the order of the knob's values.
pub(super) fn groups(planned: &Planned, knob: &str) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<(&str, Point), Vec<usize>> = BTreeMap::new();
    for (index, scenario) in systems_scenarios(planned).filter(|(_, s)| s.point.contains_key(knob)) {
        let mut rest = scenario.point.clone();
        rest.remove(knob);
        groups.entry((&scenario.system, rest)).or_default().push(index);
    }
    let axis = planned.axes.iter().find(|axis| axis.knob == knob);
    // Of a value that stands there twice, the first place.
    let places = axis.into_iter().flat_map(|axis| axis.values.iter().enumerate().rev());
    let places: BTreeMap<&Value, usize> = places.map(|(place, value)| (value, place)).collect();
    let order = |index: &usize| places.get(planned.scenarios[*index].point.get(knob)?);
    let mut groups: Vec<Vec<usize>> = groups.into_values().filter(|group| group.len() > 1).collect();
    groups.iter_mut().for_each(|group| group.sort_by_key(order));
    // The map has sorted them by point. Restore the plan's order.
    groups.sort_by_key(|group| group.iter().min().copied());
    groups
}

/// The baseline of a group: the scenario at the system's default, or the first.
pub(super) fn baseline(planned: &Planned, axis: &Axis, group: &[usize]) -> Option<usize> {
    let default = planned.default_of(&planned.scenarios[*group.first()?].system, axis);
    let at_default = |index: &&usize| planned.scenarios[**index].point.get(&axis.knob) == default;
    group.iter().find(|index| default.is_some() && at_default(index)).or(group.first()).copied()
}

fn steps(planned: &View<'_>, axis: &Axis, mut group: Vec<usize>) -> Vec<Asked> {
    let number = |index: usize| match planned.scenarios[index].point.get(&axis.knob) {
        Some(Value::Integer(number)) if *number > 0 => Some(*number as f64),
        _ => None,
    };
    group.retain(|index| number(*index).is_some());
    group.sort_by(|a, b| number(*a).unwrap_or(0.0).total_cmp(&number(*b).unwrap_or(0.0)));
    // Throughput grows with the rate of requests and falls with the size of an operation.
    let rate = planned.workload.purpose(&axis.knob) == Purpose::Rate;
    let sign = if rate && planned.figure.more_is_better() { 1.0 } else { -1.0 };
    let pairs = group.windows(2).filter_map(|pair| Some((pair, number(pair[0])?, number(pair[1])?)));
    let steps = pairs.map(|(pair, small, large)| Asked {
        scenario: pair[1],
        against: pair[0],
        by: By::Step(axis.knob.clone()),
        expected: sign * (large / small).ln(),
        threshold: CLIFF.ln(),
    });
    steps.collect()
}

/// Scenarios of several systems that are compared with each other, one of each system.
pub(super) struct Field {
    /// Their positions, in the plan's order.
    pub scenarios: BTreeSet<usize>,
    /// Whether they are at like settings, and not all at their defaults.
    pub alike: bool,
}

/// The fields of all points of the workload's knobs: each system with as many own knobs as possible at default; and, if the grid
/// has more such scenarios, those at like settings.
pub(super) fn fields(planned: &Planned) -> Vec<Field> {
    let changed = |scenario: &Scenario| (changed_knobs(planned, scenario), 0);
    let unlike = |scenario: &Scenario| (planned.unlike(scenario).count(), changed_knobs(planned, scenario));
    let mut at_like_settings = field_of_each_point(planned, unlike);
    let mut fields = Vec::new();
    for (point, scenarios) in field_of_each_point(planned, changed) {
        let mut alike = at_like_settings.remove(&point).unwrap_or_default();
        alike.retain(|index| planned.unlike(&planned.scenarios[*index]).next().is_none());
        let further = alike.len() > 1 && !alike.is_subset(&scenarios);
        fields.push(Field { scenarios, alike: false });
        fields.extend(further.then_some(Field { scenarios: alike, alike: true }));
    }
    fields
}

/// At each point of the workload's knobs, the scenario of each system of which this is least.
fn field_of_each_point(
    planned: &Planned,
    least: impl Fn(&Scenario) -> (usize, usize),
) -> BTreeMap<Point, BTreeSet<usize>> {
    let mut points: BTreeMap<Point, BTreeMap<&str, usize>> = BTreeMap::new();
    let of_point = SharedPoint::new(planned);
    for (index, scenario) in systems_scenarios(planned) {
        let shared = of_point.of(scenario);
        let chosen = points.entry(shared).or_default().entry(&scenario.system).or_insert(index);
        if least(scenario) < least(&planned.scenarios[*chosen]) {
            *chosen = index;
        }
    }
    points.into_iter().map(|(point, systems)| (point, systems.into_values().collect())).collect()
}

/// All pairs of each field, once.
fn system_pairs(planned: &Planned) -> Vec<(usize, usize)> {
    let mut pairs = BTreeSet::new();
    for Field { scenarios, .. } in fields(planned) {
        for against in &scenarios {
            pairs.extend(scenarios.range(against + 1..).map(|scenario| (*against, *scenario)));
        }
    }
    pairs.into_iter().map(|(against, scenario)| (scenario, against)).collect()
}

/// What scenarios share with those of other systems that they are compared with: their point of the workload's knobs. If each
/// system is spoken to in one way only, in TLS or in plain text, that is a property of the system and not of the work.
pub(super) struct SharedPoint<'a> {
    planned: &'a Planned,
    of_systems: BTreeSet<&'a str>,
}

impl<'a> SharedPoint<'a> {
    /// Looks which knobs are properties of the systems of an experiment.
    pub fn new(planned: &'a Planned) -> Self {
        let knobs = systems_scenarios(planned).flat_map(|(_, scenario)| scenario.point.keys());
        let tls: BTreeSet<&str> =
            knobs.map(String::as_str).filter(|knob| planned.workload.purpose(knob) == Purpose::Tls).collect();
        let is_of_systems = |knob: &&str| {
            let mut values: BTreeMap<&str, Option<&Value>> = BTreeMap::new();
            systems_scenarios(planned).all(|(_, scenario)| {
                let value = scenario.point.get(*knob);
                *values.entry(&scenario.system).or_insert(value) == value
            })
        };
        Self { planned, of_systems: tls.into_iter().filter(is_of_systems).collect() }
    }

    /// The point that this scenario shares.
    pub fn of(&self, scenario: &Scenario) -> Point {
        let mut shared = projection(self.planned.workload, &scenario.point);
        shared.retain(|knob, _| !self.of_systems.contains(knob.as_str()));
        shared
    }
}

/// How many of the system's own knobs are not at their defaults.
fn changed_knobs(planned: &Planned, scenario: &Scenario) -> usize {
    let system_axes = planned.axes.iter().filter(|axis| !axis.workload);
    system_axes
        .filter(|axis| {
            let default = planned.default_of(&scenario.system, axis);
            scenario.point.get(&axis.knob).is_some_and(|value| default != Some(value))
        })
        .count()
}
