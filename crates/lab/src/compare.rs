//! Compares two runs, or scenarios of runs: how many times faster the second is than the first, and what else differs.
//!
//! Two scenarios of one run share rounds, and are compared as in the findings. Two runs share no rounds. Each scenario
//! is therefore divided by the reference of its round, so that the speed of the machine cancels out. What does not cancel out
//! is learnt from earlier runs of the same question (`earlier`). The p-values are corrected by Holm's method.

mod earlier;
mod environment;
mod indexed;
mod select;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use stats::{FEWEST_ROUNDS, LEVEL, Location, LogRatio, Verdict, difference, holm};

pub use earlier::{Earlier, History, MOST_RUNS, may_ask_the_same};
use earlier::{Known, Questions};
pub use environment::{Difference, is_another_machine};
pub use select::{Selection, Side};

use crate::condition::Condition;
use crate::experiment::Figure;
use crate::findings::{
    ConditionOutcome, Estimate, Findings, Missing, Ratio, Rows, Shown, Test, Tested, test,
};
pub(crate) use indexed::Indexed;

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// How many times faster the second is, without an interval. None if the two cannot be compared.
    pub estimate: Option<f64>,
    /// The same with its interval. None if the two cannot be compared, or if it is not known how much runs differ.
    pub ratio: Option<Ratio>,
    /// The earlier runs of the same question. None if the interval does not depend on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// There is an estimate, but too few earlier runs of the same question show how much runs differ.
    FewRuns,
}

/// What the intervals of a comparison hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Intervals {
    /// The rounds that both sides share, because they are scenarios of one run.
    SharedRounds,
    /// The rounds of each of the two runs, and how much runs differ, as earlier runs show.
    BetweenRuns,
    /// The rounds of each of the two runs alone. On another occasion both may differ by more.
    WithinRuns,
}

/// A scenario that only one side has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Alone {
    /// Whether the first side has it. Otherwise the second has it.
    pub first: bool,
    /// The experiment.
    pub experiment: String,
    /// The scenario, as `system knob=value …`.
    pub scenario: String,
}

/// The comparison of two sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunComparison {
    /// The name of the first side, which is the baseline.
    pub a: String,
    /// The name of the second side.
    pub b: String,
    /// Differences between the conditions of the two.
    pub differences: Vec<Difference>,
    /// What the intervals hold.
    pub intervals: Intervals,
    /// How many times faster the reference was in the second, by experiment. This is the change of the machine.
    pub machine: BTreeMap<String, Ratio>,
    /// The scenarios that both sides have.
    pub matched: Vec<Matched>,
    /// The scenarios that only one side has.
    pub unmatched: Vec<Alone>,
}

/// Compares two sides. The history says how much runs differ; without one, the intervals of two runs hold for these two alone.
pub fn compare(a: &Chosen, b: &Chosen, history: Option<&History>) -> RunComparison {
    let figures = [Indexed::all(&a.findings), Indexed::all(&b.findings)];
    let known = history.map(|history| Known::of(history, a, b));
    let (pairs, unmatched) = select::pairs([(a, &figures[0]), (b, &figures[1])]);
    let sides = Sides::of(a, b, known.as_ref(), &pairs);
    let measured: Vec<Pair> = pairs.into_iter().map(|(left, right)| sides.pair(left, right)).collect();
    let p: Vec<f64> = measured.iter().filter_map(|pair| Some(pair.interval()?.p)).collect();
    let mut p = holm(&p).into_iter();
    let judged = measured.iter().map(|pair| pair.judge(pair.interval().and_then(|_| p.next())));
    let matched: Vec<Matched> = judged.collect();
    let mut machine = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for pair in measured.iter().filter(|_| !sides.is_one_run) {
        let (one, other) = (pair.a.experiment, pair.b.experiment);
        // All scenarios of a figure share their reference.
        if let Some(ratio) =
            seen.insert((&one.name, one.figure.name())).then(|| machine_ratio(one, other)).flatten()
        {
            machine.insert(one.name.clone(), ratio);
        }
    }
    let differences = if sides.is_one_run { Vec::new() } else { environment::differences(a, b, &matched) };
    let (a, b) = (a.name.clone(), b.name.clone());
    RunComparison { a, b, differences, intervals: sides.intervals(), machine, matched, unmatched }
}

/// Tests conditions on the ratios of two sides together: for each condition and each pair that has a ratio, with the positions of
/// both. A condition on a pair of which it is not known how much runs differ is inconclusive.
pub fn gated(
    a: &Chosen,
    b: &Chosen,
    conditions: &[Condition],
    history: Option<&History>,
) -> Vec<(usize, usize, Tested)> {
    let figures = [Indexed::all(&a.findings), Indexed::all(&b.findings)];
    let known = history.map(|history| Known::of(history, a, b));
    let (pairs, _) = select::pairs([(a, &figures[0]), (b, &figures[1])]);
    let sides = Sides::of(a, b, known.as_ref(), &pairs);
    let pairs: Vec<Pair> = pairs.into_iter().map(|(left, right)| sides.pair(left, right)).collect();
    let mut open = Vec::new();
    let mut places = Vec::new();
    let mut tests = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        for (at, pair) in pairs.iter().enumerate() {
            let figure = pair.a.experiment.figure;
            if pair.seen.is_none() || !condition.is_about(figure) {
                continue;
            }
            let Some(ratio) = pair.ratio() else {
                let answer = ConditionOutcome::Inconclusive;
                open.push((index, at, Tested { seen: None, p: None, withheld: None, answer }));
                continue;
            };
            let seen = if condition.more_is_better(figure) { ratio } else { ratio.inverse() };
            let above = sides.better(pair.a, pair.b, condition.edge(figure)).and_then(|seen| seen.interval);
            let above = above.map(|above| (above, seen));
            places.push((index, at));
            tests.push(Test { condition, figure, builds: vec![Shown { above, ..Shown::default() }] });
        }
    }
    let tested = places.into_iter().zip(test(&tests));
    let mut all: Vec<_> = tested.map(|((condition, pair), tested)| (condition, pair, tested)).collect();
    all.extend(open);
    all.sort_by_key(|(condition, pair, _)| (*condition, *pair));
    all
}

impl RunComparison {
    /// Whether the conditions differ so much that the ratios are meaningless.
    pub fn is_meaningless(&self) -> bool {
        self.differences.iter().any(|difference| difference.grave)
    }
}

/// A scenario's estimate and the experiment that it belongs to.
#[derive(Clone, Copy)]
struct Entry<'a> {
    experiment: &'a Indexed<'a>,
    estimate: &'a Estimate,
}

impl<'a> Entry<'a> {
    /// See [`Indexed::label_beside`].
    fn label(self, other: Option<&Indexed<'_>>) -> String {
        self.experiment.label_beside(&self.estimate.scenario, other)
    }

    /// See [`Indexed::to_yardstick`].
    fn to_yardstick(self) -> Option<Vec<f64>> {
        self.experiment.to_yardstick(self.estimate)
    }

    fn missing(self) -> Option<Missing> {
        self.estimate.missing(self.experiment, self.experiment.figure)
    }

    fn bound_of_yardstick(self) -> f64 {
        self.experiment.yardstick_of(&self.estimate.scenario).map_or(0.0, Estimate::bound)
    }
}

/// What is known of the ratio of two scenarios.
#[derive(Clone, Copy)]
struct Seen {
    /// Its logarithm.
    estimate: f64,
    /// The same with its interval, before the correction for the number of pairs. None if it is not known how much runs differ.
    interval: Option<LogRatio>,
    /// The earlier runs, if the interval depends on them.
    earlier: Option<Earlier>,
}

/// Two scenarios, and what is known of their ratio.
struct Pair<'a> {
    a: Entry<'a>,
    b: Entry<'a>,
    seen: Option<Seen>,
}

/// The two sides, and how much is known of runs like them.
struct Sides<'a> {
    /// Whether the scenarios of both share rounds.
    is_one_run: bool,
    /// The earlier runs. None if the intervals do not depend on them.
    questions: Option<Questions<'a>>,
}

impl<'a> Sides<'a> {
    fn of(a: &Chosen, b: &Chosen, known: Option<&'a Known<'a>>, pairs: &[(Entry<'a>, Entry<'a>)]) -> Self {
        let is_one_run = a.identity == b.identity;
        let known = known.filter(|_| !is_one_run);
        Self { is_one_run, questions: known.map(|known| Questions::of(known, pairs)) }
    }

    fn intervals(&self) -> Intervals {
        match self.questions {
            _ if self.is_one_run => Intervals::SharedRounds,
            Some(_) => Intervals::BetweenRuns,
            None => Intervals::WithinRuns,
        }
    }

    fn pair(&self, a: Entry<'a>, b: Entry<'a>) -> Pair<'a> {
        let comparable =
            a.estimate.compares() && b.estimate.compares() && a.experiment.figure == b.experiment.figure;
        Pair { a, b, seen: self.better(a, b, 0.0).filter(|_| comparable) }
    }

    /// How much better `b` is than `a`, less what is expected.
    fn better(&self, a: Entry, b: Entry, expected: f64) -> Option<Seen> {
        if self.is_one_run {
            return within_a_run(a, b, expected).map(|ratio| Seen {
                estimate: ratio.location.estimate,
                interval: Some(ratio),
                earlier: None,
            });
        }
        let logs = (a.to_yardstick()?, b.to_yardstick()?);
        let alone = difference(&logs.1, &logs.0)?;
        let (found, earlier) = match &self.questions {
            None => (Some(alone), None),
            Some(questions) => {
                let (known, earlier) = questions.difference(a, b)?;
                (known, Some(earlier))
            }
        };
        let bound = [a, b].iter().map(|entry| entry.estimate.bound() + entry.bound_of_yardstick()).sum();
        let interval = found.map(|found| {
            let location = Location { estimate: found.estimate - expected, ..found }.within(bound);
            let (low, high) = location.interval(LEVEL);
            LogRatio { location, low, high, level: LEVEL, p: location.p() }
        });
        Some(Seen { estimate: alone.estimate - expected, interval, earlier })
    }
}

impl Pair<'_> {
    fn interval(&self) -> Option<LogRatio> {
        self.seen?.interval
    }

    fn ratio(&self) -> Option<Ratio> {
        self.interval().map(|s| Ratio::of_logs(s.location.estimate, s.low, s.high))
    }

    /// The verdict. More rounds change little if what runs differ by decides.
    fn verdict(&self, p: Option<f64>) -> Verdict {
        let threshold = self.a.experiment.threshold.max(self.b.experiment.threshold).ln_1p();
        let verdict = self.interval().zip(p).map(|(seen, p)| seen.verdict(threshold, p));
        match verdict {
            Some(verdict) if verdict.is_decided() || self.seen.is_none_or(|s| s.earlier.is_none()) => verdict,
            _ => Verdict::Undecided { more_rounds: None },
        }
    }

    /// Judges the ratio. `p` is corrected; it is None if there is no interval.
    fn judge(&self, p: Option<f64>) -> Matched {
        let rounds = [self.a, self.b].map(|entry| entry.estimate.by_round.len() as u32);
        let because = match (self.a.estimate.compares(), self.b.estimate.compares()) {
            _ if self.interval().is_some() => None,
            _ if self.seen.is_some() => Some(Incomparable::FewRuns),
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
            estimate: self
                .seen
                .map(|seen| Ratio::of_logs(seen.estimate, seen.estimate, seen.estimate).estimate),
            ratio: self.ratio(),
            earlier: self.seen.and_then(|seen| seen.earlier),
            p,
            verdict: self.verdict(p),
            because,
            missing_a: self.a.missing(),
            missing_b: self.b.missing(),
        }
    }
}

/// The same in the rounds that both share.
fn within_a_run(a: Entry, b: Entry, expected: f64) -> Option<LogRatio> {
    let experiment = a.experiment;
    // The two sides may hold the same findings twice.
    let place = |entry: Entry| experiment.place(&entry.estimate.scenario);
    match place(a).zip(place(b)) {
        Some((a, b)) => experiment.rows().compare(b, a, expected),
        // Two experiments have no rows in common.
        None => {
            let both = [a.estimate.clone(), b.estimate.clone()];
            Rows::new(experiment.figure, experiment.design, &both, None).compare(1, 0, expected)
        }
    }
}

/// How many times faster the reference was in the second run.
fn machine_ratio(a: &Indexed<'_>, b: &Indexed<'_>) -> Option<Ratio> {
    let logs = |experiment: &Indexed<'_>, reference: &Estimate| {
        let figures = reference.by_round.values();
        figures.map(|figure| experiment.figure.advantage(*figure, 1.0).ln()).collect::<Vec<_>>()
    };
    let references = a.estimates.iter().filter(|e| e.is_reference());
    let (x, y) = references
        .filter_map(|of_a| Some((of_a, b.estimate(&of_a.scenario)?)))
        .map(|(of_a, of_b)| (logs(a, of_a), logs(b, of_b)))
        .next()?;
    let location = difference(&y, &x)?;
    let (low, high) = location.interval(LEVEL);
    Some(Ratio::of_logs(location.estimate, low, high))
}

#[cfg(test)]
mod tests;
