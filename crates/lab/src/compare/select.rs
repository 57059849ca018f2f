//! Which scenarios are compared: `RUN`, `RUN:EXPERIMENT`, `RUN:EXPERIMENT/SYSTEM KNOB=VALUE …`, and which of the one side
//! belongs to which of the other.

use std::collections::{BTreeMap, BTreeSet};

use systems::input::suggestion;
use systems::knob::parse_size;
use systems::{Point, Value};

use super::{Alone, Chosen, Place};
use crate::findings::Findings;
use crate::observation::Scenario;

/// What the user named beside the run; everything where nothing is named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// This experiment.
    pub experiment: Option<String>,
    /// This system.
    pub system: Option<String>,
    /// These values of knobs, as written.
    pub knobs: Vec<(String, String)>,
}

/// A side as the user wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// A run's number, `last`, `previous`, or a file.
    pub run: String,
    /// Of it.
    pub selection: Selection,
}

impl std::str::FromStr for Side {
    type Err = String;

    /// Parses `RUN[:EXPERIMENT[/SYSTEM]][ KNOB=VALUE]…`.
    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "write RUN, RUN:EXPERIMENT or `RUN:EXPERIMENT/SYSTEM KNOB=VALUE …`";
        let mut words = text.split_whitespace();
        let first = words.next().ok_or_else(|| format!("there is no run: {FORM}"))?;
        let (run, rest) = first.split_once(':').map_or((first, None), |(run, rest)| (run, Some(rest)));
        let (experiment, system) = match rest {
            None => (None, None),
            Some(rest) => rest.split_once('/').map_or((Some(rest), None), |(e, s)| (Some(e), Some(s))),
        };
        if run.is_empty() || experiment == Some("") || system == Some("") {
            return Err(format!("{text:?}: {FORM}"));
        }
        let knob = |word: &str| match word.split_once('=') {
            Some((knob, value)) if !knob.is_empty() && !value.is_empty() => {
                Ok((knob.to_owned(), value.to_owned()))
            }
            _ => Err(format!("{word:?} in {text:?} is no KNOB=VALUE: {FORM}")),
        };
        let knobs = words.map(knob).collect::<Result<Vec<_>, _>>()?;
        let selection =
            Selection { experiment: experiment.map(str::to_owned), system: system.map(str::to_owned), knobs };
        Ok(Self { run: run.to_owned(), selection })
    }
}

impl Selection {
    /// Checks that what is named is there.
    ///
    /// # Errors
    /// What is not, with the nearest that is.
    pub fn check(&self, findings: &Findings) -> Result<(), String> {
        let all = findings.experiments.iter().flat_map(|e| &e.estimates).map(|e| &e.scenario);
        let mut left: Vec<&Scenario> = all.collect();
        if let Some(name) = &self.experiment {
            known("experiment", name, findings.experiments.iter().map(|e| e.name.as_str()))?;
            left.retain(|scenario| scenario.experiment == *name);
        }
        if let Some(name) = &self.system {
            known("system", name, left.iter().map(|scenario| scenario.system.as_str()))?;
            left.retain(|scenario| scenario.system == *name);
        }
        for (knob, text) in &self.knobs {
            known("knob", knob, left.iter().flat_map(|scenario| scenario.point.keys()).map(String::as_str))?;
            let values: Vec<&Value> = left.iter().filter_map(|scenario| scenario.point.get(knob)).collect();
            if !values.iter().any(|value| says(value, text)) {
                let shown: Vec<String> = values.iter().map(ToString::to_string).collect();
                known(&format!("value of `{knob}`"), text, shown.iter().map(String::as_str))?;
            }
        }
        Ok(())
    }

    fn takes(&self, scenario: &Scenario) -> bool {
        self.experiment.as_ref().is_none_or(|name| *name == scenario.experiment)
            && self.system.as_ref().is_none_or(|name| *name == scenario.system)
            && self
                .knobs
                .iter()
                .all(|(knob, text)| scenario.point.get(knob).is_some_and(|value| says(value, text)))
    }
}

/// An error unless it is among these.
fn known<'a>(what: &str, word: &str, there: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let there: BTreeSet<&str> = there.collect();
    if there.contains(word) {
        return Ok(());
    }
    let help = if there.is_empty() { "it has none".to_owned() } else { suggestion(word, there) };
    Err(format!("no {what} `{word}`: {help}"))
}

/// Whether a text means a value: `65536` and `64K` do the same.
fn says(value: &Value, text: &str) -> bool {
    value.to_string() == text
        || matches!(value, Value::Integer(number) if parse_size(text).is_ok_and(|size| size == *number))
}

/// What must be the same in two scenarios: all that neither side names.
type Key = (String, Option<String>, Point);

fn places<'a>(side: &'a Chosen, other: &Selection) -> BTreeMap<Key, Place<'a>> {
    // A side without a choice of its own follows the other's.
    let own = if side.selection == Selection::default() { other } else { &side.selection };
    let mut places = BTreeMap::new();
    for of in &side.findings.experiments {
        for estimate in of.estimates.iter().filter(|e| own.takes(&e.scenario)) {
            let scenario = &estimate.scenario;
            let mut point = scenario.point.clone();
            for (knob, _) in own.knobs.iter().chain(&other.knobs) {
                point.remove(knob);
            }
            let named = own.system.is_some();
            let key = (scenario.experiment.clone(), (!named).then(|| scenario.system.clone()), point);
            // References are what others are measured by; only who names one means it.
            if !estimate.is_reference() || named {
                places.entry(key).or_insert(Place { of, estimate });
            }
        }
    }
    places
}

/// The scenarios of both sides that belong together, and those that are alone.
pub(super) fn pairs<'a>(a: &'a Chosen, b: &'a Chosen) -> (Vec<(Place<'a>, Place<'a>)>, Vec<Alone>) {
    let (left, mut right) = (places(a, &b.selection), places(b, &a.selection));
    let (mut pairs, mut unmatched) = (Vec::new(), Vec::new());
    let alone = |first: bool, other: &Chosen, place: &Place| {
        let beside = other.findings.experiments.iter().find(|e| e.name == place.of.name);
        Alone { first, experiment: place.of.name.clone(), scenario: place.label(beside) }
    };
    for (key, place) in left {
        match right.remove(&key) {
            Some(other) => pairs.push((place, other)),
            None => unmatched.push(alone(true, b, &place)),
        }
    }
    unmatched.extend(right.values().map(|place| alone(false, a, place)));
    // In the order of the first side.
    let order = |place: &Place| {
        let experiment = a.findings.experiments.iter().position(|e| e.name == place.of.name);
        let at = place.of.estimates.iter().position(|e| std::ptr::eq(e, place.estimate));
        (experiment, at)
    };
    pairs.sort_by_key(|(place, _)| order(place));
    (pairs, unmatched)
}
