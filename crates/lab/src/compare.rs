//! Two runs, or scenarios of runs, compared: how many times faster the second is than the first, and what else differs.
//!
//! Inside one run two scenarios share rounds, and are compared as findings compare them. Two runs share none: each scenario
//! is taken as a ratio to the reference of its own round, so that what the machine does to a whole run cancels, and the
//! two samples of ratios are compared by Yuen's form of Welch's test (`stats::difference`), corrected by Holm. Pure.

mod environment;
mod select;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Bar, FEWEST_ROUNDS, LEVEL, Location, Verdict, difference, holm};

use systems::Value;

pub use environment::Difference;
pub use select::{Selection, Side};

use crate::findings::{Estimate, ExperimentFindings, Findings, Ratio, log_ratios};
use crate::observation::Scenario;

/// One side of a comparison: a run, or some scenarios of it.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// As the user named it.
    pub name: String,
    /// Everything that was found in it.
    pub findings: Findings,
    /// The machine, as it was saved; null where nobody knows.
    pub environment: serde_json::Value,
    /// Which of its scenarios.
    pub selection: Selection,
    /// Tells one run from another: where both sides have the same, rounds are shared.
    pub identity: String,
}

/// A scenario of the first with one of the second.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Matched {
    /// The experiment.
    pub experiment: String,
    /// The first, as `system knob=value …`.
    pub a: String,
    /// The second; equal to the first where the same scenario of two runs is compared.
    pub b: String,
    /// Rounds of each.
    pub rounds: (u32, u32),
    /// How many times faster the second is; None where that cannot be said.
    pub ratio: Option<Ratio>,
    /// How likely such a ratio is without a difference; corrected for all.
    pub p: Option<f64>,
    /// What may be said of the second.
    pub verdict: Verdict,
    /// Why there is no ratio.
    pub because: Option<Incomparable>,
}

/// Why two scenarios cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Incomparable {
    /// The first has too many errors, or no figure.
    First,
    /// So has the second.
    Second,
    /// So have both.
    Both,
    /// One of them has fewer than three rounds.
    TooFewRounds,
    /// One of them has too few rounds with the reference.
    NoReference,
}

/// A scenario that only one side has.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Alone {
    /// Whether the first has it; else the second.
    pub first: bool,
    /// The experiment.
    pub experiment: String,
    /// It, as `system knob=value …`.
    pub scenario: String,
}

/// What comparing came to.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RunComparison {
    /// The first, against which the second is judged.
    pub a: String,
    /// The second.
    pub b: String,
    /// What else is not the same.
    pub differences: Vec<Difference>,
    /// How much faster the machine was in the second: the references of both, by themselves.
    pub machine: BTreeMap<String, Ratio>,
    /// Differences below this are noise, by experiment.
    pub floors: BTreeMap<String, f64>,
    /// The scenarios that both have.
    pub matched: Vec<Matched>,
    /// Scenarios that only one of them has.
    pub unmatched: Vec<Alone>,
}

/// Compares two sides.
pub fn compare(a: &Chosen, b: &Chosen) -> RunComparison {
    let same = a.identity == b.identity;
    let (pairs, unmatched) = select::pairs(a, b);
    let measured: Vec<Pair> = pairs.into_iter().map(|(left, right)| Pair::new(left, right, same)).collect();
    let p = holm(&measured.iter().map(|pair| pair.seen.map_or(1.0, |seen| seen.p)).collect::<Vec<_>>());
    let matched: Vec<Matched> = measured.iter().zip(p).map(|(pair, p)| pair.judge(p)).collect();
    let (mut machine, mut floors) = (BTreeMap::new(), BTreeMap::new());
    for pair in &measured {
        let name = &pair.a.of.name;
        if let Some(floor) = pair.floor() {
            floors.insert(name.clone(), floor);
        }
        if !same && let Some(ratio) = machine_ratio(pair.a.of, pair.b.of) {
            machine.insert(name.clone(), ratio);
        }
    }
    let differences = if same { Vec::new() } else { environment::differences(a, b, &matched) };
    RunComparison { a: a.name.clone(), b: b.name.clone(), differences, machine, floors, matched, unmatched }
}

impl RunComparison {
    /// Whether so much else differs that the ratios mean nothing.
    pub fn is_meaningless(&self) -> bool {
        self.differences.iter().any(|difference| difference.grave)
    }
}

/// A scenario and its reference.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    of: &'a ExperimentFindings,
    estimate: &'a Estimate,
}

impl Place<'_> {
    /// The system, and the knobs that are not the same in all scenarios of the experiment, and of this system in `beside`.
    fn label(&self, beside: Option<&ExperimentFindings>) -> String {
        let Scenario { system, point, .. } = &self.estimate.scenario;
        let all = || self.of.estimates.iter().map(|e| &e.scenario);
        let there = || beside.into_iter().flat_map(|e| &e.estimates).map(|e| &e.scenario);
        let varies = |knob: &str, value: &Value| {
            all().any(|other| other.point.get(knob).is_some_and(|known| known != value))
                || there().any(|other| other.system == *system && other.point.get(knob) != Some(value))
        };
        let knobs = point.iter().filter(|(knob, value)| varies(knob, value));
        let knobs = knobs.map(|(knob, value)| format!("{knob}={value}"));
        std::iter::once(system.clone()).chain(knobs).collect::<Vec<_>>().join(" ")
    }

    /// Logarithms of its ratios to the reference of the same round.
    fn to_reference(self) -> Option<Vec<f64>> {
        let wanted = self.estimate.scenario.reference();
        let reference = self.of.estimates.iter().find(|e| e.scenario == wanted)?;
        let ratios = log_ratios(self.of.figure, &self.estimate.by_round, &reference.by_round);
        (ratios.len() >= FEWEST_ROUNDS).then(|| ratios.into_iter().map(|(_, ratio)| ratio).collect())
    }
}

/// Two scenarios, and how they compare before correction.
struct Pair<'a> {
    a: Place<'a>,
    b: Place<'a>,
    seen: Option<stats::LogRatio>,
}

impl<'a> Pair<'a> {
    fn new(a: Place<'a>, b: Place<'a>, same: bool) -> Self {
        let fair = a.estimate.compares() && b.estimate.compares() && a.of.figure == b.of.figure;
        let seen = if same {
            let ratios = log_ratios(a.of.figure, &b.estimate.by_round, &a.estimate.by_round);
            a.of.design.compare(&ratios)
        } else {
            let apart = a.to_reference().zip(b.to_reference()).and_then(|(a, b)| difference(&b, &a));
            apart.map(|location: Location| {
                let (low, high) = location.interval(LEVEL);
                stats::LogRatio { location, low, high, p: location.p() }
            })
        };
        Self { a, b, seen: seen.filter(|_| fair) }
    }

    /// The larger of the two runs' noise floors.
    fn floor(&self) -> Option<f64> {
        Some(self.a.of.noise_floor?.smallest.max(self.b.of.noise_floor?.smallest))
    }

    fn judge(&self, p: f64) -> Matched {
        let bar = Bar {
            threshold: self.a.of.threshold.max(self.b.of.threshold).ln_1p(),
            floor: self.floor().map(f64::ln),
        };
        let verdict = self.seen.map_or(Verdict::Undecided { more_rounds: None }, |seen| bar.judge(&seen, p));
        let rounds = [self.a, self.b].map(|place| place.estimate.by_round.len() as u32);
        let because = match (self.a.estimate.compares(), self.b.estimate.compares()) {
            _ if self.seen.is_some() => None,
            (false, true) => Some(Incomparable::First),
            (true, false) => Some(Incomparable::Second),
            (false, false) => Some(Incomparable::Both),
            _ if rounds.iter().any(|n| (*n as usize) < FEWEST_ROUNDS) => Some(Incomparable::TooFewRounds),
            _ => Some(Incomparable::NoReference),
        };
        Matched {
            experiment: self.a.of.name.clone(),
            a: self.a.label(None),
            b: self.b.label(None),
            rounds: rounds.into(),
            ratio: self.seen.map(|s| Ratio::of_logs(s.location.estimate, s.low, s.high)),
            p: self.seen.map(|_| p),
            verdict,
            because,
        }
    }
}

/// How much faster the reference was in the second.
fn machine_ratio(a: &ExperimentFindings, b: &ExperimentFindings) -> Option<Ratio> {
    let logs = |of: &ExperimentFindings, scenario: &Scenario| {
        let reference = of.estimates.iter().find(|e| e.scenario == *scenario)?;
        Some(
            reference
                .by_round
                .values()
                .map(|figure| of.figure.advantage(*figure, 1.0).ln())
                .collect::<Vec<_>>(),
        )
    };
    let both = a.estimates.iter().filter(|e| e.is_reference());
    let (x, y) = both.map(|e| &e.scenario).find_map(|scenario| logs(a, scenario).zip(logs(b, scenario)))?;
    let location = difference(&y, &x)?;
    let (low, high) = location.interval(LEVEL);
    Some(Ratio::of_logs(location.estimate, low, high))
}

#[cfg(test)]
mod tests;
