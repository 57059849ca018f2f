//! Warnings: why numbers may be untrustworthy, which scenarios they concern, and the figures that show it.

use std::collections::{BTreeMap, BTreeSet};

use measurement::doubt::{Doubt, Evidence};
use serde::{Deserialize, Serialize};

use super::reason::is_held_back;
use super::{Estimate, measurements};
use load::ErrorClass;

use crate::observation::Observation;
use crate::plan::Planned;

/// The fewest trials whose figure has an interval.
pub const FEWEST_TRIALS: u32 = 3;

/// Trials are unsteady if their range exceeds this share of the median.
pub const UNSTEADY: f64 = 0.3;

/// How far a percentile of all answers together may be from that of the usual trial: a factor.
pub const APART: f64 = 1.5;

/// The kind of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// Trials of the plan have no observation yet.
    Incomplete,
    /// A scenario has fewer than three measured trials.
    TooFewTrials,
    /// No operation ended inside any window.
    NothingFinished,
    /// Operations failed.
    Errors,
    /// The driver's and the server's counts contradict each other.
    CountsDisagree,
    /// The figures of a scenario's trials differ by more than 30 %.
    Unsteady,
    /// The percentile that is the figure is far from that of the usual trial: few trials decide it.
    FewTrialsDecide,
    /// There are too few operations for a percentile that the table shows.
    PercentileUnsupported,
    /// The speed still changed inside the windows, and how far it has to go widens the intervals.
    SpeedChanges,
    /// Answers of an idle server wait for a delayed acknowledgement (Nagle's algorithm).
    HeldBack,
    /// A system's work differs from that of the others, as its manifest says.
    UnequalWork,
    /// At least half of a scenario's trials raise this doubt.
    #[serde(untagged)]
    Trial(Doubt),
}

/// A warning about an experiment, and the scenarios that it concerns. `report` has the sentence and the remedy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warning {
    /// The kind.
    pub code: Code,
    /// The number of scenarios that it concerns. For an incomplete plan, the number of trials that are done.
    pub count: u32,
    /// The number of all scenarios. For an incomplete plan, the number of all trials.
    pub of: u32,
    /// What was seen. None if the code says everything.
    pub seen: Option<Seen>,
    /// The scenarios, as `system knob=value …`. Empty if it concerns all.
    pub scenarios: Vec<String>,
}

/// What a warning is based on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// The evidence from the first such trial of the first scenario.
    Evidence(Evidence),
    /// The first failure of each class.
    Failures(Vec<FirstFailure>),
    /// The system whose work differs.
    Work {
        /// Its name.
        system: String,
        /// How its work differs, as its manifest says.
        unequal: String,
    },
}

/// The first failure of a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirstFailure {
    /// The class.
    pub class: String,
    /// The system that it happened with.
    pub system: String,
    /// What went wrong.
    pub example: String,
}

/// The warnings about an experiment, by kind.
pub(super) fn warnings(
    planned: &Planned,
    estimates: &[&Estimate],
    observations: &[&Observation],
    trials: usize,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if observations.len() < trials {
        warnings.push(Warning {
            code: Code::Incomplete,
            count: observations.len() as u32,
            of: trials as u32,
            seen: None,
            scenarios: Vec::new(),
        });
    }
    let warning = |code: Code, found: Vec<&Estimate>, seen: Option<Seen>| {
        let all = found.len() == estimates.len();
        Warning {
            code,
            count: found.len() as u32,
            of: estimates.len() as u32,
            seen,
            scenarios: found.iter().filter(|_| !all).map(|e| planned.label(&e.scenario)).collect(),
        }
    };
    for (code, applies) in RULES {
        let found: Vec<&Estimate> = estimates.iter().copied().filter(|e| applies(e)).collect();
        if !found.is_empty() {
            let failures = || Seen::Failures(first_failures(planned, observations));
            warnings.push(warning(*code, found, (*code == Code::Errors).then(failures)));
        }
    }
    warnings.extend(unequal_work(planned, observations));
    let doubts: BTreeSet<Doubt> = estimates.iter().flat_map(|e| e.doubts.keys().copied()).collect();
    for doubt in doubts {
        let found: Vec<&Estimate> =
            estimates.iter().copied().filter(|e| e.doubts.contains_key(&doubt)).collect();
        let seen = found.first().map(|e| Seen::Evidence(e.doubts[&doubt].clone()));
        warnings.push(warning(Code::Trial(doubt), found, seen));
    }
    warnings
}

/// One warning for each system whose manifest says that its work differs.
fn unequal_work(planned: &Planned, observations: &[&Observation]) -> Vec<Warning> {
    let mut systems = BTreeMap::new();
    for (system, m) in measurements(observations).filter(|(_, m)| !m.system.unequal.is_empty()) {
        systems.entry(system).or_insert(m.system.unequal.as_str());
    }
    let warning = |(system, unequal): (&str, &str)| {
        let scenarios = planned.scenarios.iter().filter(|scenario| scenario.system == system);
        let scenarios: Vec<String> = scenarios.map(|scenario| planned.label(scenario)).collect();
        Warning {
            code: Code::UnequalWork,
            count: scenarios.len() as u32,
            of: planned.scenarios.len() as u32,
            seen: Some(Seen::Work { system: system.to_owned(), unequal: unequal.to_owned() }),
            scenarios,
        }
    };
    systems.into_iter().map(warning).collect()
}

/// A kind of warning, and whether it applies to a scenario.
type Rule = (Code, fn(&Estimate) -> bool);

const RULES: &[Rule] = &[
    (Code::TooFewTrials, |e| (1..FEWEST_TRIALS).contains(&e.trials)),
    (Code::NothingFinished, |e| e.trials > 0 && e.successes == 0 && e.errors.is_empty()),
    (Code::Errors, |e| !e.errors.is_empty()),
    (Code::CountsDisagree, |e| e.counts_agree == Some(false)),
    (Code::SpeedChanges, |e| e.warmth.to_go > 0.0),
    (Code::HeldBack, is_held_back),
    (Code::Unsteady, |e| e.spread.is_some_and(|s| s.range > UNSTEADY)),
    (Code::FewTrialsDecide, few_trials_decide),
    (Code::PercentileUnsupported, |e| {
        e.scenario.workload().about().short_exchanges
            && e.successes > 0
            && (e.p99_us.is_none() || e.figure.is_none())
    }),
];

/// Whether the percentile of all answers is not that of the usual trial.
fn few_trials_decide(e: &Estimate) -> bool {
    let usual = stats::median(e.by_round.values().copied());
    let both = e.figure.zip(usual).filter(|_| !e.pseudo_values.is_empty());
    both.is_some_and(|(all, usual)| (all / usual).max(usual / all) >= APART)
}

/// The first failure of each class, so that a reader of the counts learns a cause.
fn first_failures(planned: &Planned, observations: &[&Observation]) -> Vec<FirstFailure> {
    let mut examples: BTreeMap<&String, (&str, &String)> = BTreeMap::new();
    for (system, m) in measurements(observations) {
        for (class, example) in &m.first_errors {
            examples.entry(class).or_insert((system, example));
        }
    }
    // Such an answer is complete, and another than the one that was learnt.
    let of_answers = [ErrorClass::Status, ErrorClass::Length, ErrorClass::WrongContent].map(ErrorClass::name);
    let failure = |(class, (system, example)): (&String, (&str, &String))| FirstFailure {
        class: class.clone(),
        system: system.to_owned(),
        example: match &planned.ask {
            Some(ask) if of_answers.contains(&class.as_str()) => ask.missed(example),
            _ => example.clone(),
        },
    };
    examples.into_iter().map(failure).collect()
}
