//! Compares two runs, or scenarios of runs: how many times faster the second is than the first, and what else differs.
//!
//! Two scenarios of one run share rounds, and are compared as in the findings. Two runs share no rounds. Each scenario
//! is therefore divided by the reference of its round, so that the speed of the machine cancels out. The two samples of
//! ratios are compared with Yuen's form of Welch's test (`stats::difference`), corrected by Holm's method.

mod environment;
mod select;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{FEWEST_ROUNDS, LEVEL, Location, LogRatio, Verdict, difference, holm};

use systems::Value;

pub use environment::Difference;
pub use select::{Selection, Side};

use crate::condition::Condition;
use crate::experiment::Figure;
use crate::findings::{
    Estimate, ExperimentFindings, Findings, Missing, Ratio, Rows, Shown, Test, Tested, log_ratios, test,
};
use crate::observation::Scenario;

/// One side of a comparison: a run, or some scenarios of it.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The name that the user gave.
    pub name: String,
    /// The findings of the run.
    pub findings: Findings,
    /// The machine, as it was saved. Null if it is unknown.
    pub environment: serde_json::Value,
    /// The scenarios that are compared.
    pub selection: Selection,
    /// Identifies the run. If it is the same on both sides, their scenarios share rounds.
    pub identity: String,
}

/// A scenario of the first side and the scenario of the second that it is compared with.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Matched {
    /// The experiment.
    pub experiment: String,
    /// The figure that is compared.
    pub figure: Figure,
    /// The first scenario, as `system knob=value …`.
    pub a: String,
    /// The second scenario. It equals the first if one scenario of two runs is compared.
    pub b: String,
    /// The rounds of the first and of the second.
    pub rounds: (u32, u32),
    /// How many times faster the second is. None if the two cannot be compared.
    pub ratio: Option<Ratio>,
    /// The p-value, corrected for the number of comparisons.
    pub p: Option<f64>,
    /// The verdict about the second.
    pub verdict: Verdict,
    /// Why there is no ratio. None if there is one.
    pub because: Option<Incomparable>,
    /// Why the first has no figure that may be compared. None if it has one, or if there is a ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_a: Option<Missing>,
    /// See `missing_a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_b: Option<Missing>,
}

/// Why two scenarios cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Incomparable {
    /// The first has too many errors or no figure.
    First,
    /// The second has too many errors or no figure.
    Second,
    /// Both have too many errors or no figure.
    Both,
    /// One of them has fewer than three rounds.
    TooFewRounds,
    /// One of them has fewer than three rounds in common with the reference.
    NoReference,
}

/// A scenario that only one side has.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Alone {
    /// Whether the first side has it. Otherwise the second has it.
    pub first: bool,
    /// The experiment.
    pub experiment: String,
    /// The scenario, as `system knob=value …`.
    pub scenario: String,
}

/// The comparison of two sides.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RunComparison {
    /// The name of the first side, which is the baseline.
    pub a: String,
    /// The name of the second side.
    pub b: String,
    /// Differences between the conditions of the two.
    pub differences: Vec<Difference>,
    /// How many times faster the reference was in the second, by experiment. This is the change of the machine.
    pub machine: BTreeMap<String, Ratio>,
    /// The scenarios that both sides have.
    pub matched: Vec<Matched>,
    /// The scenarios that only one side has.
    pub unmatched: Vec<Alone>,
}

/// Compares two sides.
pub fn compare(a: &Chosen, b: &Chosen) -> RunComparison {
    let same = a.identity == b.identity;
    let (pairs, unmatched) = select::pairs(a, b);
    let measured: Vec<Pair> = pairs.into_iter().map(|(left, right)| Pair::new(left, right, same)).collect();
    let p: Vec<f64> = measured.iter().filter_map(|pair| Some(pair.seen?.p)).collect();
    let mut p = holm(&p).into_iter();
    let judged = measured.iter().map(|pair| pair.judge(pair.seen.and_then(|_| p.next())));
    let matched: Vec<Matched> = judged.collect();
    let mut machine = BTreeMap::new();
    for pair in measured.iter().filter(|_| !same) {
        if let Some(ratio) = machine_ratio(pair.a.experiment, pair.b.experiment) {
            machine.insert(pair.a.experiment.name.clone(), ratio);
        }
    }
    let differences = if same { Vec::new() } else { environment::differences(a, b, &matched) };
    RunComparison { a: a.name.clone(), b: b.name.clone(), differences, machine, matched, unmatched }
}

/// Tests conditions on the ratios of two sides together: for each condition and each pair that has a ratio, with the positions of
/// both.
pub fn gated(a: &Chosen, b: &Chosen, conditions: &[Condition]) -> Vec<(usize, usize, Tested)> {
    let same = a.identity == b.identity;
    let (pairs, _) = select::pairs(a, b);
    let mut places = Vec::new();
    let mut tests = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        for (at, (left, right)) in pairs.iter().enumerate() {
            let figure = left.experiment.figure;
            let Some(ratio) = Pair::new(*left, *right, same).ratio().filter(|_| condition.is_about(figure))
            else {
                continue;
            };
            let seen = if condition.more_is_better(figure) { ratio } else { ratio.inverse() };
            let above = better(*left, *right, same, condition.edge(figure)).map(|above| (above, seen));
            places.push((index, at));
            tests.push(Test { condition, figure, builds: vec![Shown { above, ..Shown::default() }] });
        }
    }
    let tested = places.into_iter().zip(test(&tests));
    tested.map(|((condition, pair), tested)| (condition, pair, tested)).collect()
}

impl RunComparison {
    /// Whether the conditions differ so much that the ratios are meaningless.
    pub fn is_meaningless(&self) -> bool {
        self.differences.iter().any(|difference| difference.grave)
    }
}

/// A scenario's estimate and the experiment that it belongs to.
#[derive(Debug, Clone, Copy)]
struct Entry<'a> {
    experiment: &'a ExperimentFindings,
    estimate: &'a Estimate,
}

impl Entry<'_> {
    /// The system, and the knobs that vary in the experiment or differ in this system's scenarios of the `other` run.
    fn label(&self, other: Option<&ExperimentFindings>) -> String {
        let Scenario { system, point, .. } = &self.estimate.scenario;
        let here = || self.experiment.estimates.iter().map(|e| &e.scenario);
        let there = || other.into_iter().flat_map(|e| &e.estimates).map(|e| &e.scenario);
        let varies = |knob: &str, value: &Value| {
            here().any(|scenario| scenario.point.get(knob).is_some_and(|known| known != value))
                || there()
                    .any(|scenario| scenario.system == *system && scenario.point.get(knob) != Some(value))
        };
        let knobs = point.iter().filter(|(knob, value)| varies(knob, value));
        let knobs = knobs.map(|(knob, value)| format!("{knob}={value}"));
        std::iter::once(system.clone()).chain(knobs).collect::<Vec<_>>().join(" ")
    }

    /// The logarithms of its ratios to the yardstick of the same round, at its own point or else at the only one. None if
    /// there are too few rounds.
    fn to_yardstick(self) -> Option<Vec<f64>> {
        if self.experiment.base.is_some() && self.experiment.is_yardstick(&self.estimate.scenario) {
            return None; // A base beside itself says nothing of two runs.
        }
        let reference = self.yardstick()?;
        let ratios = log_ratios(self.experiment.figure, &self.estimate.by_round, &reference.by_round);
        (ratios.len() >= FEWEST_ROUNDS).then(|| ratios.into_iter().map(|(_, ratio)| ratio).collect())
    }
}

impl<'a> Entry<'a> {
    /// The yardstick at its own point, or else the only one.
    fn yardstick(self) -> Option<&'a Estimate> {
        let wanted = self.experiment.yardstick(&self.estimate.scenario);
        let mut all = self.experiment.estimates.iter();
        all.clone().find(|e| e.scenario == wanted).or_else(|| all.find(|e| e.is_reference()))
    }

    fn bound_of_yardstick(self) -> f64 {
        self.yardstick().map_or(0.0, Estimate::bound)
    }
}

/// Two scenarios, and their ratio before the correction for the number of pairs.
struct Pair<'a> {
    a: Entry<'a>,
    b: Entry<'a>,
    seen: Option<LogRatio>,
}

impl<'a> Pair<'a> {
    fn new(a: Entry<'a>, b: Entry<'a>, same_run: bool) -> Self {
        let comparable =
            a.estimate.compares() && b.estimate.compares() && a.experiment.figure == b.experiment.figure;
        Self { a, b, seen: better(a, b, same_run, 0.0).filter(|_| comparable) }
    }

    fn ratio(&self) -> Option<Ratio> {
        self.seen.map(|s| Ratio::of_logs(s.location.estimate, s.low, s.high))
    }

    /// Judges the ratio. `p` is corrected; it is None if there is no ratio.
    fn judge(&self, p: Option<f64>) -> Matched {
        let threshold = self.a.experiment.threshold.max(self.b.experiment.threshold).ln_1p();
        let verdict = match self.seen.zip(p) {
            Some((seen, p)) => seen.verdict(threshold, p),
            None => Verdict::Undecided { more_rounds: None },
        };
        let rounds = [self.a, self.b].map(|entry| entry.estimate.by_round.len() as u32);
        let because = match (self.a.estimate.compares(), self.b.estimate.compares()) {
            _ if self.seen.is_some() => None,
            (false, true) => Some(Incomparable::First),
            (true, false) => Some(Incomparable::Second),
            (false, false) => Some(Incomparable::Both),
            _ if rounds.iter().any(|n| (*n as usize) < FEWEST_ROUNDS) => Some(Incomparable::TooFewRounds),
            _ => Some(Incomparable::NoReference),
        };
        Matched {
            experiment: self.a.experiment.name.clone(),
            figure: self.a.experiment.figure,
            a: self.a.label(None),
            b: self.b.label(None),
            rounds: rounds.into(),
            ratio: self.ratio(),
            p,
            verdict,
            because,
            missing_a: self.a.estimate.missing(&self.a.experiment.setup),
            missing_b: self.b.estimate.missing(&self.b.experiment.setup),
        }
    }
}

/// How much better `b` is than `a`, less what is expected.
fn better(a: Entry, b: Entry, same_run: bool, expected: f64) -> Option<LogRatio> {
    if same_run {
        return within_a_run(a, b, expected);
    }
    let found = difference(&b.to_yardstick()?, &a.to_yardstick()?)?;
    let bound = [a, b].iter().map(|entry| entry.estimate.bound() + entry.bound_of_yardstick()).sum();
    let location = Location { estimate: found.estimate - expected, ..found }.within(bound);
    let (low, high) = location.interval(LEVEL);
    Some(LogRatio { location, low, high, level: LEVEL, p: location.p() })
}

/// The same in the rounds that both share.
fn within_a_run(a: Entry, b: Entry, expected: f64) -> Option<LogRatio> {
    let experiment = a.experiment;
    // The two sides may hold the same findings twice.
    let position =
        |entry: Entry| experiment.estimates.iter().position(|e| e.scenario == entry.estimate.scenario);
    match position(a).zip(position(b)) {
        Some((a, b)) => Rows::of(experiment).compare(b, a, expected),
        // Two experiments have no rows in common.
        None => {
            let both = [a.estimate.clone(), b.estimate.clone()];
            Rows::new(experiment.figure, experiment.design, &both, None).compare(1, 0, expected)
        }
    }
}

/// How many times faster the reference was in the second run.
fn machine_ratio(a: &ExperimentFindings, b: &ExperimentFindings) -> Option<Ratio> {
    let logs = |experiment: &ExperimentFindings, scenario: &Scenario| {
        let reference = experiment.estimates.iter().find(|e| e.scenario == *scenario)?;
        let figures = reference.by_round.values();
        Some(figures.map(|figure| experiment.figure.advantage(*figure, 1.0).ln()).collect::<Vec<_>>())
    };
    let references = a.estimates.iter().filter(|e| e.is_reference());
    let (x, y) =
        references.map(|e| &e.scenario).find_map(|scenario| logs(a, scenario).zip(logs(b, scenario)))?;
    let location = difference(&y, &x)?;
    let (low, high) = location.interval(LEVEL);
    Some(Ratio::of_logs(location.estimate, low, high))
}

#[cfg(test)]
mod tests;
