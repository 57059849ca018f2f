//! From an experiment to its scenarios: blocks become products, products are joined, what the command line says
//! replaces what the file says.
//!
//! Knows knobs by their definitions (the workload's own and the manifests'); pure.

use std::collections::BTreeSet;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systems::input::suggestion;
use systems::knob::Kind;
use systems::{Catalog, CatalogError, InputError, Knob, Manifest, Point, Source, Value, is_reference};
use toml::Spanned;

use super::{Block, Experiment, Form};
use crate::observation::Scenario;

/// The word that stands for all values of a knob's definition.
const ALL: &str = "all";

/// What the command line changes in an experiment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// These systems instead of the file's (those that do the experiment's workload); empty: the file's.
    pub systems: Vec<String>,
    /// `KNOB=VALUE[,VALUE…]`: these values instead of the file's, in every block, named there or not.
    pub set: Vec<String>,
    /// As many rounds instead of the file's.
    pub rounds: Option<u32>,
}

/// An experiment, in one form, with what the command line changes.
#[derive(Debug, Clone)]
pub struct Request {
    /// What is asked.
    pub experiment: Experiment,
    /// How thoroughly.
    pub form: Form,
    /// What replaces the file's words.
    pub overrides: Overrides,
}

/// A knob that an experiment sets.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Axis {
    /// The knob's name.
    pub knob: String,
    /// What values it takes; sizes are shown as `64K`.
    pub kind: Kind,
    /// Whether it is the workload's own, so that the reference has it, too.
    pub workload: bool,
    /// Its values in the order of the grid; one, where it is only held fixed.
    pub values: Vec<Value>,
    /// Its value when nobody says anything, in the first system that has it.
    pub default: Option<Value>,
}

impl Axis {
    /// The value as people read it: sizes as `64K`.
    pub fn show(&self, value: &Value) -> String {
        match (self.kind, value) {
            (Kind::Size, Value::Integer(bytes)) => show_size(*bytes),
            _ => value.to_string(),
        }
    }
}

/// Bytes as people write them: `64K`, `1M`, `1460`; decimal ones such as 80000000 stay as they are, though 1024 divides
/// them.
pub fn show_size(bytes: i64) -> String {
    let short = systems::knob::show_size(bytes);
    if short.len() > 5 { bytes.to_string() } else { short }
}

/// A system that takes no part.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Excluded {
    /// Its name.
    pub system: String,
    /// What is missing, and how to get it.
    pub reason: String,
}

/// An experiment's scenarios (without the reference's) and the knobs that span them.
#[derive(Debug, Clone)]
pub struct Grid {
    /// Systems in the file's order, each in the grid's order; no doubles.
    pub scenarios: Vec<Scenario>,
    /// In the order in which the grid names them.
    pub axes: Vec<Axis>,
    /// Systems whose manifest cannot be read.
    pub broken: Vec<Excluded>,
}

/// A value as it was written, and where.
#[derive(Clone)]
enum Written<'a> {
    InFile(&'a Spanned<Value>),
    OnCommandLine { text: &'a str, of: &'a str },
}

/// A knob with the values to walk, as a block or the command line names them.
type Wanted<'a> = (&'a str, Vec<Written<'a>>);

impl Experiment {
    /// Checks both forms against the catalog: every system, knob and value.
    ///
    /// # Errors
    /// The first that does not exist, with its place and the nearest that does.
    pub fn check(&self, catalog: &Catalog) -> Result<(), InputError> {
        for form in [Form::Quick, Form::Full] {
            scenarios(self, form, &Overrides::default(), catalog)?;
        }
        Ok(())
    }
}

/// Checks what the command line says against all experiments that are asked for: a knob or system need not mean
/// something to each of them, but to one.
///
/// # Errors
/// What means nothing to any, with the nearest that would.
pub fn check_overrides(requests: &[Request], catalog: &Catalog) -> Result<(), InputError> {
    for request in requests {
        for system in &request.overrides.systems {
            check_system(system, requests, catalog)?;
        }
        for (at, text) in request.overrides.set.iter().enumerate() {
            let (knob, _) = split(text)?;
            let same = |earlier: &&String| split(earlier).is_ok_and(|(known, _)| known == knob);
            if let Some(earlier) = request.overrides.set[..at].iter().find(same) {
                let message = format!("`{knob}` is set twice: `{earlier}` and `{text}`");
                let help = format!("write all its values after one --set {knob}=");
                return Err(Source::new("--set", text.as_str()).error(0..knob.len(), message, help));
            }
            let mut known = BTreeSet::new();
            for each in requests {
                known.extend(known_knobs(&each.experiment, &each.overrides, catalog));
            }
            if !known.contains(knob) {
                let message = format!("no system of these experiments has a knob `{knob}`");
                return Err(Source::new("--set", text.as_str()).error(
                    0..knob.len(),
                    message,
                    suggestion(knob, known.iter().copied()),
                ));
            }
        }
        if request.overrides.rounds == Some(0) {
            let help = "3 or more";
            return Err(Source::new("--rounds", "0").error(0..1, "no rounds: nothing would run", help));
        }
    }
    Ok(())
}

fn check_system(system: &str, requests: &[Request], catalog: &Catalog) -> Result<(), InputError> {
    let refuse = |message: String, help: String| {
        Err(Source::new("--systems", system).error(0..system.len(), message, help))
    };
    if is_reference(system) {
        return Ok(()); // it takes part in any case; named alone, nothing else does
    }
    match catalog.get(system) {
        Ok(manifest) if !requests.iter().any(|r| manifest.does(r.experiment.workload)) => {
            let done: Vec<&str> = manifest.workloads.iter().map(|w| w.name()).collect();
            refuse(
                format!("`{system}` does not do the work of these experiments"),
                format!("it does: {}", done.join(", ")),
            )
        }
        Err(CatalogError::Unknown { help, .. }) => refuse(format!("there is no system `{system}`"), help),
        Err(CatalogError::Broken(error)) => Err(error),
        Ok(_) | Err(CatalogError::NoHome { .. }) => Ok(()),
    }
}

/// The systems that take part, in order: the command line's that do the workload, or the file's. Beside them those
/// whose manifest is broken.
fn systems<'a>(
    experiment: &Experiment,
    overrides: &Overrides,
    catalog: &'a Catalog,
) -> Result<(Vec<&'a Manifest>, Vec<Excluded>), InputError> {
    let (mut good, mut broken) = (Vec::new(), Vec::new());
    for system in &experiment.systems {
        match in_file(experiment, system, catalog)? {
            Ok(manifest) => good.push(manifest),
            Err(excluded) => broken.push(excluded),
        }
    }
    if !overrides.systems.is_empty() {
        good.clear();
        for manifest in overrides.systems.iter().filter_map(|name| catalog.get(name).ok()) {
            let new = good.iter().all(|m: &&Manifest| m.name != manifest.name);
            if new && manifest.does(experiment.workload) {
                good.push(manifest);
            }
        }
        broken.retain(|excluded| overrides.systems.contains(&excluded.system));
    }
    Ok((good, broken))
}

/// A system that the file names: it must exist and do the workload. A broken manifest is the system's own trouble
/// and does not stop the experiment.
fn in_file<'a>(
    experiment: &Experiment,
    system: &Spanned<String>,
    catalog: &'a Catalog,
) -> Result<Result<&'a Manifest, Excluded>, InputError> {
    let name = system.get_ref();
    match catalog.get(name) {
        Ok(manifest) if !manifest.does(experiment.workload) => {
            let message = format!("`{name}` does not do the workload `{}`", experiment.workload);
            let help = "remove it, or say in its manifest that it does";
            Err(experiment.source.error(system.span(), message, help))
        }
        Ok(manifest) => Ok(Ok(manifest)),
        Err(CatalogError::Broken(error)) => {
            Ok(Err(Excluded { system: name.clone(), reason: error.one_line() }))
        }
        Err(CatalogError::Unknown { help, .. }) => {
            Err(experiment.source.error(system.span(), format!("there is no system `{name}`"), help))
        }
        Err(other) => Err(experiment.source.error(system.span(), other.to_string(), "")),
    }
}

/// The names of all knobs that mean something here: the workload's, and those of the file's and the command line's
/// systems.
fn known_knobs<'a>(
    experiment: &'a Experiment,
    overrides: &'a Overrides,
    catalog: &'a Catalog,
) -> impl Iterator<Item = &'a str> {
    let names = experiment.systems.iter().map(Spanned::get_ref).chain(&overrides.systems);
    let own = experiment.workload.knobs().map(|(name, _)| name);
    let manifests = names.filter_map(|name| catalog.get(name).ok());
    own.chain(manifests.flat_map(|m| m.knobs_in(experiment.workload)).map(|(name, _)| name))
}

/// Every scenario of a form: for each system, the union of its blocks' products over the knobs that any block names.
///
/// # Errors
/// A system, knob or value that does not exist, with its place and the nearest that does.
pub fn scenarios(
    experiment: &Experiment,
    form: Form,
    overrides: &Overrides,
    catalog: &Catalog,
) -> Result<Grid, InputError> {
    check_knobs(experiment, form, overrides, catalog)?;
    let blocks = &experiment.schedule(form).blocks;
    let wanted = blocks.iter().map(|block| wanted(block, overrides)).collect::<Result<Vec<_>, _>>()?;
    let named = named(&wanted);
    let (good, broken) = systems(experiment, overrides, catalog)?;
    let mut grid = Grid { scenarios: Vec::new(), axes: Vec::new(), broken };
    let mut seen = BTreeSet::new();
    for manifest in good {
        // Who was asked for on the command line takes part, if need be in blocks that are others'.
        let nowhere = blocks.iter().all(|block| !block.takes(manifest));
        let all_blocks = nowhere && overrides.systems.contains(&manifest.name);
        for (block, wanted) in blocks.iter().zip(&wanted) {
            if !all_blocks && !block.takes(manifest) {
                continue;
            }
            let mut points = vec![Point::new()];
            for name in &named {
                let Some(knob) = manifest.knob(experiment.workload, name) else { continue };
                let values = match wanted.iter().find(|(known, _)| known == name) {
                    Some((_, written)) => values(experiment, knob, written)?,
                    None => vec![knob.default.clone()],
                };
                grid.note(experiment, name, knob, &values);
                points = product(&points, name, &values);
            }
            let (system, workload) = (&manifest.name, experiment.workload);
            for point in points.into_iter().filter(|p| seen.insert((system.clone(), p.clone()))) {
                let scenario = Scenario::new(experiment.name.as_str(), system.as_str(), workload, point)
                    .map_err(|why| experiment.source.error(0..0, why, ""))?;
                check_rate(experiment, &scenario)?;
                grid.scenarios.push(scenario);
            }
        }
    }
    Ok(grid)
}

/// A figure that counts from when a request was due needs a schedule.
fn check_rate(experiment: &Experiment, scenario: &Scenario) -> Result<(), InputError> {
    if !experiment.subject.figure.needs_rate() || scenario.work().is_open_loop() {
        return Ok(());
    }
    let message = "this figure counts from when a request was due, and a closed loop has no schedule";
    Err(experiment.source.error(
        experiment.figure.clone(),
        message,
        "give `rate` a value above 0 in every block",
    ))
}

impl Grid {
    fn note(&mut self, experiment: &Experiment, name: &str, knob: &Knob, values: &[Value]) {
        let at = self.axes.iter().position(|axis| axis.knob == name).unwrap_or_else(|| {
            let workload = experiment.workload.knob(name).is_some();
            let default = Some(knob.default.clone());
            self.axes.push(Axis {
                knob: name.to_owned(),
                kind: knob.kind,
                workload,
                values: Vec::new(),
                default,
            });
            self.axes.len() - 1
        });
        let known = &mut self.axes[at].values;
        for value in values {
            if !known.contains(value) {
                known.push(value.clone());
            }
        }
        // Several blocks may name a number out of order; neighbours matter to findings (cliffs).
        if known.iter().all(|value| matches!(value, Value::Integer(_))) {
            known.sort();
        }
    }
}

fn product(points: &[Point], knob: &str, values: &[Value]) -> Vec<Point> {
    let with = |point: &Point, value: &Value| {
        let mut point = point.clone();
        point.insert(knob.to_owned(), value.clone());
        point
    };
    points.iter().flat_map(|point| values.iter().map(move |value| with(point, value))).collect()
}

/// Every knob that some block names, in the order of the file. Where a block is silent on one of them, its rows stand beside
/// others that are not: they say the default.
fn named<'a>(blocks: &[Vec<Wanted<'a>>]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (name, _) in blocks.iter().flatten() {
        if !names.contains(name) {
            names.push(*name);
        }
    }
    names
}

/// A block's axes after the command line had its say: replaced in place, or added behind.
fn wanted<'a>(block: &'a Block, overrides: &'a Overrides) -> Result<Vec<Wanted<'a>>, InputError> {
    let mut axes: Vec<Wanted<'a>> = block
        .axes
        .iter()
        .map(|(knob, values)| (knob.get_ref().as_str(), values.iter().map(Written::InFile).collect()))
        .collect();
    for of in &overrides.set {
        let (knob, values) = split(of)?;
        let written = values.split(',').map(|text| Written::OnCommandLine { text, of }).collect();
        match axes.iter_mut().find(|(name, _)| *name == knob) {
            Some(axis) => axis.1 = written,
            None => axes.push((knob, written)),
        }
    }
    Ok(axes)
}

/// Splits `KNOB=VALUES`.
fn split(text: &str) -> Result<(&str, &str), InputError> {
    match text.split_once('=') {
        Some((knob, values)) if !knob.trim().is_empty() && !values.trim().is_empty() => {
            Ok((knob.trim(), values))
        }
        _ => {
            let help = "write KNOB=VALUE, or KNOB=VALUE,VALUE to walk several";
            Err(Source::new("--set", text).error(0..text.len(), "not a knob with its values", help))
        }
    }
}

/// What was written, as values of the knob.
fn values(experiment: &Experiment, knob: &Knob, written: &[Written]) -> Result<Vec<Value>, InputError> {
    let mut values: Vec<Value> = Vec::new();
    for each in written {
        let found = match each {
            Written::InFile(v) if is_all(v.get_ref(), knob) => knob.values.clone(),
            Written::OnCommandLine { text, .. } if is_all(&Value::Text((*text).to_owned()), knob) => {
                knob.values.clone()
            }
            Written::InFile(v) => {
                let wrong = |why| experiment.source.error(v.span(), why, format!("it is: {}", knob.about));
                vec![knob.check(v.get_ref()).map_err(wrong)?]
            }
            Written::OnCommandLine { text, of } => {
                let wrong = |why| {
                    Source::new("--set", *of).error(within(of, text), why, format!("it is: {}", knob.about))
                };
                vec![knob.parse(text).map_err(wrong)?]
            }
        };
        for value in found {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    Ok(values)
}

/// Whether the word `all` stands for the knob's values; a choice that has a value `all` keeps it.
fn is_all(value: &Value, knob: &Knob) -> bool {
    matches!(value, Value::Text(word) if word.trim() == ALL) && knob.check(value).is_err()
}

/// Where `part` lies in `whole`, of which it is a slice.
fn within(whole: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    start..start + part.len()
}

/// Every knob that the form's blocks name must mean something to the workload or to one of the systems; where a
/// manifest is broken nobody knows, and the knob is left out.
fn check_knobs(
    experiment: &Experiment,
    form: Form,
    overrides: &Overrides,
    catalog: &Catalog,
) -> Result<(), InputError> {
    let known: BTreeSet<&str> = known_knobs(experiment, overrides, catalog).collect();
    let whole = experiment.systems.iter().all(|s| catalog.get(s.get_ref()).is_ok());
    for block in &experiment.schedule(form).blocks {
        for (knob, _) in &block.axes {
            let name = knob.get_ref().as_str();
            if whole && !known.contains(name) {
                let message = format!("no system of this experiment has a knob `{name}`");
                return Err(experiment.source.error(
                    knob.span(),
                    message,
                    suggestion(name, known.iter().copied()),
                ));
            }
        }
        for system in block.systems.iter().flatten() {
            let _ = in_file(experiment, system, catalog)?;
        }
    }
    Ok(())
}
