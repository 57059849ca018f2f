//! An experiment as serde reads it from a file, and the checks of its fields. Values take the same way, without positions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use serde::de::{self, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use systems::input::suggestion;
use systems::{InputError, Source, Value, Workload, is_reference};
use toml::Spanned;

use super::{Asks, Block, DEFAULT_THRESHOLD, Experiment, Figure, Figures, Schedule, Subject, TABLES, rate};
use crate::ask::Ask;
use crate::observation::{LONGEST_TRIAL_S, Timing};
use crate::plan::MOST_ROUNDS;

/// The timeout of one operation in seconds, unless the file sets it.
const DEFAULT_TIMEOUT_S: f64 = 30.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExperimentFile {
    pub(super) name: Spanned<String>,
    pub(super) title: String,
    #[serde(default)]
    pub(super) about: String,
    pub(super) workload: Workload,
    pub(super) systems: Vec<Spanned<String>>,
    pub(super) figure: Spanned<Figure>,
    pub(super) asks: Option<Spanned<Asks>>,
    pub(super) published: Option<Spanned<Values>>,
    pub(super) threshold: Option<Spanned<f64>>,
    #[serde(default)]
    pub(super) on_request: bool,
    pub(super) base: Option<Spanned<String>>,
    pub(super) duet: Option<Spanned<bool>>,
    pub(super) request: Option<Spanned<Ask>>,
    #[serde(default)]
    pub(super) also: Vec<Spanned<Figure>>,
    pub(super) objective: Option<Spanned<String>>,
    pub(super) quick: FormFile,
    pub(super) full: FormFile,
}

impl ExperimentFile {
    /// Checks everything that can be checked without the catalog.
    pub(super) fn check(self, source: &Source) -> Result<Experiment, InputError> {
        check_systems(source, &self.systems)?;
        let figure = self.workload_figure(source, &self.figure)?;
        let also = self.further_figures(source, figure)?;
        let objective = rate::objective(source, &self)?;
        self.check_base(source)?;
        let asks = self.asks.as_ref();
        if let Some(asks) = asks.filter(|asks| *asks.get_ref() == Asks::Systems && self.systems.len() < 2) {
            let help = "name two or more in `systems`, or ask about a knob";
            return Err(source.error(
                asks.span(),
                "there is one system, and so none to compare it with",
                help,
            ));
        }
        let published = match self.published {
            Some(tables) => published(source, tables)?,
            None => Vec::new(),
        };
        let threshold = self.threshold.as_ref();
        let subject = Subject {
            name: self.name.into_inner(),
            title: self.title,
            about: self.about,
            workload: self.workload,
            figures: Figures { first: figure, others: also },
            asks: asks.map(|asks| asks.get_ref().clone()),
            objective,
            published,
            threshold: threshold.map_or(Ok(DEFAULT_THRESHOLD), |share| self::threshold(source, share))?,
        };
        Ok(Experiment {
            subject,
            systems: self.systems,
            on_request: self.on_request,
            base: self.base.map(Spanned::into_inner),
            repeats: None,
            duet: self.duet.is_some_and(Spanned::into_inner),
            ask: self.request.map(Spanned::into_inner),
            figure: self.figure.span(),
            asks: asks.map_or(0..0, Spanned::span),
            quick: self.quick.check(source)?,
            full: self.full.check(source)?,
            source: source.clone(),
        })
    }
}

impl ExperimentFile {
    /// Checks what all are set beside, and what only works beside that.
    fn check_base(&self, source: &Source) -> Result<(), InputError> {
        let named = |name: &String| self.systems.iter().any(|system| system.get_ref() == name);
        if let Some(base) = self.base.as_ref().filter(|base| !named(base.get_ref())) {
            let message = format!("the base `{}` is not among the systems", base.get_ref());
            return Err(source.error(base.span(), message, "name one of `systems`"));
        }
        if self.request.is_some() && (self.workload != Workload::Requests || self.base.is_none()) {
            let help = "use the workload `requests`, and name one of the systems as `base`";
            return Err(source.error(
                self.base.as_ref().unwrap_or(&self.name).span(),
                "a request of its own, which the reference does not answer",
                help,
            ));
        }
        if let Some(request) = &self.request {
            check_request(source, request)?;
        }
        if let Some(duet) = self.duet.as_ref().filter(|duet| *duet.get_ref()) {
            self.check_duet(source, duet.span())?;
        }
        Ok(())
    }

    /// Checks that its trials can happen two at the same time.
    fn check_duet(&self, source: &Source, at: Range<usize>) -> Result<(), InputError> {
        let (message, help) = match () {
            () if self.workload != Workload::Requests => (
                "a window of other workloads than `requests` ends with its last operation, so two windows are not one",
                "leave `duet` out",
            ),
            () if self.base.is_none() => {
                ("a duet is of a system and the base", "name one of the systems as `base`")
            }
            () if self.objective.is_some() => {
                ("a trial that searches the highest rate has many windows", "leave `duet` or `objective` out")
            }
            () => return Ok(()),
        };
        Err(source.error(at, message, help))
    }

    /// The figures besides this one. Each may be named once.
    fn further_figures(&self, source: &Source, figure: Figure) -> Result<Vec<Figure>, InputError> {
        let also = self.also.iter().map(|figure| self.workload_figure(source, figure));
        let also = also.collect::<Result<Vec<_>, _>>()?;
        let twice = |(index, other): &(usize, &Figure)| {
            **other == figure || also.iter().take(*index).any(|earlier| earlier == *other)
        };
        let double = also.iter().enumerate().find(twice).and_then(|(index, _)| self.also.get(index));
        if let Some(double) = double {
            return Err(source.error(double.span(), "named twice", "remove one"));
        }
        Ok(also)
    }

    /// Checks that a figure exists for the workload.
    fn workload_figure(&self, source: &Source, figure: &Spanned<Figure>) -> Result<Figure, InputError> {
        if self.workload.about().figures.contains(figure.get_ref()) {
            return Ok(*figure.get_ref());
        }
        let message = format!("this figure does not exist for the workload `{}`", self.workload);
        Err(source.error(figure.span(), message, figures()))
    }
}

/// A value that comes from no file. Its position only keeps the order.
pub(super) fn spanned<T>(position: usize, value: T) -> Spanned<T> {
    Spanned::new(position..position, value)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FormFile {
    pub(super) rounds: Spanned<u32>,
    pub(super) warmup_s: Spanned<f64>,
    pub(super) measure_s: Spanned<f64>,
    pub(super) timeout_s: Option<Spanned<f64>>,
    pub(super) grid: Spanned<Vec<BTreeMap<Spanned<String>, Spanned<Values>>>>,
}

impl FormFile {
    pub(super) fn new(rounds: u32, timing: Timing, grid: &[Vec<(&str, Vec<Value>)>]) -> Self {
        let axis = |(position, (knob, values)): (usize, &(&str, Vec<Value>))| {
            let values = values.iter().map(|value| spanned(position, value.clone())).collect();
            (spanned(position, (*knob).to_owned()), spanned(position, Values::Many(values)))
        };
        Self {
            rounds: spanned(0, rounds),
            warmup_s: spanned(0, timing.warmup_s),
            measure_s: spanned(0, timing.measure_s),
            timeout_s: Some(spanned(0, timing.timeout_s)),
            grid: spanned(0, grid.iter().map(|block| block.iter().enumerate().map(axis).collect()).collect()),
        }
    }

    pub(super) fn check(self, source: &Source) -> Result<Schedule, InputError> {
        if *self.rounds.get_ref() == 0 {
            return Err(source.error(self.rounds.span(), "no rounds: nothing would run", "write 3 or more"));
        }
        if *self.rounds.get_ref() > MOST_ROUNDS {
            let message = format!("{} rounds, and there may be {MOST_ROUNDS}", self.rounds.get_ref());
            let help = format!("write a number from 1 to {MOST_ROUNDS}");
            return Err(source.error(self.rounds.span(), message, help));
        }
        let seconds = |time: &Spanned<f64>, least: f64| match *time.get_ref() {
            s if s >= least && s <= LONGEST_TRIAL_S => Ok(s),
            s => {
                let message = format!("{s} is not a time that a trial can take");
                Err(source.error(
                    time.span(),
                    message,
                    format!("write seconds, from {least} to {LONGEST_TRIAL_S}"),
                ))
            }
        };
        let timing = Timing {
            warmup_s: seconds(&self.warmup_s, 0.0)?,
            measure_s: seconds(&self.measure_s, 0.01)?,
            timeout_s: self.timeout_s.as_ref().map_or(Ok(DEFAULT_TIMEOUT_S), |t| seconds(t, 0.001))?,
        };
        let span = self.grid.span();
        let blocks = self.grid.into_inner().into_iter().map(|block| Block::new(block, source));
        let blocks = blocks.collect::<Result<Vec<_>, _>>()?;
        if blocks.is_empty() {
            return Err(source.error(span, "an empty grid: nothing would run", "add a [[….grid]] block"));
        }
        let rounds_at = self.rounds.span();
        Ok(Schedule { rounds: self.rounds.into_inner(), rounds_at, timing, blocks })
    }
}

/// Checks that an answer can meet the status of a request and its checks.
fn check_request(source: &Source, request: &Spanned<Ask>) -> Result<(), InputError> {
    #[derive(Deserialize)]
    struct File {
        request: Part,
    }
    #[derive(Deserialize)]
    struct Part {
        expect: Spanned<IgnoredAny>,
    }
    let ask = request.get_ref();
    if ask.list.is_some() {
        let message = "requests of a file are not part of an experiment";
        return Err(source.error(request.span(), message, "use `narrows try --requests FILE`"));
    }
    if !ask.statuses().is_empty() {
        return Ok(());
    }
    // A plan keeps the request as it is, so the positions of its fields are read only here.
    let span =
        systems::input::parse::<File>(source).map_or(request.span(), |file| file.request.expect.span());
    let (message, help) = match ask.status {
        Some(status) => (
            format!("no status meets both these checks and `status = {status}`"),
            "let them accept the same status",
        ),
        None => ("no status meets all these checks".to_owned(), "remove one of those of the status"),
    };
    Err(source.error(span, message, help))
}

pub(super) fn check_systems(source: &Source, systems: &[Spanned<String>]) -> Result<(), InputError> {
    let mut known = BTreeSet::new();
    for system in systems {
        if is_reference(system.get_ref()) {
            return Err(source.error(system.span(), "the reference is always added", "remove it here"));
        }
        if !known.insert(system.get_ref()) {
            return Err(source.error(system.span(), "named twice", "remove one"));
        }
    }
    Ok(())
}

pub(super) fn threshold(source: &Source, share: &Spanned<f64>) -> Result<f64, InputError> {
    match *share.get_ref() {
        x if x > 0.0 && x <= 1.0 => Ok(x),
        x => {
            let message = format!("{x} is not a difference that two figures can have");
            Err(source.error(
                share.span(),
                message,
                "write a share above 0 and at most 1, such as 0.05 for 5 %",
            ))
        }
    }
}

/// The figures, each with its workloads. The workloads for which a figure is most usual come first.
pub(super) fn figures() -> String {
    let line = |figure: Figure| {
        let place = |workload: &Workload| workload.about().figures.iter().position(|known| *known == figure);
        let mut workloads: Vec<Workload> =
            Workload::ALL.into_iter().filter(|workload| place(workload).is_some()).collect();
        workloads.sort_by_key(place);
        let names: Vec<&str> = workloads.into_iter().map(Workload::name).collect();
        format!("{}: {}", figure.name(), names.join(", "))
    };
    Figure::ALL.map(line).join("; ")
}

/// Checks the names of published tables. Each may appear once.
pub(super) fn published(source: &Source, tables: Spanned<Values>) -> Result<Vec<String>, InputError> {
    let mut names: Vec<String> = Vec::new();
    for table in words(source, Values::listed(tables), "not the name of a table")? {
        let (span, name) = (table.span(), table.into_inner());
        if !TABLES.contains(&name.as_str()) {
            let help = suggestion(&name, TABLES);
            return Err(source.error(span, format!("there is no published table `{name}`"), help));
        }
        if names.contains(&name) {
            return Err(source.error(span, "named twice", "remove one"));
        }
        names.push(name);
    }
    Ok(names)
}

pub(super) fn words(
    source: &Source,
    values: Vec<Spanned<Value>>,
    wrong: &str,
) -> Result<Vec<Spanned<String>>, InputError> {
    let word = |value: Spanned<Value>| match value.get_ref() {
        Value::Text(name) => Ok(Spanned::new(value.span(), name.clone())),
        _ => Err(source.error(value.span(), wrong, "a name in quotes")),
    };
    values.into_iter().map(word).collect()
}

/// One value, or a list of values.
pub(super) enum Values {
    One(Value),
    Many(Vec<Spanned<Value>>),
}

impl Values {
    pub(super) fn listed(values: Spanned<Self>) -> Vec<Spanned<Value>> {
        let span = values.span();
        match values.into_inner() {
            Self::One(value) => vec![Spanned::new(span, value)],
            Self::Many(values) => values,
        }
    }
}

impl<'de> Deserialize<'de> for Values {
    // This is no untagged enum, because serde would buffer the list and lose the spans of its values.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Values;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value (true, a whole number, a text) or a list of values")
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Values, E> {
                Ok(Values::One(Value::Boolean(value)))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Values, E> {
                Ok(Values::One(Value::Integer(value)))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Values, E> {
                Ok(Values::One(Value::Text(value.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Values, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element::<Spanned<Value>>()? {
                    values.push(value);
                }
                Ok(Values::Many(values))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}
