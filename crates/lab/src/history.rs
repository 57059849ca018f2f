//! The history of a question: how many times better than its anchor each scenario was in each run, and where that changed. Pure.
//!
//! The anchor is the base of the run, or the reference. It is measured again in the rounds of each run, so the machine and its hour
//! cancel out. Runs of commits call their arms by commits, so there an arm is known by its place and not by its name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stats::{LEVEL, Location, changes, difference};
use systems::Point as Knobs;

use crate::compare::Indexed;
use crate::experiment::Figure;
use crate::findings::{Estimate, FigureView, Findings, Ratio};
use crate::observation::Scenario;
use crate::store::RunId;

/// A run that asked the question.
#[derive(Debug, Clone)]
pub struct Occasion {
    /// Its number in the store.
    pub run: RunId,
    /// When it began, in seconds since the Unix epoch.
    pub started_unix_s: f64,
    /// Whether its arms are commits.
    pub of_commits: bool,
    /// What it found.
    pub findings: Findings,
}

/// What a run says of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    /// The number of the run in its store.
    pub run: RunId,
    /// When it began, in seconds since the Unix epoch.
    pub started_unix_s: f64,
    /// The version that the scenario's system reported: of a commit its id. None if it reported none.
    pub version: Option<String>,
    /// The same of the anchor.
    pub anchor_version: Option<String>,
    /// The rounds in which both have a figure.
    pub rounds: u32,
    /// How many times better it was than the anchor, with the 95 % interval of this run.
    pub ratio: Ratio,
}

/// Where the ratios of a scenario change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// The first point after it, as a position in the points.
    pub at: usize,
    /// How many times better the scenario is from there to the next change than from the change before. The 95 % interval holds for
    /// a place that was known before. The data chose this one, so it is somewhat too narrow.
    pub ratio: Ratio,
    /// How often shuffled points have a change as large.
    pub p: f64,
}

/// The history of one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// The experiment.
    pub experiment: String,
    /// The figure.
    pub figure: Figure,
    /// The scenario, as the last run calls it.
    pub scenario: String,
    /// What it is set beside, as the last run calls it.
    pub anchor: String,
    /// What each run says, the oldest first.
    pub points: Vec<Point>,
    /// Where that changes, the oldest first.
    pub changes: Vec<Change>,
}

/// By what a scenario is known in runs of one question.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    experiment: &'a str,
    figure: &'static str,
    arm: Arm<'a>,
    knobs: &'a Knobs,
}

/// A system in a question.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Arm<'a> {
    Name(&'a str),
    /// The place among the systems of its experiment.
    Place(usize),
}

/// The history of each scenario, from runs in the order in which they began.
pub fn history(runs: &[Occasion]) -> Vec<Series> {
    let (mut all, mut places): (Vec<Series>, BTreeMap<Key, usize>) = Default::default();
    for run in runs {
        let views =
            run.findings.views().filter(|e| e.tuned.is_none() && e.repeats.is_none() && e.is_compared());
        for e in views.map(Indexed::new) {
            let order = order(&e);
            for estimate in e.estimates {
                let Some(point) = point(run, &e, estimate) else { continue };
                let Scenario { system, point: knobs, .. } = &estimate.scenario;
                let arm = match order.get(system.as_str()).filter(|_| run.of_commits) {
                    Some(place) => Arm::Place(*place),
                    None => Arm::Name(system),
                };
                let (experiment, figure) = e.name();
                let at = *places.entry(Key { experiment, figure, arm, knobs }).or_insert_with(|| {
                    all.push(Series::of(&e));
                    all.len() - 1
                });
                if let Some(series) = all.get_mut(at) {
                    series.scenario = e.label(&estimate.scenario);
                    series.anchor = e.label(&e.yardstick(&estimate.scenario));
                    series.points.push(point);
                }
            }
        }
    }
    all.into_iter().map(Series::changed).collect()
}

/// The place of each system among those of an experiment.
fn order<'a>(e: &FigureView<'a>) -> BTreeMap<&'a str, usize> {
    let mut order = BTreeMap::new();
    for estimate in e.estimates {
        let place = order.len();
        order.entry(estimate.scenario.system.as_str()).or_insert(place);
    }
    order
}

impl Series {
    fn of(e: &FigureView<'_>) -> Self {
        Self {
            experiment: e.name.clone(),
            figure: e.figure,
            scenario: String::new(),
            anchor: String::new(),
            points: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// The same with its changes.
    fn changed(self) -> Self {
        let logs: Vec<f64> = self.points.iter().map(|point| point.ratio.estimate.ln()).collect();
        let found = changes(&logs);
        let starts: Vec<usize> = std::iter::once(0).chain(found.iter().map(|change| change.at)).collect();
        let change = |(index, change): (usize, &stats::Change)| {
            let end = starts.get(index + 2).copied().unwrap_or(logs.len());
            let (before, after) = (logs.get(*starts.get(index)?..change.at)?, logs.get(change.at..end)?);
            let location = difference(after, before)?;
            let (low, high) = location.interval(LEVEL);
            Some(Change { at: change.at, ratio: Ratio::of_logs(location.estimate, low, high), p: change.p })
        };
        Self { changes: found.iter().enumerate().filter_map(change).collect(), ..self }
    }
}

/// What a run says of a scenario. None of an anchor, and if the two cannot be compared.
fn point(run: &Occasion, e: &Indexed<'_>, estimate: &Estimate) -> Option<Point> {
    if estimate.is_reference() || !estimate.compares() {
        return None;
    }
    let logs = e.to_yardstick(estimate)?;
    let location = Location::of(&logs)?.within(estimate.bound());
    let (low, high) = location.interval(LEVEL);
    let version = |system: &str| e.versions.get(system).cloned();
    Some(Point {
        run: run.run,
        started_unix_s: run.started_unix_s,
        version: version(&estimate.scenario.system),
        anchor_version: version(&e.yardstick(&estimate.scenario).system),
        rounds: logs.len() as u32,
        ratio: Ratio::of_logs(location.estimate, low, high),
    })
}
