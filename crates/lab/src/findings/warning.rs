//! Warnings: what makes a number untrustworthy, and what to do about it.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Estimate, RANKED_ERRORS, measurements};
use crate::doubt::Doubt;
use crate::observation::Observation;
use crate::plan::Planned;

/// Fewer trials than this have no median worth the name: of two, it is their mean.
pub const FEWEST_TRIALS: u32 = 3;

/// A range of more than this share of the median.
const UNSTEADY: f64 = 0.3;

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

/// A doubt, the scenarios that it concerns, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Warning {
    /// What kind.
    pub code: Code,
    /// What was seen.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
    /// Where, each as `system knob=value …`; empty where it concerns all.
    pub scenarios: Vec<String>,
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
            message: format!("{} of {trials} trials are done", observations.len()),
            remedy: "wait, or continue with --resume".to_owned(),
            scenarios: Vec::new(),
        });
    }
    for (code, message, remedy, applies) in RULES {
        let found: Vec<&Estimate> = estimates.iter().filter(|e| applies(e)).collect();
        if found.is_empty() {
            continue;
        }
        warnings.push(warning(planned, estimates, *code, message, remedy, &found));
    }
    warnings.extend(unequal_work(planned, observations));
    let codes: BTreeSet<Doubt> = estimates.iter().flat_map(|e| e.doubts.keys().copied()).collect();
    for doubt in codes {
        let found: Vec<&Estimate> = estimates.iter().filter(|e| e.doubts.contains_key(&doubt)).collect();
        let example = found.first().map_or("", |e| e.doubts[&doubt].as_str());
        warnings.push(warning(planned, estimates, Code::Trial(doubt), example, doubt.remedy(), &found));
    }
    if let Some(warning) = warnings.iter_mut().find(|w| w.code == Code::Errors) {
        warning.message.push_str(&first_errors(observations));
    }
    warnings
}

/// One for each system that says that its work is another.
fn unequal_work(planned: &Planned, observations: &[&Observation]) -> Vec<Warning> {
    let mut systems = BTreeMap::new();
    for (system, m) in measurements(observations).filter(|(_, m)| !m.system.unequal.is_empty()) {
        systems.entry(system).or_insert(m.system.unequal.as_str());
    }
    let of = |system: &str| {
        let own = planned.scenarios.iter().filter(|scenario| scenario.system == system);
        own.map(|scenario| planned.label(scenario)).collect()
    };
    let warning = |(system, unequal): (&str, &str)| Warning {
        code: Code::UnequalWork,
        message: format!("{system} does not do the work of the others: {unequal}"),
        remedy: "compare it only with systems that do the same".to_owned(),
        scenarios: of(system),
    };
    systems.into_iter().map(warning).collect()
}

/// One kind of doubt and the scenarios that it concerns; none are named where it concerns all.
fn warning(
    planned: &Planned,
    estimates: &[Estimate],
    code: Code,
    message: &str,
    remedy: &str,
    found: &[&Estimate],
) -> Warning {
    let all = found.len() == estimates.len();
    let names = found.iter().filter(|_| !all).map(|e| planned.label(&e.scenario));
    Warning {
        code,
        message: format!("{message} in {} of {} scenarios", found.len(), estimates.len()),
        remedy: remedy.to_owned(),
        scenarios: names.collect(),
    }
}

/// What is said about a kind of doubt that the rules below know, and what to do about it.
pub fn words(code: Code) -> (&'static str, &'static str) {
    let rule = RULES.iter().find(|(known, ..)| *known == code);
    rule.map_or(("", ""), |(_, message, remedy, _)| (message, remedy))
}

type Rule = (Code, &'static str, &'static str, fn(&Estimate) -> bool);

const RULES: &[Rule] = &[
    (Code::TooFewTrials, "fewer than 3 measured trials", "more --rounds; see the failures, if any", |e| {
        (1..FEWEST_TRIALS).contains(&e.trials)
    }),
    (
        Code::NothingFinished,
        "no operation ended inside the window",
        "a longer measure_s, or less work for one operation",
        |e| e.trials > 0 && e.successes == 0 && e.errors.is_empty(),
    ),
    (
        Code::Errors,
        "operations failed",
        "rows above 1 % of errors are not ranked; the classes say what to change",
        |e| !e.errors.is_empty(),
    ),
    (
        Code::CountsDisagree,
        "the client's and the server's counts contradict each other",
        "do not use these rows; docs/contracts.md says what a driver must count",
        |e| e.counts_agree == Some(false),
    ),
    (
        Code::Unsteady,
        "trials lie more than 30 % of their median apart",
        "stop other work on the machine (`narrows doctor`), a longer measure_s, more --rounds",
        |e| e.spread.is_some_and(|s| s.range > UNSTEADY),
    ),
    (
        Code::PercentileUnsupported,
        "too few operations for p99 (it needs 1000)",
        "a longer measure_s, or more --rounds",
        // Where p99 is the figure, each trial must support its own.
        |e| {
            e.scenario.workload().about().short_exchanges
                && e.successes > 0
                && (e.p99_us.is_none() || e.figure.is_none())
        },
    ),
];

/// The first example of each class and whose it is, so that a count has a cause.
fn first_errors(observations: &[&Observation]) -> String {
    let mut examples = BTreeMap::new();
    for (system, m) in measurements(observations) {
        for (class, example) in &m.first_errors {
            examples.entry(class).or_insert((system, example));
        }
    }
    let words = |(class, (system, example))| format!("; {class} of {system}: {example}");
    examples.into_iter().map(words).collect()
}

/// The note under a ranked table.
pub(super) fn unranked_note() -> String {
    let percent = RANKED_ERRORS * 100.0;
    format!(
        "rows without a rank have more than {percent} % errors, no figure, fewer than 3 trials, counts that contradict the server's, or a warning that \
         disqualifies them (more connections than the pool may have, a generator at its limit or behind its schedule, failures quicker than successes)"
    )
}
