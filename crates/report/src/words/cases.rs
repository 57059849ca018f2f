//! What continuous integration is told: each comparison as a case that passes or fails, and warnings.
//!
//! A comparison can fail only beside a baseline: the base of a run, or the first of two runs. A run without a base compares
//! systems and values with each other, and none of them is wrong because it is slower.

use std::collections::BTreeSet;

use lab::compare::{Matched, RunComparison};
use lab::experiment::Figure;
use lab::findings::{Comparison, FailedTrials, FigureView, Findings, Ratio, Tuned, Warning};
use stats::Verdict;

use super::conditions::gated;
use super::missing::without_ratio;
use super::options::Asked;
use super::runs::{difference, few_runs, why, without_counterpart};
use super::tuned::{self, Progress};
use super::verdicts::{in_its_direction, verdict, word};
use super::warnings::{Advice, advice};
use crate::number::{interval_in_hundredths, several};

/// A comparison or a condition, as a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// What it belongs to: an experiment and its figure, or `fail-if`.
    pub suite: String,
    /// What is judged.
    pub name: String,
    /// Whether it passes.
    pub grade: Grade,
    /// What was found, in one sentence.
    pub words: String,
}

/// Whether a case passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    /// It certainly is worse than the baseline, or certainly meets a condition.
    Worse,
    /// It should be judged, and cannot be.
    Unjudged,
    /// A condition that is neither certainly met nor excluded.
    Inconclusive,
    /// It is not decided.
    Open,
    /// None of these.
    Fine,
}

/// The cases of a run or of a comparison of two runs, and what makes them doubtful.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// The cases, in the order in which they are reported.
    pub cases: Vec<Case>,
    /// Warnings, each in one sentence.
    pub warnings: Vec<String>,
}

impl Judgement {
    /// Of a run. If it has conditions, they decide.
    pub fn of_run(found: &Findings) -> Self {
        let mut warnings = Vec::new();
        for e in found.views() {
            warnings.extend(e.warnings.iter().map(|seen| warning(&e, seen)));
            warnings.extend(e.failures.iter().map(|seen| failure(&e, seen)));
        }
        // The figures of an experiment share their trials, and so most of their warnings.
        let mut seen = BTreeSet::new();
        warnings.retain(|warning| seen.insert(warning.clone()));
        let verdicts = Self { cases: found.views().flat_map(|e| cases(&e)).collect(), warnings };
        if found.gates.is_empty() { verdicts } else { verdicts.decided_by(gated(found)) }
    }

    /// Of a comparison of two runs, in which the first is the baseline.
    pub fn of_comparison(found: &RunComparison) -> Self {
        let alone = without_counterpart(found).into_iter().map(|name| Case {
            suite: "scenarios".to_owned(),
            name,
            grade: Grade::Unjudged,
            words: "without a counterpart".to_owned(),
        });
        let matched = found.matched.iter().map(|m| matched(found, m));
        let differs = |each| format!("differs: {}", difference(each));
        Self {
            cases: matched.chain(alone).collect(),
            warnings: found.differences.iter().map(differs).collect(),
        }
    }

    /// Lets conditions that are inconclusive fail.
    pub fn fail_inconclusive(&mut self) {
        let open = self.cases.iter_mut().filter(|case| case.grade == Grade::Inconclusive);
        open.for_each(|case| case.grade = Grade::Worse);
    }

    /// Lets conditions decide instead of the verdicts, which become remarks. The cases are those of the conditions.
    #[must_use]
    pub fn decided_by(mut self, conditions: Vec<Case>) -> Self {
        for case in &mut self.cases {
            case.grade = match case.grade {
                Grade::Worse => Grade::Fine,
                Grade::Unjudged => Grade::Open,
                grade => grade,
            };
        }
        self.cases.splice(0..0, conditions);
        self
    }
}

fn cases(e: &FigureView<'_>) -> Vec<Case> {
    if let Some(found) = &e.tuned {
        return vec![searched(e, found)];
    }
    let case = |c: &Comparison| {
        let gates = e.is_beside_base(c);
        let (scenario, against) = (&e.estimates[c.scenario].scenario, &e.estimates[c.against].scenario);
        let grade = match (c.verdict, c.is_possible()) {
            (Verdict::Slower, _) if gates => Grade::Worse,
            (_, false) if gates => Grade::Unjudged,
            (Verdict::Undecided { .. }, _) => Grade::Open,
            _ => Grade::Fine,
        };
        Case {
            suite: suite(e),
            name: format!("{} beside {}", e.label(scenario), e.label(against)),
            grade,
            words: match c.ratio {
                Some(ratio) => format!("{}: {}", as_good(e.figure, ratio), verdict(e.figure, c)),
                None => format!("{}: no ratio: {}", e.figure.name(), without_ratio(e, c)),
            },
        }
    };
    e.comparisons.iter().map(case).collect()
}

/// The answer of a search. The defaults are no failure if something is better.
fn searched(e: &FigureView<'_>, found: &Tuned) -> Case {
    let system = e.base.as_ref().map_or("", |base| base.scenario.system.as_str());
    Case {
        suite: suite(e),
        name: format!("the best setting of {system}"),
        grade: match tuned::progress(e, found) {
            Progress::Decided => Grade::Fine,
            Progress::Open => Grade::Open,
            Progress::Failed => Grade::Unjudged,
        },
        words: tuned::answer(e, found),
    }
}

fn matched(found: &RunComparison, m: &Matched) -> Case {
    let grade = match (m.verdict, m.estimate) {
        (_, None) => Grade::Unjudged,
        (Verdict::Slower, _) => Grade::Worse,
        (Verdict::Undecided { .. }, _) => Grade::Open,
        _ => Grade::Fine,
    };
    let (a, b) = (&m.a, &m.b);
    Case {
        suite: format!("{} {}", m.experiment, m.figure.name()),
        name: if a == b { format!("{b}: {} beside {}", found.b, found.a) } else { format!("{b} beside {a}") },
        grade,
        words: match m.ratio {
            Some(ratio) => format!("{}: {}", as_good(m.figure, ratio), word(m.figure, m.verdict)),
            None => format!("{}: {}", m.figure.name(), few_runs(m).unwrap_or_else(|| why(m))),
        },
    }
}

fn suite(e: &FigureView<'_>) -> String {
    format!("{} {}", e.name, e.figure.name())
}

fn as_good(figure: Figure, ratio: Ratio) -> String {
    let good = if figure.is_cost() { "much" } else { "good" };
    format!("{}: {} as {good}", figure.name(), interval_in_hundredths(in_its_direction(figure, ratio)))
}

fn warning(e: &FigureView<'_>, warning: &Warning) -> String {
    let Advice { message, remedy } = advice(warning, Asked::of(e));
    let places = &warning.scenarios;
    let places = if places.is_empty() { String::new() } else { format!(" ({})", places.join("; ")) };
    format!("{}: {message}: {remedy}{places}", e.name)
}

fn failure(e: &FigureView<'_>, f: &FailedTrials) -> String {
    let trials = several(f.trials.into(), "trial");
    let output = if f.output.is_empty() { String::new() } else { format!("\n{}", f.output.trim_end()) };
    format!("{}: {}: {trials} failed at {}: {}{output}", e.name, f.scenario, f.stage, f.reason)
}
