//! Turns an experiment into scenarios: expands each block into the product of its values, joins the products, and
//! applies the overrides of the command line.
//!
//! Knows the definitions of knobs, from workloads and from manifests. Pure.

mod left_out;
mod points;
mod wanted;

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use systems::allotment;
use systems::input::suggestion;
use systems::knob::Kind;
use systems::work::{http, tls};
use systems::{Catalog, CatalogError, InputError, Knob, Manifest, Point, Source, Value, is_reference};
use toml::Spanned;

use super::{Asks, Experiment, Form, rate};
use crate::observation::Scenario;
pub use left_out::Excluded;
use points::Points;
use wanted::{Wanted, Written, split};

/// What the command line changes in an experiment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Systems that replace the file's, as far as they do the experiment's workload. If empty, the file's take part.
    pub systems: Vec<String>,
    /// `KNOB=VALUE[,VALUE…]`: values that replace a knob's values in every block. A block that does not name the knob
    /// gets it.
    pub set: Vec<String>,
    /// The number of rounds, if it is not to be the file's.
    pub rounds: Option<u32>,
}

/// An experiment, in one form, with what the command line changes.
#[derive(Debug, Clone)]
pub struct Request {
    /// The experiment.
    pub experiment: Experiment,
    /// Which of its forms.
    pub form: Form,
    /// What the command line changes.
    pub overrides: Overrides,
}

/// A knob that an experiment sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Axis {
    /// The knob's name.
    pub knob: String,
    /// The kind of values that it takes. Sizes are shown as `64K`.
    pub kind: Kind,
    /// Whether it is a knob of the workload, so that the reference has it too.
    pub workload: bool,
    /// Its values, in the order of the grid. A single value if the knob is held fixed.
    pub values: Vec<Value>,
    /// Its default, in the first system that has it.
    pub default: Option<Value>,
    /// Whether it is a knob of a system that sets how much work one operation is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub amount: bool,
}

impl Axis {
    /// Formats a value for people: sizes as `64K`.
    pub fn show(&self, value: &Value) -> String {
        match (self.kind, value) {
            (Kind::Size, Value::Integer(bytes)) => show_size(*bytes),
            _ => value.to_string(),
        }
    }
}

/// Formats bytes as people write them: `64K`, `1M`, `1460`. Decimal sizes such as 80000000 stay as they are, although
/// 1024 divides them.
pub fn show_size(bytes: i64) -> String {
    let short = systems::knob::show_size(bytes);
    if short.len() > 5 { bytes.to_string() } else { short }
}

/// The scenarios of an experiment, without the reference's, and the knobs that span them.
#[derive(Debug, Clone)]
pub struct Grid {
    /// The systems in the file's order, and each system's points in the grid's order. No scenario appears twice.
    pub scenarios: Vec<Scenario>,
    /// The knobs, in the order in which the grid names them.
    pub axes: Vec<Axis>,
    /// Systems whose manifest cannot be read, those that cannot be spoken to in TLS, or only so, where the grid asks for it,
    /// and values of knobs that this machine does not allow.
    pub left_out: Vec<Excluded>,
}

/// The place of each axis, and its values, so that both are soon found.
type Places = BTreeMap<String, (usize, BTreeSet<Value>)>;

impl Experiment {
    /// Checks every system, knob and value of both forms against the catalog.
    ///
    /// # Errors
    /// The first that does not exist, with its position and the nearest that does.
    pub fn check(&self, catalog: &Catalog) -> Result<(), InputError> {
        for form in [Form::Quick, Form::Full] {
            scenarios(self, form, &Overrides::default(), catalog)?;
        }
        Ok(())
    }
}

/// Checks the overrides of the command line against all requested experiments. A knob or system must mean something to
/// at least one of them.
///
/// # Errors
/// A knob or system that means nothing to any of them, with the nearest that would.
pub fn check_overrides(requests: &[Request], catalog: &Catalog) -> Result<(), InputError> {
    let all = || requests.iter().flat_map(|other| known_knobs(&other.experiment, &other.overrides, catalog));
    let known = LazyCell::new(|| all().collect::<BTreeSet<&str>>());
    for request in requests {
        for system in &request.overrides.systems {
            check_system(system, requests, catalog)?;
        }
        let mut set = BTreeMap::new();
        for text in &request.overrides.set {
            let (knob, _) = split(text)?;
            if let Some(earlier) = set.insert(knob, text) {
                let message = format!("`{knob}` is set twice: `{earlier}` and `{text}`");
                let help = format!("write all its values after one --set {knob}=");
                return Err(Source::new("--set", text.as_str()).error(0..knob.len(), message, help));
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
            let help = "write 3 or more";
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
        return Ok(()); // The reference always takes part. If it is named alone, nothing else does.
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

/// The systems that take part, in order, and those with a broken manifest. If the command line names systems, those
/// that do the workload take part; otherwise the file's.
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

/// Looks up a system that the file names. It must exist and do the workload. A broken manifest excludes its system and
/// does not stop the experiment.
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
        Err(CatalogError::Broken(error)) => Ok(Err(Excluded::new(name, &error.one_line(), false))),
        Err(CatalogError::Unknown { help, .. }) => {
            Err(experiment.source.error(system.span(), format!("there is no system `{name}`"), help))
        }
        Err(other) => Err(experiment.source.error(system.span(), other.to_string(), "")),
    }
}

/// The names of all knobs that mean something here: those of the workload, and those of the systems that the file or
/// the command line names.
fn known_knobs<'a>(
    experiment: &'a Experiment,
    overrides: &'a Overrides,
    catalog: &'a Catalog,
) -> impl Iterator<Item = &'a str> {
    let names = experiment.systems.iter().map(Spanned::get_ref).chain(&overrides.systems);
    let workload = experiment.workload.knobs().map(|(name, _)| name);
    let manifests = names.filter_map(|name| catalog.get(name).ok());
    workload
        .chain(allotment::NAMES)
        .chain(manifests.flat_map(|m| m.knobs_in(experiment.workload)).map(|(name, _)| name))
}

/// All scenarios of a form. For each system, they are the union of the products of its blocks, over the knobs that any
/// block names.
///
/// # Errors
/// A system, knob or value that does not exist, with its position and the nearest that does.
pub fn scenarios(
    experiment: &Experiment,
    form: Form,
    overrides: &Overrides,
    catalog: &Catalog,
) -> Result<Grid, InputError> {
    check_knobs(experiment, form, overrides, catalog)?;
    let wanted = Wanted::new(experiment, form, overrides)?;
    let (good, broken) = systems(experiment, overrides, catalog)?;
    wanted.check_count(&good)?;
    let grid = Grid { scenarios: Vec::new(), axes: Vec::new(), left_out: broken };
    let (seen, spent, places) = (BTreeSet::new(), 0, Places::new());
    let mut begun = Begun { experiment, wanted: &wanted, grid, seen, spent, places };
    for manifest in good {
        begun.add(manifest)?;
    }
    let mut grid = begun.grid;
    // Several blocks may name numbers out of order, but findings compare neighbours (cliffs).
    let is_number = |value: &Value| matches!(value, Value::Integer(_));
    let of_numbers = grid.axes.iter_mut().filter(|axis| axis.values.iter().all(is_number));
    of_numbers.for_each(|axis| axis.values.sort());
    Ok(grid)
}

/// A grid that gets its scenarios system by system.
struct Begun<'a> {
    experiment: &'a Experiment,
    wanted: &'a Wanted<'a>,
    grid: Grid,
    /// The scenarios that it has.
    seen: BTreeSet<(String, Point)>,
    /// The bytes that its points take.
    spent: usize,
    places: Places,
}

impl Begun<'_> {
    /// Adds the scenarios of a system. Those of a block that does not name a knob say its default, because they stand beside scenarios
    /// of blocks that do.
    fn add(&mut self, manifest: &Manifest) -> Result<(), InputError> {
        let Self { experiment, wanted, grid, seen, spent, places } = self;
        let share = wanted.share(manifest)?;
        let mut beyond = Vec::new();
        for asked in &share.blocks {
            let mut points = Points::new();
            for name in &wanted.named {
                let Some(knob) = share.knob(name) else { continue };
                let values = share.values(asked, name, knob)?;
                points.ask(*spent, name, &values).map_err(|why| {
                    let last = wanted.written(asked, name).and_then(<[Written]>::last);
                    wanted.too_much(format!("with the values of `{name}` {why}"), last)
                })?;
                let mut values = values.into_owned();
                let too_much = values.extract_if(.., |value| knob.beyond(value).is_some());
                beyond.extend(too_much.map(|value| (*name, knob, value)));
                if !values.is_empty() {
                    grid.note(places, experiment, name, knob, &values);
                }
                points.multiply(name, &values);
            }
            let (system, workload) = (&manifest.name, experiment.workload);
            let points = points.spend(spent).into_iter();
            let points: Vec<Point> = points.map(|point| grid.without_idle(point)).collect();
            for point in points.into_iter().filter(|point| seen.insert((system.clone(), point.clone()))) {
                let scenario = Scenario::new(experiment.name.as_str(), system.as_str(), workload, point)
                    .map_err(|why| experiment.source.error(0..0, why, ""))?;
                rate::check(experiment, &scenario)?;
                grid.scenarios.push(scenario);
            }
        }
        grid.leave_out_unspoken(manifest);
        grid.say_beyond(manifest, &beyond);
        Ok(())
    }
}

impl Grid {
    /// The point with one value of each knob that means nothing at it, so that the grid has it only once: the default, or the
    /// first that was asked for.
    fn without_idle(&self, mut point: Point) -> Point {
        let idle: Vec<&Axis> = {
            let idle = |knob: &str| tls::is_idle(knob, &point) || http::is_idle(knob, &point);
            self.axes.iter().filter(|axis| idle(&axis.knob)).collect()
        };
        for axis in idle {
            let default = axis.default.as_ref().filter(|default| axis.values.contains(default));
            if let (Some(value), true) = (default.or(axis.values.first()), point.contains_key(&axis.knob)) {
                point.insert(axis.knob.clone(), value.clone());
            }
        }
        point
    }

    /// Records the values of a knob.
    fn note(
        &mut self,
        places: &mut Places,
        experiment: &Experiment,
        name: &str,
        knob: &Knob,
        values: &[Value],
    ) {
        let axes = &mut self.axes;
        if !places.contains_key(name) {
            places.insert(name.to_owned(), (axes.len(), BTreeSet::new()));
            axes.push(Axis {
                knob: name.to_owned(),
                kind: knob.kind,
                workload: experiment.workload.knob(name).is_some(),
                values: Vec::new(),
                default: Some(knob.default.clone()),
                amount: knob.amount,
            });
        }
        let Some((place, known)) = places.get_mut(name) else { return };
        if let Some(axis) = axes.get_mut(*place) {
            axis.values.extend(values.iter().filter(|value| known.insert((*value).clone())).cloned());
        }
    }
}

fn unknown_knob(
    experiment: &Experiment,
    place: Range<usize>,
    name: &str,
    known: &BTreeSet<&str>,
) -> InputError {
    let message = format!("no system of this experiment has a knob `{name}`");
    experiment.source.error(place, message, suggestion(name, known.iter().copied()))
}

/// Checks that the knob that is asked about and every knob in the form's blocks belong to the workload or to one of the
/// systems. If a manifest is broken, a knob may be its system's, so unknown knobs are ignored.
fn check_knobs(
    experiment: &Experiment,
    form: Form,
    overrides: &Overrides,
    catalog: &Catalog,
) -> Result<(), InputError> {
    let known: BTreeSet<&str> = known_knobs(experiment, overrides, catalog).collect();
    let all_known = experiment.systems.iter().all(|s| catalog.get(s.get_ref()).is_ok());
    if let Some(knob) = experiment.subject.asks.as_ref().and_then(Asks::knob)
        && all_known
        && !known.contains(knob)
    {
        return Err(unknown_knob(experiment, experiment.asks.clone(), knob, &known));
    }
    for block in &experiment.schedule(form).blocks {
        for (knob, _) in &block.axes {
            let name = knob.get_ref().as_str();
            if all_known && !known.contains(name) {
                return Err(unknown_knob(experiment, knob.span(), name, &known));
            }
        }
        for system in block.systems.iter().flatten() {
            let _ = in_file(experiment, system, catalog)?;
        }
    }
    Ok(())
}
