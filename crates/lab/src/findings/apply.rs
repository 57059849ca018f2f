//! From the best values to the system's own configuration, as its manifest writes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Verdict;
use systems::manifest::applied;
use systems::{Point, Value};

use super::Comparison;
use super::best::Judgement;
use super::table::varied;
use crate::experiment::grid::Axis;

/// How to set a system's best point.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Snippet {
    /// The system.
    pub system: String,
    /// Those knobs of which a value is certainly better than the default, and at no point worse, at their best.
    pub point: Point,
    /// Lines for its configuration or source, one for each knob.
    pub text: String,
}

/// For each system that says how knobs are set: those whose best value is certainly better than the default, each at its
/// best ([`Judgement::best`]).
pub(super) fn snippets(judgement: &Judgement) -> Vec<Snippet> {
    let planned = judgement.planned;
    let each = planned.apply.iter().filter_map(|(system, apply)| {
        let axes = varied(planned).filter(|axis| apply.contains_key(&axis.knob));
        let best = axes.filter_map(|axis| Some((axis.knob.clone(), recommended(judgement, axis, system)?)));
        let point: Point = best.collect();
        let lines: Vec<String> = point.iter().filter_map(|(k, v)| Some(applied(apply.get(k)?, v))).collect();
        (!lines.is_empty()).then(|| Snippet { system: system.clone(), point, text: lines.join("\n") })
    });
    each.collect()
}

/// The best value, unless it is what its values are compared with, or what the system does anyway; one that is slower than
/// either at another point is none to recommend.
fn recommended(judgement: &Judgement, axis: &Axis, system: &str) -> Option<Value> {
    let value = |at: usize| judgement.estimates[at].scenario.point.get(&axis.knob);
    let best = judgement.best(axis, Some(system)).filter(|best| best.at != best.baseline)?;
    let value_of_best = value(best.at).filter(|v| judgement.planned.default_of(system, axis) != Some(v))?;
    let here = |c: &&Comparison| {
        judgement.estimates[c.scenario].scenario.system == system && value(c.scenario) == Some(value_of_best)
    };
    let loses = judgement.own(axis).filter(here).any(|c| c.verdict == Verdict::Slower);
    (!loses).then(|| value_of_best.clone())
}
