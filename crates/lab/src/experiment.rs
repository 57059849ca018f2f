//! Experiments: what a person asks, as written in `experiments/NAME.toml` (docs/contracts.md, "An experiment").
//!
//! Knows the file's fields and the position of each, so that an error shows its line. Does not know which systems and
//! knobs exist: [`grid`] asks the catalog when it turns an experiment into scenarios.

mod file;
pub mod grid;
mod rate;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use load::Slo;
use serde::{Deserialize, Serialize};
pub use systems::Figure;
use systems::input::{self, suggestion};
use systems::{Home, InputError, Manifest, Source, Value, Workload};
use toml::Spanned;

use crate::ask::Ask;
use crate::observation::Timing;
use file::{ExperimentFile, FormFile, Values, check_systems, spanned, words};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// The few most informative points.
    Quick,
    /// Every published point, and the points that the document left out.
    Full,
}

/// The question that an experiment asks, without the systems and values that it is asked of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subject {
    /// The experiment's name.
    pub name: String,
    /// One line for headings.
    pub title: String,
    /// The question, and where it was published.
    pub about: String,
    /// The kind of work that its trials do.
    pub workload: Workload,
    /// The figures of each trial.
    #[serde(flatten)]
    pub figures: Figures,
    /// What the experiment compares in the first place. None if that is whatever makes the largest difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub asks: Option<Asks>,
    /// The objective for `max_rate`. None for other figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub objective: Option<Slo>,
    /// The names of tables under `published/`.
    pub published: Vec<String>,
    /// The smallest difference that matters, as a share: 0.05 is 5 %.
    pub threshold: f64,
}

/// The figures of each trial of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// The figure that its first table shows.
    #[serde(rename = "figure")]
    pub first: Figure,
    /// Further figures, each with comparisons and a table of its own.
    #[serde(rename = "also", default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Figure>,
}

/// What an experiment asks about: its first sentence answers that. A file has the name of a knob, or `systems`, which no
/// knob is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Asks {
    /// Which system to take.
    Systems,
    /// Which value of this knob to take, or what it costs.
    Knob(String),
}

/// The word that stands for systems where a knob could be named.
const SYSTEMS: &str = "systems";

impl From<String> for Asks {
    fn from(name: String) -> Self {
        if name == SYSTEMS { Self::Systems } else { Self::Knob(name) }
    }
}

impl From<Asks> for String {
    fn from(asks: Asks) -> Self {
        match asks {
            Asks::Systems => SYSTEMS.to_owned(),
            Asks::Knob(knob) => knob,
        }
    }
}

impl Asks {
    /// The knob, if it is one.
    pub fn knob(&self) -> Option<&str> {
        match self {
            Self::Systems => None,
            Self::Knob(knob) => Some(knob),
        }
    }
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
    /// The experiment that this one repeats with other builds of the same systems.
    pub repeats: Option<String>,
    /// Whether each scenario is measured at the same time as the base's.
    pub duet: bool,
    /// What is sent, if it is not what docs/contracts.md says.
    pub ask: Option<Ask>,
    /// The position of the figure in the file.
    figure: Range<usize>,
    /// The position of `asks` in the file.
    asks: Range<usize>,
    quick: Schedule,
    full: Schedule,
    source: Source,
}

/// One form of an experiment: the number of rounds, the timing of a trial and the grid.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// Trials of each scenario. If rounds are added until comparisons are decided, this is the number to start with.
    pub rounds: u32,
    /// The position of this number in the file.
    rounds_at: Range<usize>,
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

impl Figures {
    /// All of them, the first in front.
    pub fn iter(&self) -> impl Iterator<Item = Figure> {
        std::iter::once(self.first).chain(self.others.iter().copied())
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
            figure: spanned(0, subject.figures.first),
            asks: subject.asks.map(|asks| spanned(0, asks)),
            published: Some(spanned(0, Values::Many(tables))),
            threshold: Some(spanned(0, subject.threshold)),
            objective: subject.objective.map(|slo| spanned(0, slo.to_string())),
            on_request: false,
            base: None,
            duet: None,
            request: None,
            also: subject.figures.others.into_iter().map(|figure| spanned(0, figure)).collect(),
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

    /// An error about the number of rounds of a form.
    pub(crate) fn error_at_rounds(&self, form: Form, message: String, help: &str) -> InputError {
        self.source.error(self.schedule(form).rounds_at.clone(), message, help)
    }

    /// Whether it was read from a file, and not made from values.
    pub fn is_from_file(&self) -> bool {
        !self.source.text.is_empty()
    }

    /// The path of its file.
    pub fn path(&self) -> &Path {
        &self.source.path
    }
}

/// Reads the experiment `name` from the strongest home that has it. A name that ends in `.toml` is a path.
///
/// # Errors
/// There is no such experiment: the error names the nearest one. Otherwise see [`Experiment::parse`].
pub fn load(homes: &[Home], name: &str) -> Result<Experiment, InputError> {
    if Path::new(name).extension().is_some_and(|e| e == "toml") {
        return Experiment::parse(&Source::read(Path::new(name))?);
    }
    let known: Vec<(&Home, Vec<String>)> = homes.iter().map(|home| (home, names(home))).collect();
    if let Some((home, _)) = known.iter().find(|(_, names)| names.iter().any(|known| known == name)) {
        return Experiment::parse(&Source::read(&file(home, name))?);
    }
    let folder = homes.first().map(|home| home.path.join("experiments")).unwrap_or_default();
    let names: BTreeSet<&str> = known.iter().flat_map(|(_, names)| names).map(String::as_str).collect();
    let help = match names.is_empty() {
        true => "that folder has no experiments: is it the right one?".to_owned(),
        false => suggestion(name, names),
    };
    Err(Source::new(folder, "").error(0..0, format!("there is no experiment `{name}`"), help))
}

/// All experiments of the strongest home that has any, sorted by name. An experiment that cannot be read is listed with its error
/// and does not affect the others.
pub fn list(homes: &[Home]) -> Vec<(String, Result<Experiment, InputError>)> {
    let all = homes.iter().map(|home| (home, names(home)));
    let Some((home, names)) = all.into_iter().find(|(_, names)| !names.is_empty()) else { return Vec::new() };
    let read = |name: String| {
        let experiment = Source::read(&file(home, &name)).and_then(|source| Experiment::parse(&source));
        (name, experiment)
    };
    names.into_iter().map(read).collect()
}

fn file(home: &Home, name: &str) -> PathBuf {
    home.path.join("experiments").join(format!("{name}.toml"))
}

fn names(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.path.join("experiments")).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
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
            if key.get_ref() == SYSTEMS {
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

#[cfg(test)]
pub(crate) mod tests;
