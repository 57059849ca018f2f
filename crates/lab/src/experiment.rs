//! Experiments: what a person asks, as written in `experiments/NAME.toml` (docs/contracts.md, "An experiment").
//!
//! Knows the file's fields and the position of each, so that an error shows its line. Does not know which systems and
//! knobs exist: [`grid`] asks the catalog when it turns an experiment into scenarios.

pub mod grid;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
pub use systems::Figure;
use systems::input::{self, suggestion};
use systems::{InputError, Manifest, Source, Value, Workload, is_reference};
use toml::Spanned;

use crate::ask::Ask;
use crate::observation::Timing;

/// The timeout of one operation in seconds, unless the file sets it.
const DEFAULT_TIMEOUT_S: f64 = 30.0;

/// The names of the published tables that a report can set beside an experiment. The crate `published` knows what they
/// contain.
pub const TABLES: [&str; 7] = [
    "cowboy-sizes",
    "cowboy-modes",
    "cowboy-buffers",
    "erlang-packet",
    "iodash",
    "pools-2019",
    "pools-original",
];

/// The default of the smallest difference that matters, as a share.
pub const DEFAULT_THRESHOLD: f64 = 0.05;

/// How thorough an experiment is: minutes for all ready-made experiments, or the complete grid of the published
/// document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// The few most informative points.
    Quick,
    /// Every published point, and the points that the document left out.
    Full,
}

/// The question that an experiment asks, without the systems and values that it is asked of.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Subject {
    /// The experiment's name.
    pub name: String,
    /// One line for headings.
    pub title: String,
    /// The question, and where it was published.
    pub about: String,
    /// The kind of work that its trials do.
    pub workload: Workload,
    /// The figure that its table shows.
    pub figure: Figure,
    /// Further figures, each with comparisons and a table of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Figure>,
    /// The names of tables under `published/`.
    pub published: Vec<String>,
    /// The smallest difference that matters, as a share: 0.05 is 5 %.
    pub threshold: f64,
}

/// An experiment that was read from a file or made from values, checked as far as possible without the catalog.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The question. Its name is the file's name.
    pub subject: Subject,
    /// The names of the systems, in the file's order. The reference is not among them, because it is always added.
    pub systems: Vec<Spanned<String>>,
    /// Whether it runs only when it is named, or with `--all`.
    pub on_request: bool,
    /// The system that the others are set beside. None if that is the reference.
    pub base: Option<String>,
    /// What is sent, if it is not what docs/contracts.md says.
    pub ask: Option<Ask>,
    /// The position of the figure in the file.
    figure: Range<usize>,
    quick: Schedule,
    full: Schedule,
    source: Source,
}

/// One form of an experiment: the number of rounds, the timing of a trial and the grid.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// Trials of each scenario. If rounds are added until comparisons are decided, this is the number to start with.
    pub rounds: u32,
    /// The timing of each trial.
    pub timing: Timing,
    blocks: Vec<Block>,
}

/// One `[[grid]]` block: a product of axes, in the file's order.
#[derive(Debug, Clone)]
struct Block {
    systems: Option<Vec<Spanned<String>>>,
    axes: Vec<(Spanned<String>, Vec<Spanned<Value>>)>,
}

impl Subject {
    /// All figures, the first of them in front.
    pub fn figures(&self) -> impl Iterator<Item = Figure> {
        std::iter::once(self.figure).chain(self.also.iter().copied())
    }
}

impl Deref for Experiment {
    type Target = Subject;

    fn deref(&self) -> &Subject {
        &self.subject
    }
}

impl Experiment {
    /// Reads an experiment. `source.path` gives the name that it must have.
    ///
    /// # Errors
    /// The first mistake, with its position, the reason and the nearest known word.
    pub fn parse(source: &Source) -> Result<Self, InputError> {
        let file: ExperimentFile = input::parse(source)?;
        let stem = source.path.file_stem().unwrap_or_default().to_string_lossy();
        if *file.name.get_ref() != stem {
            let message = format!("the name is `{}`, the file's is `{stem}`", file.name.get_ref());
            return Err(source.error(file.name.span(), message, "make them equal"));
        }
        file.check(source)
    }

    /// Makes an experiment from values, and checks it as if it came from a file. Both forms get the same rounds, timing
    /// and grid. Each block of the grid lists knobs with their values.
    ///
    /// # Errors
    /// The first value that docs/contracts.md does not allow, with the reason and what to do.
    pub fn new(
        subject: Subject,
        systems: &[&str],
        rounds: u32,
        timing: Timing,
        grid: &[Vec<(&str, Vec<Value>)>],
    ) -> Result<Self, InputError> {
        let source = Source::new(subject.name.as_str(), "");
        let form = || FormFile::new(rounds, timing, grid);
        let tables = subject.published.into_iter().map(|name| spanned(0, Value::Text(name))).collect();
        let file = ExperimentFile {
            name: spanned(0, subject.name),
            title: subject.title,
            about: subject.about,
            workload: subject.workload,
            systems: systems.iter().map(|name| spanned(0, (*name).to_owned())).collect(),
            figure: spanned(0, subject.figure),
            published: Some(spanned(0, Values::Many(tables))),
            threshold: Some(spanned(0, subject.threshold)),
            on_request: false,
            base: None,
            request: None,
            also: subject.also.into_iter().map(|figure| spanned(0, figure)).collect(),
            quick: form(),
            full: form(),
        };
        file.check(&source)
    }

    /// The schedule of a form.
    pub fn schedule(&self, form: Form) -> &Schedule {
        match form {
            Form::Quick => &self.quick,
            Form::Full => &self.full,
        }
    }

    /// The path of its file.
    pub fn path(&self) -> &Path {
        &self.source.path
    }
}

/// Reads the experiment `name` from the folder `home/experiments`. A name that ends in `.toml` is a path.
///
/// # Errors
/// There is no such experiment: the error names the nearest one. Otherwise see [`Experiment::parse`].
pub fn load(home: &Path, name: &str) -> Result<Experiment, InputError> {
    if Path::new(name).extension().is_some_and(|e| e == "toml") {
        return Experiment::parse(&Source::read(Path::new(name))?);
    }
    let known = names(home);
    if !known.iter().any(|k| k == name) {
        let folder = home.join("experiments");
        let help = match known.is_empty() {
            true => "that folder has no experiments: is it the right one?".to_owned(),
            false => suggestion(name, known.iter().map(String::as_str)),
        };
        return Err(Source::new(folder, "").error(0..0, format!("there is no experiment `{name}`"), help));
    }
    Experiment::parse(&Source::read(&file(home, name))?)
}

/// All experiments in the folder `home/experiments`, sorted by name. An experiment that cannot be read is listed with
/// its error and does not affect the others.
pub fn list(home: &Path) -> Vec<(String, Result<Experiment, InputError>)> {
    names(home)
        .into_iter()
        .map(|name| {
            let experiment = Source::read(&file(home, &name)).and_then(|source| Experiment::parse(&source));
            (name, experiment)
        })
        .collect()
}

fn file(home: &Path, name: &str) -> PathBuf {
    home.join("experiments").join(format!("{name}.toml"))
}

fn names(home: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(home.join("experiments")).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

fn check_systems(source: &Source, systems: &[Spanned<String>]) -> Result<(), InputError> {
    for (i, system) in systems.iter().enumerate() {
        if is_reference(system.get_ref()) {
            return Err(source.error(system.span(), "the reference is always added", "remove it here"));
        }
        if systems[..i].iter().any(|earlier| earlier.get_ref() == system.get_ref()) {
            return Err(source.error(system.span(), "named twice", "remove one"));
        }
    }
    Ok(())
}

fn threshold(source: &Source, share: &Spanned<f64>) -> Result<f64, InputError> {
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
fn figures() -> String {
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
fn published(source: &Source, tables: Spanned<Values>) -> Result<Vec<String>, InputError> {
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

fn words(
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

// The file as serde reads it.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExperimentFile {
    name: Spanned<String>,
    title: String,
    #[serde(default)]
    about: String,
    workload: Workload,
    systems: Vec<Spanned<String>>,
    figure: Spanned<Figure>,
    published: Option<Spanned<Values>>,
    threshold: Option<Spanned<f64>>,
    #[serde(default)]
    on_request: bool,
    base: Option<Spanned<String>>,
    request: Option<Ask>,
    #[serde(default)]
    also: Vec<Spanned<Figure>>,
    quick: FormFile,
    full: FormFile,
}

impl ExperimentFile {
    /// Checks everything that can be checked without the catalog.
    fn check(self, source: &Source) -> Result<Experiment, InputError> {
        check_systems(source, &self.systems)?;
        let figure = self.workload_figure(source, &self.figure)?;
        let also = self.also.iter().map(|figure| self.workload_figure(source, figure));
        let also = also.collect::<Result<Vec<_>, _>>()?;
        let twice = |(index, other): &(usize, &Figure)| **other == figure || also[..*index].contains(other);
        if let Some((index, _)) = also.iter().enumerate().find(twice) {
            return Err(source.error(self.also[index].span(), "named twice", "remove one"));
        }
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
            figure,
            also,
            published,
            threshold: threshold.map_or(Ok(DEFAULT_THRESHOLD), |share| self::threshold(source, share))?,
        };
        Ok(Experiment {
            subject,
            systems: self.systems,
            on_request: self.on_request,
            base: self.base.map(Spanned::into_inner),
            ask: self.request,
            figure: self.figure.span(),
            quick: self.quick.check(source)?,
            full: self.full.check(source)?,
            source: source.clone(),
        })
    }
}

impl ExperimentFile {
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
fn spanned<T>(position: usize, value: T) -> Spanned<T> {
    Spanned::new(position..position, value)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FormFile {
    rounds: Spanned<u32>,
    warmup_s: Spanned<f64>,
    measure_s: Spanned<f64>,
    timeout_s: Option<Spanned<f64>>,
    grid: Spanned<Vec<BTreeMap<Spanned<String>, Spanned<Values>>>>,
}

impl FormFile {
    fn new(rounds: u32, timing: Timing, grid: &[Vec<(&str, Vec<Value>)>]) -> Self {
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

    fn check(self, source: &Source) -> Result<Schedule, InputError> {
        if *self.rounds.get_ref() == 0 {
            return Err(source.error(self.rounds.span(), "no rounds: nothing would run", "write 3 or more"));
        }
        // No trial takes longer than a day. The limit also keeps sums and `Duration`s far from overflow.
        let seconds = |time: &Spanned<f64>, least: f64| match *time.get_ref() {
            s if s >= least && s <= 86_400.0 => Ok(s),
            s => {
                let message = format!("{s} is not a time that a trial can take");
                Err(source.error(time.span(), message, format!("write seconds, from {least} to 86400")))
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
        Ok(Schedule { rounds: self.rounds.into_inner(), timing, blocks })
    }
}

impl Block {
    /// Whether a system takes part in this block.
    fn takes(&self, system: &Manifest) -> bool {
        self.systems.as_ref().is_none_or(|names| names.iter().any(|name| system.answers_to(name.get_ref())))
    }

    fn new(fields: BTreeMap<Spanned<String>, Spanned<Values>>, source: &Source) -> Result<Self, InputError> {
        let mut block = Self { systems: None, axes: Vec::new() };
        for (key, values) in fields {
            let span = values.span();
            let values = Values::listed(values);
            if values.is_empty() {
                return Err(source.error(
                    span,
                    format!("no values for `{}`", key.get_ref()),
                    "name one or more",
                ));
            }
            if key.get_ref() == "systems" {
                let systems = words(source, values, "not the name of a system")?;
                check_systems(source, &systems)?;
                block.systems = Some(systems);
            } else {
                block.axes.push((key, values));
            }
        }
        // The map sorted the axes by name. The table shows them in the file's order.
        block.axes.sort_by_key(|(key, _)| key.span().start);
        Ok(block)
    }
}

/// One value, or a list of values.
enum Values {
    One(Value),
    Many(Vec<Spanned<Value>>),
}

impl Values {
    fn listed(values: Spanned<Self>) -> Vec<Spanned<Value>> {
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

#[cfg(test)]
pub(crate) mod tests;
