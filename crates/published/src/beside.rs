//! Sets published figures beside a run. Compares shapes, that is ratios to the best of the same rows, and never
//! absolute figures, because those belong to other machines.
//!
//! Pure. A published row is matched to a row of today by its system and its knobs. Knobs that vary in the published
//! table must be equal. Of knobs that were fixed there, the nearest values of today are taken, the same for all rows that
//! are compared with each other, and the difference is reported. Shapes are reported whether they agree or not, and rows
//! that did not run are reported as missing.

mod cliffs;
mod order;
mod pairs;
mod steps;
mod today;

use std::collections::BTreeSet;

use super::{PublishedTable, Rows};
use lab::findings::{
    self, Beside, BestOf, Cell, Column, Difference, Estimate, FigureView, Range, Shape, ShapeFigures, Unit,
    column,
};
use pairs::{Matching, Pair, may_stand, stands_for};
use today::{Today, all, within};

/// Ratios nearer to 1 are no difference. This is about three times the distance of repeated published rows.
const FLAT: f64 = 1.05;
/// Two factors have the same size if neither is more than this many times the other.
const SAME_SIZE: f64 = 1.5;

/// The published tables of an experiment beside its findings, without those of another workload. None if the experiment shows
/// another figure.
pub fn beside(found: &FigureView<'_>) -> Vec<Beside> {
    found.published.iter().filter_map(|name| table_beside(name, found)).collect()
}

fn table_beside(name: &str, found: &FigureView<'_>) -> Option<Beside> {
    let table = super::names().find(|known| *known == name).and_then(|name| super::load(name).ok())?;
    let usual = table.workload.about().figures.first() == Some(&found.figure);
    (table.workload == found.workload && usual).then(|| compare(&table, found))
}

fn compare(table: &PublishedTable, planned: &FigureView<'_>) -> Beside {
    let estimates = planned.estimates;
    let today = &Today::new(planned);
    let matching = Matching::new(table, planned);
    let pairs = matching.pairs();
    let (table_beside, shapes) = match &table.rows {
        Rows::Clients(rows) => order::clients(table, planned, today, &pairs, &matching, rows),
        Rows::Requests(_) => {
            (points(table, planned, &pairs), order::requests(table, today, &pairs, estimates))
        }
        Rows::Upload(_) => (points(table, planned, &pairs), steps::steps(table, &pairs, today)),
        Rows::Frames(_) => (points(table, planned, &pairs), cliffs::cliffs(&pairs, today)),
    };
    let sizes = matches!(table.rows, Rows::Upload(_)) && table.varied().any(|column| column.name == "size");
    let best = match &table.rows {
        Rows::Clients(_) if matching.is_at_same_points() => BestOf::Point,
        Rows::Clients(_) => BestOf::Clients,
        _ if sizes => BestOf::Size,
        _ => BestOf::Rows,
    };
    let mut differences = matching.otherwise(&pairs);
    differences.extend(stand_ins(table, &pairs));
    differences.extend(versions(table, planned));
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

/// The systems whose version today is not the document's, as far as the table says that.
fn versions(table: &PublishedTable, planned: &FigureView<'_>) -> Vec<Difference> {
    let other = |(system, then): (&String, &String)| {
        let stands = |e: &&Estimate| e.trials > 0 && stands_for(table, system, "", e).is_some();
        let name = &planned.estimates.iter().find(stands)?.scenario.system;
        let today = planned.versions.get(name)?;
        let mut words = today.split(|c: char| c.is_whitespace() || ",;()".contains(c));
        let is_other = words.all(|word| word != then);
        is_other.then(|| Difference::Version {
            system: system.clone(),
            then: then.clone(),
            today: today.clone(),
        })
    };
    table.versions.iter().filter_map(other).collect()
}

/// The systems in the document's order.
fn systems_of<'a>(named: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut systems = Vec::new();
    for system in named {
        if !systems.contains(&system) {
            systems.push(system);
        }
    }
    systems
}

/// What did not run today: systems, and rows of systems that ran.
fn missing(table: &PublishedTable, pairs: &[Pair], estimates: &[Estimate]) -> Vec<Difference> {
    let (systems, labels) = (systems_of(table.row_systems()), table.labels());
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
            let compared = pairs.iter().any(|pair| pair.system == name && pair.now.is_some());
            let elsewhere =
                estimates.iter().any(|e| may_stand(table, e) && stands_for(table, name, "", e).is_some());
            match () {
                () if compared => {}
                () if table.setting.unpooled.contains(&system) => {
                    missing.push(Difference::Unpooled { system })
                }
                () if elsewhere => missing.push(Difference::UnrankedThere { system }),
                () => missing.push(Difference::Unranked { system }),
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
fn points(table: &PublishedTable, planned: &FigureView<'_>, pairs: &[Pair]) -> findings::Table {
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
