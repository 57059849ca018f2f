//! What a form of an experiment asks for: the values of each block, and those of `--set` in their place. All blocks share what was set,
//! because a copy for each block would take too much memory. Counts the scenarios before any of them is made. Pure.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

use systems::{InputError, Knob, Manifest, Source, Value};
use toml::Spanned;

use super::super::{Block, Experiment, Form};
use super::Overrides;
use crate::plan::MOST_SCENARIOS;

/// The word that stands for all values in a knob's definition.
const ALL: &str = "all";

/// A value as a person wrote it, and where.
#[derive(Clone)]
pub(super) enum Written<'a> {
    InFile(&'a Spanned<Value>),
    OnCommandLine { text: &'a str, argument: &'a str },
}

/// What all blocks of a form ask for.
pub(super) struct Wanted<'a> {
    experiment: &'a Experiment,
    overrides: &'a Overrides,
    blocks: Vec<Asked<'a>>,
    /// The values that replace those of each block, by knob.
    set: BTreeMap<&'a str, Vec<Written<'a>>>,
    /// All knobs that a block or the command line names, in the order of the tables: what was set stands behind the first block.
    pub named: Vec<&'a str>,
}

/// What one block asks for.
pub(super) struct Asked<'a> {
    block: &'a Block,
    /// The values by knob, without the knobs that were set.
    own: BTreeMap<&'a str, Vec<Written<'a>>>,
}

/// What a system does of it.
pub(super) struct Share<'w> {
    wanted: &'w Wanted<'w>,
    manifest: &'w Manifest,
    /// The blocks in which it takes part.
    pub blocks: Vec<&'w Asked<'w>>,
    /// The values that were set, as the system takes them, by knob. Knobs that the system does not have
    /// are left out.
    set: BTreeMap<&'w str, Vec<Value>>,
}

impl<'a> Wanted<'a> {
    /// What a form asks for, with what the command line changes.
    ///
    /// # Errors
    /// An argument of `--set` is no knob with its values.
    pub fn new(experiment: &'a Experiment, form: Form, overrides: &'a Overrides) -> Result<Self, InputError> {
        let set = overrides.set.iter().map(|argument| {
            let (knob, values) = split(argument)?;
            let written = values.split(',').map(|text| Written::OnCommandLine { text, argument });
            Ok((knob, once(written)))
        });
        let set = set.collect::<Result<Vec<_>, InputError>>()?;
        let blocks = &experiment.schedule(form).blocks;
        let (first, others) = blocks.split_at(blocks.len().min(1));
        let knobs = |blocks: &'a [Block]| blocks.iter().flat_map(|block| &block.axes).map(|(knob, _)| knob);
        let names = |blocks| knobs(blocks).map(|knob| knob.get_ref().as_str());
        let mut known = BTreeSet::new();
        let named = names(first).chain(set.iter().map(|(knob, _)| *knob)).chain(names(others));
        let named = named.filter(|name| known.insert(*name)).collect();
        let set = BTreeMap::from_iter(set);
        let asked = |block: &'a Block| {
            let axes = block.axes.iter().map(|(knob, values)| (knob.get_ref().as_str(), values));
            let own = axes.filter(|(knob, _)| !set.contains_key(knob));
            let own = own.map(|(knob, values)| (knob, once(values.iter().map(Written::InFile)))).collect();
            Asked { block, own }
        };
        Ok(Self { experiment, overrides, blocks: blocks.iter().map(asked).collect(), set, named })
    }

    /// What a system does of it. One that the command line names takes part in all blocks if no block is open to it.
    ///
    /// # Errors
    /// A value that was set, which is not one of the knob's.
    pub fn share<'w>(&'w self, manifest: &'w Manifest) -> Result<Share<'w>, InputError> {
        let open = || self.blocks.iter().filter(|asked| asked.block.takes(manifest));
        let everywhere = open().next().is_none() && self.overrides.systems.contains(&manifest.name);
        let blocks = if everywhere { self.blocks.iter().collect() } else { open().collect::<Vec<_>>() };
        let mut share = Share { wanted: self, manifest, blocks, set: BTreeMap::new() };
        if !share.blocks.is_empty() {
            let known =
                self.set.iter().filter_map(|(name, written)| Some((*name, share.knob(name)?, written)));
            let set = known.map(|(name, knob, written)| Ok((name, values(self.experiment, knob, written)?)));
            share.set = set.collect::<Result<_, InputError>>()?;
        }
        Ok(share)
    }

    /// Checks how many scenarios there would be, which is known before any is made. A point counts each time that a block has it,
    /// because each time takes its time.
    ///
    /// # Errors
    /// There are too many, with their number and the place of the longest list of values; or a value is not one of the knob's.
    pub fn check_count<'w>(&'w self, systems: &[&'w Manifest]) -> Result<(), InputError> {
        let mut count = Count::default();
        for manifest in systems {
            let share = self.share(manifest)?;
            for (name, values) in &share.set {
                count.note(name, values.len(), self.set.get(name));
            }
            let of_set = share.set.values().map(Vec::len).fold(1, usize::saturating_mul);
            for asked in &share.blocks {
                let mut points = of_set;
                for (name, written) in &asked.own {
                    let Some(knob) = share.knob(name) else { continue };
                    let values = share.values(asked, name, knob)?.len();
                    points = points.saturating_mul(values);
                    count.note(name, values, Some(written));
                }
                count.scenarios = count.scenarios.saturating_add(points);
            }
        }
        if count.scenarios > MOST_SCENARIOS { Err(self.too_many(&count)) } else { Ok(()) }
    }

    fn too_many(&self, Count { scenarios, longest }: &Count<'_>) -> InputError {
        let blocks = Some(self.blocks.len()).filter(|count| *count > 1 && self.experiment.is_from_file());
        let blocks = blocks.map(|count| format!("it has {count} blocks"));
        let longest = longest.filter(|(values, ..)| *values > 1);
        let values = longest.map(|(values, name, _)| format!("`{name}` has {values} values"));
        let why = blocks.into_iter().chain(values).collect::<Vec<_>>().join(", and ");
        let why = if why.is_empty() { why } else { format!(": {why}") };
        let scenarios = match *scenarios {
            usize::MAX => format!("more than {MOST_SCENARIOS}"), // The product is larger than a `usize`.
            scenarios => scenarios.to_string(),
        };
        let message = format!("the grid has {scenarios} scenarios, and may have {MOST_SCENARIOS}{why}");
        self.too_much(message, longest.and_then(|(.., last)| last))
    }

    /// What was written for a knob in a block.
    pub fn written(&self, asked: &'a Asked<'_>, name: &str) -> Option<&[Written<'a>]> {
        self.set.get(name).or_else(|| asked.own.get(name)).map(Vec::as_slice)
    }

    /// An error about too many or too large scenarios, at a value.
    pub fn too_much(&self, message: String, at: Option<&Written>) -> InputError {
        let help = match self.experiment.is_from_file() {
            true => "name fewer values, blocks or systems, or let `narrows tune` search among the values",
            false => "give fewer values, commands or URLs, or let `narrows tune` search among the values",
        };
        match at {
            Some(Written::OnCommandLine { text, argument }) => {
                Source::new("--set", *argument).error(within(argument, text), message, help)
            }
            Some(Written::InFile(value)) => self.experiment.source.error(value.span(), message, help),
            None => self.experiment.source.error(0..0, message, help),
        }
    }
}

impl<'w> Share<'w> {
    /// The definition of a knob, if the system has it.
    pub fn knob(&self, name: &str) -> Option<&'w Knob> {
        self.manifest.knob(self.wanted.experiment.workload, name)
    }

    /// The values of a knob in a block: those that were asked for, or its default.
    ///
    /// # Errors
    /// One of them is not the knob's.
    pub fn values(&self, asked: &Asked<'_>, name: &str, knob: &Knob) -> Result<Cow<'_, [Value]>, InputError> {
        Ok(match (self.set.get(name), asked.own.get(name)) {
            (Some(set), _) => Cow::Borrowed(set.as_slice()),
            (None, Some(written)) => Cow::Owned(values(self.wanted.experiment, knob, written)?),
            (None, None) => Cow::Owned(vec![knob.default.clone()]),
        })
    }
}

/// How many scenarios there would be.
#[derive(Default)]
struct Count<'w> {
    scenarios: usize,
    /// The longest list of values: their number, the knob, and the last of them.
    longest: Option<(usize, &'w str, Option<&'w Written<'w>>)>,
}

impl<'w> Count<'w> {
    fn note(&mut self, knob: &'w str, values: usize, written: Option<&'w Vec<Written<'w>>>) {
        if self.longest.is_none_or(|(known, ..)| values > known) {
            self.longest = Some((values, knob, written.and_then(|written| written.last())));
        }
    }
}

/// What was written, each only once, because each system looks at all of it.
fn once<'a>(written: impl Iterator<Item = Written<'a>>) -> Vec<Written<'a>> {
    let mut known = HashSet::new();
    let value = |written: &Written<'a>| match written {
        Written::InFile(value) => Cow::Borrowed(value.get_ref()),
        Written::OnCommandLine { text, .. } => Cow::Owned(Value::Text((*text).to_owned())),
    };
    written.filter(|written| known.insert(value(written).into_owned())).collect()
}

/// Splits `KNOB=VALUES`.
///
/// # Errors
/// A part is missing.
pub(super) fn split(text: &str) -> Result<(&str, &str), InputError> {
    match text.split_once('=') {
        Some((knob, values)) if !knob.trim().is_empty() && !values.trim().is_empty() => {
            Ok((knob.trim(), values))
        }
        _ => {
            let help = "write KNOB=VALUE, or KNOB=VALUE,VALUE for several values";
            Err(Source::new("--set", text).error(0..text.len(), "not a knob with its values", help))
        }
    }
}

/// Converts what was written to values of the knob.
fn values(experiment: &Experiment, knob: &Knob, written: &[Written]) -> Result<Vec<Value>, InputError> {
    let (mut values, mut known) = (Vec::new(), BTreeSet::new());
    for item in written {
        let found = match item {
            Written::InFile(v) if is_all(v.get_ref(), knob) => knob.values.clone(),
            Written::OnCommandLine { text, .. } if is_all(&Value::Text((*text).to_owned()), knob) => {
                knob.values.clone()
            }
            Written::InFile(v) => {
                let wrong = |why| experiment.source.error(v.span(), why, format!("it is: {}", knob.about));
                // A file is for all machines: what this one does not allow is left out.
                match knob.beyond(v.get_ref()) {
                    Some(_) => vec![v.get_ref().clone()],
                    None => vec![knob.check(v.get_ref()).map_err(wrong)?],
                }
            }
            Written::OnCommandLine { text, argument } => {
                let wrong = |why| {
                    Source::new("--set", *argument).error(
                        within(argument, text),
                        why,
                        format!("it is: {}", knob.about),
                    )
                };
                vec![knob.parse(text).map_err(wrong)?]
            }
        };
        values.extend(found.into_iter().filter(|value| known.insert(value.clone())));
    }
    Ok(values)
}

/// Whether the word `all` stands for all values of the knob. It does not for a choice that has a value `all`.
fn is_all(value: &Value, knob: &Knob) -> bool {
    matches!(value, Value::Text(word) if word.trim() == ALL) && knob.check(value).is_err()
}

/// The position of `part` in `whole`. `part` must be a slice of `whole`.
fn within(whole: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    start..start + part.len()
}
