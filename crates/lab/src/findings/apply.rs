//! From the best point to the system's own configuration, as its manifest writes it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Verdict, median};
use systems::Point;
use systems::manifest::applied;

use super::table::varied;
use super::{Effect, Estimate};
use crate::plan::Planned;

/// How to set a system's best point.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Snippet {
    /// The system.
    pub system: String,
    /// Those knobs that matter and are best elsewhere than at their defaults, at their best.
    pub point: Point,
    /// Lines for its configuration or source, one for each knob.
    pub text: String,
}

/// For each system that says how knobs are set: those that matter, at the point that is best over all others' values,
/// where that is not what the system does anyway.
pub(super) fn snippets(planned: &Planned, estimates: &[Estimate], effects: &[Effect]) -> Vec<Snippet> {
    let matters = |knob: &str| effects.iter().any(|e| e.knob == knob && e.verdict == Verdict::Faster);
    let default = |knob: &str| planned.axes.iter().find(|axis| axis.knob == knob)?.default.as_ref();
    let each = planned.apply.iter().filter_map(|(system, apply)| {
        let mut point = best(planned, estimates, system, apply)?;
        point.retain(|knob, value| matters(knob) && default(knob) != Some(&*value));
        let lines: Vec<String> = point.iter().filter_map(|(k, v)| Some(applied(apply.get(k)?, v))).collect();
        (!lines.is_empty()).then(|| Snippet { system: system.clone(), point, text: lines.join("\n") })
    });
    each.collect()
}

/// The assignment of these knobs whose advantage over the best, while the others stand still, is greatest in the median:
/// one that wins at a single point and loses elsewhere is none to recommend.
fn best(
    planned: &Planned,
    estimates: &[Estimate],
    system: &str,
    apply: &BTreeMap<String, String>,
) -> Option<Point> {
    let set = |knob: &String| apply.contains_key(knob) && varied(planned).any(|axis| axis.knob == *knob);
    let part = |point: &Point, wanted: bool| -> Point {
        let knobs = point.iter().filter(|(knob, _)| set(knob) == wanted);
        knobs.map(|(knob, value)| (knob.clone(), value.clone())).collect()
    };
    let rows: Vec<&Estimate> =
        estimates.iter().filter(|e| e.scenario.system == system && e.compares()).collect();
    let mut groups: BTreeMap<Point, Vec<&Estimate>> = BTreeMap::new();
    for row in rows {
        groups.entry(part(&row.scenario.point, false)).or_default().push(row);
    }
    let mut standings: BTreeMap<Point, Vec<f64>> = BTreeMap::new();
    for group in groups.values().filter(|group| group.len() > 1) {
        let figures = group.iter().filter_map(|e| e.figure);
        let top = figures.reduce(|a, b| if planned.figure.advantage(a, b) >= 1.0 { a } else { b })?;
        for e in group {
            standings
                .entry(part(&e.scenario.point, true))
                .or_default()
                .push(planned.figure.advantage(e.figure?, top));
        }
    }
    let fullest = standings.values().map(Vec::len).max()?;
    let full = standings.into_iter().filter(|(_, each)| each.len() == fullest);
    let medians = full.filter_map(|(point, each)| Some((point, median(each)?)));
    medians.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(point, _)| point)
}
