//! Selects the scenarios of each side (`RUN`, `RUN:EXPERIMENT`, `RUN:EXPERIMENT/SYSTEM KNOB=VALUE …`), and pairs those of
//! the first side with those of the second.

use std::collections::{BTreeMap, BTreeSet};

use systems::input::suggestion;
use systems::knob::parse_size;
use systems::{Point, Value};

use super::{Alone, Chosen, Entry, Indexed};
use crate::findings::{Estimate, Findings};
use crate::observation::Scenario;

/// The scenarios of a run that the user selected. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Selects the scenarios of this experiment.
    pub experiment: Option<String>,
    /// Selects the scenarios of this system.
    pub system: Option<String>,
    /// Selects the scenarios with these values of knobs, as the user wrote them.
    pub knobs: Vec<(String, String)>,
}

/// One side of a comparison, as the user wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// The number of a run, `last`, `previous`, or a file.
    pub run: String,
    /// The selected scenarios of the run.
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
    /// Checks that the run has the selected experiment, system, knobs and values.
    ///
    /// # Errors
    /// Names the first that it does not have, and the nearest that it has.
    pub fn check(&self, findings: &Findings) -> Result<(), String> {
        let all = findings.views().flat_map(|e| e.estimates).map(|e| &e.scenario);
        let mut selected: Vec<&Scenario> = all.collect();
        if let Some(name) = &self.experiment {
            known("experiment", name, findings.experiments.iter().map(|e| e.name.as_str()))?;
            selected.retain(|scenario| scenario.experiment == *name);
        }
        if let Some(name) = &self.system {
            known("system", name, selected.iter().map(|scenario| scenario.system.as_str()))?;
            selected.retain(|scenario| scenario.system == *name);
        }
        for (knob, text) in &self.knobs {
            let knobs = selected.iter().flat_map(|scenario| scenario.point.keys());
            known("knob", knob, knobs.map(String::as_str))?;
            let values: Vec<&Value> =
                selected.iter().filter_map(|scenario| scenario.point.get(knob)).collect();
            if !values.iter().any(|value| means(text, value)) {
                let shown: Vec<String> = values.iter().map(ToString::to_string).collect();
                known(&format!("value of `{knob}`"), text, shown.iter().map(String::as_str))?;
            }
        }
        Ok(())
    }

    fn selects(&self, scenario: &Scenario) -> bool {
        self.experiment.as_ref().is_none_or(|name| *name == scenario.experiment)
            && self.system.as_ref().is_none_or(|name| *name == scenario.system)
            && self
                .knobs
                .iter()
                .all(|(knob, text)| scenario.point.get(knob).is_some_and(|value| means(text, value)))
    }
}

/// Checks that a word is one of the known names.
fn known<'a>(kind: &str, word: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let names: BTreeSet<&str> = names.collect();
    if names.contains(word) {
        return Ok(());
    }
    let help = if names.is_empty() { "it has none".to_owned() } else { suggestion(word, names) };
    Err(format!("no {kind} `{word}`: {help}"))
}

/// Whether a text means this value. `65536` and `64K` mean the same.
fn means(text: &str, value: &Value) -> bool {
    value.to_string() == text
        || matches!(value, Value::Integer(number) if parse_size(text).is_ok_and(|size| size == *number))
}

/// What must be equal in two scenarios to pair them: everything that neither side selects. Rates under different
/// objectives, and what else was measured at them, are not comparable.
type Key = (String, &'static str, Option<String>, Option<String>, Point);

/// The scenarios that a side selects. A side that selects nothing follows the other.
fn entries<'a>((side, figures): (&Chosen, &'a [Indexed<'a>]), other: &Selection) -> BTreeMap<Key, Entry<'a>> {
    let selection = if side.selection == Selection::default() { other } else { &side.selection };
    let mut entries = BTreeMap::new();
    for experiment in figures {
        for estimate in experiment.estimates.iter().filter(|e| selection.selects(&e.scenario)) {
            let scenario = &estimate.scenario;
            let mut point = scenario.point.clone();
            for (knob, _) in selection.knobs.iter().chain(&other.knobs) {
                point.remove(knob);
            }
            let named = selection.system.is_some();
            let figure = experiment.figure.name();
            let objective = experiment.objective.as_ref().map(ToString::to_string);
            let system = (!named).then(|| scenario.system.clone());
            let key = (scenario.experiment.clone(), figure, objective, system, point);
            // What others are set beside is compared only if the user names it.
            if !experiment.is_yardstick(scenario) || named {
                entries.entry(key).or_insert(Entry { experiment, estimate });
            }
        }
    }
    entries
}

/// The pairs of scenarios of two sides with their figures, in the order of the first; and the scenarios that only one side has.
pub(super) fn pairs<'a>(
    sides: [(&Chosen, &'a [Indexed<'a>]); 2],
) -> (Vec<(Entry<'a>, Entry<'a>)>, Vec<Alone>) {
    let [a, b] = sides;
    let (left, mut right) = (entries(a, &b.0.selection), entries(b, &a.0.selection));
    let (mut pairs, mut unmatched) = (Vec::new(), Vec::new());
    // Of several figures of one name, the first.
    let [of_a, of_b] = [a, b].map(|(_, figures)| {
        let named = figures.iter().rev().map(|figure| (figure.name(), figure));
        named.collect::<BTreeMap<_, _>>()
    });
    let alone = |first: bool, entry: Entry| {
        let other = if first { &of_b } else { &of_a };
        let scenario = entry.label(other.get(&entry.experiment.name()).copied());
        Alone { first, experiment: entry.experiment.name.clone(), scenario }
    };
    for (key, entry) in left {
        match right.remove(&key) {
            Some(other) => pairs.push((entry, other)),
            None => unmatched.push(alone(true, entry)),
        }
    }
    unmatched.extend(right.values().map(|entry| alone(false, *entry)));
    let estimates = a.1.iter().flat_map(|figure| figure.estimates);
    let places: BTreeMap<*const Estimate, usize> = estimates.map(std::ptr::from_ref).zip(0..).collect();
    pairs.sort_by_key(|(entry, _)| places.get(&std::ptr::from_ref(entry.estimate)));
    (pairs, unmatched)
}
