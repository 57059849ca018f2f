//! Reads the knobs of a manifest: their names, types, values and bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::Spanned;

use super::PLACEHOLDERS;
use super::read::{RawKnob, Read, Reader};
use crate::knob::{Kind, Knob, MOST_VALUES, Value};
use crate::workload::Workload;

impl Reader<'_> {
    pub(super) fn knobs(
        &self,
        raw: &BTreeMap<Spanned<String>, Spanned<RawKnob>>,
        workloads: &[Workload],
    ) -> Read<BTreeMap<String, Knob>> {
        let mut knobs = BTreeMap::new();
        for (name, raw) in raw {
            self.knob_name(name, workloads)?;
            let knob = self.knob(raw, workloads)?;
            knobs.insert(name.get_ref().clone(), knob);
        }
        Ok(knobs)
    }

    fn knob_name(&self, name: &Spanned<String>, workloads: &[Workload]) -> Read<()> {
        let word = name.get_ref().as_str();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !word.starts_with(|c: char| c.is_ascii_alphabetic()) || !word.chars().all(plain) {
            let help = "begin with a letter; use letters, digits and `_`";
            return self.wrong(name.span(), format!("`{word}` cannot be a knob's name"), help);
        }
        // These words have another meaning in a block of an experiment or as a placeholder.
        if PLACEHOLDERS.contains(&word) || word == "systems" {
            let help =
                format!("rename the knob; these words are taken: {}, systems", PLACEHOLDERS.join(", "));
            return self.wrong(name.span(), format!("`{word}` is already the name of something else"), help);
        }
        if let Some(workload) = workloads.iter().find(|workload| workload.knob(word).is_some()) {
            let message = format!("`{word}` is already a knob of the workload `{workload}`");
            return self.wrong(name.span(), message, "rename the knob, and its placeholder");
        }
        Ok(())
    }

    #[expect(clippy::indexing_slicing, reason = "both have a place for each value")]
    fn knob(&self, raw: &Spanned<RawKnob>, system: &[Workload]) -> Read<Knob> {
        let (span, raw) = (raw.span(), raw.get_ref());
        let mut knob = Knob {
            min: self.bound(raw.kind, raw.min.as_ref())?,
            max: self.bound(raw.kind, raw.max.as_ref())?,
            about: raw.about.clone(),
            workloads: self.knob_workloads(raw.workloads.as_ref(), system)?,
            effect: raw.effect.clone(),
            amount: raw.amount,
            ..Knob::new(raw.kind, Value::Boolean(false), Vec::new())
        };
        if let (Some(min), Some(max), Some(raw_max)) = (knob.min, knob.max, &raw.max)
            && min > max
        {
            return self.wrong(raw_max.span(), format!("max = {max} is below min = {min}"), "swap them");
        }
        if let Some(beyond) = raw.values.get(MOST_VALUES) {
            let message = format!("{} values, and a knob may have {MOST_VALUES}", raw.values.len());
            return self.wrong(
                beyond.span(),
                message,
                "list fewer; within its bounds a number needs no list",
            );
        }
        let values = raw.values.iter().map(|value| Ok((value.span(), self.value(value)?)));
        let values = values.collect::<Read<Vec<_>>>()?;
        if matches!(raw.kind, Kind::Choice | Kind::Any) {
            // The words define the choice, so they must be set before values are checked.
            let words = values.iter().filter(|(_, value)| matches!(value, Value::Text(_)));
            knob.values = words.map(|(_, value)| value.clone()).collect();
        }
        if raw.kind == Kind::Choice && knob.values.is_empty() {
            return self.wrong(span, "a choice without words", "add values = [\"…\", …]");
        }
        let check =
            |span: Range<usize>, value: &Value| knob.check(value).or_else(|why| self.wrong(span, why, ""));
        // Words define the choice, so only other values are checked.
        let checked = values.iter().map(|(span, value)| match (knob.kind, value) {
            (Kind::Choice | Kind::Any, Value::Text(_)) => Ok(value.clone()),
            _ => check(span.clone(), value),
        });
        let checked = checked.collect::<Read<Vec<_>>>()?;
        let mut seen = BTreeSet::new();
        if let Some(double) = checked.iter().position(|value| !seen.insert(value)) {
            return self.wrong(values[double].0.clone(), "this value is listed twice", "remove one");
        }
        let default = check(raw.default.span(), &self.value(&raw.default)?)?;
        let alike = raw.alike.as_ref().map(|value| check(value.span(), &self.value(value)?)).transpose()?;
        Ok(Knob { default, values: checked, alike, ..knob })
    }

    fn knob_workloads(
        &self,
        raw: Option<&Spanned<Vec<Spanned<Workload>>>>,
        system: &[Workload],
    ) -> Read<Vec<Workload>> {
        let Some(raw) = raw else { return Ok(system.to_vec()) };
        if raw.get_ref().is_empty() {
            return self.wrong(raw.span(), "no workload", "leave out the field to mean all of the system's");
        }
        if let Some(stranger) = raw.get_ref().iter().find(|workload| !system.contains(workload.get_ref())) {
            let message = format!("the system does not do `{}`", stranger.get_ref());
            return self.wrong(stranger.span(), message, "name only the system's workloads");
        }
        Ok(raw.get_ref().iter().map(|workload| *workload.get_ref()).collect())
    }

    fn value(&self, raw: &Spanned<toml::Value>) -> Read<Value> {
        match raw.get_ref() {
            toml::Value::Boolean(flag) => Ok(Value::Boolean(*flag)),
            toml::Value::Integer(number) => Ok(Value::Integer(*number)),
            toml::Value::String(text) if !text.contains('\0') => Ok(Value::Text(text.clone())),
            _ => self.wrong(
                raw.span(),
                "not a knob's value",
                "write an integer, true, false or a word in quotes",
            ),
        }
    }

    fn bound(&self, kind: Kind, raw: Option<&Spanned<toml::Value>>) -> Read<Option<i64>> {
        let Some(raw) = raw else { return Ok(None) };
        if matches!(kind, Kind::Boolean | Kind::Choice) {
            return self.wrong(raw.span(), "only an integer or a size has bounds", "remove min and max");
        }
        let unbounded =
            Knob::new(if kind == Kind::Any { Kind::Integer } else { kind }, Value::Integer(0), Vec::new());
        match unbounded.check(&self.value(raw)?) {
            Ok(Value::Integer(number)) => Ok(Some(number)),
            Ok(_) => self.wrong(raw.span(), "not a number", "write an integer or a size"),
            Err(why) => self.wrong(raw.span(), why, ""),
        }
    }
}
