//! A run beside the published figures, in shape: ratios to the best of the same rows, never absolute figures, which
//! belong to other machines.
//!
//! Pure. A published row is found again by its system and its knobs: those that vary in the published table must be
//! equal; of what stood still there, the nearest that ran is taken, and the difference is said. What is found is
//! reported, agreeing or not; what did not run is said to be missing.

mod cliffs;
mod order;
mod steps;
mod today;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use systems::{Point, Value};

use super::{Rows, Table};
use lab::findings::{
    self, Beside, Cell, Column, Estimate, ExperimentFindings, Findings, Shape, Unit, column,
};
use today::{Today, all, within};

/// Ratios nearer to 1 than this are no difference: about three times what rows of one published configuration lie apart.
const FLAT: f64 = 1.05;
/// Two factors are of one size if neither is more than this many times the other.
const SAME_SIZE: f64 = 1.5;

/// As many missing rows are named, more only counted.
const NAMED: usize = 6;

/// A published row and what ran today in its place.
#[derive(Clone, Copy)]
struct Pair<'a> {
    /// The row of the published table.
    at: usize,
    /// As the document calls it.
    system: &'a str,
    variant: &'a str,
    point: &'a Point,
    /// The published figure; None where it may not be compared.
    then: Option<f64>,
    /// The estimate with a figure that may be compared.
    now: Option<&'a Estimate>,
}

impl Pair<'_> {
    /// Today's figure, the median over rounds.
    fn today(&self) -> Option<f64> {
        self.now?.figure
    }

    /// Both figures, where there are both.
    fn both(&self) -> Option<(f64, f64)> {
        Some((self.then?, self.today()?))
    }

    fn integer(&self, knob: &str) -> Option<i64> {
        match self.point.get(knob) {
            Some(Value::Integer(number)) => Some(*number),
            _ => None,
        }
    }
}

/// Puts the published tables of each experiment beside what was found, but for those of other work or of another figure.
pub fn beside(found: &mut Findings) {
    for e in &mut found.experiments {
        e.beside = e.published.iter().filter_map(|name| table_beside(name, e)).collect();
    }
}

fn table_beside(name: &str, found: &ExperimentFindings) -> Option<Beside> {
    let table = super::names().find(|known| *known == name).and_then(|name| super::load(name).ok())?;
    let usual = table.workload.about().figures.first() == Some(&found.figure);
    (table.workload == found.workload && usual).then(|| compare(&table, found))
}

fn compare(table: &Table, planned: &ExperimentFindings) -> Beside {
    let estimates = &planned.estimates;
    let today = &Today::new(planned.figure, planned.design, planned.noise_floor.as_ref());
    let (pairs, mut differences) = pairs(table, planned, estimates);
    let (mut shown, shapes) = match &table.rows {
        Rows::Clients(rows) => order::clients(table, rows, planned, today),
        Rows::Requests(_) => {
            (points(table, planned, &pairs), order::requests(table, today, &pairs, estimates))
        }
        Rows::Upload(_) => (points(table, planned, &pairs), steps::steps(table, &pairs, today)),
        Rows::Frames(_) => (points(table, planned, &pairs), cliffs::cliffs(&pairs, today)),
    };
    differences.extend(stand_ins(table, &pairs));
    differences.extend(missing(table, &pairs, estimates));
    shown.notes.extend(shapes.iter().map(sentence));
    shown.notes.extend(differences.iter().cloned());
    Beside { published: table.name.clone(), source: table.source.clone(), shapes, differences, table: shown }
}

/// The published figure of each row; None of rows that may not be compared.
fn figures(table: &Table) -> Vec<Option<f64>> {
    match &table.rows {
        Rows::Upload(rows) => rows.iter().map(|row| Some(row.measured.mean_ms)).collect(),
        Rows::Frames(rows) => rows.iter().map(|row| Some(row.measured.mean())).collect(),
        Rows::Requests(rows) => {
            rows.iter().map(|row| (!row.measured.void()).then_some(row.measured.requests_per_s)).collect()
        }
        Rows::Clients(rows) => {
            rows.iter().map(|row| row.measured.few_errors().then_some(row.measured.requests_per_s)).collect()
        }
    }
}

/// Where a knob stood in a scenario: as set, else as the workload or the published system has it by default.
fn value<'a>(table: &'a Table, estimate: &'a Estimate, knob: &str) -> Option<&'a Value> {
    let set = estimate.scenario.point.get(knob);
    let own = || estimate.scenario.workload().knob(knob).map(|k| &k.default);
    set.or_else(own).or_else(|| table.defaults.get(knob))
}

/// How well an estimate's system stands for one of the document's, less is better: by the order in which the table
/// names them, then by that of the variants for the row's runtime, then the plain system. None: it does not, and no variant
/// of another runtime does.
fn stands_for(table: &Table, system: &str, variant: &str, estimate: &Estimate) -> Option<(usize, usize)> {
    let name = estimate.scenario.system.as_str();
    let (plain, own) = name.split_once('@').unwrap_or((name, ""));
    let place = table.systems[system].iter().position(|known| known == plain || known == name)?;
    let other = match table.runtimes.get(variant) {
        Some(variants) if own.is_empty() => variants.len(),
        Some(variants) => variants.iter().position(|known| known == own)?,
        None if own == variant => 0,
        None => 1 + usize::from(!own.is_empty()),
    };
    Some((place, other))
}

/// The one system of these estimates that stands for one of the document's best: rows of several are not mixed.
fn stand_in<'a>(
    table: &Table,
    system: &str,
    variant: &str,
    estimates: impl IntoIterator<Item = &'a Estimate>,
) -> Option<&'a str> {
    let each = estimates.into_iter().filter_map(|e| Some((stands_for(table, system, variant, e)?, e)));
    each.min_by_key(|(distance, _)| *distance).map(|(_, e)| e.scenario.system.as_str())
}

/// How many of the knobs that stood still then stand as they did.
fn likeness(table: &Table, still: &Point, estimate: &Estimate) -> usize {
    still.iter().filter(|(knob, then)| value(table, estimate, knob) == Some(then)).count()
}

/// The knobs that have the same value in all rows, and those that no column has.
fn still(table: &Table, varied: &BTreeSet<&str>) -> Point {
    let mut still = table.fixed.clone();
    for (_, _, point) in table.rows.keys() {
        let same = point.iter().filter(|(knob, _)| !varied.contains(knob.as_str()));
        still.extend(same.map(|(knob, value)| (knob.clone(), value.clone())));
    }
    still
}

/// Each published row with what ran in its place, and what stood otherwise.
fn pairs<'a>(
    table: &'a Table,
    planned: &ExperimentFindings,
    estimates: &'a [Estimate],
) -> (Vec<Pair<'a>>, Vec<String>) {
    let varied: BTreeSet<&str> = table.varied().map(|column| column.name.as_str()).collect();
    let still = still(table, &varied);
    let mut otherwise: BTreeMap<&str, BTreeSet<&Value>> = BTreeMap::new();
    let figures = figures(table);
    let mut pairs = Vec::new();
    for (at, (system, variant, point)) in table.rows.keys().into_iter().enumerate() {
        let equal = |estimate: &&Estimate| {
            let mut knobs = point.iter().filter(|(knob, _)| varied.contains(knob.as_str()));
            knobs.all(|(knob, then)| value(table, estimate, knob) == Some(then))
        };
        let own = stand_in(table, system, variant, estimates.iter().filter(|e| e.compares()));
        let own = estimates.iter().filter(|e| e.compares() && Some(e.scenario.system.as_str()) == own);
        // The first of the nearest, in the plan's order.
        let now = own.filter(equal).min_by_key(|e| Reverse(likeness(table, &still, e)));
        for (estimate, knob) in now.iter().flat_map(|e| still.keys().map(move |knob| (*e, knob))) {
            if let Some(today) = value(table, estimate, knob).filter(|today| **today != still[knob]) {
                otherwise.entry(knob).or_default().insert(today);
            }
        }
        pairs.push(Pair { at, system, variant, point, then: figures[at], now });
    }
    let show = |knob: &str, value: &Value| {
        let axis = planned.axes.iter().find(|axis| axis.knob == knob);
        axis.map_or(value.to_string(), |axis| axis.show(value))
    };
    let sentence = |(knob, today): (&str, BTreeSet<&Value>)| {
        let today: Vec<String> = today.into_iter().map(|value| show(knob, value)).collect();
        format!("`{knob}`: {} then, {} today", show(knob, &still[knob]), today.join(", "))
    };
    (pairs, otherwise.into_iter().map(sentence).collect())
}

/// Systems that ran in the place of others: another version, on another runtime, or what the other is made of.
fn stand_ins(table: &Table, pairs: &[Pair]) -> Vec<String> {
    let mut stand_ins = BTreeSet::new();
    for pair in pairs {
        let Some(estimate) = pair.now else { continue };
        let now = estimate.scenario.system.as_str();
        let Some((place, other)) = stands_for(table, pair.system, pair.variant, estimate) else { continue };
        if other > 0 && now.contains('@') && table.runtimes.contains_key(pair.variant) {
            stand_ins.insert(format!("{now} stands for {} with {} today", pair.system, pair.variant));
        } else if place > 0 {
            stand_ins.insert(format!("{now} stands for {} today", pair.system));
        }
    }
    stand_ins.into_iter().collect()
}

/// The systems in the document's order.
fn systems_of<'a>(pairs: &[Pair<'a>]) -> Vec<&'a str> {
    let mut systems = Vec::new();
    for pair in pairs {
        if !systems.contains(&pair.system) {
            systems.push(pair.system);
        }
    }
    systems
}

/// What of the document did not run today: systems, and rows of those that ran.
fn missing(table: &Table, pairs: &[Pair], estimates: &[Estimate]) -> Vec<String> {
    let (systems, labels) = (systems_of(pairs), table.labels());
    let ran = |system: &&str| {
        estimates.iter().any(|e| e.figure.is_some() && stands_for(table, system, "", e).is_some())
    };
    let (ran, absent): (Vec<&str>, Vec<&str>) = systems.iter().partition(|system| ran(system));
    let mut sentences = Vec::new();
    if !absent.is_empty() {
        sentences.push(format!("not run today: {}", absent.join(", ")));
    }
    for system in ran {
        if matches!(table.rows, Rows::Clients(_)) {
            // Clients are compared by their best rows, wherever these are: there need be none in its place.
            let own = |e: &&Estimate| e.ranks() && stands_for(table, system, "", e).is_some();
            if estimates.iter().find(own).is_none() {
                sentences.push(format!("{system} ran, and none of its rows may be ranked"));
            }
            continue;
        }
        let own: Vec<&Pair> = pairs.iter().filter(|pair| pair.system == system).collect();
        let lacking: Vec<&str> =
            own.iter().filter(|pair| pair.now.is_none()).map(|pair| labels[pair.at].as_str()).collect();
        if !lacking.is_empty() {
            let which =
                if lacking.len() <= NAMED { format!(": {}", lacking.join("; ")) } else { String::new() };
            sentences.push(format!(
                "not run today, or without a figure that may be compared: {} of {} published rows of {system}{which}",
                lacking.len(),
                own.len()
            ));
        }
    }
    sentences
}

/// The rows that have both figures, each by the best of its runtime and, of uploads, of its size.
fn points(table: &Table, planned: &ExperimentFindings, pairs: &[Pair]) -> findings::Table {
    let shown: Vec<&Pair> = pairs.iter().filter(|pair| pair.both().is_some()).collect();
    let uploads = matches!(table.rows, Rows::Upload(_));
    let same_work =
        |a: &Pair, b: &Pair| a.variant == b.variant && (!uploads || a.integer("size") == b.integer("size"));
    let worse = |figure: fn(&Pair) -> Option<f64>, pair: &Pair| {
        let own = figure(pair)?;
        let others = shown.iter().filter(|other| same_work(pair, other)).filter_map(|other| figure(other));
        others.map(|other| planned.figure.advantage(other, own)).max_by(f64::total_cmp)
    };
    let keys: Vec<usize> = (0..table.columns.len())
        .filter(|&at| {
            let column = &table.columns[at];
            let key = column.knob.is_some() || column.name == "system" || column.name == "runtime";
            key && table.varies(column)
        })
        .collect();
    let mut columns: Vec<Column> = keys.iter().map(|&at| Column::words(&table.columns[at].name)).collect();
    columns.extend(["published", "today"].map(|name| column(name, Unit::Times)));
    let row = |(at, pair): (usize, &&Pair)| {
        let mut cells: Vec<Cell> = keys.iter().map(|&key| printed(&table.printed[pair.at][key])).collect();
        cells.push(worse(|p| p.then, pair).into());
        cells.push(worse(|p| p.today(), pair).into());
        findings::Row { cells, block: at > 0 && shown[at - 1].variant != pair.variant }
    };
    let better = if planned.figure.more_is_better() { "less" } else { "longer" };
    let of = if uploads && table.varied().any(|c| c.name == "size") {
        "the best of the same size"
    } else {
        "the best of these rows"
    };
    findings::Table {
        title: format!("Beside {}", table.name),
        about: format!(
            "Beside the published table {} ({}): how many times {better} than {of}, then and today.",
            table.name, table.source
        ),
        columns,
        keys: keys.len(),
        rows: shown.iter().enumerate().map(row).collect(),
        notes: Vec::new(),
    }
}

fn printed(text: &str) -> Cell {
    if text.is_empty() { Cell::Empty } else { Cell::Text(text.to_owned()) }
}

/// A shape as today's rounds decide it; where they do not, its sentence says so.
fn decided(agrees: Option<bool>, mut text: String) -> Shape {
    if agrees.is_none() {
        text.push_str("; these rounds do not decide it");
    }
    Shape { agrees, text }
}

/// A shape's words behind its verdict.
fn sentence(Shape { agrees, text }: &Shape) -> String {
    match agrees {
        Some(true) => format!("agrees: {text}"),
        Some(false) => format!("differs: {text}"),
        None => format!("open: {text}"),
    }
}

/// The same shape, open where the generator held back one of the rows that it stands on.
fn unless_held_back<'a>(mut shape: Shape, rows: impl IntoIterator<Item = &'a Pair<'a>>) -> Shape {
    let held = rows.into_iter().any(|pair| pair.now.is_some_and(Estimate::is_lower_bound));
    if held && shape.agrees.is_some() {
        shape.agrees = None;
        shape.text.push_str("; the generator was at its limit: some of today's figures are lower bounds");
    }
    shape
}

/// The smallest and the largest.
fn range(numbers: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    numbers.fold(None, |known, n| {
        let (low, high) = known.unwrap_or((n, n));
        Some((low.min(n), high.max(n)))
    })
}

/// A range of ratios in words: `6.9x`, `6.9x to 9.0x`.
fn shown((low, high): (f64, f64)) -> String {
    let (low, high) = (super::audit::times(low), super::audit::times(high));
    if low == high { low } else { format!("{low} to {high}") }
}

#[cfg(test)]
mod tests;
