//! Warnings: what makes a number untrustworthy, where, and with which figures.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Estimate, measurements};
use crate::doubt::{Doubt, Evidence};
use crate::observation::Observation;
use crate::plan::Planned;

/// Fewer trials than this have no median worth the name: of two, it is their mean.
pub const FEWEST_TRIALS: u32 = 3;

/// A range of more than this share of the median.
pub const UNSTEADY: f64 = 0.3;

/// What kind of doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
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
    /// Trials of one scenario lie more than 30 % apart.
    Unsteady,
    /// Too few operations for a percentile that the table shows.
    PercentileUnsupported,
    /// A system's work is not that of the others, as its manifest says.
    UnequalWork,
    /// At least half of a scenario's trials are doubtful in themselves.
    #[serde(untagged)]
    Trial(Doubt),
}

/// A doubt about an experiment, and the scenarios that it concerns. `report` has the sentence and the remedy.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Warning {
    /// What kind.
    pub code: Code,
    /// How many scenarios it concerns; of an incomplete plan, how many trials are done.
    pub count: u32,
    /// Of so many.
    pub of: u32,
    /// What was seen; None where the code says it all.
    pub seen: Option<Seen>,
    /// Where, each as `system knob=value …`; empty where it concerns all.
    pub scenarios: Vec<String>,
}

/// What was seen of a doubt.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// The figures of the first trial of the first scenario.
    Evidence(Evidence),
    /// The first failure of each class.
    Failures(Vec<FirstFailure>),
    /// The system whose work is another.
    Work {
        /// Its name.
        system: String,
        /// What its manifest says.
        unequal: String,
    },
}

/// An example of a class of errors.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct FirstFailure {
    /// The class.
    pub class: String,
    /// The system that it happened to.
    pub system: String,
    /// What was wrong.
    pub example: String,
}

/// All doubts about an experiment, by kind.
pub(super) fn warnings(
    planned: &Planned,
    estimates: &[Estimate],
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
            // None are named where it concerns all.
            scenarios: found.iter().filter(|_| !all).map(|e| planned.label(&e.scenario)).collect(),
        }
    };
    for (code, applies) in RULES {
        let found: Vec<&Estimate> = estimates.iter().filter(|e| applies(e)).collect();
        if !found.is_empty() {
            let failures = || Seen::Failures(first_failures(observations));
            warnings.push(warning(*code, found, (*code == Code::Errors).then(failures)));
        }
    }
    warnings.extend(unequal_work(planned, observations));
    let codes: BTreeSet<Doubt> = estimates.iter().flat_map(|e| e.doubts.keys().copied()).collect();
    for doubt in codes {
        let found: Vec<&Estimate> = estimates.iter().filter(|e| e.doubts.contains_key(&doubt)).collect();
        let seen = found.first().map(|e| Seen::Evidence(e.doubts[&doubt].clone()));
        warnings.push(warning(Code::Trial(doubt), found, seen));
    }
    warnings
}

/// One for each system that says that its work is another.
fn unequal_work(planned: &Planned, observations: &[&Observation]) -> Vec<Warning> {
    let mut systems = BTreeMap::new();
    for (system, m) in measurements(observations).filter(|(_, m)| !m.system.unequal.is_empty()) {
        systems.entry(system).or_insert(m.system.unequal.as_str());
    }
    let warning = |(system, unequal): (&str, &str)| {
        let own = planned.scenarios.iter().filter(|scenario| scenario.system == system);
        let scenarios: Vec<String> = own.map(|scenario| planned.label(scenario)).collect();
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

/// To which scenarios a kind of doubt applies.
type Rule = (Code, fn(&Estimate) -> bool);

const RULES: &[Rule] = &[
    (Code::TooFewTrials, |e| (1..FEWEST_TRIALS).contains(&e.trials)),
    (Code::NothingFinished, |e| e.trials > 0 && e.successes == 0 && e.errors.is_empty()),
    (Code::Errors, |e| !e.errors.is_empty()),
    (Code::CountsDisagree, |e| e.counts_agree == Some(false)),
    (Code::Unsteady, |e| e.spread.is_some_and(|s| s.range > UNSTEADY)),
    // Where p99 is the figure, each trial must support its own.
    (Code::PercentileUnsupported, |e| {
        e.scenario.workload().about().short_exchanges
            && e.successes > 0
            && (e.p99_us.is_none() || e.figure.is_none())
    }),
];

/// The first example of each class and whose it is, so that a count has a cause.
fn first_failures(observations: &[&Observation]) -> Vec<FirstFailure> {
    let mut examples: BTreeMap<&String, (&str, &String)> = BTreeMap::new();
    for (system, m) in measurements(observations) {
        for (class, example) in &m.first_errors {
            examples.entry(class).or_insert((system, example));
        }
    }
    let failure = |(class, (system, example)): (&String, (&str, &String))| FirstFailure {
        class: class.clone(),
        system: system.to_owned(),
        example: example.clone(),
    };
    examples.into_iter().map(failure).collect()
}
