//! Sets published figures beside a run. Compares shapes, that is ratios to the best of the same rows, and never
//! absolute figures, because those belong to other machines.
//!
//! Pure. A published row is matched to a row of today by its system and its knobs. Knobs that vary in the published
//! table must be equal. For knobs that were fixed there, the nearest row of today is taken, and the difference is
//! reported. Shapes are reported whether they agree or not, and rows that did not run are reported as missing.

mod cliffs;
mod order;
mod steps;
mod today;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use systems::{Point, Value};

use super::{PublishedTable, Rows};
use lab::findings::{
    self, Beside, BestOf, Cell, Column, Difference, Estimate, ExperimentFindings, Findings, Range, Shape,
    ShapeFigures, Unit, column,
};
use today::{Today, all, within};

/// Ratios nearer to 1 are no difference. This is about three times the distance of repeated published rows.
const FLAT: f64 = 1.05;
/// Two factors have the same size if neither is more than this many times the other.
const SAME_SIZE: f64 = 1.5;

/// A published row, and the row of today that corresponds to it.
#[derive(Clone, Copy)]
struct Pair<'a> {
    /// The index of the row in the published table.
    row: usize,
    /// The system, as the document calls it.
    system: &'a str,
    variant: &'a str,
    point: &'a Point,
    /// The published figure. None if it may not be compared.
    then: Option<f64>,
    /// Today's estimate, if it may be compared.
    now: Option<&'a Estimate>,
}

impl Pair<'_> {
    /// Today's figure, the median over rounds.
    fn today(&self) -> Option<f64> {
        self.now?.figure
    }

    /// Both figures, if both exist.
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

/// Adds the published tables of each experiment to its findings, unless a table is of another workload or the
/// experiment shows another figure.
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

fn compare(table: &PublishedTable, planned: &ExperimentFindings) -> Beside {
    let estimates = &planned.estimates;
    let today = &Today::new(planned);
    let (pairs, mut differences) = pairs(table, estimates);
    let (table_beside, shapes) = match &table.rows {
        Rows::Clients(rows) => order::clients(table, rows, planned, today),
        Rows::Requests(_) => {
            (points(table, planned, &pairs), order::requests(table, today, &pairs, estimates))
        }
        Rows::Upload(_) => (points(table, planned, &pairs), steps::steps(table, &pairs, today)),
        Rows::Frames(_) => (points(table, planned, &pairs), cliffs::cliffs(&pairs, today)),
    };
    let sizes = matches!(table.rows, Rows::Upload(_)) && table.varied().any(|column| column.name == "size");
    let best = match &table.rows {
        Rows::Clients(_) => BestOf::Clients,
        _ if sizes => BestOf::Size,
        _ => BestOf::Rows,
    };
    differences.extend(stand_ins(table, &pairs));
    differences.extend(missing(table, &pairs, estimates));
    Beside {
        published: table.name.clone(),
        source: table.source.clone(),
        shapes,
        differences,
        best,
        table: table_beside,
    }
}

/// The published figure of each row. None for rows that may not be compared.
fn figures(table: &PublishedTable) -> Vec<Option<f64>> {
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

/// The value of a knob in a scenario: the one that was set, or else the default of the workload or of the published
/// system.
fn value<'a>(table: &'a PublishedTable, estimate: &'a Estimate, knob: &str) -> Option<&'a Value> {
    let set = estimate.scenario.point.get(knob);
    let default = || estimate.scenario.workload().knob(knob).map(|k| &k.default);
    set.or_else(default).or_else(|| table.defaults.get(knob))
}

/// How far an estimate's system is from one of the document's. Less is better. The order in which the table names
/// systems decides first; then the order of the variants for the row's runtime, with the plain system last. None if the
/// system does not stand for the document's, or is a variant for another runtime.
fn stands_for(
    table: &PublishedTable,
    system: &str,
    variant: &str,
    estimate: &Estimate,
) -> Option<(usize, usize)> {
    let name = estimate.scenario.system.as_str();
    let (plain, name_variant) = name.split_once('@').unwrap_or((name, ""));
    let place = table.systems[system].iter().position(|known| known == plain || known == name)?;
    let other = match table.runtimes.get(variant) {
        Some(variants) if name_variant.is_empty() => variants.len(),
        Some(variants) => variants.iter().position(|known| known == name_variant)?,
        None if name_variant == variant => 0,
        None => 1 + usize::from(!name_variant.is_empty()),
    };
    Some((place, other))
}

/// Of the systems of these estimates, the one that stands best for one of the document's. Rows of several systems are
/// not mixed.
fn stand_in<'a>(
    table: &PublishedTable,
    system: &str,
    variant: &str,
    estimates: impl IntoIterator<Item = &'a Estimate>,
) -> Option<&'a str> {
    let candidates = estimates.into_iter().filter_map(|e| Some((stands_for(table, system, variant, e)?, e)));
    candidates.min_by_key(|(distance, _)| *distance).map(|(_, e)| e.scenario.system.as_str())
}

/// How many of the knobs that were fixed in the published table have the same value today.
fn likeness(table: &PublishedTable, fixed: &Point, estimate: &Estimate) -> usize {
    fixed.iter().filter(|(knob, then)| value(table, estimate, knob) == Some(then)).count()
}

/// The knobs that have the same value in all rows, and those that have no column.
fn fixed(table: &PublishedTable, varied: &BTreeSet<&str>) -> Point {
    let mut fixed = table.fixed.clone();
    for (_, _, point) in table.rows.keys() {
        let same = point.iter().filter(|(knob, _)| !varied.contains(knob.as_str()));
        fixed.extend(same.map(|(knob, value)| (knob.clone(), value.clone())));
    }
    fixed
}

/// Each published row with the corresponding row of today, and the knobs that differ.
fn pairs<'a>(table: &'a PublishedTable, estimates: &'a [Estimate]) -> (Vec<Pair<'a>>, Vec<Difference>) {
    let varied: BTreeSet<&str> = table.varied().map(|column| column.name.as_str()).collect();
    let fixed = fixed(table, &varied);
    let mut otherwise: BTreeMap<&str, BTreeSet<&Value>> = BTreeMap::new();
    let figures = figures(table);
    let mut pairs = Vec::new();
    for (row, (system, variant, point)) in table.rows.keys().into_iter().enumerate() {
        let equal = |estimate: &&Estimate| {
            let mut knobs = point.iter().filter(|(knob, _)| varied.contains(knob.as_str()));
            knobs.all(|(knob, then)| value(table, estimate, knob) == Some(then))
        };
        let name = stand_in(table, system, variant, estimates.iter().filter(|e| e.compares()));
        let of_system = estimates.iter().filter(|e| e.compares() && Some(e.scenario.system.as_str()) == name);
        // If several are equally near, take the first in the plan's order.
        let now = of_system.filter(equal).min_by_key(|e| Reverse(likeness(table, &fixed, e)));
        for (estimate, knob) in now.iter().flat_map(|e| fixed.keys().map(move |knob| (*e, knob))) {
            if let Some(today) = value(table, estimate, knob).filter(|today| **today != fixed[knob]) {
                otherwise.entry(knob).or_default().insert(today);
            }
        }
        pairs.push(Pair { row, system, variant, point, then: figures[row], now });
    }
    let difference = |(knob, today): (&str, BTreeSet<&Value>)| Difference::Knob {
        knob: knob.to_owned(),
        then: fixed[knob].clone(),
        today: today.into_iter().cloned().collect(),
    };
    (pairs, otherwise.into_iter().map(difference).collect())
}

/// The systems that stand for others: another version, another runtime, or what the other is based on.
fn stand_ins(table: &PublishedTable, pairs: &[Pair]) -> Vec<Difference> {
    let mut stand_ins = BTreeSet::new();
    for pair in pairs {
        let Some(estimate) = pair.now else { continue };
        let now = estimate.scenario.system.as_str();
        let Some((place, other)) = stands_for(table, pair.system, pair.variant, estimate) else { continue };
        if other > 0 && now.contains('@') && table.runtimes.contains_key(pair.variant) {
            stand_ins.insert((now, pair.system, Some(pair.variant)));
        } else if place > 0 {
            stand_ins.insert((now, pair.system, None));
        }
    }
    let difference = |(system, stands_for, runtime): (&str, &str, Option<&str>)| Difference::StandIn {
        system: system.to_owned(),
        stands_for: stands_for.to_owned(),
        runtime: runtime.map(str::to_owned),
    };
    stand_ins.into_iter().map(difference).collect()
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

/// What did not run today: systems, and rows of systems that ran.
fn missing(table: &PublishedTable, pairs: &[Pair], estimates: &[Estimate]) -> Vec<Difference> {
    let (systems, labels) = (systems_of(pairs), table.labels());
    let ran = |system: &&str| {
        estimates.iter().any(|e| e.figure.is_some() && stands_for(table, system, "", e).is_some())
    };
    let (ran, absent): (Vec<&str>, Vec<&str>) = systems.iter().partition(|system| ran(system));
    let mut missing = Vec::new();
    if !absent.is_empty() {
        missing.push(Difference::NotRun { systems: absent.into_iter().map(str::to_owned).collect() });
    }
    for name in ran {
        let system = name.to_owned();
        if matches!(table.rows, Rows::Clients(_)) {
            // Clients are compared by their best rows, so single rows need not correspond.
            let ranked = |e: &Estimate| e.ranks() && stands_for(table, name, "", e).is_some();
            if !estimates.iter().any(ranked) {
                missing.push(Difference::Unranked { system });
            }
            continue;
        }
        let of_system: Vec<&Pair> = pairs.iter().filter(|pair| pair.system == name).collect();
        let lacking = of_system.iter().filter(|pair| pair.now.is_none());
        let rows: Vec<String> = lacking.map(|pair| labels[pair.row].clone()).collect();
        if !rows.is_empty() {
            missing.push(Difference::RowsMissing { system, rows, of: of_system.len() });
        }
    }
    missing
}

/// A table of the rows that have both figures, as ratios to the best row of the same runtime and, for uploads, of the
/// same size.
fn points(table: &PublishedTable, planned: &ExperimentFindings, pairs: &[Pair]) -> findings::Table {
    let shown: Vec<&Pair> = pairs.iter().filter(|pair| pair.both().is_some()).collect();
    let uploads = matches!(table.rows, Rows::Upload(_));
    let same_work =
        |a: &Pair, b: &Pair| a.variant == b.variant && (!uploads || a.integer("size") == b.integer("size"));
    let worse = |figure: fn(&Pair) -> Option<f64>, pair: &Pair| {
        let this = figure(pair)?;
        let others = shown.iter().filter(|other| same_work(pair, other)).filter_map(|other| figure(other));
        others.map(|other| planned.figure.advantage(other, this)).max_by(f64::total_cmp)
    };
    let keys: Vec<usize> = (0..table.columns.len())
        .filter(|&index| {
            let column = &table.columns[index];
            let key = column.knob.is_some() || column.name == "system" || column.name == "runtime";
            key && table.varies(column)
        })
        .collect();
    let mut columns: Vec<Column> =
        keys.iter().map(|&index| Column::words(&table.columns[index].name)).collect();
    columns.extend(["published", "today"].map(|name| column(name, Unit::Times)));
    let row = |(index, pair): (usize, &&Pair)| {
        let mut cells: Vec<Cell> = keys.iter().map(|&key| printed(&table.printed[pair.row][key])).collect();
        cells.push(worse(|p| p.then, pair).into());
        cells.push(worse(|p| p.today(), pair).into());
        findings::Row { cells, block: index > 0 && shown[index - 1].variant != pair.variant }
    };
    findings::Table { columns, keys: keys.len(), rows: shown.iter().enumerate().map(row).collect() }
}

fn printed(text: &str) -> Cell {
    if text.is_empty() { Cell::Empty } else { Cell::Text(text.to_owned()) }
}

/// A shape, open where the generator held back one of the rows that it stands on.
fn shape<'a>(
    agrees: Option<bool>,
    figures: ShapeFigures,
    rows: impl IntoIterator<Item = &'a Pair<'a>>,
) -> Shape {
    let held = rows.into_iter().any(|pair| pair.now.is_some_and(Estimate::is_lower_bound));
    let at_limit = held && agrees.is_some();
    Shape { agrees: agrees.filter(|_| !at_limit), at_limit, figures }
}

/// The smallest and the largest number. None if there is none.
fn range(numbers: impl Iterator<Item = f64>) -> Option<Range> {
    numbers.fold(None, |known, n| {
        let Range { low, high } = known.unwrap_or(Range { low: n, high: n });
        Some(Range { low: low.min(n), high: high.max(n) })
    })
}

#[cfg(test)]
mod tests;
