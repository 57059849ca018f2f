//! Writes the best values of a system's knobs as lines of its own configuration, as its manifest says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stats::Verdict;
use systems::manifest::applied;
use systems::{Point, Value};

use super::Comparison;
use super::best::Results;
use super::table::varied;
use super::tuned::Advice;
use crate::experiment::grid::Axis;
use crate::plan::Planned;

/// How to set a system's best values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snippet {
    /// The system.
    pub system: String,
    /// The best value of each knob that has a value which is certainly better than the default and nowhere worse.
    pub point: Point,
    /// Lines for the system's configuration or source, one for each knob.
    pub text: String,
}

/// The lines that set the advised values of a search, if its manifest says how. None if it advises the default.
pub(super) fn advised(planned: &Planned, advice: &Advice) -> Option<Snippet> {
    let base = &planned.base.as_ref()?.scenario;
    let apply = planned.apply.get(&base.system)?;
    let changed = advice.point.iter().filter(|(knob, value)| base.point.get(*knob) != Some(value));
    let point: Point = changed.map(|(knob, value)| (knob.clone(), value.clone())).collect();
    snippet(&base.system, point, apply)
}

/// The lines for those values of which the manifest says how they are set. None if there are none.
fn snippet(system: &str, mut point: Point, apply: &BTreeMap<String, String>) -> Option<Snippet> {
    point.retain(|knob, _| apply.contains_key(knob));
    let lines: Vec<String> = point.iter().filter_map(|(k, v)| Some(applied(apply.get(k)?, v))).collect();
    (!lines.is_empty()).then(|| Snippet { system: system.to_owned(), point, text: lines.join("\n") })
}

/// One snippet for each system whose manifest says how to set its knobs, if a knob has a value to recommend.
pub(super) fn snippets(results: &Results) -> Vec<Snippet> {
    let planned = results.planned;
    let snippets = planned.apply.iter().filter_map(|(system, apply)| {
        let axes = varied(planned).filter(|axis| apply.contains_key(&axis.knob));
        let best = axes.filter_map(|axis| Some((axis.knob.clone(), recommended(results, axis, system)?)));
        snippet(system, best.collect(), apply)
    });
    snippets.collect()
}

/// The best value ([`Results::best`]). None if it is the baseline or the system's default, or if it is slower than the
/// baseline at another point.
fn recommended(results: &Results, axis: &Axis, system: &str) -> Option<Value> {
    let value = |index: usize| results.estimates[index].scenario.point.get(&axis.knob);
    let best = results.best(axis, Some(system)).filter(|best| best.scenario != best.baseline)?;
    let best_value = value(best.scenario).filter(|v| results.planned.default_of(system, axis) != Some(v))?;
    let has_best_value = |c: &&Comparison| {
        results.estimates[c.scenario].scenario.system == system && value(c.scenario) == Some(best_value)
    };
    let loses = results.comparisons_of(axis).filter(has_best_value).any(|c| c.verdict == Verdict::Slower);
    (!loses).then(|| best_value.clone())
}
